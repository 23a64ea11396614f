//! Generic artifacts: implemented by a generic impl block, here or in another crate, and registered by aliases.
//!
//! Spec: ART-01, ART-02, ART-10, BPROP-10, CHUNK-LOOP-17, LOADER-05
#![deny(warnings)]

use std::fmt::{Debug, Display};
use std::str::FromStr;

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobParameters};
use batch_tests::generic::JsonLines;
use batch_tests::stage::{Stage, said, say};
use serde::Deserialize;

use super::registered;

/// No `Default` and no `Clone`: the impl block of the reader has the bounds.
#[derive(Debug, Deserialize)]
struct Flight {
    minutes: u64,
}

#[item_reader("FlightReader", class = "com.example.FlightReader")]
#[item_read_listener("FlightReader")]
type FlightReader = JsonLines<Flight>;

// The same type under a second name, the alias's; and another type.
#[item_reader]
type Flights = JsonLines<Flight>;

#[item_reader]
type JsonNumbers = JsonLines<u64>;

/// Parameters of every kind: a type in a property, a list, an option, a default, and unused; a number; a where clause.
#[derive(BatchArtifact)]
struct Limits<T, U = u8, const N: usize = 2>
where
    T: Ord,
{
    #[batch_property(name = "limit", value = "7")]
    limit: T,
    #[batch_property(name = "others", value = "3,1,2")]
    others: Vec<T>,
    #[batch_property(name = "least")]
    least: Option<T>,
    #[batch_property(name = "log")]
    log: String,
    #[batch_context]
    step: Option<StepContext>,
    seen: Vec<U>,
    last: [u64; N],
}

#[item_processor]
impl<T, U, const N: usize> Limits<T, U, N>
where
    T: Ord + FromStr<Err: Display> + Debug + Send + 'static,
    U: Debug + Send + 'static,
    [u64; N]: Default + Debug,
{
    #[process_item]
    fn process(&mut self, flight: &Flight) -> Option<u64> {
        self.last.fill(flight.minutes);
        (flight.minutes > 7).then_some(flight.minutes)
    }
}

#[step_listener]
impl<T, U, const N: usize> Limits<T, U, N>
where
    T: Ord + FromStr<Err: Display> + Debug + Send + 'static,
    U: Debug + Send + 'static,
    [u64; N]: Default + Debug,
{
    #[after_step]
    fn report(&mut self) {
        self.others.sort();
        let Self {
            limit,
            others,
            least,
            seen,
            last,
            ..
        } = self;
        let step = self.step.as_ref().map(|step| step.id().to_owned());
        say(
            &self.log,
            format!("{limit:?} {others:?} {least:?} {seen:?} {last:?} {step:?}"),
        );
    }
}

#[item_processor]
#[step_listener]
type LateFlights = Limits<u8>;

#[derive(BatchArtifact)]
struct Say<T> {
    #[batch_property(name = "log")]
    log: String,
    rows: Vec<T>,
}

#[item_writer(buffered = false)]
impl<T: Debug + Clone + Send + 'static> Say<T>
where
    Self: Sized,
{
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, items: &[T]) {
        self.rows.extend_from_slice(items);
        say(&self.log, format!("{:?}", self.rows));
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

#[item_writer]
type SayMinutes = Say<u64>;

#[item_writer]
type SayTexts = Say<String>;

// Names, classes and values from a macro, as literals and as expressions.
macro_rules! from_a_macro {
    ($alias:ident = $ty:ty, $writer:ident, $name:literal, $text:expr, $buffered:expr) => {
        #[item_reader($name, class = $text)]
        type $alias = $ty;

        #[derive(BatchArtifact)]
        struct $writer {
            #[batch_property(name = $name, value = $text)]
            _limit: String,
        }

        #[item_writer(value = $text, class = $name, buffered = $buffered)]
        impl $writer {
            #[open]
            fn open(&mut self, _checkpoint: Option<()>) {}

            #[write_items]
            fn write(&mut self, _items: &[u8]) {}

            #[get_checkpoint_info]
            fn checkpoint(&self) {}
        }

        #[derive(Debug, BatchException)]
        #[batch_exception(class = $name, extends = $text)]
        struct MacroError;
    };
}

from_a_macro!(Bytes = JsonLines<u8>, Sink, "from a literal", "from an expression", false);

impl Display for MacroError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("made by a macro")
    }
}

impl std::error::Error for MacroError {}

