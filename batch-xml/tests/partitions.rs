//! The property values of a partition, and those that are deferred until it exists.

use std::collections::BTreeMap;

use batch_xml::model::{ArtifactRef, ExecutionElement, StepBody};
use batch_xml::{JobXmlErrors, Limits, PartitionView, Resolved, Source, Values, parse, resolve};

type Map = BTreeMap<String, String>;

fn map(pairs: &[(&str, &str)]) -> Map {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

struct Setting {
    parameters: Map,
    system: Map,
    resolved: Resolved,
}

impl Setting {
    #[track_caller]
    fn new(text: &str, parameters: &[(&str, &str)], system: &[(&str, &str)]) -> Setting {
        let limits = Limits::default();
        let (parameters, system) = (map(parameters), map(system));
        let values = Values {
            parameters: &parameters,
            system: &system,
        };
        let document = parse(&Source::new("t.xml", text), &limits).unwrap();
        let resolved =
            resolve(&document, &Vec::new(), &values, &limits).unwrap_or_else(|errors| panic!("\n{errors}"));
        Setting {
            parameters,
            system,
            resolved,
        }
    }

    fn view(&self, path: &[(&str, u32, Option<&Map>)]) -> Result<ExecutionElement, JobXmlErrors> {
        let values = Values {
            parameters: &self.parameters,
            system: &self.system,
        };
        let path: Vec<PartitionView<'_>> = path
            .iter()
            .map(|&(element, number, plan)| PartitionView {
                element,
                number,
                plan,
            })
            .collect();
        self.resolved
            .effective
            .resolve_partition(&path, &values, &Limits::default())
    }

    /// Returns the properties of the batchlet, or of the reader, in a partition of step `s`.
    #[track_caller]
    fn properties(&self, path: &[(&str, u32, Option<&Map>)]) -> Map {
        let element = self.view(path).unwrap_or_else(|errors| panic!("\n{errors}"));
        properties(artifact(&element))
    }
}

fn artifact(element: &ExecutionElement) -> &ArtifactRef {
    match element {
        ExecutionElement::Step(step) => match &step.body {
            StepBody::Batchlet(batchlet) => batchlet,
            StepBody::Chunk(chunk) => &chunk.reader,
        },
        other => artifact(&other.elements()[0]),
    }
}

fn properties(artifact: &ArtifactRef) -> Map {
    assert!(!artifact.deferred && artifact.properties.iter().all(|property| !property.deferred));
    let properties = artifact.properties.iter();
    properties
        .map(|property| (property.name.value.clone(), property.value.value.clone()))
        .collect()
}

const ONE: &str = "<job id='j'>
  <properties><property name='x' value='job'/><property name='y' value='[${x}]'/></properties>
  <step id='s'>
    <properties><property name='own' value='${only}'/></properties>
    <batchlet ref='B'><properties><property name='z' value='${y}${only}'/></properties></batchlet>
    <partition instances='2'><properties>
      <property name='x.1' value='one'/><property name='x.2' value='${x}-2'/>
      <property name='only.1' value='1'/><property name='only.2' value='${x}+2'/>
    </properties></partition>
  </step></job>";

/// The properties of a partition override all others, also within the values of outer properties.
///
/// Spec: PART-12, PART-14, PART-16, SUBST-09, OVR-09, D-34
#[test]
fn partitions_have_parameters_of_their_own() {
    let setting = Setting::new(ONE, &[], &[("x", "system")]);
    let expect = [
        ("x", "one"),
        ("only", "1"),
        ("y", "[one]"),
        ("own", "1"),
        ("z", "[one]1"),
    ];
    assert_eq!(setting.properties(&[("s", 1, None)]), map(&expect));
    // In its own value, `x` means the next one: the system property.
    let second = setting.properties(&[("s", 2, None)]);
    assert_eq!((&*second["x"], &*second["only"]), ("system-2", "system-2+2"));
    // Outside of all partitions.
    assert_eq!(setting.resolved.job.properties[0].value.value, "system");
    let step = &setting.resolved.job.elements[0];
    let batchlet = artifact(step);
    let z = batchlet
        .properties
        .iter()
        .find(|property| property.name.value == "z")
        .unwrap();
    assert!(z.deferred && z.value.value == "${y}${only}");
    let deferred: Vec<&String> = step.partition().unwrap().deferred.iter().collect();
    assert_eq!(deferred, ["only"]);
}

/// Spec: PART-13, D-34
#[test]
fn a_parameter_of_the_raw_name_wins() {
    let setting = Setting::new(ONE, &[("x.1", "${raw}"), ("x", "all"), ("only.2", "given")], &[]);
    let first = setting.properties(&[("s", 1, None)]);
    assert_eq!((&*first["x"], &*first["z"]), ("${raw}", "[${raw}]1"));
    let second = setting.properties(&[("s", 2, None)]);
    assert_eq!((&*second["x"], &*second["z"]), ("all-2", "[all-2]given"));
    assert_eq!(setting.resolved.job.properties[0].value.value, "all");
    assert!(setting.resolved.job.property_names.contains("x.1"));
}

/// Spec: PART-18, PART-21, PART-22
#[test]
fn a_plan_takes_the_place_of_the_properties() {
    let text = ONE.replace(
        "</properties></partition>",
        "</properties><algorithm ref='A'/></partition>",
    );
    let setting = Setting::new(&text, &[], &[]);
    let plan = map(&[("only", "${x}"), ("new", "n")]);
    let expect = [
        ("only", "${x}"),
        ("new", "n"),
        ("x", "job"),
        ("y", "[job]"),
        ("own", "${x}"),
        ("z", "[job]${x}"),
    ];
    assert_eq!(setting.properties(&[("s", 7, Some(&plan))]), map(&expect));
    // A value that the algorithm does not supply is reported in the partition.
    let errors = setting.view(&[("s", 7, Some(&Map::new()))]).unwrap_err();
    assert!(
        errors.to_string().contains("the symbol `only` has no value"),
        "{errors}"
    );
    let errors = setting.view(&[("s", 7, None)]).unwrap_err();
    assert!(
        errors.to_string().contains("the symbol `only` has no value"),
        "{errors}"
    );
}

/// Spec: PART-15, D-35
#[test]
fn targets_choose_the_artifact() {
    let setting = Setting::new(
        "<job id='j'><step id='s'><chunk reader='R' processor='P' writer='W'/><partition><properties>
         <property name='f.1' value='r' target='reader'/><property name='f.1' value='w' target='writer'/>
         <property name='g.1' value='all'/></properties><collector ref='C'/></partition></step></job>",
        &[],
        &[],
    );
    let ExecutionElement::Step(step) = setting.view(&[("s", 1, None)]).unwrap() else {
        unreachable!()
    };
    let StepBody::Chunk(chunk) = &step.body else {
        unreachable!()
    };
    assert_eq!(properties(&chunk.reader), map(&[("f", "r"), ("g", "all")]));
    assert_eq!(properties(&chunk.writer), map(&[("f", "w"), ("g", "all")]));
    assert_eq!(
        properties(chunk.processor.as_ref().unwrap()),
        map(&[("g", "all")])
    );
    let partition = step.partition.unwrap();
    assert_eq!(properties(&partition.collector.unwrap()), map(&[("g", "all")]));
    assert!(partition.properties.is_empty());
}

/// The inner partition overrides the outer one, and inherits its other values.
///
/// Spec: FPART-03, FPART-07, D-34
#[test]
fn partitions_nest() {
    let setting = Setting::new(
        "<job id='j'><split id='p'><flow id='f'>
         <step id='s'><batchlet ref='${b}'><properties><property name='v' value='${a}${b}'/></properties></batchlet>
           <partition instances='${count}'><properties><property name='a.2' value='inner-${c}'/></properties></partition>
         </step>
         <partition instances='3'><properties><property name='a.3' value='outer'/><property name='b.3' value='B'/>
           <property name='c.3' value='c'/><property name='count.3' value='2'/></properties></partition>
         </flow></split></job>",
        &[],
        &[],
    );
    let nested = |number| {
        properties(artifact(
            &setting.view(&[("f", 3, None), ("s", number, None)]).unwrap(),
        ))
    };
    assert_eq!(nested(1)["v"], "outerB");
    assert_eq!(nested(2)["v"], "inner-cB");
    // The flow's own view of the step is outside of the step's partitions.
    let flow = setting.view(&[("f", 3, None)]).unwrap();
    assert_eq!(flow.elements()[0].partition().unwrap().instances.get(), 2);
    assert_eq!(artifact(&flow).name.value, "B");
    let unpartitioned = Setting::new(
        "<job id='j'><step id='s'><batchlet ref='B'/></step></job>",
        &[],
        &[],
    );
    assert!(unpartitioned.view(&[("s", 1, None)]).is_err());
    for path in [
        &[("f", 1, None)][..],
        &[("nowhere", 1, None)],
        &[("f", 3, None), ("t", 1, None)],
    ] {
        assert!(setting.view(path).is_err());
    }
}

/// Spec: PART-10, SUBST-11
#[test]
fn values_for_partitions_see_what_encloses_them() {
    let setting = Setting::new(
        "<job id='j'><properties><property name='dir' value='/data'/></properties>
         <step id='s'><properties><property name='sub' value='s'/></properties><batchlet ref='B'/>
         <partition><properties><property name='file.1' value='${dir}/${sub}'/></properties></partition>
         </step></job>",
        &[],
        &[],
    );
    assert_eq!(setting.properties(&[("s", 1, None)])["file"], "/data/s");
}

/// A property of the job may have another value within an inner partition, even if it was used before outside of it.
///
/// Spec: FPART-07, OVR-09, D-34
#[test]
fn outer_properties_are_looked_at_anew_in_inner_partitions() {
    let setting = Setting::new(
        "<job id='j'><properties><property name='x' value='job'/><property name='y' value='[${x}]'/></properties>
         <flow id='f'>
           <step id='before' next='s'><batchlet ref='B'/></step>
           <step id='s'><batchlet ref='B'/><partition><properties><property name='x.1' value='inner'/></properties>
           </partition></step>
           <partition><properties><property name='x.1' value='outer'/></properties></partition>
         </flow></job>",
        &[],
        &[],
    );
    assert_eq!(setting.properties(&[("f", 1, None)])["y"], "[outer]");
    assert_eq!(
        setting.properties(&[("f", 1, None), ("s", 1, None)])["y"],
        "[inner]"
    );
}

/// Every attribute within a partition may be deferred.
///
/// Spec: SUBST-02, SUBST-09, JSL-DOC-12
#[test]
fn any_value_may_be_deferred() {
    let text = "<job id='j'><step id='s'>
      <listener ref='${v}'/>
      <chunk reader='${v}' processor='P' writer='W' commit-interval='${n}' checkpoint-policy='${policy}'
             buffer-reads='${yes}' skip-limit='${n}'>
        <checkpoint-algorithm ref='A'/>
        <skippable-exception-classes><include class='${v}'/></skippable-exception-classes>
      </chunk>
      <partition><algorithm ref='A'/></partition></step></job>";
    let setting = Setting::new(text, &[], &[]);
    let deferred = &setting.resolved.job.elements[0].partition().unwrap().deferred;
    assert_eq!(deferred.iter().collect::<Vec<_>>(), ["n", "policy", "v", "yes"]);
    let plan = map(&[("v", "V"), ("n", "5"), ("policy", "custom"), ("yes", "1")]);
    let ExecutionElement::Step(step) = setting.view(&[("s", 1, Some(&plan))]).unwrap() else {
        unreachable!()
    };
    let StepBody::Chunk(chunk) = &step.body else {
        unreachable!()
    };
    assert_eq!((chunk.commit_interval.get(), chunk.skip_limit), (5, Some(5)));
    assert_eq!(
        (chunk.reader.name.as_str(), chunk.skippable.include[0].as_str()),
        ("V", "V")
    );
    // Values are checked when they are supplied.
    let plan = map(&[("v", "V"), ("n", "many"), ("policy", "item"), ("yes", "1")]);
    let errors = setting.view(&[("s", 1, Some(&plan))]).unwrap_err();
    let codes: Vec<_> = errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, ["JSL0018", "JSL0018", "JSL0025"]);
}
