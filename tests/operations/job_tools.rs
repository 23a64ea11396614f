//! The commands that inspect a job and start nothing: `explain`, `graph`, `check`.

use std::fs;
use std::path::Path;

use batch_tests::process::run_expecting;
use serde_json::Value;

/// A job with every kind of transition, which need not be runnable.
const JOB: &str = r#"<job id="tour">
  <properties><property name="dir" value="in"/></properties>
  <step id="first" next="choose">
    <properties><property name="seen" value="${dir}/x"/></properties>
    <batchlet ref="Greeter"><properties>
      <property name="name" value="${who}"/><property name="nobody" value="1"/>
    </properties></batchlet>
  </step>
  <decision id="choose" decider="Chooser">
    <next on="FLOW" to="work"/><end on="DONE" exit-status="ENOUGH"/>
    <stop on="WAIT" restart="first"/><fail on="*"/>
  </decision>
  <flow id="work" next="both">
    <step id="parts">
      <batchlet ref="Greeter"/>
      <partition instances="2"><properties>
        <property name="name.1" value="Ada"/><property name="name.2" value="Grace"/>
      </properties></partition>
    </step>
  </flow>
  <split id="both">
    <flow id="left"><step id="l"><batchlet ref="Greeter"/></step></flow>
    <flow id="right"><step id="r"><batchlet ref="Greeter"/></step></flow>
  </split>
</job>
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tour.xml"), JOB).unwrap();
    folder
}

