//! Injection: creates an artifact, with properties and contexts in the fields of its struct.
// Spec: BPROP-04, BPROP-12, CTX-02, ART-10

use std::any::TypeId;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use batch_xml::{Dialect, ValueSource};

use super::loaded::LoadedInstance;
use crate::context::{FlowContext, JobContext, SplitContext, StepContext};
use crate::ids::JobName;
use crate::named_database::DatabaseName;
use crate::output_path::OutputPath;
use crate::secret::Secrets;

/// Lets the runtime create a struct and fill its fields.
///
/// | field | value |
/// |---|---|
/// | `#[batch_property(name = "..", value = "..")]` | the property of that name, else the default `value`; without `name`, the field's name is the property's |
/// | `#[batch_context]` | the context of its type: `JobContext`, `StepContext`, `FlowContext`, `SplitContext`, or an `Option` of one, `None` out of scope |
/// | `#[batch_artifact(prefix = "..")]` | another artifact, injected in the same scope; the `prefix`, if any, is part of the names of its properties. An `Option` of one is `None` unless its first required property is set or, without a required one, any of them |
/// | any other | its own `Default` |
///
/// A property is text in Job XML. The field is a `String` (empty if nothing sets the property), any type with `FromStr`, a
/// `Vec` of them (values separated by commas, or by the character of `separator = ".."`), or an `Option`, `None` if nothing
/// sets the property. A property of any other type without a default is required. A value that is missing or does not parse is
/// reported before the job starts.
///
/// The struct may be generic. A field whose type depends on a parameter adds the bound that fills it: `FromStr` for a
/// property, `BatchArtifact` for an artifact, `Default` for any other field.
///
/// ```
/// use std::path::PathBuf;
///
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct FlightReader {
///     #[batch_property(name = "fileName", value = "flights.csv")]
///     file: PathBuf,
///     #[batch_property]
///     limit: Option<u64>,
///     #[batch_property(value = "MUC; FRA", separator = ";")]
///     airports: Vec<String>,
///     #[batch_context]
///     step: StepContext,
///     next: u64,
/// }
/// ```
///
/// An artifact can be made of others. The properties of this one are `departures.fileName`, `arrivals.fileName`, and so on; a property
/// `fileName` does not reach it. Over several levels, the outer prefix comes first. The runtime calls only the methods of the outer
/// artifact, which calls the inner artifacts.
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct FlightReader {}
/// #[derive(BatchArtifact)]
/// struct AllFlights {
///     #[batch_artifact(prefix = "departures.")]
///     departures: FlightReader,
///     #[batch_artifact(prefix = "arrivals.")]
///     arrivals: FlightReader,
/// }
/// ```
// Spec: ART-10, BPROP-01 to BPROP-12, CTX-02, CTX-03, CTX-05, D-97
#[doc(inline)]
pub use batch_macros::BatchArtifact;

/// A type that the runtime can create. Only `#[derive(BatchArtifact)]` implements it, and a `Mutex` around such a type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch artifact",
    label = "the runtime cannot construct this type",
    note = "add `#[derive(BatchArtifact)]` to `{Self}`; the derive reads `#[batch_property]` and `#[batch_context]` fields"
)]
pub trait BatchArtifact: Sized + 'static {
    /// Creates an instance with its properties and contexts.
    ///
    /// # Errors
    /// If a property's value does not parse, or a context is out of scope.
    fn inject(scope: &InjectionScope<'_>) -> Result<Self, InjectError>;

    /// Sets the property fields of an instance that a preferred loader created.
    ///
    /// # Errors
    /// If a property's value does not parse.
    // Spec: ART-10, LOADER-03
    fn set_properties(&mut self, scope: &InjectionScope<'_>) -> Result<(), InjectError>;

    /// Sets the context fields again, for an artifact that outlives a step.
    ///
    /// # Errors
    /// If a context is out of scope.
    // Spec: LISTEN-JOB-06, D-66
    fn bind_contexts(&mut self, contexts: &ContextScope) -> Result<(), InjectError>;

    /// Returns the `#[batch_property]` fields, nested artifacts included.
    fn properties() -> Vec<PropertyInfo>;

    /// Returns the `#[batch_context]` fields, nested artifacts included.
    fn contexts() -> Vec<ContextInfo>;
}

/// A nested artifact that is changed through a shared reference, such as one that is read at its first use.
#[diagnostic::do_not_recommend]
impl<A: BatchArtifact> BatchArtifact for Mutex<A> {
    fn inject(scope: &InjectionScope<'_>) -> Result<Self, InjectError> {
        A::inject(scope).map(Self::new)
    }

    fn set_properties(&mut self, scope: &InjectionScope<'_>) -> Result<(), InjectError> {
        inner(self).set_properties(scope)
    }

    fn bind_contexts(&mut self, contexts: &ContextScope) -> Result<(), InjectError> {
        inner(self).bind_contexts(contexts)
    }

    fn properties() -> Vec<PropertyInfo> {
        A::properties()
    }

    fn contexts() -> Vec<ContextInfo> {
        A::contexts()
    }
}

/// A nested artifact that exists if its first required property is set or, without a required one, any of its properties.
#[diagnostic::do_not_recommend]
impl<A: BatchArtifact> BatchArtifact for Option<A> {
    fn inject(scope: &InjectionScope<'_>) -> Result<Self, InjectError> {
        exists::<A>(scope).then(|| A::inject(scope)).transpose()
    }

    fn set_properties(&mut self, scope: &InjectionScope<'_>) -> Result<(), InjectError> {
        match self {
            Some(artifact) if exists::<A>(scope) => artifact.set_properties(scope),
            _ => Self::inject(scope).map(|artifact| *self = artifact),
        }
    }

    fn bind_contexts(&mut self, contexts: &ContextScope) -> Result<(), InjectError> {
        self.iter_mut()
            .try_for_each(|artifact| artifact.bind_contexts(contexts))
    }

    fn properties() -> Vec<PropertyInfo> {
        let mut properties = A::properties();
        let required = properties.iter().find(|property| property.is_required());
        let required = required.map(|property| property.name.clone());
        for property in &mut properties {
            property.optional = true;
            if property.only_with.is_none() && Some(&property.name) != required.as_ref() {
                property.only_with.clone_from(&required);
            }
        }
        properties
    }

    fn contexts() -> Vec<ContextInfo> {
        A::contexts()
    }
}

fn exists<A: BatchArtifact>(scope: &InjectionScope<'_>) -> bool {
    let properties = A::properties();
    match properties.iter().find(|property| property.is_required()) {
        Some(required) => scope.sets(required),
        None => properties.iter().any(|property| scope.sets(property)),
    }
}

fn inner<A>(artifact: &mut Mutex<A>) -> &mut A {
    artifact.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// A `#[batch_property]` field, as the loader checks it before anything runs.
#[derive(Clone, Debug)]
pub struct PropertyInfo {
    /// Name of the property, with the prefixes of the enclosing artifacts.
    pub name: String,
    /// Name of the field, after the names of the enclosing fields: `outer.inner`.
    pub field: String,
    /// The default, from `value = "..."`.
    pub default: Option<&'static str>,
    /// True if the field needs no value (`String`, `Vec`, `Option`).
    pub optional: bool,
    /// The property without which this one has no effect, in an `Option` of an artifact.
    pub only_with: Option<String>,
    /// Full path of the field's type.
    pub type_name: &'static str,
    /// Name of the struct with the field.
    pub declared_by: &'static str,
    /// What the documentation of the struct or of the field says about the property.
    pub description: &'static str,
    /// What holds if nothing sets the property and it has no default, such as `by extension`; empty if the documentation does not say it.
    pub if_absent: &'static str,
    /// True if the value is the id of a job that the artifact runs: the field is a [`JobName`].
    pub names_job: bool,
    /// True if the value names a database beside the repository: the field is a [`DatabaseName`].
    pub names_database: bool,
    /// True if the value names an output of the artifact: the field is an [`OutputPath`].
    pub is_output: bool,
    /// Parses a text as the field's type, or returns the reason why it does not parse.
    pub check: fn(&str) -> Result<(), String>,
}

impl PropertyInfo {
    /// Describes a field of type `T`. Called by generated code.
    pub fn of<T: PropertyValue>(
        name: &'static str,
        field: &'static str,
        default: Option<&'static str>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            field: field.to_owned(),
            default,
            optional: T::absent().is_some(),
            only_with: None,
            type_name: T::type_name(),
            declared_by: "",
            description: "",
            if_absent: "",
            names_job: TypeId::of::<T>() == TypeId::of::<JobName>(),
            names_database: TypeId::of::<T>() == TypeId::of::<DatabaseName>(),
            is_output: TypeId::of::<T>() == TypeId::of::<OutputPath>(),
            check: |text| T::parse(text).map(drop),
        }
    }

    /// Returns whether the property needs a value.
    pub(crate) fn is_required(&self) -> bool {
        self.default.is_none() && !self.optional
    }

    /// Describes a field of type `Option<T>`. Called by generated code.
    pub fn optional<T: PropertyValue>(
        name: &'static str,
        field: &'static str,
        default: Option<&'static str>,
    ) -> Self {
        Self {
            optional: true,
            ..Self::of::<T>(name, field, default)
        }
    }

    /// Adds the documentation of the property, and the struct that has it. Called by generated code.
    #[must_use]
    pub fn documented(
        self,
        declared_by: &'static str,
        description: &'static str,
        if_absent: &'static str,
    ) -> Self {
        Self {
            declared_by,
            description,
            if_absent,
            ..self
        }
    }

    /// Describes a field of type `Vec<T>` or `Option<Vec<T>>`. Called by generated code.
    pub fn list<T: PropertyValue, const SEPARATOR: char>(
        name: &'static str,
        field: &'static str,
        default: Option<&'static str>,
    ) -> Self {
        Self::of::<Separated<T, SEPARATOR>>(name, field, default)
    }
}

/// The type of a `#[batch_property]` field: `String`, or any type that parses from text.
// Spec: BPROP-01, BPROP-10
#[diagnostic::on_unimplemented(
    message = "a `#[batch_property]` field cannot be of type `{Self}`",
    label = "expected `String`, a type with `FromStr` whose error has `Display`, or a `Vec` or `Option` of them"
)]
pub trait PropertyValue: Sized + 'static {
    /// Parses the property's value; the error is the parser's message.
    fn parse(text: &str) -> Result<Self, String>;

    /// Returns the value of a property that is not set and has no default: `""` for a `String` (BPROP-06), `None` for a type
    /// that needs a value.
    fn absent() -> Option<Self>;

    /// Returns the type's path, for messages.
    fn type_name() -> &'static str {
        std::any::type_name::<Self>()
    }
}

