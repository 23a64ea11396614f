//! Malicious documents: limits, bombs, broken encodings, and arbitrary text.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use batch_xml::{JobXmlErrors, Limits, Resolved, Source, Values, parse, resolve};
use proptest::prelude::*;

use crate::fuzz;

fn run(text: &str, limits: &Limits) -> Result<Resolved, JobXmlErrors> {
    run_source(&Source::new("t.xml", text), &BTreeMap::new(), limits)
}

fn run_source(
    source: &Arc<Source>,
    parameters: &BTreeMap<String, String>,
    limits: &Limits,
) -> Result<Resolved, JobXmlErrors> {
    resolve(
        &parse(source, limits)?,
        &Vec::new(),
        &Values {
            parameters,
            system: &BTreeMap::new(),
        },
        limits,
    )
}

fn codes(result: Result<Resolved, JobXmlErrors>) -> Vec<&'static str> {
    result.map_or_else(|errors| errors.iter().map(|d| d.code).collect(), |_| Vec::new())
}

/// `document` makes a document of the given measure, which must be accepted up to the limit and rejected beyond. Limits
/// prevent documents that would take hours; a slow machine may take longer than expected.
#[track_caller]
fn check_limit(limits: &Limits, limit: usize, code: &str, document: impl Fn(usize) -> String) {
    for (measure, allowed) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
        let found = codes(run(&document(measure), limits));
        let expect: &[&str] = if allowed { &[] } else { &[code] };
        assert_eq!(found, expect, "measure {measure}, limit {limit}");
    }
}

fn job(inner: &str) -> String {
    format!("<job id='j'>{inner}<step id='s'><batchlet ref='B'/></step></job>")
}

/// Limits prevent documents that would take hours: without them this test would not end, so it has a deadline.
#[track_caller]
pub(crate) fn in_time<T>(action: impl FnOnce() -> T) -> T {
    let place = std::panic::Location::caller();
    let (done, wait) = channel::<()>();
    thread::spawn(move || {
        if wait.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
            // Not `eprintln`, whose output libtest keeps for the end of a test that never ends.
            let _ = writeln!(std::io::stderr(), "{place}: no end after {DEADLINE:?}");
            std::process::abort();
        }
    });
    let result = action();
    drop(done);
    result
}

/// Far longer than any of these documents takes on any machine.
const DEADLINE: Duration = Duration::from_secs(600);

#[test]
fn size_of_a_file() {
    let padded = |size: usize| job("") + &" ".repeat(size - job("").len());
    check_limit(&Limits::default(), 4 << 20, "JSL0001", padded);
    let errors = run(&padded((4 << 20) + 1), &Limits::default()).unwrap_err();
    let text = "error[JSL0001]: the file has 4194305 bytes, but the limit is 4194304\n --> t.xml:1:1";
    assert!(errors.to_string().starts_with(text), "{errors}");
}

/// The innermost element of the smallest job is on level 3. Deeper ones are invalid by the schema too.
#[test]
fn depth_of_elements() {
    for (depth, expect) in [(2, Some("JSL0005")), (3, None), (4, None)] {
        let limits = Limits {
            depth,
            ..Limits::default()
        };
        assert_eq!(codes(run(&job(""), &limits)), Vec::from_iter(expect), "{depth}");
    }
    for (levels, code) in [(31, "JSL0010"), (32, "JSL0010"), (33, "JSL0005")] {
        let inner = "<x>".repeat(levels - 1) + &"</x>".repeat(levels - 1);
        let text = format!("<job id='j'>{inner}</job>");
        assert_eq!(codes(run(&text, &Limits::default())), [code], "{levels}");
    }
}

#[test]
fn number_of_elements() {
    let limits = Limits {
        elements: 10_000,
        ..Limits::default()
    };
    check_limit(&limits, 10_000, "JSL0005", |count| {
        // job, step, batchlet and the list are four.
        let list: String = (4..count)
            .map(|n| format!("<property name='{n}' value=''/>"))
            .collect();
        job(&format!("<properties>{list}</properties>"))
    });
}

/// The default suffices for a job of 10,000 steps, each with a list of properties.
#[test]
fn number_of_elements_by_default() {
    let flat = |count: usize| format!("<job id='j'>{}</job>", "<x/>".repeat(count));
    let found = |count| in_time(|| run(&flat(count), &Limits::default()).unwrap_err());
    assert!(found(99_999).iter().all(|error| error.code == "JSL0010"));
    assert!(found(100_000).iter().any(|error| error.code == "JSL0005"));
}

