//! Artifacts in fields of artifacts: injected in the same scope, with a prefix before the names of their properties.
// Spec: D-97

use super::inject::{BatchArtifact, ContextInfo, ContextScope, InjectError, InjectionScope, PropertyInfo};

/// A `#[batch_artifact]` field of type `T`.
pub struct NestedArtifact<T> {
    field: &'static str,
    prefix: &'static str,
    inject: fn(&InjectionScope<'_>) -> Result<T, InjectError>,
    set_properties: fn(&mut T, &InjectionScope<'_>) -> Result<(), InjectError>,
    bind_contexts: fn(&mut T, &ContextScope) -> Result<(), InjectError>,
    properties: fn() -> Vec<PropertyInfo>,
    contexts: fn() -> Vec<ContextInfo>,
}

impl NestedArtifact<()> {
    /// Describes a field. The only function that requires the trait, because rustc reports a missing one once per body.
    /// Called by generated code, as are the others.
    pub fn of<T: BatchArtifact>(field: &'static str, prefix: &'static str) -> NestedArtifact<T> {
        NestedArtifact {
            field,
            prefix,
            inject: T::inject,
            set_properties: T::set_properties,
            bind_contexts: T::bind_contexts,
            properties: T::properties,
            contexts: T::contexts,
        }
    }
}

impl<T> NestedArtifact<T> {
    /// Creates the instance with its properties and contexts.
    pub fn inject(&self, scope: &InjectionScope<'_>) -> Result<T, InjectError> {
        (self.inject)(&scope.nested(self.prefix)).map_err(|error| self.located(error))
    }

    /// Sets the property fields of the instance.
    pub fn set_properties(&self, instance: &mut T, scope: &InjectionScope<'_>) -> Result<(), InjectError> {
        (self.set_properties)(instance, &scope.nested(self.prefix)).map_err(|error| self.located(error))
    }

    /// Sets the context fields of the instance.
    pub fn bind_contexts(&self, instance: &mut T, contexts: &ContextScope) -> Result<(), InjectError> {
        (self.bind_contexts)(instance, contexts).map_err(|error| self.located(error))
    }

    /// Returns the properties under the names that the enclosing artifact gives them.
    pub fn properties(&self) -> impl Iterator<Item = PropertyInfo> {
        (self.properties)().into_iter().map(|info| PropertyInfo {
            name: format!("{}{}", self.prefix, info.name),
            field: self.path(&info.field),
            only_with: info.only_with.map(|name| format!("{}{name}", self.prefix)),
            ..info
        })
    }

    /// Returns the context fields.
    pub fn contexts(&self) -> impl Iterator<Item = ContextInfo> {
        (self.contexts)().into_iter().map(|info| ContextInfo {
            field: self.path(&info.field),
            ..info
        })
    }

    fn path(&self, inner: &str) -> String {
        format!("{}.{inner}", self.field)
    }

    /// Puts the field's name before the name of the inner field.
    fn located(&self, mut error: InjectError) -> InjectError {
        match &mut error {
            InjectError::Property { field, .. }
            | InjectError::MissingProperty { field, .. }
            | InjectError::OutOfScope { field, .. } => *field = self.path(field).into(),
            InjectError::AnotherType { .. } => {}
        }
        error
    }
}
