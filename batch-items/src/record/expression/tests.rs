//! Expressions of one record. `tests/formats` compares them with PostgreSQL.

use super::*;

fn record() -> Record {
    let mut record = Record::new();
    record.set("id", "7");
    record.set("delay", "16");
    record.set("limit", "9");
    record.set("origin", "MUC");
    record.set("hub", "O'Hare");
    record.set("ratio", 0.5);
    record.set("count", 3);
    record.set("note", Value::Null);
    record.set("paid", true);
    record.set("order", "A-1");
    record.set("large", Value::Decimal("9007199254740993".into()));
    record.set("comma", "1.234,50");
    record.set("day", "2026-11-30");
    record
}

fn value(source: &str) -> Result<String, String> {
    let expression = expressions(source)?.remove(0);
    let value = expression.value(&record()).map_err(|error| error.to_string())?;
    Ok(match value {
        Value::Null => "null".to_owned(),
        Value::Text(text) => format!("'{text}'"),
        other => other.to_string(),
    })
}

fn check(source: &str, expected: &str) {
    assert_eq!(value(source).as_deref(), Ok(expected), "{source}");
}

/// Checks the error of a record, which names the record.
fn fails(source: &str, expected: &str) {
    let found = value(source).unwrap_err();
    let cause = found
        .strip_suffix(" in the record with `id` \"7\"")
        .unwrap_or(&found);
    assert_eq!(cause, expected, "{source}");
}

// Spec: EXPR-01
#[test]
fn conditions_are_those_of_sql() {
    for (source, expected) in [
        ("delay > 15", "true"),
        ("delay > 9", "true"),
        ("hub = 'O''Hare'", "true"),
        ("delay>=16 AND delay<=16", "true"),
        ("delay != 16 or origin <> 'FRA'", "true"),
        ("not delay > 15 or paid", "true"),
        ("not (delay > 15 or paid)", "false"),
        ("delay = 1 and delay = 1 or paid", "true"),
        ("delay = 1 and (delay = 1 or paid)", "false"),
        ("origin in ('FRA', 'MUC')", "true"),
        ("count not in (1, 2)", "true"),
        ("delay between 10 and 16", "true"),
        ("delay not between 10 and 16", "false"),
        ("origin like 'M_C'", "true"),
        ("origin like '%c'", "false"),
        ("origin ilike '%c'", "true"),
        ("origin not like 'M%'", "false"),
        ("origin ~ '^M.C$'", "true"),
        ("origin !~ '^M'", "false"),
        ("origin ~* '^m'", "true"),
        ("note is null and delay is not null", "true"),
        ("note is distinct from 'x'", "true"),
        ("note is not distinct from note", "true"),
        ("origin is not distinct from 'MUC'", "true"),
        ("none? is null", "true"),
        ("\"none\"? is null", "true"),
        ("delay? = 16", "true"),
        ("paid = true", "true"),
        ("order = 'A-1'", "true"),
        ("\"order\" = 'A-1'", "true"),
        ("large > 9007199254740992", "true"),
        ("large = 9007199254740992", "false"),
        ("large > 9007199254740992.5", "true"),
        ("ratio < 1", "true"),
        ("delay<=-5", "false"),
        ("origin = delay", "false"),
        ("delay > 12345678901234567890123456789012345678901", "false"),
        ("delay < 1e300 and 1e-70000 < delay and delay > -1e50", "true"),
        ("'10%' like '10\\%' and '10x' not like '10\\%'", "true"),
        ("replace('a-b', '-', '\n') like 'a_b'", "true"),
        ("replace('a-b', '-', '\n') ~ '^a.b$'", "true"),
    ] {
        match value(source) {
            Ok(found) => assert_eq!(found, expected, "{source}"),
            Err(error) => assert!(error.contains(expected), "{source}: {error}"),
        }
    }
    assert!("".parse::<Condition>().unwrap().holds(&record()).unwrap());
}

// Spec: EXPR-02
#[test]
fn decimals_are_exact() {
    check("0.1 + 0.2", "0.3");
    check("0.1 + 0.2 = 0.3", "true");
    check("delay * 1.19", "19.04");
    check("1 + 2 * 3 - 4", "3");
    check("(1 + 2) * 3", "9");
    check("-delay - (-1)", "-15");
    check("2 - - 1", "3");
    check("abs(-18446744073709551616) * 2", "36893488147419103232");
    check("7 - 2 - 1", "4");
    check("10 / 4", "2.5");
    check("1 / 3", "0.33333333333333333333");
    check("7 % 4", "3");
    check("round(2.345, 2)", "2.35");
    check("round_half_even(2.345, 2)", "2.34");
    check("round(ratio)", "1");
    check("floor(-1.5) || '/' || ceil(-1.5)", "'-2/-1'");
    check("abs(-2.50)", "2.50");
    check("large + 1", "9007199254740994");
    check("from_comma(comma) * 2", "2469.00");
    check("to_comma(from_comma(comma))", "'1234,50'");
    check("cast(delay as int) + count", "19");
    check("cast(delay as text) || 'x'", "'16x'");
    check("cast(3.00 as int)", "3");
    fails("delay / 0", "`delay / 0` divides by zero");
    fails("cast(3.5 as int)", "`3.5`: expected an integer, found \"3.5\"");
    let long = format!("{0} * {0}", "9".repeat(30));
    fails(
        &long,
        &format!("`{long}` has more than 38 digits, or more than 100 after the point"),
    );
}

