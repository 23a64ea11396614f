//! What the annotations of artifacts and exceptions register.

use std::any::{Any, TypeId, type_name};
use std::error::Error;

use super::inject::{BatchArtifact, ContextInfo, ContextKind, ContextScope, InjectError, PropertyInfo};
use super::item::ItemSink;
use crate::role::{self, Factory, ListenerRole, Make, Role};

/// The module of artifacts that are composed of others.
const COMPOSED: &str = "batch_items::compose::";
/// The crates with ready-made artifacts.
const READY_MADE: [&str; 6] = [
    "batch_batchlets",
    "batch_columnar",
    "batch_items",
    "batch_kafka",
    "batch_nats",
    "batch_odbc",
];

/// Returns whether a type or module is in a crate with ready-made artifacts.
pub(crate) fn is_ready_made(path: &str) -> bool {
    path.split_once("::")
        .is_some_and(|(name, _)| READY_MADE.contains(&name))
}

/// One artifact attribute on one type: its names, its place in the source, and its constructor.
pub struct ArtifactRegistration {
    /// The name that a `ref` uses.
    // Spec: ART-01, ART-02
    pub name: &'static str,
    /// Full path of the Rust type, which a `ref` may use as well.
    // Spec: D-65
    pub class: &'static str,
    /// `class = "..."`, the class name of a ported application.
    pub declared_class: Option<&'static str>,
    /// False if a step with the artifact must not be pipelined.
    // Spec: D-100
    pub pipelined: bool,
    /// Source file of the attribute.
    pub file: &'static str,
    /// Source line of the attribute.
    pub line: u32,
    /// Creates an instance.
    pub factory: Factory,
    /// Returns the name of the type; of an alias, the name of the aliased type.
    pub type_name: fn() -> &'static str,
    /// The type, which identifies an instance of a preferred loader.
    pub type_id: TypeId,
    /// The type's properties.
    pub properties: fn() -> Vec<PropertyInfo>,
    /// The type's context fields.
    pub contexts: fn() -> Vec<ContextInfo>,
    /// Sets the context fields of an instance again.
    // Spec: D-66
    pub bind_contexts: BindContexts,
}

/// Sets the context fields of an instance of the registered type; ignores an instance of another type.
pub type BindContexts = fn(&mut (dyn Any + Send), &ContextScope) -> Result<(), InjectError>;

// A constructor per role. Its bounds join the two halves of an artifact, the attribute on the impl block and the derive
// on the struct; either missing is a compile error at the type.
macro_rules! constructors {
    (
        artifacts { $($artifact:ident, $a_attribute:ident $(, $a_fact:ident: $a_type:ty)?;)* }
        listeners { $($listener:ident, $l_attribute:ident, $places:tt $(, $l_fact:ident: $l_type:ty)?;)* }
        methods { $($method:ident),* }
    ) => {
        impl ArtifactRegistration {
            $(
                #[doc = concat!("Registers a type with `#[", stringify!($a_attribute), "]`. Called by generated code.")]
                pub const fn $a_attribute<T: role::$artifact + BatchArtifact>(
                    name: &'static str,
                    class: &'static str,
                    declared_class: Option<&'static str>,
                    file: &'static str,
                    line: u32,
                ) -> Self {
                    let make: Make<dyn role::$artifact> = |scope| Ok(Box::new(scope.make::<T>()?));
                    let factory = Factory::$artifact(make $(, T::$a_fact)?);
                    Self::new::<T>(name, class, declared_class, file, line, factory)
                }
            )*
            $(
                #[doc = concat!("Registers a type with `#[", stringify!($l_attribute), "]`. Called by generated code.")]
                pub const fn $l_attribute<T: role::$listener + BatchArtifact>(
                    name: &'static str,
                    class: &'static str,
                    declared_class: Option<&'static str>,
                    file: &'static str,
                    line: u32,
                ) -> Self {
                    let role = ListenerRole::<dyn role::$listener> {
                        make: |scope| Ok(Box::new(scope.make::<T>()?)),
                        cast: |object| object.downcast_mut::<T>().map(|object| object as &mut dyn role::$listener),
                    };
                    let factory = Factory::$listener(role $(, T::$l_fact)?);
                    Self::new::<T>(name, class, declared_class, file, line, factory)
                }
            )*
        }
    };
}

