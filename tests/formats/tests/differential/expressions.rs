//! Expressions have the values that PostgreSQL gives them.

use std::fs;
use std::process::Command;

use batch_runtime::{BatchRuntime, BatchStatus};
use batch_test_servers::{Kind, shared};
use batch_tests::random::Random;
use batch_tests::slow::times;

/// `a`, `b`, `c`, `s`, `t`; `n` is null.
const ROWS: [[&str; 5]; 4] = [
    ["12.50", "-3", "0.001", "Abc", "b"],
    ["0", "7", "-99999.99", "x_y%z", "ABC"],
    ["-0.5", "1000000", "2.5", "o'Hare", "x"],
    ["3", "0.1", "0.2", "A-1-b", "-"],
];

/// Generates expressions. Each value that an operator needs is there, because null is an error here and unknown there.
struct Generator(Random);

impl Generator {
    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[usize::try_from(self.0.below(texts.len() as u64)).unwrap()]
    }

    fn number(&mut self, depth: u32) -> String {
        let leaf = self
            .one_of(&["a", "b", "c", "2.0", "0.05", "-1.5", "1.0e3", "100.0"])
            .to_owned();
        if depth == 0 {
            return leaf;
        }
        let next = |generator: &mut Self| generator.number(depth - 1);
        match self.0.below(12) {
            0..=4 => {
                let (one, other) = (next(self), next(self));
                let operator = self.one_of(&["+", "-", "*"]);
                format!("{one} {operator} {other}")
            }
            5 => format!("({})", next(self)),
            6 => {
                let digits = self.one_of(&["0", "1", "2", "-1"]);
                format!("round({}, {digits})", next(self))
            }
            7 => {
                // PostgreSQL has 16 digits of a quotient.
                let divisor = self.one_of(&["2.0", "4.0", "3.0", "7.0", "0.3"]);
                format!("round({leaf} / {divisor}, 6)")
            }
            8 => {
                let (name, divisor) = (
                    self.one_of(&["abs", "floor", "ceil"]),
                    self.one_of(&["3.0", "0.7"]),
                );
                format!("{name}(({}) % {divisor})", next(self))
            }
            9 => format!("coalesce(n, {})", next(self)),
            // There, integers are divided as integers, and rounded as floats.
            10 => format!("(length({}) + 0.0)", self.text(depth - 1)),
            _ => format!(
                "case when {} then {} else {leaf} end",
                self.condition(depth - 1),
                next(self)
            ),
        }
    }

    fn text(&mut self, depth: u32) -> String {
        if depth == 0 {
            return self.one_of(&["s", "t", "'A'", "'it''s'", "''"]).to_owned();
        }
        let inner = self.text(depth - 1);
        match self.0.below(8) {
            0 | 1 => format!("({inner} || {})", self.text(depth - 1)),
            2 => format!("lower({inner})"),
            3 => format!("upper({inner})"),
            4 => format!("substring({inner}, {}, {})", 1 + self.0.below(4), self.0.below(4)),
            5 => format!("replace({inner}, 'A', '-')"),
            6 => format!("coalesce(nullif({inner}, 'A'), 'was A')"),
            _ => format!("case when {} then {inner} else t end", self.condition(depth - 1)),
        }
    }

    fn condition(&mut self, depth: u32) -> String {
        let depth = depth.saturating_sub(1);
        match self.0.below(12) {
            0 | 1 => {
                let operator = self.one_of(&["=", "<>", "<", "<=", ">", ">=", "!="]);
                format!("{} {operator} {}", self.number(depth), self.number(depth))
            }
            2 => {
                let operator = self.one_of(&["=", "<>", "<", ">="]);
                format!("{} {operator} {}", self.text(depth), self.text(depth))
            }
            3 => format!(
                "{} in ({}, {})",
                self.number(depth),
                self.number(0),
                self.number(0)
            ),
            4 => format!(
                "{} between {} and {}",
                self.number(depth),
                self.number(0),
                self.number(0)
            ),
            5 => {
                let (negated, pattern) = (
                    self.one_of(&["", "not "]),
                    self.one_of(&["'A%'", "'%b%'", "'_'", "'%-%'"]),
                );
                format!("{} {negated}like {pattern}", self.text(depth))
            }
            6 => {
                let (operator, pattern) = (
                    self.one_of(&["~", "!~", "~*"]),
                    self.one_of(&["'^A'", "'b$'", "'[0-9]+'"]),
                );
                format!("{} {operator} {pattern}", self.text(depth))
            }
            7 => self
                .one_of(&[
                    "n is null",
                    "n is not null",
                    "a is null",
                    "n is distinct from b",
                    "a is not distinct from b",
                ])
                .to_owned(),
            8 => format!("(n is not null and n > {})", self.number(0)),
            9 => format!("not ({})", self.condition(depth)),
            10 => format!("({} or {})", self.condition(depth), self.condition(depth)),
            _ => format!("({} and {})", self.condition(depth), self.condition(depth)),
        }
    }
}