#[diagnostic::do_not_recommend]
impl<T: FromStr + 'static> PropertyValue for T
where
    T::Err: fmt::Display,
{
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: T::Err| error.to_string())
    }

    fn absent() -> Option<Self> {
        // Only for `String` is the draft's default, the empty string, a value of the field.
        (TypeId::of::<T>() == TypeId::of::<String>())
            .then(|| "".parse().ok())
            .flatten()
    }
}

/// Returns whether a property is set to an empty text that is no value of the type. It counts as not set: in Jakarta Batch, an
/// expression without a value is empty.
// Spec: BPROP-08, JAK-07
fn is_no_value<T: PropertyValue>(text: &str) -> bool {
    text.is_empty() && T::parse(text).is_err()
}

/// A list whose values are separated by `SEPARATOR`. Blanks around a value are ignored; an empty text is an empty list.
struct Separated<T, const SEPARATOR: char>(Vec<T>);

impl<T: PropertyValue, const SEPARATOR: char> PropertyValue for Separated<T, SEPARATOR> {
    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self(Vec::new()));
        }
        let value = |(position, value): (usize, &str)| {
            let value = value.trim();
            T::parse(value)
                .map_err(|reason| format!("value {} of the list, {value:?}: {reason}", position + 1))
        };
        let values: Result<_, String> = text.split(SEPARATOR).enumerate().map(value).collect();
        values.map(Self)
    }

    fn absent() -> Option<Self> {
        Some(Self(Vec::new()))
    }

    fn type_name() -> &'static str {
        std::any::type_name::<Vec<T>>()
    }
}

