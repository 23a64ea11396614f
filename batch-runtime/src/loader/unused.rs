//! The properties of a job that reach artifacts, and those of them that none takes.
//!
//! Spec: BPROP-11, JSL-CHPROP-07

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use batch_xml::model::{ExecutionElement, Job, Property};
use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, Span, Spanned};

use super::bind::{JOB_TIMEOUT, PARTITION_THREADS, STEP_TIMEOUT};
use crate::exit_codes::EXIT_CODES;

/// A property of the Job XML that no artifact takes.
const PROPERTY_UNUSED: &str = "ART0010";

/// The runtime's own properties: of a job, and of a step.
const OF_JOB: &[&str] = &[JOB_TIMEOUT, PARTITION_THREADS, EXIT_CODES];
const OF_STEP: &[&str] = &[STEP_TIMEOUT, PARTITION_THREADS];

/// What becomes of each `<property>` that reaches an artifact.
#[derive(Default)]
pub(super) struct PropertyUses {
    uses: Vec<PropertyUse>,
    index: HashMap<Place, usize>,
    /// All names that are taken, each with the first artifact that takes it.
    takers: BTreeMap<&'static str, String>,
}

struct PropertyUse {
    name: Spanned<String>,
    is_taken: bool,
    /// What the artifacts that it reaches would take.
    wanted: HashSet<&'static str>,
}

/// Where a `<property>` names itself: its source, and the offset in it. An inherited one is the same in every heir.
type Place = (usize, usize);

fn place(span: &Span) -> Place {
    (Arc::as_ptr(span.source()).addr(), span.range().start)
}

impl PropertyUses {
    /// The properties reach `artifact`, which takes those of the names.
    pub(super) fn reach(&mut self, properties: &[Property], artifact: &str, names: &[&'static str]) {
        for name in names {
            self.takers.entry(name).or_insert_with(|| artifact.to_owned());
        }
        for property in properties {
            let entry = self.entry(property);
            if names.contains(&property.name.value.as_str()) {
                entry.is_taken = true;
            } else if !entry.is_taken {
                entry.wanted.extend(names);
            }
        }
    }

    /// The properties reach something of which is not known what it takes.
    pub(super) fn reach_unknown(&mut self, properties: &[Property]) {
        for property in properties {
            self.entry(property).is_taken = true;
        }
    }

    fn entry(&mut self, property: &Property) -> &mut PropertyUse {
        let uses = &mut self.uses;
        let position = *self.index.entry(place(&property.name.span)).or_insert_with(|| {
            uses.push(PropertyUse {
                name: property.name.clone(),
                is_taken: false,
                wanted: HashSet::new(),
            });
            uses.len() - 1
        });
        &mut self.uses[position]
    }

    /// A property that nobody takes is most often misspelt, or at the wrong place. One of the job or a step may be there
    /// for the contexts, so its name has to be one that is taken elsewhere, or be much like one.
    pub(super) fn unused(&self, job: &Job) -> Vec<Diagnostic> {
        let mut shown = HashMap::new();
        show(&job.properties, OF_JOB, &mut shown);
        show_steps(&job.elements, &mut shown);
        let unused = self
            .uses
            .iter()
            .filter(|one| !one.is_taken && !job.symbols.contains(&one.name.value));
        unused
            .filter_map(|one| self.warning(one, shown.get(&place(&one.name.span)).copied()))
            .collect()
    }

    /// `shown` are the runtime's own properties there, if a context shows the property.
    fn warning(&self, one: &PropertyUse, shown: Option<Own>) -> Option<Diagnostic> {
        let name = one.name.value.as_str();
        if shown.is_some_and(|own| own.contains(&name)) {
            return None;
        }
        let message = format!("no artifact that property `{name}` reaches takes it");
        let warning =
            Diagnostic::warning(PROPERTY_UNUSED, message, one.name.span.clone()).label("has no effect");
        if let Some(taker) = self.takers.get(name) {
            return Some(warning.help(format!(
                "`{taker}` takes it, but is out of its reach: look at its place and its `target`"
            )));
        }
        let mut wanted: Vec<&str> = one
            .wanted
            .iter()
            .chain(shown.into_iter().flatten())
            .copied()
            .collect();
        wanted.sort_unstable();
        match nearest(name, wanted).or_else(|| nearest(name, self.takers.keys().copied())) {
            Some(near) => Some(warning.help(format!("did you mean `{near}`?"))),
            None if shown.is_some() => None,
            None => Some(warning),
        }
    }
}

/// The runtime's own properties at a place.
type Own = &'static [&'static str];

/// Notes what contexts show, each with the runtime's own properties of the place.
fn show(properties: &[Property], own: Own, shown: &mut HashMap<Place, Own>) {
    shown.extend(
        properties
            .iter()
            .map(|property| (place(&property.name.span), own)),
    );
}

fn show_steps(elements: &[ExecutionElement], shown: &mut HashMap<Place, Own>) {
    for element in elements {
        if let ExecutionElement::Step(step) = element {
            show(&step.properties, OF_STEP, shown);
        }
        show_steps(element.elements(), shown);
    }
}