// Spec: EXPR-01
#[test]
fn functions_take_and_return_values() {
    check("coalesce(note, origin)", "'MUC'");
    check("coalesce(none?, note, 0)", "0");
    check("coalesce(note, none?)", "null");
    check("nullif(origin, 'MUC')", "null");
    check("nullif(origin, 'FRA')", "'MUC'");
    check("nullif(origin, note)", "'MUC'");
    check("nullif(note, origin)", "null");
    check("lower(origin) || upper('ß')", "'mucSS'");
    check("trim('  a ')", "'a'");
    check("length('Zürich')", "6");
    check("substring('Zürich', 2, 3)", "'üri'");
    check("substring('Zürich', 5)", "'ch'");
    check("split_part(order, '-', 2)", "'1'");
    check("split_part(order, '-', 3)", "null");
    check("replace('a.b.c', '.', '')", "'abc'");
    check("lpad(delay, 5, '0')", "'00016'");
    check("case when delay > 15 then 'late' else 'on time' end", "'late'");
    check("case when delay > 60 then 'late' end", "null");
    check("date('30.11.2026', '%d.%m.%Y')", "'2026-11-30'");
    check("format_date(day, '%Y%m')", "'202611'");
}

// Spec: EXPR-03
#[test]
fn null_is_an_error_where_a_value_is_needed() {
    let null = |value: &str| {
        format!(
            "`note` is null; test `note is not null` before, or give it a value, such as `coalesce(note, {value})`"
        )
    };
    for source in [
        "note > 1",
        "note + 1",
        "note in (1, 2)",
        "note between 1 and 2",
        "round(note)",
        "-note",
        "not note",
    ] {
        fails(source, &null("0"));
    }
    for source in [
        "note = 'x'",
        "note <> 'x'",
        "note || 'x'",
        "note ~ 'x'",
        "note like 'x'",
        "length(note)",
        "lower(note)",
    ] {
        fails(source, &null("''"));
    }
    check("note is not null and note > 1", "false");
    check("note is null or note > 1", "true");
}

// Spec: EXPR-03
#[test]
fn what_is_not_there_or_of_another_type_is_an_error() {
    fails(
        "comma > 100",
        "field `comma`: expected a number, found \"1.234,50\"",
    );
    fails(
        "origin = true",
        "field `origin`: expected `true` or `false`, found \"MUC\"",
    );
    fails("paid > 0", "field `paid`: expected a number, found \"true\"");
    fails(
        "origin and paid",
        "field `origin`: expected `true` or `false`, found \"MUC\"",
    );
    fails(
        "lower(origin) + 1",
        "`lower(origin)`: expected a number, found \"muc\"",
    );
    fails(
        "year(origin)",
        "`origin`: expected a date such as `2026-12-31`, found \"MUC\"",
    );
    fails(
        "date(day, '%d.%m.%Y')",
        "`day`: expected a date such as `31.12.2026`, not `2026-11-30`",
    );
    fails(
        "lpad(origin, 2)",
        "`origin`: \"MUC\" does not fit into 2 characters",
    );
    fails("substring(origin, 0)", "`0`: expected at least 1, found 0");
    let missing = value("dely > 15").unwrap_err();
    assert!(
        missing.starts_with("the record has no field `dely`, but `id`, `delay`"),
        "{missing}"
    );
}

/// Two fields of a file of text: as texts, `16` is less than `9`.
// Spec: EXPR-03
#[test]
fn texts_that_compare_in_another_way_as_numbers_are_an_error() {
    fails(
        "delay > limit",
        "`delay` and `limit` are texts, \"16\" and \"9\", which compare as numbers in another way; write `cast(delay as decimal)`",
    );
    for source in ["trim(delay) > limit", "delay || '' > limit", "delay > '9'"] {
        assert!(
            value(source)
                .unwrap_err()
                .contains("which compare as numbers in another way"),
            "{source}"
        );
    }
    check("'16.0' = delay", "false");
    check("delay between '10' and '20'", "true");
    check("cast(delay as decimal) > limit", "true");
    check("delay <> limit", "true");
    check("delay > order", "false");
}