/// The source of a property's effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertySource {
    /// A job parameter.
    Parameter,
    /// A system property.
    System,
    /// The Job XML, at `file:line:column`.
    Xml(String),
    /// The default of `#[batch_property(value = "...")]`.
    Default,
}

impl fmt::Display for PropertySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter => f.write_str("the job parameter"),
            Self::System => f.write_str("the system property"),
            Self::Xml(place) => write!(f, "{place}"),
            Self::Default => f.write_str("the field's default"),
        }
    }
}

/// The properties that reach one artifact.
// Spec: D-36, OVR-02 to OVR-05
#[derive(Clone, Debug, Default)]
pub struct Properties {
    /// The dialect of the job, which decides the precedence.
    pub dialect: Dialect,
    /// Job parameters.
    pub parameters: Arc<BTreeMap<String, String>>,
    /// System properties.
    pub system: Arc<BTreeMap<String, String>>,
    /// Properties of the Job XML, the outermost element's first, with the place of each.
    pub xml: Vec<(String, String, String)>,
    /// In a partition, the values of the Job XML come first: they were resolved with the properties of the partition and the
    /// parameters.
    // Spec: PART-12, D-34
    pub of_partition: bool,
    /// The secrets whose placeholders occur in values.
    pub secrets: Secrets,
}

