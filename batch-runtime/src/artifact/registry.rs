//! The registry: what the annotations of all linked crates submitted. The only file that names inventory.
//!
//! Spec: LOADER-16, LOADER-19

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use super::exception::ExceptionRegistration;
use super::inject::{BatchArtifact, ContextInfo, ContextScope, InjectError, InjectionScope, PropertyInfo};
use super::item::ItemType;
use super::listener::{
    CheckpointListener, ItemProcessListener, ItemReadListener, ItemWriteListener, ListenerItems,
    RetryListener, SkipListener, StepListener,
};
use super::loader::BatchArtifactLoader;
use super::parallel::{LogicalTX, PartitionAlgorithm, SubJobAnalyzer, SubJobCollector};
use super::role::{
    Batchlet, CheckpointAlgorithm, Decider, ItemProcessor, ItemReader, ItemWriter, JobListener,
    ProcessorItems, WriterInfo,
};

/// One artifact attribute on one type: its names, its place in the source, and how to make an instance.
pub struct ArtifactRegistration {
    /// The name that a `ref` uses. Spec: ART-01, ART-02
    pub name: &'static str,
    /// Full path of the Rust type, which a `ref` may use as well. Spec: D-65
    pub class: &'static str,
    /// `class = "..."`, the class name of a ported application.
    pub declared_class: Option<&'static str>,
    /// Source file of the attribute.
    pub file: &'static str,
    /// Source line of the attribute.
    pub line: u32,
    /// How to make an instance.
    pub factory: Factory,
    /// The type, by which an instance of a preferred loader is known.
    pub type_id: TypeId,
    /// The type's properties.
    pub properties: fn() -> Vec<PropertyInfo>,
    /// The type's context fields.
    pub contexts: fn() -> Vec<ContextInfo>,
    /// Sets the context fields of an instance again. Spec: D-66
    pub bind_contexts: BindContexts,
}