/// Spec: EXPR-01, EXPR-02
#[test]
fn expressions_agree_with_postgres() {
    let mut generator = Generator(Random::new("expressions"));
    let expressions: Vec<String> = (0..times(600, 20_000))
        .map(|number| match number % 3 {
            0 => generator.number(3),
            1 => generator.text(3),
            _ => generator.condition(4),
        })
        .collect();
    for some in expressions.chunks(600) {
        let (ours, theirs) = (ours(some), theirs(some));
        for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let (row, expression) = (ROWS[index / some.len()], &some[index % some.len()]);
            assert_eq!(ours, theirs, "`{expression}` of {row:?}");
        }
        assert_eq!(ours.len(), theirs.len());
    }
}

/// Returns the values that a job writes.
fn ours(expressions: &[String]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let set: Vec<_> = expressions
        .iter()
        .enumerate()
        .map(|(number, expression)| format!("e{number}={expression}"))
        .collect();
    let set = set.join(", ").replace('&', "&amp;").replace('<', "&lt;");
    let job = format!(
        r#"<job id="job"><step id="step"><chunk reader="csvRecordReader" processor="recordProcessor" writer="recordJsonlWriter"><properties>
        <property name="resource" value="{}"/><property name="output" value="{}"/><property name="set" value="{set}"/>
        <property name="types" value="a=decimal, b=decimal, c=decimal"/>
        </properties></chunk></step></job>"#,
        at("in.csv"),
        at("out.jsonl")
    );
    fs::write(at("job.xml"), job).unwrap();
    let rows = ROWS.map(|row| format!("{},\n", row.join(",")));
    fs::write(at("in.csv"), format!("a,b,c,s,t,n\n{}", rows.concat())).unwrap();
    let runtime = BatchRuntime::builder()
        .job_path(folder.path().display().to_string())
        .build()
        .unwrap();
    let id = runtime
        .job_operator()
        .start("job", batch_runtime::JobParameters::new())
        .unwrap();
    let ended = runtime.job_operator().wait(id).unwrap();
    assert_eq!(ended.status, BatchStatus::Completed, "{ended:?}");
    let lines = fs::read_to_string(at("out.jsonl")).unwrap();
    lines
        .lines()
        .flat_map(|line| {
            let record: batch_items::Record = serde_json::from_str(line).unwrap();
            let values: Vec<_> = record
                .iter()
                .skip(6)
                .map(|(_, value)| canonical(&value.to_string()))
                .collect();
            values
        })
        .collect()
}

/// Returns the values that PostgreSQL has, each on a line.
fn theirs(expressions: &[String]) -> Vec<String> {
    let rows = ROWS.map(|[a, b, c, s, t]| {
        let s = s.replace('\'', "''");
        format!("({a}::numeric, {b}::numeric, {c}::numeric, '{s}'::text, '{t}'::text, NULL::numeric)")
    });
    let values: Vec<_> = expressions
        .iter()
        .map(|expression| format!("({expression})::text"))
        .collect();
    let mut found = Vec::new();
    for row in rows {
        let query = format!(
            "SELECT unnest(ARRAY[{}]) FROM (VALUES {row}) AS row (a, b, c, s, t, n)",
            values.join(", ")
        );
        let output = Command::new("psql")
            .args([
                "--no-psqlrc",
                "--quiet",
                "--tuples-only",
                "--no-align",
                "--command",
                &query,
            ])
            .arg(shared(Kind::Postgres).url("postgres"))
            .output()
            .expect("psql runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let text = String::from_utf8(output.stdout).unwrap();
        found.extend(text.lines().map(canonical));
    }
    found
}

/// Returns a number without zeros at its end. The texts of the rows have none after a point.
fn canonical(text: &str) -> String {
    let is_number = text.contains('.')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte));
    match text.strip_prefix('-').unwrap_or(text) {
        unsigned if is_number => {
            let shorter = unsigned.trim_end_matches('0').trim_end_matches('.');
            let sign = if text.starts_with('-') && shorter != "0" {
                "-"
            } else {
                ""
            };
            format!("{sign}{shorter}")
        }
        _ => text.to_owned(),
    }
}