impl Properties {
    /// Returns the effective value of `name`, and its source.
    pub fn get(&self, name: &str) -> Option<(&str, PropertySource)> {
        let of_xml = || {
            let (_, value, place) = self.xml.iter().find(|(key, ..)| key == name)?;
            Some((value.as_str(), PropertySource::Xml(place.clone())))
        };
        self.dialect.first_value(|source| match source {
            ValueSource::Partition => of_xml().filter(|_| self.of_partition),
            ValueSource::JobParameter => self
                .parameters
                .get(name)
                .map(|value| (value.as_str(), PropertySource::Parameter)),
            ValueSource::SystemProperty => self
                .system
                .get(name)
                .map(|value| (value.as_str(), PropertySource::System)),
            ValueSource::OutermostProperty | ValueSource::InnermostProperty => of_xml(),
            _ => None,
        })
    }
}

/// The properties and contexts for a new artifact.
pub struct InjectionScope<'a> {
    properties: &'a Properties,
    contexts: &'a ContextScope,
    /// The artifact of the preferred loader, until an instance takes it.
    loaded: Cell<Option<LoadedInstance>>,
    /// The prefixes of the enclosing artifacts, outermost first.
    prefix: String,
}

impl<'a> InjectionScope<'a> {
    /// Returns the scope of an artifact that is not nested.
    pub fn new(properties: &'a Properties, contexts: &'a ContextScope) -> Self {
        Self {
            properties,
            contexts,
            loaded: Cell::new(None),
            prefix: String::new(),
        }
    }

    /// Returns the scope of a nested artifact.
    // Spec: D-97
    pub(super) fn nested(&self, prefix: &str) -> Self {
        Self {
            prefix: self.effective(prefix),
            ..Self::new(self.properties, self.contexts)
        }
    }

    /// Returns whether a property of the artifact has a value. An empty text that is no value of the field counts as none.
    fn sets(&self, property: &PropertyInfo) -> bool {
        let found = self.properties.get(&self.effective(&property.name));
        found.is_some_and(|(text, _)| !text.is_empty() || (property.check)(text).is_ok())
    }

