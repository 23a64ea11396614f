//! What is checked of an artifact at its place: its properties and its contexts.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use batch_xml::Diagnostic;
use batch_xml::model::{ArtifactRef, ExecutionElement, Job};
use batch_xml::suggest::nearest;

use super::artifacts::place;
use super::bind::{Around, Binder};
use crate::artifact::{ArtifactRegistration, ContextKind, Properties, PropertySource};
use crate::error::BatchError;

/// A property's value does not parse as its field's type.
const PROPERTY_VALUE: &str = "ART0005";
/// A property that a field needs has no value.
const PROPERTY_MISSING: &str = "ART0006";
/// A context field that can never be in scope.
const CONTEXT_SCOPE: &str = "ART0007";
/// A property of the Job XML that no artifact takes.
const PROPERTY_UNUSED: &str = "ART0010";

impl Binder<'_> {
    /// A property that nobody takes is most often a misspelt one. One of the job or a step may be there for the
    /// contexts, so it has to be much like a name that is taken. Spec: BPROP-11, JSL-CHPROP-07
    pub(super) fn unused_properties(&mut self, job: &Job) {
        let steps = job.elements.iter().filter_map(|element| match element {
            ExecutionElement::Step(step) => Some(step),
            _ => None,
        });
        let of_contexts: BTreeSet<&str> = steps
            .flat_map(|step| &step.properties)
            .chain(&job.properties)
            .map(|property| property.name.value.as_str())
            .collect();
        let mut told = BTreeSet::new();
        for property in &self.reaching {
            let name = property.name.value.as_str();
            if self.taken.contains(name) || job.symbols.contains(name) || !told.insert(name) {
                continue;
            }
            let near = nearest(name, self.taken.iter().map(String::as_str));
            if near.is_none() && of_contexts.contains(name) {
                continue;
            }
            let message = format!("no artifact that property `{name}` reaches takes it");
            let warning = Diagnostic::warning(PROPERTY_UNUSED, message, property.name.span.clone())
                .label("has no effect");
            self.warnings.push(match near {
                Some(near) => warning.help(format!("did you mean `{near}`?")),
                None => warning,
            });
        }
    }

    /// Spec: BPROP-10
    pub(super) fn check_properties(
        &mut self,
        registration: &ArtifactRegistration,
        properties: &Properties,
        artifact: &ArtifactRef,
    ) {
        for info in (registration.properties)() {
            self.parameter_names.insert(info.name.to_owned());
            self.taken.insert(info.name.to_owned());
            let default = info.default.map(|text| (text, PropertySource::Default));
            let (text, source) = match properties.get(info.name).or(default) {
                Some(found) => found,
                None if info.optional => continue,
                None => {
                    let given = artifact
                        .properties
                        .iter()
                        .map(|property| property.name.value.as_str());
                    let near = nearest(info.name, given).map(|near| format!(" (the XML gives `{near}`)"));
                    self.diagnostics.push(
                        Diagnostic::error(
                            PROPERTY_MISSING,
                            format!("`{}` needs the property `{}`", artifact.name.value, info.name),
                            artifact.name.span.clone(),
                        )
                        .label(format!("field `{}` is of type `{}`", info.field, info.type_name))
                        .help(format!(
                            "add `<property name=\"{}\" value=\"...\"/>` or give a job parameter{}",
                            info.name,
                            near.unwrap_or_default()
                        )),
                    );
                    continue;
                }
            };
            // A parser that panics must not take the caller of `start` with it. Spec: CHUNK-EXC-03
            let checked = catch_unwind(AssertUnwindSafe(|| (info.check)(text)))
                .unwrap_or_else(|payload| Err(BatchError::from_panic(payload).chain()));
            if let Err(reason) = checked {
                let in_xml = artifact
                    .properties
                    .iter()
                    .find(|property| property.name.value == info.name);
                let span = match (&source, in_xml) {
                    (PropertySource::Xml(_), Some(property)) => property.value.span.clone(),
                    _ => artifact.name.span.clone(),
                };
                let given = match source {
                    PropertySource::Xml(_) => String::new(),
                    other => format!(", given by {other},"),
                };
                self.diagnostics.push(
                    Diagnostic::error(
                        PROPERTY_VALUE,
                        format!(
                            "property `{}`: {text:?}{given} is no `{}`",
                            info.name, info.type_name
                        ),
                        span,
                    )
                    .label(reason)
                    .help(format!(
                        "field `{}` of `{}`, {}",
                        info.field,
                        registration.class,
                        place(registration)
                    )),
                );
            }
        }
    }

    /// Spec: CTX-05, CTX-12, D-66
    pub(super) fn check_contexts(
        &mut self,
        registration: &ArtifactRegistration,
        artifact: &ArtifactRef,
        around: Around,
    ) {
        let never = |kind: ContextKind| match kind {
            ContextKind::Job => false,
            ContextKind::Step => !around.step,
            ContextKind::Flow => !around.flow,
            ContextKind::Split => !around.split,
        };
        for info in (registration.contexts)()
            .into_iter()
            .filter(|info| !info.optional && never(info.kind))
        {
            let context = info.kind.type_name();
            self.diagnostics.push(
                Diagnostic::error(
                    CONTEXT_SCOPE,
                    format!(
                        "no `{context}` is in scope when `{}` is made",
                        artifact.name.value
                    ),
                    artifact.name.span.clone(),
                )
                .label(format!("field `{}` needs one", info.field))
                .help(format!(
                    "make the field an `Option<{context}>` ({})",
                    place(registration)
                )),
            );
        }
    }
}