type Make<T> = fn(&InjectionScope<'_>) -> Result<Box<T>, InjectError>;

/// Sets the context fields of an instance of the registered type; of another type it leaves them.
pub type BindContexts = fn(&mut (dyn Any + Send), &ContextScope) -> Result<(), InjectError>;

/// A listener role of a type. One instance of the type may serve several: it is made as an object of no role, and seen
/// as each of its roles in turn. Spec: JSL-STEPLIS-07
pub struct ListenerRole<R: ?Sized> {
    /// Makes an instance.
    pub make: Make<dyn Any + Send>,
    /// The instance in this role; `None` for an instance of another type.
    pub cast: fn(&mut (dyn Any + Send)) -> Option<&mut R>,
}

impl<R: ?Sized> Clone for ListenerRole<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: ?Sized> Copy for ListenerRole<R> {}

/// THE table of roles: trait, attribute, and what the loader asks of a type in that role. The constructors' bounds join
/// the two halves of an artifact, the attribute on the impl block and the derive on the struct; either missing is a
/// compile error at the type.
macro_rules! roles {
    (
        artifacts { $($artifact:ident, $a_new:ident $(, $a_info:ident: $a_type:ty)?;)* }
        listeners { $($listener:ident, $l_new:ident $(, $l_info:ident: $l_type:ty)?;)* }
    ) => {
        /// The kinds of artifacts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Role {
            $(#[doc = concat!("`#[", stringify!($a_new), "]`")] $artifact,)*
            $(#[doc = concat!("`#[", stringify!($l_new), "]`")] $listener,)*
        }

        impl Role {
            /// The attribute's name.
            pub fn attribute(self) -> &'static str {
                match self {
                    $(Self::$artifact => stringify!($a_new),)*
                    $(Self::$listener => stringify!($l_new),)*
                }
            }

            /// Whether it is one of the listener roles.
            pub fn is_listener(self) -> bool {
                match self {
                    $(Self::$artifact => false,)*
                    $(Self::$listener => !matches!(self, Self::SubJobCollector),)*
                }
            }
        }

        /// How to make an instance of each role, and what the loader asks of the type.
        #[derive(Clone, Copy)]
        #[non_exhaustive]
        pub enum Factory {
            $(
                #[doc = concat!("Of `#[", stringify!($a_new), "]`.")]
                $artifact(Make<dyn $artifact> $(, fn() -> $a_type)?),
            )*
            $(
                #[doc = concat!("Of `#[", stringify!($l_new), "]`.")]
                $listener(ListenerRole<dyn $listener> $(, fn() -> $l_type)?),
            )*
        }

        impl ArtifactRegistration {
            $(
                #[doc = concat!("Registers a type with `#[", stringify!($a_new), "]`. Called by generated code.")]
                pub const fn $a_new<T: $artifact + BatchArtifact>(
                    name: &'static str,
                    class: &'static str,
                    declared_class: Option<&'static str>,
                    file: &'static str,
                    line: u32,
                ) -> Self {
                    let make: Make<dyn $artifact> = |scope| Ok(Box::new(scope.make::<T>()?));
                    let factory = Factory::$artifact(make $(, T::$a_info)?);
                    Self::new::<T>(name, class, declared_class, file, line, factory)
                }
            )*
            $(
                #[doc = concat!("Registers a type with `#[", stringify!($l_new), "]`. Called by generated code.")]
                pub const fn $l_new<T: $listener + BatchArtifact>(
                    name: &'static str,
                    class: &'static str,
                    declared_class: Option<&'static str>,
                    file: &'static str,
                    line: u32,
                ) -> Self {
                    let role = ListenerRole::<dyn $listener> {
                        make: |scope| Ok(Box::new(scope.make::<T>()?)),
                        cast: |object| object.downcast_mut::<T>().map(|object| object as &mut dyn $listener),
                    };
                    let factory = Factory::$listener(role $(, T::$l_info)?);
                    Self::new::<T>(name, class, declared_class, file, line, factory)
                }
            )*

            /// The role that the attribute gives the type.
            pub fn role(&self) -> Role {
                match self.factory {
                    $(Factory::$artifact(..) => Role::$artifact,)*
                    $(Factory::$listener(..) => Role::$listener,)*
                }
            }

            /// How to make an instance of no role, for a listener.
            pub(crate) fn listener_maker(&self) -> Option<Make<dyn Any + Send>> {
                match self.factory {
                    $(Factory::$artifact(..) => None,)*
                    $(Factory::$listener(role, ..) => Some(role.make),)*
                }
            }
        }
    };
}

roles! {
    artifacts {
        ItemReader, item_reader, item_type: ItemType;
        ItemProcessor, item_processor, item_types: ProcessorItems;
        ItemWriter, item_writer, info: WriterInfo;
        CheckpointAlgorithm, checkpoint_algorithm;
        Batchlet, batchlet;
        PartitionAlgorithm, partition_algorithm;
        LogicalTX, logical_tx, compensates: bool;
        SubJobAnalyzer, sub_job_analyzer, payload_type: Option<ItemType>;
        Decider, decider;
    }
    listeners {
        JobListener, job_listener;
        StepListener, step_listener;
        CheckpointListener, checkpoint_listener;
        ItemReadListener, item_read_listener, items: ListenerItems;
        ItemProcessListener, item_process_listener, items: ListenerItems;
        ItemWriteListener, item_write_listener, items: ListenerItems;
        SkipListener, skip_listener, items: ListenerItems;
        RetryListener, retry_listener, items: ListenerItems;
        // It listens to nothing, and outlives a step as listeners do: its contexts are set again.
        SubJobCollector, sub_job_collector, payload_type: ItemType;
    }
}

impl Role {
    /// The role in words, such as `an item reader`.
    pub(crate) fn with_article(self) -> String {
        let article = if self.attribute().starts_with(['a', 'e', 'i', 'o', 'u']) {
            "an"
        } else {
            "a"
        };
        format!("{article} {self}")
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.attribute().replace('_', " "))
    }
}

impl ArtifactRegistration {
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
            file,
            line,
            factory,
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

/// One `#[artifact_loader]`: the class names that `<loader classname="..">` knows it by, and how to make it.
pub struct LoaderRegistration {
    /// Full path of the Rust type.
    pub class: &'static str,
    /// `class = "..."`, the class name of a ported application.
    pub declared_class: Option<&'static str>,
    /// Source file of the attribute.
    pub file: &'static str,
    /// Source line of the attribute.
    pub line: u32,
    /// Makes the loader.
    pub make: fn() -> Arc<dyn BatchArtifactLoader>,
}

impl LoaderRegistration {
    /// Registers a loader. Called by generated code. Spec: LOADER-06
    pub const fn new<T: BatchArtifactLoader + Default + 'static>(
        class: &'static str,
        declared_class: Option<&'static str>,
        file: &'static str,
        line: u32,
    ) -> Self {
        Self {
            class,
            declared_class,
            file,
            line,
            make: || Arc::new(T::default()),
        }
    }
}

inventory::collect!(ArtifactRegistration);
inventory::collect!(LoaderRegistration);
inventory::collect!(ExceptionRegistration);

/// Every `#[derive(BatchException)]` of every crate linked into the program.
pub(crate) fn linked_exceptions() -> impl Iterator<Item = &'static ExceptionRegistration> {
    inventory::iter::<ExceptionRegistration>()
}

/// Every artifact of every crate linked into the program.
pub(crate) fn linked() -> impl Iterator<Item = &'static ArtifactRegistration> {
    inventory::iter::<ArtifactRegistration>()
}

/// Every `#[artifact_loader]` of every crate linked into the program.
pub(crate) fn linked_loaders() -> impl Iterator<Item = &'static LoaderRegistration> {
    inventory::iter::<LoaderRegistration>()
}