    /// Returns the name of a property, after the prefixes of the enclosing artifacts.
    fn effective(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Adds the artifact of a preferred loader.
    pub(crate) fn with_loaded(self, loaded: LoadedInstance) -> Self {
        self.loaded.set(Some(loaded));
        self
    }

    /// Creates a `T`, or fills the one that the preferred loader created.
    // Spec: ART-10, LOADER-03
    pub(crate) fn make<T: BatchArtifact>(&self) -> Result<T, InjectError> {
        let Some(loaded) = self.loaded.take() else {
            return T::inject(self);
        };
        let given = loaded.type_name;
        let expected = std::any::type_name::<T>();
        match loaded
            .typed()
            .map_err(|_| InjectError::AnotherType { expected, given })?
        {
            None => T::inject(self),
            Some(mut instance) => {
                T::set_properties(&mut instance, self)?;
                T::bind_contexts(&mut instance, self.contexts)?;
                Ok(*instance)
            }
        }
    }

    /// Returns the value of a field of type `T`. Called by generated code. Fails if the value does not parse, or if there is
    /// none and `T` needs one.
    // Spec: BPROP-04 to BPROP-08
    pub fn property<T: PropertyValue>(
        &self,
        name: &'static str,
        field: &'static str,
        default: Option<&'static str>,
    ) -> Result<T, InjectError> {
        match self.optional_property(name, field, default)? {
            Some(value) => Ok(value),
            None => T::absent().ok_or_else(|| InjectError::MissingProperty {
                name: self.effective(name).into(),
                field: field.into(),
            }),
        }
    }

    /// Returns the value of a field of type `Option<T>`. Called by generated code. Fails if the value does not parse.
    pub fn optional_property<T: PropertyValue>(
        &self,
        name: &'static str,
        field: &'static str,
        default: Option<&'static str>,
    ) -> Result<Option<T>, InjectError> {
        let name = self.effective(name);
        let found = self
            .properties
            .get(&name)
            .filter(|(text, _)| !is_no_value::<T>(text))
            .or_else(|| default.map(|text| (text, PropertySource::Default)));
        let Some((text, source)) = found else {
            return Ok(None);
        };
        let secrets = &self.properties.secrets;
        let parsed = T::parse(&secrets.revealed(text)).map_err(|reason| match secrets.are_in(text) {
            // The parser's message may contain the value.
            true => "the secret does not parse".to_owned(),
            false => reason,
        });
        parsed.map(Some).map_err(|reason| InjectError::Property {
            name: name.into(),
            field: field.into(),
            type_name: T::type_name(),
            value: text.to_owned(),
            source_of_value: source,
            reason,
        })
    }

    /// Returns the value of a field of type `Vec<T>`, empty if the property is not set. Called by generated code. Fails if a
    /// value does not parse.
    // Spec: BPROP-10
    pub fn list<T: PropertyValue, const SEPARATOR: char>(
        &self,
        name: &'static str,
        field: &'static str,
        default: Option<&'static str>,
    ) -> Result<Vec<T>, InjectError> {
        self.property::<Separated<T, SEPARATOR>>(name, field, default)
            .map(|list| list.0)
    }

    /// Returns the value of a field of type `Option<Vec<T>>`. Called by generated code. Fails if a value does not parse.
    pub fn optional_list<T: PropertyValue, const SEPARATOR: char>(
        &self,
        name: &'static str,
        field: &'static str,
        default: Option<&'static str>,
    ) -> Result<Option<Vec<T>>, InjectError> {
        self.optional_property::<Separated<T, SEPARATOR>>(name, field, default)
            .map(|list| list.map(|list| list.0))
    }

    /// Returns the contexts in scope.
    pub fn contexts(&self) -> &ContextScope {
        self.contexts
    }
}

/// The contexts that are in scope for an artifact.
// Spec: CTX-05, CTX-10 to CTX-12
#[derive(Clone, Default)]
pub struct ContextScope {
    pub(crate) job: Option<JobContext>,
    pub(crate) step: Option<StepContext>,
    pub(crate) flow: Option<FlowContext>,
    pub(crate) split: Option<SplitContext>,
}

impl ContextScope {
    /// Returns the context for a field of type `T`. Called by generated code. Fails if the field is a plain handle and the
    /// context is out of scope.
    pub fn get<T: ContextField>(&self, field: &'static str) -> Result<T, InjectError> {
        T::from_scope(self).ok_or_else(|| InjectError::OutOfScope {
            kind: T::KIND,
            field: field.into(),
        })
    }
}

/// The four contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextKind {
    /// [`JobContext`]
    Job,
    /// [`StepContext`]
    Step,
    /// [`FlowContext`]
    Flow,
    /// [`SplitContext`]
    Split,
}

