//! Checks the properties and contexts of an artifact at its place.

use std::panic::{AssertUnwindSafe, catch_unwind};

use batch_xml::model::ArtifactRef;
use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, Spanned};

use super::NestedJobRef;
use super::binder::{Binder, Scope};
use crate::artifact::{
    ArtifactRegistration, ContextKind, Properties, PropertyInfo, PropertySource, short_type_name,
};
use crate::engine::{Bound, PartitionKey};
use crate::error::BatchError;
use crate::named_database::check_database;
use crate::role::Role;

/// A property's value does not parse as its field's type.
const PROPERTY_VALUE: &str = "ART0005";
/// A property that a field requires has no value.
const PROPERTY_MISSING: &str = "ART0006";
/// A context field that is never in scope.
const CONTEXT_SCOPE: &str = "ART0007";
/// A property names no database.
const UNKNOWN_DATABASE: &str = "ART0031";
/// A listener that writes rejects is not called for skips, or not at checkpoints.
const REJECTS_LOST: &str = "ART0030";

impl Binder<'_> {
    /// Checks that each property of an artifact has a value that parses.
    // Spec: BPROP-10
    pub(super) fn check_properties(
        &mut self,
        registration: &ArtifactRegistration,
        properties: &Properties,
        artifact: &ArtifactRef,
    ) {
        let infos = (registration.properties)();
        // In a partition, a value may have no text yet.
        let in_xml = |name: &str| {
            artifact
                .properties
                .iter()
                .any(|property| property.name.value == name)
        };
        let has_effect = |info: &&PropertyInfo| {
            let needed = info.only_with.as_deref();
            needed.is_none_or(|needed| in_xml(needed) || properties.get(needed).is_some())
        };
        let (effective, others): (Vec<_>, Vec<_>) = infos.iter().partition(has_effect);
        let names: Vec<&str> = effective.iter().map(|info| info.name.as_str()).collect();
        self.uses.reach(
            &artifact.properties,
            &artifact.name.value,
            &names,
            registration.is_ready_made(),
        );
        for info in others {
            let needed = info.only_with.as_deref().unwrap_or_default();
            self.uses.require(&artifact.properties, &info.name, needed);
        }
        for info in infos {
            if self.dialect().parameters_set_properties() {
                self.parameter_names.insert(info.name.clone());
            }
            let default = info.default.map(|text| (text, PropertySource::Default));
            let problem = match properties.get(&info.name).or(default) {
                Some((text, source)) => match parse_error(&info, text, properties) {
                    // An expression without a value. Spec: JAK-12
                    Some(_) if text.is_empty() && !self.dialect().parameters_set_properties() => {
                        self.empty(artifact, &info)
                    }
                    Some(reason) => invalid(registration, artifact, &info, text, source).label(reason),
                    None => {
                        if info.names_job && !properties.secrets.are_in(text) {
                            self.nested.push(nested_job(artifact, &info, text, &source));
                        }
                        let known = self.source.external.databases.as_deref();
                        let known = known.filter(|_| info.names_database && !properties.secrets.are_in(text));
                        match known.map(|names| check_database(text, names)) {
                            Some(Err(problem)) => no_database(artifact, &info, &source, problem),
                            Some(Ok(())) | None => continue,
                        }
                    }
                },
                // If the job is incomplete, a partition may set it, or the mistake is in the XML.
                None if info.optional || self.is_incomplete => continue,
                None => self.missing(artifact, &info),
            };
            self.diagnostics.push(problem);
        }
    }

    /// Reports a required property whose expression is empty.
    fn empty(&self, artifact: &ArtifactRef, info: &PropertyInfo) -> Diagnostic {
        let missing = self.missing(artifact, info);
        let mut properties = artifact.properties.iter();
        let Some(property) = properties.find(|property| property.name.value == info.name) else {
            return missing;
        };
        let help = match property.value.span.text() {
            "" => "write a value".to_owned(),
            written => format!(
                "`{written}` is empty: define what it names, or write a default after it: `{written}?:value;`"
            ),
        };
        Diagnostic::error(PROPERTY_MISSING, missing.message, property.value.span.clone())
            .label(missing.label)
            .help(help)
    }

    /// Reports a required property without a value.
    fn missing(&self, artifact: &ArtifactRef, info: &PropertyInfo) -> Diagnostic {
        let name = info.name.as_str();
        let (place, mut help) = match self.path.last() {
            None if self.dialect().parameters_set_properties() => (
                String::new(),
                format!("add `<property name=\"{name}\" value=\"...\"/>` or give a job parameter"),
            ),
            None => (
                String::new(),
                format!(
                    "add `<property name=\"{name}\" value=\"...\"/>`, with `#{{jobParameters['{name}']}}` as the value if it is a job \
                     parameter"
                ),
            ),
            // One value for all partitions would make each do the work of the others.
            Some(PartitionKey { element, number, .. }) => (
                format!(" in partition {number} of `{element}`"),
                format!(
                    "if each partition has its own value, add `<property name=\"{name}.{number}\" value=\"...\"/>` to the \
                     properties of the partition, or set it in the plan of the algorithm"
                ),
            ),
        };
        let given = artifact
            .properties
            .iter()
            .map(|property| property.name.value.as_str());
        if let Some(near) = nearest(name, given) {
            help.push_str(&format!(" (the XML gives `{near}`)"));
        }
        let message = format!("`{}` requires the property `{name}`{place}", artifact.name.value);
        Diagnostic::error(PROPERTY_MISSING, message, artifact.name.span.clone())
            .label(format!(
                "field `{}` is of type `{}`",
                info.field,
                short_type_name(info.type_name)
            ))
            .help(help)
    }

    /// Checks that a `RejectListener` has both of its roles: it collects rejects as a skip listener, and writes them as a checkpoint
    /// listener.
    // Spec: LOSS-07
    pub(super) fn check_reject_listener(&mut self, roles: &[Bound], listener: &ArtifactRef, scope: Scope) {
        let writes_rejects = |bound: &Bound| bound.registration.writes_rejects();
        // For a listener of the job, which is never called at checkpoints, the missing context is reported instead.
        let Some(bound) = roles.iter().find(|bound| scope.step && writes_rejects(bound)) else {
            return;
        };
        let has = |role: &Role| roles.iter().any(|bound| bound.registration.role() == *role);
        let mut needed = [Role::SkipListener, Role::CheckpointListener].into_iter();
        if let Some(missing) = needed.find(|role| !has(role)) {
            let (attribute, class) = (missing.attribute(), bound.registration.class);
            let message = format!(
                "listener `{}` would lose rejects: it is not a {missing}",
                bound.name
            );
            let place = bound.registration.place();
            self.diagnostics.push(
                Diagnostic::error(REJECTS_LOST, message, listener.name.span.clone())
                    .label(format!(
                        "`{class}` collects rejects at skips, and writes them at checkpoints"
                    ))
                    .help(format!(
                        "register it by `#[{attribute}(\"{}\")]` too ({place})",
                        bound.registration.name
                    )),
            );
        }
    }

    // Spec: CTX-05, CTX-12, D-66
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
                    "name it in a {}, or make the field an `Option<{context}>` ({})",
                    context.trim_end_matches("Context").to_lowercase(),
                    registration.place()
                )),
            );
        }
    }
}

