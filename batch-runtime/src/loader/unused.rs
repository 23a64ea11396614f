//! Finds properties of a job that reach artifacts, but match no field.
// Spec: BPROP-11, JSL-CHPROP-07

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use batch_xml::model::{ExecutionElement, Job, Property};
use batch_xml::suggest::{nearest, one_of};
use batch_xml::{Diagnostic, Span, Spanned};

use super::runtime_names::{OF_JOB_ONLY, OF_STEP, is_of_job};

/// A property of the Job XML that no artifact uses.
const PROPERTY_UNUSED: &str = "ART0010";
/// A property that is addressed to a ready-made artifact, which does not declare it.
const PROPERTY_UNKNOWN: &str = "ART0028";

/// The uses of each `<property>` that reaches an artifact.
#[derive(Default)]
pub(super) struct PropertyUses {
    uses: Vec<PropertyUse>,
    index: HashMap<Place, usize>,
    /// All names that artifacts declare, each with the first artifact.
    takers: BTreeMap<String, String>,
}

struct PropertyUse {
    name: Spanned<String>,
    is_taken: bool,
    /// The properties that the reached artifacts declare.
    wanted: HashSet<String>,
    /// The ready-made artifact that the property is addressed to; without a target, the first one that it reaches.
    addressee: Option<String>,
    is_addressed: bool,
    /// The properties without which it has no effect in the reached artifacts.
    needed: BTreeSet<String>,
    /// True if it has reached an artifact of the program, which may know more properties than it declares.
    has_other: bool,
}

impl PropertyUse {
    /// Returns what is missing for an effect.
    fn missing_help(&self) -> Option<String> {
        let needed: Vec<&str> = self.needed.iter().map(String::as_str).collect();
        (!needed.is_empty()).then(|| format!("it has an effect only with {}", one_of(&needed)))
    }
}

/// The identity of a `<property>`: its source, and the offset in it. Heirs share an inherited one.
type Place = (usize, usize);

fn place(span: &Span) -> Place {
    (Arc::as_ptr(span.source()).addr(), span.range().start)
}

impl PropertyUses {
    /// Records that the properties reach `artifact`, which declares these names. A ready-made one knows all its properties.
    pub(super) fn reach(
        &mut self,
        properties: &[Property],
        artifact: &str,
        names: &[&str],
        is_ready_made: bool,
    ) {
        for name in names {
            self.takers
                .entry((*name).to_owned())
                .or_insert_with(|| artifact.to_owned());
        }
        for property in properties {
            let entry = self.entry(property);
            if names.contains(&property.name.value.as_str()) {
                entry.is_taken = true;
            } else if !entry.is_taken {
                match is_ready_made {
                    true => {
                        entry.addressee.get_or_insert_with(|| artifact.to_owned());
                        entry.is_addressed |= property.is_addressed;
                    }
                    false => entry.has_other = true,
                }
                entry.wanted.extend(names.iter().map(|name| (*name).to_owned()));
            }
        }
    }

    /// Records that a property has no effect in the reached artifact without another one, which is not set.
    pub(super) fn require(&mut self, properties: &[Property], name: &str, needed: &str) {
        for property in properties.iter().filter(|property| property.name.value == name) {
            self.entry(property).needed.insert(needed.to_owned());
        }
    }

