//! Checks the properties and contexts of an artifact at its place.

use std::panic::{AssertUnwindSafe, catch_unwind};

use batch_xml::Diagnostic;
use batch_xml::model::ArtifactRef;
use batch_xml::suggest::nearest;

use super::artifacts::place;
use super::bind::{Binder, Scope};
use crate::artifact::{ArtifactRegistration, ContextKind, Properties, PropertySource, short_type_name};
use crate::engine::PartitionKey;
use crate::error::BatchError;

/// A property's value does not parse as its field's type.
const PROPERTY_VALUE: &str = "ART0005";
/// A property that a field requires has no value.
const PROPERTY_MISSING: &str = "ART0006";
/// A context field that is never in scope.
const CONTEXT_SCOPE: &str = "ART0007";

impl Binder<'_> {
    /// Spec: BPROP-10
    pub(super) fn check_properties(
        &mut self,
        registration: &ArtifactRegistration,
        properties: &Properties,
        artifact: &ArtifactRef,
    ) {
        let infos = (registration.properties)();
        let names: Vec<&'static str> = infos.iter().map(|info| info.name).collect();
        self.uses
            .reach(&artifact.properties, &artifact.name.value, &names);
        for info in infos {
            self.parameter_names.insert(info.name.to_owned());
            let default = info.default.map(|text| (text, PropertySource::Default));
            let (text, source) = match properties.get(info.name).or(default) {
                Some(found) => found,
                None if info.optional => continue,
                // A partition may set it, or the mistake is in the XML.
                None if self.is_incomplete => continue,
                None => {
                    let given = artifact
                        .properties
                        .iter()
                        .map(|property| property.name.value.as_str());
                    let near = nearest(info.name, given).map(|near| format!(" (the XML gives `{near}`)"));
                    let (place, help) = match self.path.last() {
                        None => (
                            String::new(),
                            format!(
                                "add `<property name=\"{}\" value=\"...\"/>` or give a job parameter{}",
                                info.name,
                                near.unwrap_or_default()
                            ),
                        ),
                        // One value for all partitions would make each do the work of the others.
                        Some(PartitionKey { element, number, .. }) => (
                            format!(" in partition {number} of `{element}`"),
                            format!(
                                "if each partition has its own value, add `<property name=\"{}.{number}\" \
                                 value=\"...\"/>` to the properties of the partition, or set it in the plan of the algorithm{}",
                                info.name,
                                near.unwrap_or_default()
                            ),
                        ),
                    };
                    self.diagnostics.push(
                        Diagnostic::error(
                            PROPERTY_MISSING,
                            format!(
                                "`{}` requires the property `{}`{place}",
                                artifact.name.value, info.name
                            ),
                            artifact.name.span.clone(),
                        )
                        .label(format!(
                            "field `{}` is of type `{}`",
                            info.field,
                            short_type_name(info.type_name)
                        ))
                        .help(help),
                    );
                    continue;
                }
            };
            // A mark is not the value.
            if properties.secrets.are_unread_in(text) {
                continue;
            }
            // A panicking parser must not affect the caller of `start`. Spec: CHUNK-EXC-03
            let checked = catch_unwind(AssertUnwindSafe(|| {
                (info.check)(&properties.secrets.revealed(text))
            }))
            .unwrap_or_else(|payload| Err(BatchError::from_panic(payload).chain()))
            // The parser's message may contain the value.
            .map_err(|reason| match properties.secrets.are_in(text) {
                true => "the secret is not valid".to_owned(),
                false => reason,
            });
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
                    other => format!(" (from {other})"),
                };
                self.diagnostics.push(
                    Diagnostic::error(
                        PROPERTY_VALUE,
                        format!(
                            "invalid value {text:?} for property `{}`{given}: expected `{}`",
                            info.name,
                            short_type_name(info.type_name)
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
        scope: Scope,
    ) {
        let never = |kind: ContextKind| match kind {
            ContextKind::Job => false,
            ContextKind::Step => !scope.step,
            ContextKind::Flow => !scope.flow,
            ContextKind::Split => !scope.split,
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
                        "no `{context}` is in scope when `{}` is created",
                        artifact.name.value
                    ),
                    artifact.name.span.clone(),
                )
                .label(format!("field `{}` requires one", info.field))
                .help(format!(
                    "make the field an `Option<{context}>` ({})",
                    place(registration)
                )),
            );
        }
    }
}