#[test]
fn number_of_attributes() {
    check_limit(&Limits::default(), 64, "JSL0005", |count| {
        let list: String = (1..count).map(|n| format!(" x:a{n}=''")).collect();
        job("").replace("<job id='j'", &format!("<job id='j'{list}"))
    });
}

#[test]
fn length_of_names() {
    check_limit(&Limits::default(), 256, "JSL0005", |length| {
        job("").replace("<job", &format!("<job x:{}=''", "n".repeat(length - 2)))
    });
}

#[test]
fn length_of_values() {
    check_limit(&Limits::default(), 64 << 10, "JSL0005", |length| {
        job(&format!(
            "<properties><property name='n' value='{}'/></properties>",
            "v".repeat(length)
        ))
    });
}

/// Spec: SUBST-10
#[test]
fn length_of_substituted_values() {
    check_limit(&Limits::default(), 64 << 10, "JSL0043", |length| {
        let half = "v".repeat(length / 2);
        let rest = "w".repeat(length - 2 * (length / 2));
        job(&format!(
            "<properties><property name='a' value='{half}'/>
             <property name='b' value='${{a}}${{a}}{rest}'/></properties>"
        ))
    });
}

/// A job parameter counts like any other text.
#[test]
fn length_of_parameters() {
    let limits = Limits::default();
    let source = Source::new(
        "t.xml",
        job("<properties><property name='a' value=''/></properties>"),
    );
    for (length, expect) in [
        ((64 << 10) - 1, None),
        (64 << 10, None),
        ((64 << 10) + 1, Some("JSL0043")),
    ] {
        let parameters = BTreeMap::from([("a".to_owned(), "v".repeat(length))]);
        assert_eq!(
            codes(run_source(&source, &parameters, &limits)),
            Vec::from_iter(expect),
            "{length}"
        );
    }
}

#[test]
fn bytes_of_all_values() {
    let limits = Limits {
        job_value_bytes: 1000,
        ..Limits::default()
    };
    // The ids `j` and `s`, the artifact and the name `a` are four.
    check_limit(&limits, 1000, "JSL0043", |bytes| {
        job(&format!(
            "<properties><property name='a' value='{}'/></properties>",
            "v".repeat(bytes - 4)
        ))
    });
}

/// The list goes to the job and to the batchlet.
#[test]
fn bytes_of_property_lists() {
    let most = 2 * (size_of::<batch_xml::model::Property>() + "a".len());
    for (room, allowed) in [(most - 1, false), (most, true), (most + 1, true)] {
        let limits = Limits {
            property_list_bytes: room,
            ..Limits::default()
        };
        let result = run(
            &job("<properties><property name='a' value=''/></properties>"),
            &limits,
        );
        assert_eq!(result.is_ok(), allowed, "{room}");
    }
}

#[test]
fn number_of_symbols() {
    let limits = Limits {
        symbols: 50,
        ..Limits::default()
    };
    check_limit(&limits, 50, "JSL0043", |count| {
        job(&format!(
            "<properties><property name='a' value=''/><property name='b' value='{}'/></properties>",
            "${a}".repeat(count)
        ))
    });
}

/// Spec: SUBST-10
#[test]
fn depth_of_symbols() {
    check_limit(&Limits::default(), 64, "JSL0043", |depth| {
        // The last property is resolved first, so its value needs all the others.
        let chain = (1..depth)
            .rev()
            .map(|n| format!("<property name='a{n}' value='${{a{}}}'/>", n - 1));
        job(&format!(
            "<properties>{}<property name='a0' value=''/></properties>",
            chain.collect::<String>()
        ))
    });
}

/// Spec: JSL-DOC-18
#[test]
fn entity_bombs_are_refused_at_the_declaration() {
    let mut bomb = "<!DOCTYPE j [<!ENTITY a0 'lol'>".to_owned();
    for n in 1..100 {
        bomb += &format!("<!ENTITY a{n} '&a{};&a{};'>", n - 1, n - 1);
    }
    bomb += "]><job id='&a99;'/>";
    assert_eq!(in_time(|| codes(run(&bomb, &Limits::default()))), ["JSL0004"]);
}

/// Spec: SUBST-10
#[test]
fn substitution_bombs_fail_fast() {
    let doubling = |first: &str, count: usize| {
        let list: String = (1..count)
            .map(|n| format!("<property name='a{n}' value='${{a{0}}}${{a{0}}}'/>", n - 1))
            .collect();
        job(&format!(
            "<properties>{list}<property name='a0' value='{first}'/></properties>"
        ))
    };
    let limits = Limits::default();
    assert_eq!(in_time(|| codes(run(&doubling("x", 40), &limits))), ["JSL0043"]);
    // Empty values never reach the limit of size.
    assert_eq!(in_time(|| codes(run(&doubling("", 60), &limits))), ["JSL0043"]);
    let wrong = in_time(|| codes(run(&doubling("${nothing}", 60), &limits)));
    assert_eq!(wrong, ["JSL0041"]);
}