    /// Records that the properties reach an artifact with unknown properties.
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
                needed: BTreeSet::new(),
                addressee: None,
                is_addressed: false,
                has_other: false,
            });
            uses.len() - 1
        });
        &mut self.uses[position]
    }

    /// Returns the errors of properties that are addressed to ready-made artifacts, or that only these can use, and which they do not declare.
    pub(super) fn unknown(&self, job: &Job) -> Vec<Diagnostic> {
        let shown = shown_properties(job);
        let unknown = self.uses.iter().filter(|one| self.is_unknown(one, job, &shown));
        let error = |one: &PropertyUse| {
            let (name, addressee) = (one.name.value.as_str(), one.addressee.as_ref()?);
            let mut wanted: Vec<&str> = one.wanted.iter().map(String::as_str).collect();
            wanted.sort_unstable();
            let is_of_part = |wanted: &&str| {
                wanted
                    .strip_suffix(name)
                    .is_some_and(|prefix| prefix.ends_with('.'))
            };
            let of_parts: Vec<&str> = wanted.iter().copied().filter(is_of_part).collect();
            if let Some(help) = one.missing_help() {
                let message = format!("the property `{name}` has no effect");
                let error = Diagnostic::error(PROPERTY_UNKNOWN, message, one.name.span.clone());
                return Some(error.label("has no effect").help(help));
            }
            let help = match (is_of_job(name), nearest(name, wanted)) {
                (true, _) => "it belongs to the properties of its step or job".to_owned(),
                _ if !of_parts.is_empty() => format!("did you mean {}?", one_of(&of_parts)),
                (_, Some(near)) => format!("did you mean `{near}`?"),
                (_, None) => "remove it, or give it to the artifact that declares it".to_owned(),
            };
            let message = match one.is_addressed {
                true => format!("`{addressee}` has no property `{name}`"),
                false => format!("neither `{addressee}` nor another artifact here has a property `{name}`"),
            };
            let error = Diagnostic::error(PROPERTY_UNKNOWN, message, one.name.span.clone());
            Some(error.label("unknown").help(help))
        };
        unknown.filter_map(error).collect()
    }

    /// Warns about properties that no artifact uses. A property of a job or step may be meant for the contexts, so it
    /// is reported only if its name matches, or nearly matches, a declared property.
    pub(super) fn unused(&self, job: &Job) -> Vec<Diagnostic> {
        let shown = shown_properties(job);
        let unused = self.uses.iter().filter(|one| {
            !one.is_taken && !self.is_unknown(one, job, &shown) && !job.symbols.contains(&one.name.value)
        });
        unused
            .filter_map(|one| self.warning(one, shown.get(&place(&one.name.span)).copied()))
            .collect()
    }

    /// Returns whether no artifact can use the property. One that contexts show, or that is a symbol, may have another use.
    fn is_unknown(&self, one: &PropertyUse, job: &Job, shown: &ShownProperties) -> bool {
        let may_be_other = one.has_other
            || shown.contains_key(&place(&one.name.span))
            || job.symbols.contains(&one.name.value);
        !one.is_taken && one.addressee.is_some() && (one.is_addressed || !may_be_other)
    }

    /// Creates the warning. `shown`: the context that exposes the property.
    fn warning(&self, one: &PropertyUse, shown: Option<Shown>) -> Option<Diagnostic> {
        let name = one.name.value.as_str();
        // Another check rejects a job's properties on a step.
        if shown.is_some() && is_of_job(name) {
            return None;
        }
        let message = format!("no artifact in scope declares the property `{name}`");
        let warning =
            Diagnostic::warning(PROPERTY_UNUSED, message, one.name.span.clone()).label("has no effect");
        if is_of_job(name) {
            let place = if OF_STEP.contains(&name) {
                "its step or job"
            } else {
                "its job"
            };
            return Some(warning.help(format!("it belongs to the properties of {place}")));
        }
        if let Some(help) = one.missing_help() {
            return Some(warning.help(help));
        }
        if let Some(taker) = self.takers.get(name) {
            return Some(warning.help(format!(
                "`{taker}` declares it, but is not in scope: check the place of the property and its `target`"
            )));
        }
        let mut wanted: Vec<&str> = one.wanted.iter().map(String::as_str).collect();
        wanted.extend(shown.into_iter().flat_map(Shown::runtime_properties));
        wanted.sort_unstable();
        match nearest(name, wanted).or_else(|| nearest(name, self.takers.keys().map(String::as_str))) {
            Some(near) => Some(warning.help(format!("did you mean `{near}`?"))),
            None if shown.is_some() => None,
            None => Some(warning),
        }
    }
}

/// A context that exposes properties.
#[derive(Clone, Copy)]
enum Shown {
    Job,
    Step,
}

impl Shown {
    /// Returns the runtime properties of the place.
    fn runtime_properties<'a>(self) -> impl Iterator<Item = &'a str> {
        let of_job_only = match self {
            Self::Job => OF_JOB_ONLY,
            Self::Step => &[],
        };
        of_job_only.iter().chain(OF_STEP).copied()
    }
}

/// The properties that contexts expose, by their places.
type ShownProperties = HashMap<Place, Shown>;

fn shown_properties(job: &Job) -> ShownProperties {
    let mut shown = HashMap::new();
    show(&job.properties, Shown::Job, &mut shown);
    show_steps(&job.elements, &mut shown);
    shown
}

/// Records the properties that a context exposes.
fn show(properties: &[Property], by: Shown, shown: &mut ShownProperties) {
    shown.extend(properties.iter().map(|property| (place(&property.name.span), by)));
}

fn show_steps(elements: &[ExecutionElement], shown: &mut ShownProperties) {
    for element in elements {
        if let ExecutionElement::Step(step) = element {
            show(&step.properties, Shown::Step, shown);
        }
        show_steps(element.elements(), shown);
    }
}