/// A generic impl block registers nothing.
#[test]
fn only_aliases_are_registered() {
    assert_eq!(
        registered(module_path!()),
        [
            ("item_reader", "FlightReader"),
            ("item_read_listener", "FlightReader"),
            ("item_reader", "Flights"),
            ("item_reader", "JsonNumbers"),
            ("item_processor", "LateFlights"),
            ("step_listener", "LateFlights"),
            ("item_writer", "SayMinutes"),
            ("item_writer", "SayTexts"),
            ("item_reader", "from a literal"),
            ("item_writer", "from an expression"),
        ]
    );
    assert_eq!(registered("batch_tests::generic"), []);
}

#[test]
fn arguments_may_come_from_a_macro() {
    use batch_runtime::__private::{ArtifactRegistration, BatchArtifact, ItemWriter, inventory};
    let sink = Sink::properties();
    assert_eq!(
        (sink[0].name.as_str(), sink[0].default),
        ("from a literal", Some("from an expression"))
    );
    assert!(!<Sink as ItemWriter>::info().buffered);
    let bytes = inventory::iter::<ArtifactRegistration>().find(|one| one.name == "from a literal");
    assert_eq!(bytes.unwrap().declared_class, Some("from an expression"));
}

fn stage(reader: &str, listener: &str, writer: &str) -> Stage {
    let stage = Stage::new(&format!(
        r#"<job id="job">
  <step id="step">
    <listeners><listener ref="{listener}"/></listeners>
    <chunk reader="{reader}" processor="LateFlights" writer="{writer}" commit-interval="2"/>
  </step>
</job>"#
    ));
    let flights = [5, 9, 12, 3, 20].map(|minutes| format!("{{\"minutes\":{minutes}}}\n"));
    std::fs::write(stage.path().join("flights.jsonl"), flights.concat()).unwrap();
    stage
}

fn parameters(stage: &Stage) -> JobParameters {
    let file = stage.path().join("flights.jsonl").display().to_string();
    JobParameters::from([("file", file.as_str()), ("least", "4")])
}

/// A reader of a library, under its alias, its second alias, its class and the path of its alias.
#[test]
fn a_generic_reader_of_another_crate_runs_under_every_name_of_its_aliases() {
    let path = concat!(module_path!(), "::FlightReader");
    for reader in ["FlightReader", "Flights", "com.example.FlightReader", path] {
        let stage = stage(reader, "LateFlights", "SayMinutes");
        let execution = stage.start("job", parameters(&stage));
        let ended = stage.operator().wait(execution).unwrap();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", stage.tree(execution));
        assert_eq!(
            stage.log(),
            [
                "[9]",
                "[9, 12]",
                "[9, 12, 20]",
                "7 [1, 2, 3] Some(4) [] [0, 0] Some(\"step\")",
            ]
        );
    }
}

/// The alias is a read listener, too, because it has both attributes.
#[test]
fn an_alias_may_register_several_roles() {
    let stage = stage("Flights", "FlightReader", "SayMinutes");
    let execution = stage.start("job", parameters(&stage));
    assert_eq!(said("json-lines").len(), 5, "{}", stage.tree(execution));
}

/// Item types and their names come from the concrete types.
#[test]
fn concrete_item_types_are_compared_before_the_start() {
    let mismatch = |reader: &str, writer: &str| {
        let stage = stage(reader, "LateFlights", writer);
        stage
            .operator()
            .start("job", parameters(&stage))
            .unwrap_err()
            .to_string()
    };
    let error = mismatch("JsonNumbers", "SayMinutes");
    assert!(
        error.contains("found `u64`") && error.contains("generic::Flight`"),
        "{error}"
    );
    let error = mismatch("Flights", "SayTexts");
    assert!(error.contains("expected `String`, found `u64`"), "{error}");
}

/// An artifact of a preferred loader is known by its concrete type, though two aliases register it.
#[test]
fn a_preferred_loader_gives_generic_artifacts() {
    struct Loader;

    impl BatchArtifactLoader for Loader {
        fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
            Ok((reference == "loaded").then(LoadedArtifact::of::<JsonLines<Flight>>))
        }
    }

    let job = r#"<job id="job"><step id="step"><chunk reader="loaded" processor="LateFlights" writer="SayMinutes"/></step></job>"#;
    let stage = Stage::configured(job, |builder| builder.artifact_loader(Loader));
    std::fs::write(stage.path().join("flights.jsonl"), "{\"minutes\":30}\n").unwrap();
    stage.start("job", parameters(&stage));
    assert_eq!(stage.log(), ["[30]"]);
}