impl ContextKind {
    /// Returns the Rust type's name.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Job => "JobContext",
            Self::Step => "StepContext",
            Self::Flow => "FlowContext",
            Self::Split => "SplitContext",
        }
    }
}

/// A `#[batch_context]` field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextInfo {
    /// Name of the field, after the names of the enclosing fields: `outer.inner`.
    pub field: String,
    /// The kind of context.
    pub kind: ContextKind,
    /// True if the field is an `Option`, `None` out of scope.
    pub optional: bool,
    /// The path of the module that declares the struct.
    pub module: &'static str,
}

impl ContextInfo {
    /// Describes a field of type `T` of a struct in a module. Called by generated code.
    pub fn of<T: ContextField>(field: &'static str, module: &'static str) -> Self {
        Self {
            module,
            field: field.to_owned(),
            kind: T::KIND,
            optional: T::OPTIONAL,
        }
    }
}

/// The type of a `#[batch_context]` field.
// Spec: CTX-02, CTX-03, CTX-05
#[diagnostic::on_unimplemented(
    message = "a `#[batch_context]` field cannot be of type `{Self}`",
    label = "expected `JobContext`, `StepContext`, `FlowContext`, `SplitContext`, or an `Option` of one of them"
)]
pub trait ContextField: Sized {
    /// The kind of context.
    const KIND: ContextKind;
    /// True if the field may be empty.
    const OPTIONAL: bool;
    /// Returns the field's value; `None` if the field needs a context that is out of scope.
    fn from_scope(scope: &ContextScope) -> Option<Self>;
}

macro_rules! context_field {
    ($($context:ty, $kind:ident, $field:ident;)*) => {$(
        impl ContextField for $context {
            const KIND: ContextKind = ContextKind::$kind;
            const OPTIONAL: bool = false;
            fn from_scope(scope: &ContextScope) -> Option<Self> {
                scope.$field.clone()
            }
        }
        impl ContextField for Option<$context> {
            const KIND: ContextKind = ContextKind::$kind;
            const OPTIONAL: bool = true;
            fn from_scope(scope: &ContextScope) -> Option<Self> {
                Some(scope.$field.clone())
            }
        }
    )*};
}

context_field! {
    JobContext, Job, job;
    StepContext, Step, step;
    FlowContext, Flow, flow;
    SplitContext, Split, split;
}

/// An artifact could not be created.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InjectError {
    /// A property's value does not parse as the field's type.
    #[error(
        "invalid value {value:?} for property `{name}` of field `{field}`, from {source_of_value}: expected `{type_name}`: \
         {reason}"
    )]
    Property {
        /// Name of the property, with the prefixes of the enclosing artifacts.
        name: Box<str>,
        /// Name of the field, after the names of the enclosing fields.
        field: Box<str>,
        /// Type of the field.
        type_name: &'static str,
        /// The value.
        value: String,
        /// The source of the value.
        source_of_value: PropertySource,
        /// The parser's message.
        reason: String,
    },
    /// A property that needs a value is not set.
    #[error(
        "property `{name}` of field `{field}` has no value: set it in the Job XML or as a job parameter, add \
         `value = \"...\"` to its `#[batch_property]`, or make the field an `Option`"
    )]
    MissingProperty {
        /// Name of the property, with the prefixes of the enclosing artifacts.
        name: Box<str>,
        /// Name of the field, after the names of the enclosing fields.
        field: Box<str>,
    },
    /// A context field is a plain handle, and the context is out of scope.
    #[error(
        "no `{0}` is in scope for field `{field}`: make the field an `Option<{0}>`", kind.type_name()
    )]
    OutOfScope {
        /// The kind of context.
        kind: ContextKind,
        /// Name of the field, after the names of the enclosing fields.
        field: Box<str>,
    },
    /// The preferred loader returned another type than when the job was bound.
    #[error(
        "the artifact loader returned a `{expected}` when the job was bound, and returns a `{given}` now"
    )]
    AnotherType {
        /// Full path of the type that the job was bound with.
        expected: &'static str,
        /// Full path of the type that the loader returned.
        given: &'static str,
    },
}
