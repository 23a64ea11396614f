//! 4.2.1.1, 4.7 and 5.3: the value of a property, and the artifacts that it reaches.

use std::str::FromStr;

use batch_runtime::JobParameters;
use batch_runtime::operator::ValueOrigin;
use batch_runtime::prelude::*;
use batch_tests::stage::{Stage, say};
use insta::assert_snapshot;

use super::artifacts::{
    assert_contains, assert_matches, calls, first_step_execution, job, refused, restart_with, started,
    wrapped,
};

/// Shows its properties when its first method is called, in every role.
#[derive(BatchArtifact)]
struct Shows {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "fileName", value = "/tmp/default")]
    fname: String,
    #[batch_property(name = "fileName")]
    same: String,
    #[batch_property(name = "plain")]
    without_default: String,
    #[batch_property(name = "optional")]
    optional: Option<String>,
    #[batch_property(name = "number", value = "7")]
    number: u8,
}

impl Shows {
    fn show(&self, role: &str) {
        let Self {
            fname,
            same,
            without_default,
            optional,
            number,
            ..
        } = self;
        let shown = format!("{role}: {fname:?} {same:?} {without_default:?} {optional:?} {number}");
        say(&self.log, shown);
    }
}

#[item_reader("ShowReader")]
impl Shows {
    #[open]
    fn open(&mut self, checkpoint: Option<u64>) {
        self.show("ShowReader");
        self.number = u8::from(checkpoint.is_some());
    }
    #[read_item]
    fn read(&mut self) -> Option<u64> {
        self.number += 1;
        (self.number == 1).then_some(1)
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u64 {
        1
    }
}

#[item_processor("ShowProcessor")]
impl Shows {
    #[process_item]
    fn process(&mut self, item: &u64) -> Option<u64> {
        self.show("ShowProcessor");
        Some(*item)
    }
}

#[item_writer("ShowWriter")]
impl Shows {
    #[open]
    fn open_writer(&mut self) {
        self.show("ShowWriter");
    }
    #[write_items]
    fn write(&mut self, _items: &[u64]) {}
}

#[batchlet("ShowBatchlet")]
impl Shows {
    #[process]
    fn run(&self) {
        self.show("ShowBatchlet");
    }
}

#[step_listener("ShowStepListener")]
impl Shows {
    #[before_step]
    fn before(&mut self) {
        self.show("ShowStepListener");
    }
}

#[job_listener("ShowJobListener")]
impl Shows {
    #[before_job]
    fn before_job(&mut self) {
        self.show("ShowJobListener");
    }
}

/// Runs a job with all six roles, each with its own properties, and these parameters; returns the values that they
/// show.
fn shown(
    of_job: &str,
    of_step: &str,
    of_chunk: &str,
    of_artifact: &str,
    parameters: impl Into<JobParameters>,
) -> String {
    let stage = Stage::new(&job(&format!(
        r#"{of_job}<listener ref="ShowJobListener">{of_artifact}</listener>
           <step id="one" next="two">{of_step}<listener ref="ShowStepListener">{of_artifact}</listener>
             <chunk reader="ShowReader" processor="ShowProcessor" writer="ShowWriter">{of_chunk}</chunk></step>
           <step id="two"><batchlet ref="ShowBatchlet">{of_artifact}</batchlet></step>"#
    )));
    stage.start("job", parameters);
    wrapped(&stage.log())
}

fn properties(text: &str) -> String {
    format!("<properties>{text}</properties>")
}

/// A property without a value has the annotation's default, else the empty string; an empty value is a value; names
/// may differ from the fields' names.
///
/// Spec: BPROP-01, BPROP-02, BPROP-03, BPROP-05, BPROP-06, BPROP-07, BPROP-08, BPROP-09, BPROP-10
#[test]
fn a_field_without_a_value_has_its_default() {
    assert_snapshot!(shown("", "", "", "", JobParameters::new()), @r#"
    ShowJobListener: "/tmp/default" "" "" None 7 · ShowStepListener: "/tmp/default" "" "" None 7
    ShowReader: "/tmp/default" "" "" None 7 · ShowWriter: "/tmp/default" "" "" None 7
    ShowProcessor: "/tmp/default" "" "" None 7 · ShowBatchlet: "/tmp/default" "" "" None 7
    "#);
    assert_snapshot!(shown("", "", "", "", [("fileName", ""), ("optional", "")]), @r#"
    ShowJobListener: "" "" "" Some("") 7 · ShowStepListener: "" "" "" Some("") 7
    ShowReader: "" "" "" Some("") 7 · ShowWriter: "" "" "" Some("") 7
    ShowProcessor: "" "" "" Some("") 7 · ShowBatchlet: "" "" "" Some("") 7
    "#);
}

/// An artifact's own properties, with or without a field for each.
///
/// Spec: BPROP-02, BPROP-03, BPROP-04, BPROP-07, BPROP-09, BPROP-10, BPROP-11, JSL-CHPROP-01, JSL-CHPROP-02,
/// Spec: JSL-CHPROP-05, JSL-CHPROP-07, JSL-BATCHLET-03, JSL-STEPLIS-06, JSL-JOBLIS-09
#[test]
fn the_artifacts_own_properties_reach_it_alone() {
    let own = properties(
        r#"<property name="fileName" value="own"/><property name="plain" value="&lt;x&gt; &amp;"/>
           <property name="nobody" value="asks"/><property name="number" value="255"/>"#,
    );
    let chunk = properties(
        r#"<property name="fileName" value="of the chunk"/><property name="nobody" value="asks"/>"#,
    );
    assert_snapshot!(shown("", "", &chunk, &own, JobParameters::new()), @r#"
    ShowJobListener: "own" "own" "<x> &" None 255 · ShowStepListener: "own" "own" "<x> &" None 255
    ShowReader: "of the chunk" "of the chunk" "" None 7
    ShowWriter: "of the chunk" "of the chunk" "" None 7
    ShowProcessor: "of the chunk" "of the chunk" "" None 7 · ShowBatchlet: "own" "own" "<x> &" None 255
    "#);
}

/// A target narrows a property to one artifact; the same name may have several.
///
/// Spec: JSL-CHPROP-03, JSL-CHPROP-04, JSL-CHPROP-05, JSL-CHPROP-06, JSL-STEPPROP-04, OVR-13
#[test]
fn a_target_narrows_a_property_to_one_artifact() {
    let chunk = properties(
        r#"<property name="fileName" value="in" target="reader"/><property name="fileName" value="out" target="writer"/>
           <property name="plain" value="all"/>"#,
    );
    let step = properties(r#"<property name="optional" value="for the processor" target="processor"/>"#);
    assert_snapshot!(shown("", &step, &chunk, "", JobParameters::new()), @r#"
    ShowJobListener: "/tmp/default" "" "" None 7 · ShowStepListener: "/tmp/default" "" "" None 7
    ShowReader: "in" "in" "all" None 7 · ShowWriter: "out" "out" "all" None 7
    ShowProcessor: "/tmp/default" "" "all" Some("for the processor") 7
    ShowBatchlet: "/tmp/default" "" "" None 7
    "#);
}

/// The outermost property wins, then system properties, then job parameters.
///
/// Spec: OVR-01, OVR-02, OVR-04, OVR-05, OVR-06, OVR-07, OVR-10, OVR-12, JSL-STEPPROP-02, JSL-JOBPROP-02, BPROP-04
#[test]
fn outer_properties_override_inner_ones() {
    let of = |value: &str| properties(&format!(r#"<property name="fileName" value="{value}"/>"#));
    let (job, step, chunk, own) = (
        of("of the job"),
        of("of the step"),
        of("of the chunk"),
        of("its own"),
    );
    assert_snapshot!(shown("", "", &chunk, &own, JobParameters::new()), @r#"
    ShowJobListener: "its own" "its own" "" None 7 · ShowStepListener: "its own" "its own" "" None 7
    ShowReader: "of the chunk" "of the chunk" "" None 7
    ShowWriter: "of the chunk" "of the chunk" "" None 7
    ShowProcessor: "of the chunk" "of the chunk" "" None 7 · ShowBatchlet: "its own" "its own" "" None 7
    "#);
    assert_snapshot!(shown("", &step, &chunk, &own, JobParameters::new()), @r#"
    ShowJobListener: "its own" "its own" "" None 7
    ShowStepListener: "of the step" "of the step" "" None 7
    ShowReader: "of the step" "of the step" "" None 7
    ShowWriter: "of the step" "of the step" "" None 7
    ShowProcessor: "of the step" "of the step" "" None 7 · ShowBatchlet: "its own" "its own" "" None 7
    "#);
    assert_snapshot!(shown(&job, &step, &chunk, &own, JobParameters::new()), @r#"
    ShowJobListener: "of the job" "of the job" "" None 7
    ShowStepListener: "of the job" "of the job" "" None 7
    ShowReader: "of the job" "of the job" "" None 7 · ShowWriter: "of the job" "of the job" "" None 7
    ShowProcessor: "of the job" "of the job" "" None 7
    ShowBatchlet: "of the job" "of the job" "" None 7
    "#);
    assert_snapshot!(shown(&job, &step, &chunk, &own, [("fileName", "the parameter")]), @r#"
    ShowJobListener: "the parameter" "the parameter" "" None 7
    ShowStepListener: "the parameter" "the parameter" "" None 7
    ShowReader: "the parameter" "the parameter" "" None 7
    ShowWriter: "the parameter" "the parameter" "" None 7
    ShowProcessor: "the parameter" "the parameter" "" None 7
    ShowBatchlet: "the parameter" "the parameter" "" None 7
    "#);
}

/// A system property beats the Job XML, a job parameter beats both and leaves the pool as it was.
///
/// Spec: OVR-02, OVR-03, OVR-04, OVR-07, OVR-11
#[test]
fn system_properties_rank_between_parameters_and_xml() {
    let stage = Stage::configured(
        &job(
            r#"<properties><property name="file.separator" value="@"/><property name="fileName" value="a${file.separator}b"/>
                 <property name="plain" value="xml"/></properties>
               <step id="one"><batchlet ref="ShowBatchlet"/></step>"#,
        ),
        |builder| builder.system_property("plain", "system"),
    );
    for parameters in [
        JobParameters::new(),
        JobParameters::from([("plain", "parameter"), ("file.separator", "!")]),
        JobParameters::new(),
    ] {
        stage.start("job", parameters);
    }
    assert_snapshot!(wrapped(&stage.log()).replace(std::path::MAIN_SEPARATOR, "/"), @r#"
    ShowBatchlet: "a/b" "a/b" "system" None 7 · ShowBatchlet: "a!b" "a!b" "parameter" None 7
    ShowBatchlet: "a/b" "a/b" "system" None 7
    "#);
}

/// The pool contains the standard properties, and those set by the program.
///
/// Spec: OVR-15, SUBST-15
#[test]
fn the_pool_of_system_properties() {
    let separator = std::path::MAIN_SEPARATOR.to_string();
    let here = std::env::current_dir().unwrap().display().to_string();
    let temporary = std::env::temp_dir().display().to_string();
    for (name, expected) in [
        ("file.separator", Some(&*separator)),
        ("path.separator", None),
        ("line.separator", None),
        ("user.dir", Some(&*here)),
        ("user.home", None),
        ("user.name", None),
        ("java.io.tmpdir", Some(&*temporary)),
        ("os.name", Some(std::env::consts::OS)),
        ("mine", Some("set")),
    ] {
        let xml = job(&format!(
            r#"<step id="one"><batchlet ref="Task"><properties><property name="result" value="[${{{name}}}]"/></properties>
               </batchlet></step>"#
        ));
        let stage = Stage::configured(&xml, |builder| builder.system_property("mine", "set"));
        let execution = stage.start("job", ());
        let value = first_step_execution(&stage, execution).exit_status;
        let value = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
        let value = value.unwrap_or_else(|| panic!("{name}"));
        assert_eq!(value, expected.unwrap_or(value), "{name}");
    }
}

/// A value composed of others from any source; injection and substitution see the same value.
///
/// Spec: OVR-07, JSL-CHPROP-02, JSL-STEPPROP-01, JSL-BATCHLET-03, SUBST-13, BPROP-12, RESTART-03, OP-13
#[test]
fn properties_are_resolved_and_injected_at_every_start() {
    let elements = r#"<properties><property name="day" value="monday"/></properties>
           <step id="one" next="two" allow-start-if-complete="true">
             <batchlet ref="ShowBatchlet"><properties><property name="fileName" value="${day}-${day}.txt"/></properties></batchlet></step>
           <step id="two"><batchlet ref="Task"/></step>"#;
    let (stage, execution) = started(elements, [("fail", "process two")]);
    let again = restart_with(&stage, execution, [("day", "tuesday")]);
    restart_with(&stage, again, [("plain", "p"), ("fail", "")]);
    assert_snapshot!(calls(&stage, &["Show"]), @r#"
    ShowBatchlet: "monday-monday.txt" "monday-monday.txt" "" None 7
    ShowBatchlet: "tuesday-tuesday.txt" "tuesday-tuesday.txt" "" None 7
    ShowBatchlet: "monday-monday.txt" "monday-monday.txt" "p" None 7
    "#);
}

/// A number that rejects some texts.
struct Fussy;

impl FromStr for Fussy {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        assert!(text != "panic", "no way to parse this");
        text.parse::<i32>().map(|_| Self)
    }
}

/// Has fields of types that do not parse every text.
#[derive(BatchArtifact)]
struct Typed {
    #[batch_property(name = "count")]
    _count: u32,
    #[batch_property(name = "fussy", value = "1")]
    _fussy: Fussy,
}

#[batchlet]
impl Typed {
    #[process]
    fn process(&self) -> String {
        "DONE".into()
    }
}

/// A value that does not parse is reported before anything runs, at its place in the XML or with its source.
///
/// Spec: BPROP-10, OP-11, CHUNK-EXC-03
#[test]
fn a_value_that_does_not_parse_is_rejected_at_its_place() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="Typed">
             <properties><property name="fussy" value="${fussiness}"/><property name="fussiness" value="2"/></properties></batchlet></step>"#));
    let mut text = String::new();
    for parameters in [
        JobParameters::new(),
        JobParameters::from([("count", "many")]),
        JobParameters::from([("count", "-1"), ("fussiness", "x")]),
        JobParameters::from([("count", "1"), ("fussy", "panic")]),
    ] {
        text += &format!("{}\n", refused(&stage, "job", parameters));
    }
    assert_snapshot!(text, @r#"
    cannot start job `job`: its definition is invalid
    error[ART0006]: `Typed` requires the property `count`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="Typed">
      |                               ^^^^^ field `_count` is of type `u32`
      = help: add `<property name="count" value="..."/>` or give a job parameter
    cannot start job `job`: its definition is invalid
    error[ART0005]: invalid value "many" for property `count` (from the job parameter): expected `u32`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="Typed">
      |                               ^^^^^ invalid digit found in string
      = help: field `_count` of `conformance::s5_3_properties::Typed`, tests/conformance/s5_3_properties.rs
    cannot start job `job`: its definition is invalid
    error[ART0005]: invalid value "-1" for property `count` (from the job parameter): expected `u32`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="Typed">
      |                               ^^^^^ invalid digit found in string
      = help: field `_count` of `conformance::s5_3_properties::Typed`, tests/conformance/s5_3_properties.rs

    error[ART0005]: invalid value "x" for property `fussy`: expected `conformance::s5_3_properties::Fussy`
     --> jobs/job.xml:3:56
      |
    3 |              <properties><property name="fussy" value="${fussiness}"/><property name="fussiness" value="2"/></properties></batchlet></step>
      |                                                        ^^^^^^^^^^^^ invalid digit found in string
      = help: field `_fussy` of `conformance::s5_3_properties::Typed`, tests/conformance/s5_3_properties.rs
    cannot start job `job`: its definition is invalid
    error[ART0005]: invalid value "panic" for property `fussy` (from the job parameter): expected `conformance::s5_3_properties::Fussy`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="Typed">
      |                               ^^^^^ the artifact panicked: no way to parse this
      = help: field `_fussy` of `conformance::s5_3_properties::Typed`, tests/conformance/s5_3_properties.rs
    "#);
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
}

/// A job parameter without a property may identify an instance; a misspelt one is rejected.
///
/// Spec: DOM-10, OP-09
#[test]
fn a_misspelt_parameter_is_rejected_and_an_unknown_one_is_not() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="ShowBatchlet"/></step>"#));
    let misspelt = refused(&stage, "job", [("filName", "x")]);
    assert_eq!(
        misspelt,
        "cannot start job `job`: it uses no parameter `filName`; did you mean `fileName`?"
    );
    assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
    stage.start("job", [("customer", "42")]);
    stage.start("job", [("plan", "short names are like too many others")]);
    let shortest = Stage::new(&job(r#"<step id="one"><batchlet ref="TurnHolder"/></step>"#));
    let misspelt = refused(&shortest, "job", [("foldr", "x")]);
    assert_eq!(
        misspelt,
        "cannot start job `job`: it uses no parameter `foldr`; did you mean `folder`?"
    );
}

/// A check reports parameters that no repository can store, as the start does.
///
/// Spec: OP-09, REPO-31
#[test]
fn a_check_rejects_parameters_that_cannot_be_stored() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="ShowBatchlet"/></step>"#));
    let unnamed = stage
        .operator()
        .check("job", [("", "x")])
        .unwrap_err()
        .to_string();
    assert_eq!(unnamed, refused(&stage, "job", [("", "x")]));
    assert_contains(&unnamed, "the name is empty");
}

/// Lists of several kinds.
#[batchlet("Lists")]
fn lists(
    #[batch_property] log: &str,
    #[batch_property] numbers: Vec<u8>,
    #[batch_property(name = "words", value = "a; b b ;c", separator = ";")] words: Vec<String>,
    #[batch_property] files: Option<Vec<std::path::PathBuf>>,
) {
    say(log, format!("{numbers:?} {words:?} {files:?}"));
}

/// A list has values between commas, or the character in its attribute; the property has the field's name unless the
/// attribute names it; a value that does not parse is reported at its place.
///
/// Spec: BPROP-02, BPROP-05, BPROP-08, BPROP-10
#[test]
fn lists_of_values() {
    let step = job(r#"<step id="one"><batchlet ref="Lists"><properties>
  <property name="numbers" value="${numbers}"/><property name="files" value="${files}"/>
</properties></batchlet></step>"#);
    let stage = Stage::new(&step);
    stage.start("job", [("numbers", " 1,2 , 3"), ("files", "a.csv, b.csv")]);
    stage.start("job", [("numbers", ""), ("files", "")]);
    assert_snapshot!(wrapped(&stage.log()), @r#"[1, 2, 3] ["a", "b b", "c"] Some(["a.csv", "b.csv"]) · [] ["a", "b b", "c"] Some([])"#);
    assert_snapshot!(refused(&stage, "job", [("numbers", "1, 2, 300"), ("files", "")]), @r#"
    cannot start job `job`: its definition is invalid
    error[ART0005]: invalid value "1, 2, 300" for property `numbers` (from the job parameter): expected `Vec<u8>`
     --> jobs/job.xml:2:31
      |
    2 | <step id="one"><batchlet ref="Lists"><properties>
      |                               ^^^^^ value 3 of the list, "300": number too large to fit in target type
      = help: field `numbers` of `conformance::s5_3_properties::lists`, tests/conformance/s5_3_properties.rs
    "#);
}

/// The explanation of a job shows that a value for the processor alone comes from the partition.
///
/// Spec: OP-11, PART-12
#[test]
fn explain_shows_values_of_partitions_by_their_target() {
    let partition =
        r#"<properties><property name="filter.every.1" value="2" target="processor"/></properties>"#;
    let stage = Stage::new(&job(&format!(
        r#"<step id="copy"><chunk reader="Numbers" processor="Labels" writer="Lines"/><partition instances="2">{partition}</partition></step>"#
    )));
    let operator = stage.operator();
    let explained = operator
        .definitions()
        .explain("job", &JobParameters::new())
        .unwrap();
    let artifacts = &explained.job.elements[0].artifacts;
    let origin = |artifact: &str, name: &str| {
        let artifact = artifacts.iter().find(|one| one.name == artifact).unwrap();
        let property = artifact.properties.iter().find(|one| one.name == name).unwrap();
        property.origin.clone()
    };
    assert_matches!(origin("Labels", "filter.every"), ValueOrigin::Partition(_));
    assert_matches!(origin("Numbers", "items"), ValueOrigin::FieldDefault);
}