/// Mistakes, and a part of the error.
const MISTAKES: &[(&str, &str)] = &[
    (
        "status = 'A' or",
        "expected a value, found the end at character 16 of `status = 'A' or`",
    ),
    (
        "status = 'A' or 'B'",
        "expected a condition, found a text, `'B'`, at character 17",
    ),
    ("status == 'A'", "found `==`; `=` compares, at character 8"),
    ("a = 1 && b = 2", "found `&&`; write `and`, at character 7"),
    ("!a", "found `!`; write `not`"),
    ("a = 1; b = 2", "found `;`; one expression has no `;`"),
    (
        "1 < a < 5",
        "a comparison does not continue; join two of them by `and`, at character 7",
    ),
    ("amount > 1.234,50", "expected an operator or the end, found `,`"),
    ("amount > $5 x", "expected an operator or the end, found `x`"),
    ("amount => 5", "expected a value, found `>`"),
    ("status = 'A", "the quote ' is not closed at character 10"),
    ("status = 'A' 'B'", "expected an operator or the end, found `'B'`"),
    (
        "status = null",
        "nothing equals null; test `is null` or `is not null`",
    ),
    ("status in (null)", "nothing equals null"),
    ("status in 'A'", "expected `(` after `in`"),
    (
        "status is",
        "expected `null`, `not null` or `distinct from` after `is`",
    ),
    ("status is nothing", "expected `null`"),
    ("status not 'A'", "expected `in`, `between` or `like` after `not`"),
    ("status ~", "expected a regular expression in single quotes"),
    ("status ~ other", "expected a regular expression in single quotes"),
    (
        "status ~ '('",
        "the regular expression `(`: unclosed group, at character 10 of `status ~ '('`",
    ),
    (
        "day > 2026-11-26",
        "`2026-11-26` is not a number; write `'2026-11-26'` for a text",
    ),
    ("code = 007", "`007` is not a number"),
    ("code = 7x", "`7x` is not a number"),
    (
        "lowr(status) = 'a'",
        "there is no function `lowr`; did you mean `lower`?, at character 1",
    ),
    ("round() > 1", "`round` takes 1 to 2 arguments, not 0,"),
    ("'a' + 1", "expected a number, found a text, `'a'`"),
    ("amount + 1", "expected a condition, found a number, `amount + 1`"),
    ("(a = 1", "expected `)`, found the end"),
    ("a = 1)", "expected an operator or the end, found `)`"),
    (
        "between = 1",
        "expected a value, or \"between\" for a field of this name, found `between`",
    ),
    ("case a when 1 then 2 end", "expected `when` after `case`"),
    (
        "cast(a as float) > 1",
        "expected one of the types `int`, `decimal`, `text` and `boolean`",
    ),
    ("a = €", "unexpected `€` at character 5"),
    ("5 = 'x'", "expected a number, found a text, `'x'`"),
    ("null", "null is not a value here, at character 1 of `null`"),
    ("a::int = 1", "found `::`; write `cast(value as int)`"),
    ("a > 5 --limit", "found `--`; a comment is not possible"),
    ("true? = 1", "expected \"true\"? for a field of this name"),
    ("a = 1e", "`1e` is not a number"),
    (
        "a * 1e50 = 1",
        "expected a number of at most 38 digits at character 5",
    ),
    ("a like 'x\\'", "a backslash in a pattern precedes"),
    (
        "date(a, '%d.%m') = ''",
        "needs a year, a month and a day at character 9",
    ),
    ("date(a, '%d.%m.%Y %I') = ''", "has hours of half a day"),
    ("(a = 1) > 5", "expected a condition, found a number, `5`"),
];

// Spec: EXPR-04
#[test]
fn what_is_not_understood_is_rejected_with_its_place() {
    for (source, expected) in MISTAKES {
        let error = source.parse::<Condition>().unwrap_err();
        assert!(error.contains(expected), "{source}: {error}");
    }
    let deep = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
    for source in [deep, "not ".repeat(5_000) + "a", "- ".repeat(5_000) + "a = 1"] {
        let error = source.parse::<Condition>().unwrap_err();
        assert!(
            error.starts_with("the expression has more than 100 levels; compute a part"),
            "{error}"
        );
    }
    let chains = ["a = 1 or ", "a = 1 and "].map(|part| part.repeat(5_000) + "a = 1");
    for chain in chains.into_iter().chain(["a || ".repeat(5_000) + "a = 'b'"]) {
        assert!(chain.parse::<Condition>().is_ok());
    }
    assert!(("a + ".repeat(200) + "a = 1").parse::<Condition>().is_err());
}