/// Expensive values that fail in the end: each id composes 900,000 bytes that are discarded.
#[test]
fn wasted_work_is_bounded() {
    let long = "v".repeat(15_000);
    let chain: String = (1..60)
        .map(|n| format!("<property name='a{n}' value='${{a{}}}'/>", n - 1))
        .collect();
    let steps = |symbols: &str| format!("<step id='{symbols}' abstract='true'/>").repeat(3000);
    let text = |symbols: &str| {
        let properties = format!("<properties><property name='a0' value='{long}'/>{chain}</properties>");
        job(&format!("{properties}{}", steps(symbols)))
    };
    let found = in_time(|| codes(run(&text("${a59}${nothing}"), &Limits::default())));
    assert!(found.contains(&"JSL0043"), "{found:?}");
    let found = in_time(|| codes(run(&text("${nothing}"), &Limits::default())));
    assert!(!found.contains(&"JSL0043"), "{found:?}");
}

/// A property of the job is passed to every artifact: many of both must not exhaust the memory.
#[test]
fn many_properties_times_many_artifacts_are_bounded() {
    let properties: String = (0..4000)
        .map(|n| format!("<property name='p{n}' value=''/>"))
        .collect();
    let steps: String = (0..2900)
        .map(|n| format!("<step id='s{n}'><batchlet ref='B'/></step>"))
        .collect();
    let text = format!("<job id='j'><properties>{properties}</properties>{steps}</job>");
    let found = in_time(|| codes(run(&text, &Limits::default())));
    assert_eq!(found, ["JSL0043"]);
}

#[test]
fn masses_of_attributes_and_elements_end_early() {
    let attributes: String = (0..80_000).map(|n| format!(" a{n}=''")).collect();
    let text = job("").replace("<job", &format!("<job{attributes}"));
    assert_eq!(in_time(|| codes(run(&text, &Limits::default()))), ["JSL0005"]);
    for text in [
        "<a>".repeat(100_000),
        "<a>".repeat(100_000) + &"</a>".repeat(100_000),
    ] {
        assert_eq!(in_time(|| codes(run(&text, &Limits::default()))), ["JSL0005"]);
    }
}

/// However deep the limits allow: neither reading nor dropping may overflow the stack.
#[test]
fn limits_cannot_be_raised_beyond_the_stack() {
    let most = usize::MAX;
    let limits = Limits {
        depth: most,
        elements: most,
        symbol_depth: most,
        ..Limits::default()
    };
    let text = "<a>".repeat(100_000) + &"</a>".repeat(100_000);
    assert_eq!(codes(run(&text, &limits)), ["JSL0005"]);
    let chain: String = (1..9000)
        .rev()
        .map(|n| format!("<property name='a{n}' value='${{a{}}}'/>", n - 1))
        .collect();
    let text = job(&format!(
        "<properties>{chain}<property name='a0' value=''/></properties>"
    ));
    assert_eq!(codes(run(&text, &limits)), ["JSL0043"]);
}

#[test]
fn thousands_of_mistakes_are_a_short_report() {
    let steps: String = (0..3000)
        .map(|n| format!("<step id='step-number-{n}' next='step-numbre-{n}' x{n}=''/>"))
        .collect();
    let errors = in_time(|| run(&format!("<job id='j'>{steps}</job>"), &Limits::default()).unwrap_err());
    assert_eq!(errors.iter().count(), 100);
    assert!(
        errors.omitted() > 2900 && errors.to_string().ends_with(" more"),
        "{}",
        errors.omitted()
    );
}

/// Violations of the schema count too, although they are reported later.
#[test]
fn mistakes_not_kept_are_counted() {
    let unknown = "<x/>".repeat(250);
    let text = format!("<job id='j'>{unknown}<step id='s'><batchlet ref='B'/></step></job>");
    let errors = run(&text, &Limits::default()).unwrap_err();
    assert_eq!((errors.iter().count(), errors.omitted()), (100, 150));
}