batch_macros::__for_each_role!(constructors);

impl ArtifactRegistration {
    /// Returns the role that the attribute gives the type.
    pub fn role(&self) -> Role {
        self.factory.role()
    }

    /// Returns the place of the artifact's attribute.
    pub(crate) fn place(&self) -> String {
        match self.line {
            // It has its role from `LoadedArtifact`.
            0 => self.file.to_owned(),
            line => format!("{}:{line}", self.file),
        }
    }

    /// Returns the sink of a chunk that has this reader and no processor.
    pub(crate) fn pass_through(&self) -> Option<ItemSink> {
        match self.factory {
            Factory::ItemReader(_, info) => info().items.pass_through(),
            _ => None,
        }
    }

    /// Excludes the artifact from pipelined steps. Called by generated code.
    #[must_use]
    pub const fn never_pipelined(mut self) -> Self {
        self.pipelined = false;
        self
    }

    /// Returns whether the artifact is ready-made: it declares all its properties.
    pub(crate) fn is_ready_made(&self) -> bool {
        is_ready_made((self.type_name)())
    }

    /// Returns whether the artifact is composed of others.
    pub(crate) fn is_composed(&self) -> bool {
        (self.type_name)().starts_with(COMPOSED)
    }

    /// Returns whether the attribute is in a crate with ready-made artifacts: not that of an alias in the program.
    pub(crate) fn is_declared_in_library(&self) -> bool {
        is_ready_made(self.class)
    }

    /// Returns whether the properties of the reader alone decide what it reads: it is a ready-made reader, perhaps inside a composed
    /// one.
    pub(crate) fn reads_its_properties(&self) -> bool {
        let mut name = (self.type_name)();
        while let Some((_, inner)) = name.strip_prefix(COMPOSED).and_then(|rest| rest.split_once('<')) {
            name = inner;
        }
        is_ready_made(name) && !name.starts_with(COMPOSED)
    }

    /// Returns whether the artifact, or one inside it, is not ready-made and has a context other than the job's.
    pub(crate) fn sees_its_step(&self) -> bool {
        let contexts = (self.contexts)();
        contexts
            .iter()
            .any(|info| info.kind != ContextKind::Job && !is_ready_made(info.module))
    }

    /// Returns whether the artifact is the `RejectListener` of `batch-items`.
    pub(crate) fn writes_rejects(&self) -> bool {
        (self.type_name)().starts_with("batch_items::rejects::RejectListener<")
    }

    const fn new<T: BatchArtifact + Send>(
        name: &'static str,
        class: &'static str,
        declared_class: Option<&'static str>,
        file: &'static str,
        line: u32,
        factory: Factory,
    ) -> Self {
        Self {
            name,
            class,
            declared_class,
            pipelined: true,
            file,
            line,
            factory,
            type_name: type_name::<T>,
            type_id: TypeId::of::<T>(),
            properties: T::properties,
            contexts: T::contexts,
            bind_contexts: |object, contexts| match object.downcast_mut::<T>() {
                Some(object) => object.bind_contexts(contexts),
                None => Ok(()),
            },
        }
    }
}

/// The class of an error type, or of a variant of one.
#[derive(Clone, Copy, Debug)]
pub struct ExceptionClass {
    /// The Rust path.
    pub path: &'static str,
    /// `class = "..."`
    pub declared: Option<&'static str>,
    /// `extends = "..."`
    pub extends: Option<&'static str>,
}

/// A `#[derive(BatchException)]`.
pub struct ExceptionRegistration {
    /// The class of the type, then the classes of its variants.
    pub classes: &'static [ExceptionClass],
    /// Returns which of `classes` an error has, if it is of this type.
    pub classify: fn(&(dyn Error + 'static)) -> Option<usize>,
    /// Returns the path of the error type, as an artifact declares it.
    pub(super) type_name: fn() -> &'static str,
}

impl ExceptionRegistration {
    /// Registers the error type `E`. Called by generated code.
    pub const fn new<E: Error + 'static>(
        classes: &'static [ExceptionClass],
        classify: fn(&(dyn Error + 'static)) -> Option<usize>,
    ) -> Self {
        Self {
            classes,
            classify,
            type_name: std::any::type_name::<E>,
        }
    }
}
