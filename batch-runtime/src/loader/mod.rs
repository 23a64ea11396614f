//! The loader: binds a checked job, so that every `ref` is a registered artifact. All mistakes of a job are reported
//! at once, with their places in the XML, before anything runs.
// Spec: LOADER-01 to LOADER-20, ART-09, CHUNK-LOOP-17

mod artifacts;
mod assemble;
mod bind;
mod binder;
mod checks;
mod exceptions;
mod fault_properties;
mod items;
mod partition;
mod runtime_names;
mod runtime_properties;
mod source;
mod unused;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use batch_xml::{Diagnostic, Span};

pub(crate) use artifacts::Artifacts;
pub(crate) use assemble::ArtifactSources;
pub(crate) use bind::may_be_mistake;

use crate::engine::BoundJob;
use crate::secret::Secrets;

/// Values from outside of the Job XML.
#[derive(Clone, Default)]
pub(crate) struct ExternalValues {
    pub(crate) parameters: Arc<BTreeMap<String, String>>,
    pub(crate) system: Arc<BTreeMap<String, String>>,
    /// The values of the marks in `parameters`.
    pub(crate) secrets: Secrets,
    /// The names of the databases beside the repository; `None` if they are not known.
    pub(crate) databases: Option<Arc<BTreeSet<String>>>,
}

impl ExternalValues {
    /// Returns the value of a runtime property that the Job XML does not set.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.parameters.get(name).or_else(|| self.system.get(name));
        value.map(String::as_str)
    }
}

/// A bound job, with the warnings.
pub(crate) struct BindOutcome {
    pub(crate) job: BoundJob,
    pub(crate) warnings: Vec<Diagnostic>,
    /// The names of job parameters that can have an effect.
    pub(crate) parameter_names: BTreeSet<String>,
    /// A writer that takes the chunk transaction.
    pub(crate) transactional_writer: Option<String>,
    /// The jobs that its artifacts run.
    pub(crate) nested: Vec<NestedJobRef>,
}

/// A property with the id of a job that the artifact runs.
// Spec: NEST-05
pub(crate) struct NestedJobRef {
    pub(crate) job: String,
    pub(crate) span: Span,
    /// True if the id is written as such in the XML: no parameter changes it by substitution.
    pub(crate) is_literal: bool,
}