/// A cycle of thousands of steps is reported without naming them all.
///
/// Spec: SEQ-25
#[test]
fn long_loops_are_one_error() {
    let steps: String = (0..3000)
        .map(|n| {
            format!(
                "<step id='s{n}' next='s{}'><batchlet ref='B'/></step>",
                (n + 1) % 3000
            )
        })
        .collect();
    let errors = in_time(|| run(&format!("<job id='j'>{steps}</job>"), &Limits::default()).unwrap_err());
    let messages: Vec<_> = errors.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages.len(), 1);
    assert!(
        messages[0].contains("`s4` -> … -> ") && messages[0].ends_with("`s2999` -> `s0`"),
        "{messages:?}"
    );
}

/// Spec: JSL-DOC-01, JSL-DOC-02
#[test]
fn nul_and_broken_encodings_are_errors() {
    let limits = Limits::default();
    assert_eq!(codes(run("<job id='j\0'/>", &limits)), ["JSL0003"]);
    let marks = format!("\u{feff}\u{feff}{}", job(""));
    assert_eq!(codes(run(&marks, &limits)), ["JSL0003"]);
    assert_eq!(codes(run(&marks[3..], &limits)), [""; 0]);
    for bytes in [
        &b"\xff\xfe\x3c"[..],
        b"\xef\xbb\xbf\xff",
        b"\x00<\xd8\x00",
        b"\xff",
        b"<\x00\x00\xdc",
    ] {
        let errors = Source::from_bytes("t.xml", bytes, &limits).unwrap_err();
        assert_eq!(
            errors.iter().map(|d| d.code).collect::<Vec<_>>(),
            ["JSL0002"],
            "{bytes:?}"
        );
        assert!(!errors.to_string().is_empty());
    }
}

/// Runs every operation on a text.
fn exercise(source: &Arc<Source>) {
    fuzz::exercise(source, &Vec::new());
}

fn valid_documents() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/jsl/valid");
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.is_file())
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect()
}

/// Fragments of text that resembles Job XML.
fn fragment() -> impl Strategy<Value = String> {
    let words = [
        "<",
        ">",
        "/>",
        "</",
        "=",
        "'",
        "\"",
        "&",
        ";",
        "&#",
        "${",
        "}",
        "${a}",
        " ",
        "\n",
        "\t",
        "<!--",
        "-->",
        "<?xml ",
        "version='1.0'",
        "?>",
        "<![CDATA[",
        "]]>",
        "<!DOCTYPE",
        "job",
        "step",
        "<job id='j'>",
        "</job>",
        "<step id='s'>",
        "</step>",
        "<chunk",
        " next='s'",
        "<batchlet ref='B'/>",
        "<property name='a' value='${b}'/>",
        "<properties>",
        "</properties>",
        "\u{feff}",
        "\u{0}",
        "ä",
        "\u{1f600}",
        "xmlns:x='u'",
        "<flow id='f'/>",
        "<flow id='f'>",
        "</flow>",
        "<split id='p'>",
        "</split>",
        "<decision id='d' decider='D'>",
        "</decision>",
        "<next on='*' to='s'/>",
        "<stop on='?' restart='s'/>",
        "<partition instances='2'>",
        "</partition>",
        "<algorithm ref='A'/>",
        "<property name='a.1' value='${a}'/>",
        " abstract='true'",
        " merge='false'",
        " parent='p'",
        " parent='s'",
    ];
    crate::random::word(&words, 4)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        exercise(&Source::new("t.xml", text));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        match Source::from_bytes("t.xml", &bytes, &Limits::default()) {
            Ok(source) => exercise(&source),
            Err(errors) => drop(errors.to_string()),
        }
    }

    #[test]
    fn text_near_to_job_xml_is_survived(fragments in prop::collection::vec(fragment(), 0..60)) {
        exercise(&Source::new("t.xml", fragments.concat()));
    }

    /// Valid documents with fragments removed and inserted.
    #[test]
    fn mutated_documents_are_survived(
        document in prop::sample::select(valid_documents()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..8, fragment()), 1..6),
    ) {
        let text = crate::random::edited(document, edits);
        exercise(&Source::new("t.xml", text));
    }

    /// Spec: JSL-DOC-11
    #[test]
    fn integers_are_read_as_written(
        value in 1_u32..=2_147_483_647,
        blanks in "[ \t\n]{0,3}",
        before in "[+]?0{0,5}",
    ) {
        let written = format!("{blanks}{before}{value}{blanks}");
        let text = job("").replace("<step", &format!("<step start-limit='{written}'"));
        let job = run(&text, &Limits::default()).unwrap().job;
        let batch_xml::model::ExecutionElement::Step(step) = &job.elements[0] else { unreachable!() };
        prop_assert_eq!(step.start_limit, value);
        prop_assert_eq!(step.id.span.text(), "s");
    }
}
