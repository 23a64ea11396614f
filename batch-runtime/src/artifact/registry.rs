//! The registry: what the annotations of all linked crates submitted. The only file that names inventory.
//!
//! Spec: LOADER-16, LOADER-19

use std::fmt;

use super::inject::{BatchArtifact, ContextInfo, InjectError, InjectionScope, PropertyInfo};
use super::item::ItemType;
use super::role::{
    Batchlet, ItemProcessor, ItemReader, ItemWriter, JobListener, ProcessorItems, StepListener, WriterInfo,
};

/// The kinds of artifacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Role {
    /// `#[item_reader]`
    ItemReader,
    /// `#[item_processor]`
    ItemProcessor,
    /// `#[item_writer]`
    ItemWriter,
    /// `#[batchlet]`
    Batchlet,
    /// `#[step_listener]`
    StepListener,
    /// `#[job_listener]`
    JobListener,
}

impl Role {
    /// The attribute's name.
    pub fn attribute(self) -> &'static str {
        match self {
            Self::ItemReader => "item_reader",
            Self::ItemProcessor => "item_processor",
            Self::ItemWriter => "item_writer",
            Self::Batchlet => "batchlet",
            Self::StepListener => "step_listener",
            Self::JobListener => "job_listener",
        }
    }

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
    /// The type's properties.
    pub properties: fn() -> Vec<PropertyInfo>,
    /// The type's context fields.
    pub contexts: fn() -> Vec<ContextInfo>,
}

type Make<T> = fn(&InjectionScope<'_>) -> Result<Box<T>, InjectError>;

/// How to make an instance of each role, and the item types that the loader compares.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Factory {
    /// Makes an item reader.
    ItemReader(Make<dyn ItemReader>, fn() -> ItemType),
    /// Makes an item processor.
    ItemProcessor(Make<dyn ItemProcessor>, fn() -> ProcessorItems),
    /// Makes an item writer.
    ItemWriter(Make<dyn ItemWriter>, fn() -> WriterInfo),
    /// Makes a batchlet.
    Batchlet(Make<dyn Batchlet>),
    /// Makes a step listener.
    StepListener(Make<dyn StepListener>),
    /// Makes a job listener.
    JobListener(Make<dyn JobListener>),
}

// One constructor per role. Their bounds join the two halves of an artifact: the attribute on the impl block and the
// derive on the struct; either missing is a compile error at the type.
macro_rules! constructors {
    ($($(#[$doc:meta])* $constructor:ident: $role:ident $(, $info:ident)?;)*) => {
        impl ArtifactRegistration {
            $(
                $(#[$doc])*
                pub const fn $constructor<T: $role + BatchArtifact>(
                    name: &'static str,
                    class: &'static str,
                    declared_class: Option<&'static str>,
                    file: &'static str,
                    line: u32,
                ) -> Self {
                    Self {
                        name,
                        class,
                        declared_class,
                        file,
                        line,
                        factory: Factory::$role(|scope| Ok(Box::new(T::inject(scope)?)) $(, T::$info)?),
                        properties: T::properties,
                        contexts: T::contexts,
                    }
                }
            )*

            /// The role that the attribute gives the type.
            pub fn role(&self) -> Role {
                match self.factory {
                    $(Factory::$role(..) => Role::$role,)*
                }
            }
        }
    };
}

constructors! {
    /// Registers an item reader.
    item_reader: ItemReader, item_type;
    /// Registers an item processor.
    item_processor: ItemProcessor, item_types;
    /// Registers an item writer.
    item_writer: ItemWriter, info;
    /// Registers a batchlet.
    batchlet: Batchlet;
    /// Registers a step listener.
    step_listener: StepListener;
    /// Registers a job listener.
    job_listener: JobListener;
}

inventory::collect!(ArtifactRegistration);

/// Every artifact of every crate linked into the program.
pub(crate) fn linked() -> impl Iterator<Item = &'static ArtifactRegistration> {
    inventory::iter::<ArtifactRegistration>()
}