/// Returns the reason why a value does not parse as the type of its field.
fn parse_error(info: &PropertyInfo, text: &str, properties: &Properties) -> Option<String> {
    let secrets = &properties.secrets;
    // A mark is not the value.
    if secrets.are_unread_in(text) {
        return None;
    }
    let has_default = info.default.is_some_and(|default| !default.is_empty());
    // Counts as not set if it does not parse.
    if text.is_empty() && (has_default || info.optional) {
        return None;
    }
    // A panicking parser must not affect the caller of `start`. Spec: CHUNK-EXC-03
    let checked = catch_unwind(AssertUnwindSafe(|| (info.check)(&secrets.revealed(text))));
    let reason = checked
        .unwrap_or_else(|payload| Err(BatchError::from_panic(payload).chain()))
        .err()?;
    // The parser's message may contain the value.
    Some(match secrets.are_in(text) {
        true => "the secret is not valid".to_owned(),
        false => reason,
    })
}

/// Returns the value in the XML, if it comes from there.
fn value_in_xml<'a>(
    artifact: &'a ArtifactRef,
    info: &PropertyInfo,
    source: &PropertySource,
) -> Option<&'a Spanned<String>> {
    let PropertySource::Xml(_) = source else {
        return None;
    };
    let mut of_xml = artifact.properties.iter();
    let property = of_xml.find(|property| property.name.value == info.name)?;
    Some(&property.value)
}

// Spec: NEST-05
fn nested_job(
    artifact: &ArtifactRef,
    info: &PropertyInfo,
    text: &str,
    source: &PropertySource,
) -> NestedJobRef {
    let value = value_in_xml(artifact, info, source);
    NestedJobRef {
        job: text.to_owned(),
        span: value.map_or(&artifact.name.span, |value| &value.span).clone(),
        is_literal: value.is_some_and(|value| value.span.text() == text),
    }
}

/// Reports a value that is not the name of a database. Does not show the value, which may contain a password.
// Spec: MARK-13
fn no_database(
    artifact: &ArtifactRef,
    info: &PropertyInfo,
    source: &PropertySource,
    problem: String,
) -> Diagnostic {
    let value = value_in_xml(artifact, info, source);
    let span = value.map_or(&artifact.name.span, |value| &value.span);
    let message = format!("property `{}` of `{}`: {problem}", info.name, artifact.name.value);
    Diagnostic::error(UNKNOWN_DATABASE, message, span.clone())
}

/// Reports a value that does not parse as the type of its field.
fn invalid(
    registration: &ArtifactRegistration,
    artifact: &ArtifactRef,
    info: &PropertyInfo,
    text: &str,
    source: PropertySource,
) -> Diagnostic {
    let value = value_in_xml(artifact, info, &source);
    let given = match source {
        PropertySource::Xml(_) => String::new(),
        other => format!(" (from {other})"),
    };
    let invalid = format!("invalid value {text:?} for property `{}`{given}", info.name);
    let span = value.map_or(&artifact.name.span, |value| &value.span);
    // The types and places of a library mean nothing to the author of a job file.
    if registration.is_ready_made() {
        let expected = match expected_value(info.type_name) {
            Some(words) => format!(": expected {words}"),
            None => String::new(),
        };
        return Diagnostic::error(PROPERTY_VALUE, invalid + &expected, span.clone());
    }
    let message = format!("{invalid}: expected `{}`", short_type_name(info.type_name));
    Diagnostic::error(PROPERTY_VALUE, message, span.clone()).help(format!(
        "field `{}` of `{}`, {}",
        info.field,
        registration.class,
        registration.place()
    ))
}

/// Returns a type of Rust in words; `None` if its own message has to suffice.
fn expected_value(type_name: &str) -> Option<&'static str> {
    match type_name {
        "bool" => Some("`true` or `false`"),
        "u8" | "u16" | "u32" | "u64" | "usize" => Some("an integer that is not negative"),
        "i8" | "i16" | "i32" | "i64" | "isize" => Some("an integer"),
        "f32" | "f64" => Some("a number"),
        _ => None,
    }
}