// Spec: EXPR-01
#[test]
fn a_list_assigns_fields() {
    let assigned = assignments("a = 1, \"b c\"='x,y', d=round(a, 2) = 1").unwrap();
    let shown: Vec<_> = assigned
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.text()))
        .collect();
    assert_eq!(shown, ["a: 1", "b c: 'x,y'", "d: round(a, 2) = 1"]);
    assert!(assignments(" ").unwrap().is_empty());
    for source in ["a", "a=", "a=1,", "1=a", "a=1 b=2", "a?=1", "\"a\"?=1"] {
        assert!(assignments(source).is_err(), "{source}");
    }
}

// Spec: EXPR-01
#[test]
fn the_guide_describes_each_function() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/expressions.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for function in super::functions::FUNCTIONS {
        assert!(guide.contains(&format!("`{}(", function.name)), "{function:?}");
    }
}

/// A field whose name ends with `?` is in quotes.
// Spec: EXPR-01
#[test]
fn names_in_quotes_are_as_they_are() {
    let mut record = Record::new();
    record.set("paid?", "J");
    let holds = |source: &str| source.parse::<Condition>().unwrap().holds(&record);
    assert!(holds("\"paid?\" = 'J' and `paid?` is not null and \"paid\"? is null").unwrap());
    assert!(holds("paid = 'J'").is_err());
}

/// Each part is evaluated once, and texts have a limit.
// Spec: EXPR-04
#[test]
fn nested_calls_take_linear_time() {
    for (function, end) in [("nullif(", ", 'x')"), ("from_comma(", ")"), ("coalesce(", ", 1)")] {
        let source = function.repeat(90) + "delay" + &end.repeat(90);
        check(&format!("cast({source} as text)"), "'16'");
    }
    let distinct = "(".repeat(45) + "delay" + &" is distinct from 'true')".repeat(45);
    assert!(value(&distinct).is_ok());
    let long = "replace(".repeat(12) + "'xxxxx'" + &", 'x', 'xxxxxxxxxx')".repeat(12);
    assert!(
        value(&long)
            .unwrap_err()
            .contains("would be longer than 16777216 bytes")
    );
}

// Spec: EXPR-06
#[test]
fn values_of_lists_and_objects() {
    let mut record = record();
    record.set(
        "party",
        Value::Json(r#"{"Nm":"Ada \"L\"","Amt":{"@Ccy":"EUR","$text":"12.30"},"n":900719925474099301.10,"tags":["a",{"b":null}],"x y":true}"#.into()),
    );
    for (path, expected) in [
        ("$.Nm", Ok("Ada \"L\"")),
        ("$.Amt.@Ccy", Ok("EUR")),
        (r#"$.Amt."$text""#, Ok("12.30")),
        ("$.Amt[0].$text", Ok("12.30")),
        ("$.Amt[1].$text", Ok("")),
        ("$.n", Ok("900719925474099301.10")),
        ("$.tags[0]", Ok("a")),
        ("$.tags[1].b", Ok("")),
        ("$.tags[2]", Ok("")),
        (r#"$."x y""#, Ok("true")),
        ("$.Nm.first", Ok("")),
        ("$.missing.name", Ok("")),
        ("$.Amt", Ok("12.30")),
        ("$.tags[1].c", Ok("")),
        ("$", Err("there is an object at the path")),
        ("$.tags", Err("there is a list at the path")),
        ("$.tags.b", Err("choose an element, such as `[0]`")),
    ] {
        let expression = expressions(&format!("json_value(party, '{path}')"))
            .unwrap()
            .remove(0);
        let found = expression.value(&record).map_err(|error| error.to_string());
        match expected {
            Ok(text) => assert_eq!(found.unwrap().to_string(), text, "{path}"),
            Err(cause) => assert!(found.as_ref().unwrap_err().contains(cause), "{path}: {found:?}"),
        }
    }
    assert!(value("json_value('7', '$.a') is null").is_ok_and(|found| found == "true"));
    for text in ["{", "hello", "", "{'a':1}", "\u{feff}{\"a\":1}"] {
        let found = value(&format!("json_value('{}', '$.a')", text.replace('\'', "''")));
        assert!(
            found.as_ref().unwrap_err().contains("it is not JSON"),
            "{text}: {found:?}"
        );
    }
    let twice = value(r#"json_value('{"a":1,"a":2}', '$.a')"#).unwrap_err();
    assert!(twice.contains("two fields have the name `a`"), "{twice}");
    for path in ["party", "$.", "$.tags[x]", "", "$..a", "$.b[*]"] {
        let cause = value(&format!("json_value(origin, '{path}')")).unwrap_err();
        assert!(
            cause.contains("expected a path such as") && cause.contains("at character"),
            "{cause}"
        );
    }
}