fn explain(folder: &Path, arguments: &[&str]) -> String {
    let verb = ["explain", "tour", "--job-path", "."];
    run_expecting(0, "hello", folder, &[&verb, arguments].concat()).0
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the lines without the spaces that align them.
fn words(text: &str) -> Vec<String> {
    let lines = text.lines();
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// Spec: OVR-02, OVR-04, BPROP-05, SUBST-07, PART-12
#[test]
fn explain_prints_the_origin_of_every_value() {
    let folder = folder();
    let text = explain(folder.path(), &["who=Ada", "month=May"]);
    let found = words(&text);
    for line in [
        "job tour ./tour.xml:1:10",
        r#"dir = "in" ./tour.xml:2:43"#,
        "step first ./tour.xml:3:3",
        r#"runs Greeter (name = "Ada")"#,
        "next: choose, start-limit: 0, allow-start-if-complete: false",
        r#"seen = "in/x" ./tour.xml:4:46, written "${dir}/x""#,
        "batchlet Greeter hello::Greeter at examples/hello/main.rs:19",
        r#"name = "Ada" ./tour.xml:6:36, written "${who}""#,
        "decider Chooser NOT FOUND: unknown decider `Chooser` (./tour.xml:9:34)",
        r#"on "FLOW": next work ./tour.xml:10:5"#,
        r#"on "DONE": end exit-status "ENOUGH" ./tour.xml:10:32"#,
        r#"on "WAIT": stop restart "first" ./tour.xml:11:5"#,
        r#"on "*": fail ./tour.xml:11:38"#,
        r#"name = one for each partition ./tour.xml:17:40, written "Ada""#,
        "each of 2 partitions runs Greeter (name of the partition)",
        "instances: 2",
        r#"name.2 = "Grace" ./tour.xml:17:77"#,
        r#"name = "world" default of the field"#,
        "property nobody ./tour.xml:6:61: unused",
        "parameter month unused: it only identifies the instance",
    ] {
        assert!(
            found.iter().any(|found| found == line),
            "{line:?} is missing in\n{text}"
        );
    }
    // A parameter with the partition's number replaces the value in the XML.
    let text = explain(folder.path(), &["who=Ada", "month=May", "name.2=Joan"]);
    let line = r#"name.2 = "Joan" job parameter, written "Grace" ./tour.xml:17:77"#;
    assert!(words(&text).iter().any(|found| found == line), "{text}");
    let order = ["job ", "step first", "decision choose", "flow work", "split both"];
    let places: Vec<usize> = order.iter().map(|start| text.find(start).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");

    let text = explain(folder.path(), &["who=x", "name=Eve"]);
    assert!(
        words(&text).contains(&r#"name = "Eve" job parameter"#.to_owned()),
        "{text}"
    );
    let text = explain(folder.path(), &["who=x", "-Dname=Eve"]);
    assert!(
        words(&text).contains(&r#"name = "Eve" system property"#.to_owned()),
        "{text}"
    );
}

/// A property that only another artifact declares is unused at its place.
///
/// Spec: BPROP-11, JSL-CHPROP-04
#[test]
fn explain_reports_an_unused_property() {
    let folder = tempfile::tempdir().unwrap();
    let flights = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/flights/flights.xml");
    let right = fs::read_to_string(flights).unwrap();
    let explain = |text: &str| {
        fs::write(folder.path().join("flights.xml"), text).unwrap();
        run_expecting(
            0,
            "flights",
            folder.path(),
            &["explain", "flights", "--job-path", "."],
        )
        .0
    };
    let text = explain(&right);
    assert!(!text.contains(": unused"));
    let sentence = "airports.csv\"), processes with recordProcessor, writes with \
                    recordTableWriter (table = \"airport\", columns = \"iata, name, city, state\", mode = \"upsert\", key = \"iata\"), and \
                    commits every 1000 items";
    assert!(
        text.contains("    reads with csvRecordReader (resource = \""),
        "{text}"
    );
    assert!(text.contains(sentence), "{text}");
    let text = explain(&right.replace(r#"target="processor""#, r#"target="reader""#));
    assert!(
        words(&text)
            .iter()
            .any(|line| line.starts_with("property minimum.miles ") && line.ends_with(": unused")),
        "{text}"
    );
}

#[test]
fn explain_gives_programs_json() {
    let folder = folder();
    let job = json(&explain(folder.path(), &["who=Ada", "month=May", "--json"]));
    assert_eq!((&job["element"], &job["id"]), (&"job".into(), &"tour".into()));
    assert_eq!(job["unusedParameters"][0], "month");
    assert_eq!(job["unusedProperties"][0]["name"], "nobody");
    let first = &job["elements"][0];
    assert_eq!(first["place"]["line"], 3);
    let artifact = &first["artifacts"][0];
    assert_eq!(
        (&artifact["as"], &artifact["ref"]),
        (&"batchlet".into(), &"Greeter".into())
    );
    assert_eq!(artifact["types"][0]["type"], "hello::Greeter");
    assert_eq!(
        (&artifact["types"][0]["file"], &artifact["types"][0]["line"]),
        (&"examples/hello/main.rs".into(), &19.into())
    );
    let name = &artifact["properties"][0];
    assert_eq!((&name["value"], &name["from"]), (&"Ada".into(), &"xml".into()));
    assert_eq!(
        (&name["written"], &name["place"]["column"]),
        (&"${who}".into(), &36.into())
    );
    assert_eq!(
        (&name["field"], &name["type"]),
        (&"name".into(), &"alloc::string::String".into())
    );
    let decision = &job["elements"][1];
    assert_eq!(decision["artifacts"][0]["problem"], "unknown decider `Chooser`");
    assert_eq!(decision["transitions"][2]["restart"], "first");
    let parts = &job["elements"][2]["elements"][0];
    assert_eq!(parts["partition"]["attributes"]["instances"], 2);
    assert_eq!(parts["partition"]["properties"][1]["value"], "Grace");
    let name = &parts["artifacts"][0]["properties"][0];
    assert_eq!(
        (&name["value"], &name["from"]),
        (&Value::Null, &"partition".into())
    );
    assert_eq!(job["elements"][3]["elements"][1]["id"], "right");
}

/// Nothing is started, and an invalid definition is not explained.
#[test]
fn explain_needs_a_valid_definition() {
    let folder = folder();
    let missing = ["explain", "tour", "--job-path", "."];
    let (out, err) = run_expecting(2, "hello", folder.path(), &missing);
    assert!(
        out.is_empty() && err.contains("the symbol `who` has no value"),
        "{out}{err}"
    );
    let (_, err) = run_expecting(2, "hello", folder.path(), &["explain", "tuor", "--job-path", "."]);
    assert!(err.contains("did you mean `tour`?"), "{err}");
    assert!(!folder.path().join("batch.db").exists());
}

#[test]
fn graph_draws_the_resolved_job() {
    let folder = folder();
    let graph = |arguments: &[&str]| {
        let verb = ["graph", "tour", "--job-path", ".", "who=Ada"];
        run_expecting(0, "hello", folder.path(), &[&verb, arguments].concat()).0
    };
    let svg = graph(&[]);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!(graph(&["--format", "svg"]), svg);
    assert!(graph(&["--format", "dot"]).starts_with("digraph \"tour\" {\n"));
    assert!(graph(&["--format", "mermaid"]).starts_with("flowchart TD\n"));
    assert_eq!(graph(&["-o", "tour.svg"]), "");
    assert_eq!(fs::read_to_string(folder.path().join("tour.svg")).unwrap(), svg);

    let nowhere = ["graph", "tour", "--job-path", ".", "who=x", "-o", "no/such/x.svg"];
    let (_, err) = run_expecting(2, "hello", folder.path(), &nowhere);
    assert!(err.starts_with("error: cannot write `no/such/x.svg`: "), "{err}");
    let (_, err) = run_expecting(2, "hello", folder.path(), &["graph", "tour", "--job-path", "."]);
    assert!(err.contains("the symbol `who` has no value"), "{err}");
    assert!(!folder.path().join("batch.db").exists());
}

/// Spec: LOADER-08, JSL-DOC-02
#[test]
fn check_gives_programs_every_diagnostic() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, xml: &str| fs::write(folder.path().join(name), xml).unwrap();
    write(
        "typo.xml",
        "<job id='typo'>\n  <step id='one' next='tow'><batchlet ref='Greeter'/></step>\n  \
         <step id='two'><batchlet ref='Greeter'/><stop on='A' restart='one'/><stop on='A' restart='on'/></step>\n</job>",
    );
    write(
        "good.xml",
        "<job id='good'>\n  <step id='one'><batchlet ref='Greeter'/></step>\n  \
         <step id='two'><batchlet ref='Greeter'/></step>\n</job>",
    );
    write("broken.xml", "<job id='broken'>\n  <stepp id='ä'>\n</job>");
    write("root.xml", "<jobb id='x'/>");
    let all = ["check", "--json", "--job-path", "."];
    let (out, err) = run_expecting(2, "hello", folder.path(), &all);
    assert_eq!(err.matches("error").count(), 0, "{err}");
    let findings = json(&out);
    let of = |job: Value| {
        let mut found = findings.as_array().unwrap().iter();
        found.find(|finding| finding["job"] == job).unwrap()
    };

    let typo = of("typo".into());
    assert_eq!((&typo["right"], &typo["omitted"]), (&false.into(), &0.into()));
    assert!(
        typo["report"].as_str().unwrap().starts_with("error[JSL0012]: "),
        "{typo}"
    );
    let diagnostics = typo["diagnostics"].as_array().unwrap();
    let expected: Value = serde_json::from_str(
        r#"{
            "code": "JSL0012", "severity": "error",
            "message": "`next` refers to an unknown element `tow`",
            "file": "./typo.xml", "line": 2, "column": 24, "endLine": 2, "endColumn": 27,
            "label": "no step, flow, split or decision has this id",
            "help": "did you mean `two`?", "related": []
        }"#,
    )
    .unwrap();
    assert_eq!(diagnostics[0], expected);
    let shadowed = diagnostics.iter().find(|one| one["code"] == "JSL0053").unwrap();
    assert_eq!(shadowed["severity"], "warning");
    assert_eq!(
        (&shadowed["related"][0]["line"], &shadowed["related"][0]["file"]),
        (&3.into(), &"./typo.xml".into())
    );

    let good = of("good".into());
    assert_eq!(good["right"], true);
    assert_eq!(good["diagnostics"][0]["code"], "JSL0051");

    // Diagnostics about the job path have no job, and say so if they have no place.
    let broken = findings
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["job"].is_null());
    let broken: Vec<&Value> = broken
        .flat_map(|one| one["diagnostics"].as_array().unwrap())
        .collect();
    let of_file = |name: &str| broken.iter().find(|one| one["file"] == name).unwrap();
    assert_eq!(
        (&of_file("./broken.xml")["code"], &of_file("./broken.xml")["line"]),
        (&"JSL0003".into(), &2.into())
    );
    let root = of_file("./root.xml");
    assert_eq!((&root["code"], &root["line"]), (&Value::Null, &Value::Null));
    assert_eq!(root["help"], "did you mean `job`?");

    let unknown = ["check", "godo", "--json", "--job-path", "."];
    let (out, _) = run_expecting(2, "hello", folder.path(), &unknown);
    let message = json(&out)[0]["diagnostics"][0]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.starts_with("unknown job `godo`"), "{message}");
}

/// An algorithm may plan a property, which is not known before; `explain` reports that.
///
/// Spec: PART-20, PART-21
#[test]
fn explain_reports_properties_that_an_algorithm_may_plan() {
    let folder = tempfile::tempdir().unwrap();
    let (text, _) = run_expecting(0, "partitions", folder.path(), &["explain", "partitions"]);
    let line = "month = - `month: String` is not set, unless `Months` plans it (optional)";
    assert!(words(&text).iter().any(|found| found == line), "{text}");
}

/// A value that refers to a property of the partitions is known only in them.
///
/// Spec: PART-12, SUBST-09
#[test]
fn explain_shows_no_value_that_only_partitions_have() {
    let folder = tempfile::tempdir().unwrap();
    let job = r#"<job id="tour"><step id="letters">
        <batchlet ref="Greeter"><properties><property name="name" value="dear ${who}"/></properties></batchlet>
        <partition instances="2"><properties>
            <property name="who.1" value="Ada"/><property name="who.2" value="Grace"/>
        </properties></partition>
    </step></job>"#;
    fs::write(folder.path().join("tour.xml"), job).unwrap();
    let tour = json(&explain(folder.path(), &["--json"]));
    let name = &tour["elements"][0]["artifacts"][0]["properties"][0];
    assert_eq!(
        (&name["name"], &name["value"], &name["from"]),
        (&"name".into(), &Value::Null, &"partition".into())
    );
    assert_eq!(name["written"], "dear ${who}");
}

/// Lists of exception classes are printed as text, and as lists in JSON.
///
/// Spec: CHUNK-EXC-01
#[test]
fn explain_prints_exception_classes() {
    let folder = tempfile::tempdir().unwrap();
    let explain = |more: &[&str]| {
        run_expecting(
            0,
            "skip-retry",
            folder.path(),
            &[&["explain", "skip-retry"], more].concat(),
        )
        .0
    };
    let text = explain(&[]);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("-exception-classes: "))
        .collect();
    assert!(
        !lines.is_empty() && !lines.concat().contains('{') && lines.concat().contains("-classes: include "),
        "{text}"
    );
    assert!(explain(&["--json"]).contains(r#""include": ["#));
}

/// A job of Jakarta Batch is explained by its own names, and checked with its own mistakes.
///
/// Spec: JAK-05, JAK-11, JAK-13
#[test]
fn explain_and_check_know_jakarta_batch() {
    let folder = tempfile::tempdir().unwrap();
    let text = r##"<job id="j" version="2.0" xmlns="https://jakarta.ee/xml/ns/jakartaee">
      <step id="s">
        <batchlet ref="Greeter"><properties><property name="name" value="#{jobParameters['who']}?:all;"/></properties></batchlet>
        <partition><plan partitions="3"/></partition>
      </step>
    </job>"##;
    fs::write(folder.path().join("j.xml"), text).unwrap();
    let (out, _) = run_expecting(
        0,
        "hello",
        folder.path(),
        &["--job-path", ".", "explain", "j", "who=Ada"],
    );
    for part in [
        r#"name = "Ada""#,
        "written \"#{jobParameters['who']}?:all;\"",
        "partitions: 3",
    ] {
        assert!(out.contains(part), "{out}");
    }
    fs::write(
        folder.path().join("j.xml"),
        text.replace("jobParameters", "jobParameter"),
    )
    .unwrap();
    let (_, err) = run_expecting(2, "hello", folder.path(), &["--job-path", ".", "check", "j"]);
    assert!(err.contains("did you mean `jobParameters`?"), "{err}");
}

/// In Jakarta Batch a parameter has a value only where an expression names it.
///
/// Spec: JAK-12
#[test]
fn explain_knows_that_parameters_do_not_override_expressions() {
    let folder = tempfile::tempdir().unwrap();
    let property = |name: &str, value: &str| format!(r#"<property name="{name}" value="{value}"/>"#);
    let text = format!(
        r#"<job id="tour" xmlns="https://jakarta.ee/xml/ns/jakartaee" version="2.0"><step id="s">
<properties>{}</properties><batchlet ref="Greeter"><properties>{}</properties></batchlet></step></job>"#,
        property("greeting", "#{jobParameters['greeting']}"),
        property("name", "Ada")
    );
    fs::write(folder.path().join("tour.xml"), text).unwrap();
    let text = explain(folder.path(), &["name=Eve", "greeting=Hi", "-Dname=Joan"]);
    let found = words(&text);
    for line in [
        r#"name = "Ada" ./tour.xml:2:155"#,
        r##"greeting = "Hi" ./tour.xml:2:46, written "#{jobParameters['greeting']}""##,
        "parameter name unused: it only identifies the instance",
    ] {
        assert!(
            found.iter().any(|found| found == line),
            "{line:?} is missing in\n{text}"
        );
    }
}

/// A word for each step, and the reason.
///
/// Spec: MARK-14
#[test]
fn explain_and_check_state_what_a_crash_does() {
    let folder = tempfile::tempdir().unwrap();
    let job = |writer: &str, properties: &str| {
        let text = format!(
            r#"<job id="copy"><step id="all"><chunk reader="csvRecordReader" writer="{writer}"><properties>
            <property name="resource" value="in.csv" target="reader"/>{properties}</properties></chunk></step></job>"#
        );
        fs::write(folder.path().join("copy.xml"), text).unwrap();
    };
    let databases = "[databases]\nledger = \"sqlite://ledger.db\"\n";
    fs::write(folder.path().join("batch.toml"), databases).unwrap();
    let table = r#"<property name="table" value="t" target="writer"/>"#;
    let elsewhere = format!(r#"{table}<property name="database" value="ledger" target="writer"/>"#);
    let file = r#"<property name="output" value="out.csv" target="writer"/>"#;
    for (writer, properties, why) in [
        ("recordTableWriter", table, "is committed with the checkpoint"),
        (
            "recordTableWriter",
            &elsewhere,
            "with a marker in the database `ledger`",
        ),
        (
            "recordCsvWriter",
            file,
            "removes what it has written after the checkpoint",
        ),
    ] {
        job(writer, properties);
        let here = ["copy", "--job-path", "."];
        let (text, _) = run_expecting(0, "load", folder.path(), &[&["check"], &here[..]].concat());
        assert!(
            text.contains("  all: exactly-once: ") && text.contains(why),
            "{text}"
        );
        let (text, _) = run_expecting(0, "load", folder.path(), &[&["explain"], &here[..]].concat());
        assert!(
            text.contains("guarantee: exactly-once") && text.contains(why),
            "{text}"
        );
        let (text, _) = run_expecting(
            0,
            "load",
            folder.path(),
            &[&["check", "--json"], &here[..]].concat(),
        );
        assert_eq!(json(&text)[0]["guarantees"][0]["guarantee"], "exactly-once");
    }
}

/// A repository in memory keeps nothing, an unknown database guarantees nothing, and no command shows the password of a URL.
///
/// Spec: MARK-13, MARK-14
#[test]
fn a_guarantee_is_that_of_the_repository_and_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let database = |name: &str| {
        let text = format!(
            r#"<job id="copy"><step id="all"><chunk reader="csvRecordReader" writer="recordTableWriter"><properties>
            <property name="resource" value="in.csv" target="reader"/><property name="table" value="t" target="writer"/>
            <property name="database" value="{name}" target="writer"/></properties></chunk></step></job>"#
        );
        fs::write(folder.path().join("copy.xml"), text).unwrap();
    };
    fs::write(
        folder.path().join("batch.toml"),
        "[databases]\nledger = \"sqlite://ledger.db\"\n",
    )
    .unwrap();
    let explain = ["explain", "copy", "--job-path", "."];
    let run = |code: i32, arguments: &[&str]| run_expecting(code, "load", folder.path(), arguments);
    database("ledger");
    let (text, _) = run(0, &[&["--repository", "memory:"], &explain[..]].concat());
    assert!(text.contains("guarantee: at-least-once"), "{text}");
    assert!(text.contains("the repository `memory:` keeps nothing"), "{text}");
    database("ledgr");
    let (text, _) = run(0, &explain);
    assert!(!text.contains("guarantee"), "{text}");
    database("postgres://me:secret@host/db");
    let (text, _) = run(0, &explain);
    assert!(
        text.contains("exactly-once") && !text.contains("secret"),
        "{text}"
    );
    database("unknown://me:secret@host/db");
    let (out, err) = run(2, &["check", "copy", "--job-path", "."]);
    assert!(err.contains("ART0031") || out.contains("ART0031"), "{out}{err}");
    assert!(!err.contains("secret") && !out.contains("secret"), "{out}{err}");
}

/// The artifacts and their properties, as the program registers them.
///
/// Spec: CLI-13
#[test]
fn artifacts_are_listed_with_their_properties() {
    let folder = tempfile::tempdir().unwrap();
    let run = |code: i32, arguments: &[&str]| run_expecting(code, "load", folder.path(), arguments);
    let (text, _) = run(0, &["artifacts"]);
    let lines = words(&text);
    assert!(
        lines.contains(&"csvRecordReader item_reader batch_items::registered::CsvRecordReader".to_owned()),
        "{text}"
    );
    let (text, _) = run(0, &["artifacts", "recordTableWriter"]);
    for line in [
        "table required the table, which may have a schema",
        "mode insert `insert`, `upsert`, `update` or `delete`",
        "PROPERTY DEFAULT",
        "<chunk reader=\"..\" writer=\"recordTableWriter\">",
        "<property name=\"table\" value=\"..\"/>",
    ] {
        assert!(words(&text).contains(&line.to_owned()), "{line}: {text}");
    }
    let (schema, _) = run(0, &["artifacts", "--schema"]);
    for part in [
        "<xs:enumeration value=\"csvRecordReader\">",
        "<xs:enumeration value=\"rejects.output\">",
        "<xs:enumeration value=\"sqlScript\">",
    ] {
        assert!(schema.contains(part), "{part}: {schema}");
    }
    let (jakarta, _) = run(0, &["artifacts", "--schema", "jakarta"]);
    assert!(jakarta.contains("targetNamespace=\"https://jakarta.ee/xml/ns/jakartaee\""));
    run(2, &["artifacts", "csvRecordReader", "--schema"]);
    let (text, _) = run(0, &["artifacts", "recordRejects", "--json"]);
    let rejects = &json(&text)[0];
    assert_eq!(
        rejects["roles"],
        serde_json::json!(["checkpoint_listener", "skip_listener"])
    );
    assert_eq!(rejects["readyMade"], true);
    let output = &rejects["properties"][0];
    assert_eq!(output["declaredBy"], "RejectListener");
    assert_eq!(
        output["description"],
        "the file; it exists only if there are rejects"
    );
    assert_eq!(rejects["properties"][2]["ifAbsent"], "by extension");
    let (_, err) = run(2, &["artifacts", "csvRecordReeder"]);
    assert!(err.contains("did you mean `csvRecordReader`?"), "{err}");
}

/// A parameter that neither the job uses nor the instance needs has no effect.
///
/// Spec: CLI-14
#[test]
fn a_parameter_without_effect_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let start = |parameter: &str| {
        let arguments = ["--repository", "sqlite://hello.db", "start", "hello", parameter];
        run_expecting(0, "hello", folder.path(), &arguments).1
    };
    assert!(start("-verbosity=9").contains("parameter `verbosity` has no effect"));
    assert!(!start("verbosity=9").contains("has no effect"));
    let explained = run_expecting(
        0,
        "hello",
        folder.path(),
        &["explain", "hello", "-verbosity=9", "run=9"],
    )
    .0;
    let lines = words(&explained);
    assert!(
        lines.contains(&"parameter verbosity unused: it has no effect".to_owned()),
        "{explained}"
    );
    assert!(
        lines.contains(&"parameter run unused: it only identifies the instance".to_owned()),
        "{explained}"
    );
}
