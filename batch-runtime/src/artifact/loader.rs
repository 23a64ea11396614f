//! The preferred loader: resolves a `ref` to an artifact in code of the program, before the built-in loader.
// Spec: LOADER-03 to LOADER-07

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use super::inject::BatchArtifact;
use super::loaded::LoadedInstance;
use super::registry::ArtifactRegistration;
use crate::error::BatchError;
use crate::role;

/// Registers a preferred artifact loader, so that batch.xml can name it: `<loader classname="my_crate::Clients"/>`, or by
/// the class that `class = ".."` declares. On the impl of [`BatchArtifactLoader`](crate::BatchArtifactLoader); the runtime
/// creates the loader by its `Default`.
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(Default)]
/// struct Clients;
///
/// #[artifact_loader(class = "com.example.Clients")]
/// impl BatchArtifactLoader for Clients {
///     fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
///         Ok(None) // not known here: left to the built-in loader
///     }
/// }
/// ```
// Spec: LOADER-03, LOADER-06, LOADER-10, LOADER-13
#[doc(inline)]
pub use batch_macros::artifact_loader;

/// A preferred artifact loader, which the runtime calls first for every artifact of every job.
///
/// [`BatchRuntimeBuilder::artifact_loader`](crate::BatchRuntimeBuilder::artifact_loader) sets it; or batch.xml names it, if it
/// has `#[artifact_loader]`: `<loader classname="..."/>`. A program has at most one. The runtime calls it once for each `ref`
/// when a job is checked or started, to learn the artifact's type, and again for every instance that the job needs. Each call
/// returns a new instance, for one `ref` always of the same type.
///
/// A loader is called from several threads. Use one for artifacts that need more than properties, such as a client or a pool:
///
/// ```
/// use batch_runtime::prelude::*;
/// use std::sync::Arc;
///
/// #[derive(Default)]
/// struct Mailer; // a client that all artifacts share
///
/// #[derive(BatchArtifact)]
/// struct SendInvoices {
///     #[batch_property(name = "month", value = "1")]
///     month: u32,
///     mailer: Option<Arc<Mailer>>,
/// }
///
/// #[batchlet]
/// impl SendInvoices {
///     #[process]
///     fn process(&self) -> String {
///         if self.mailer.is_some() { "SENT".into() } else { "NOTHING".into() }
///     }
///     #[cancel]
///     fn cancel(&self) {}
/// }
///
/// struct Mailers(Arc<Mailer>);
///
/// impl BatchArtifactLoader for Mailers {
///     fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
///         Ok((reference == "SendInvoices").then(|| {
///             LoadedArtifact::new(SendInvoices { month: 0, mailer: Some(Arc::clone(&self.0)) })
///         }))
///     }
/// }
///
/// let builder = batch_runtime::BatchRuntime::builder().artifact_loader(Mailers(Arc::default()));
/// ```
// Spec: LOADER-03, LOADER-05 to LOADER-07, LOADER-18
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an artifact loader",
    label = "the trait `BatchArtifactLoader` is missing",
    note = "`#[artifact_loader]` goes on `impl BatchArtifactLoader for {Self}`"
)]
pub trait BatchArtifactLoader: Send + Sync {
    /// Returns the artifact that `reference`, a `ref` of a Job XML, names; `None` leaves it to the built-in loader.
    ///
    /// # Errors
    /// If the loader knows the artifact and cannot load it. The error is reported; the built-in loader is not called.
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError>;
}

/// An artifact of a [`BatchArtifactLoader`]: an instance, or a type that the runtime creates an instance of.
pub struct LoadedArtifact {
    instance: LoadedInstance,
    /// The role of a type that is not registered.
    role: Option<&'static ArtifactRegistration>,
}

impl LoadedArtifact {
    /// Wraps an instance. The runtime sets its `#[batch_property]` and `#[batch_context]` fields, as for every artifact, and
    /// leaves the other fields as they are; the same in its nested artifacts.
    // Spec: ART-10, LOADER-05
    pub fn new<T: BatchArtifact + Send>(instance: T) -> Self {
        Self {
            instance: LoadedInstance::of(Some(instance)),
            role: None,
        }
    }

    /// Names a type. The runtime creates the instance, as if the `ref` named it.
    // Spec: LOADER-05
    pub fn of<T: BatchArtifact + Send>() -> Self {
        Self {
            instance: LoadedInstance::of::<T>(None),
            role: None,
        }
    }

    pub(crate) fn type_id(&self) -> TypeId {
        self.instance.type_id
    }

    pub(crate) fn type_name(&self) -> &'static str {
        self.instance.type_name
    }

    pub(crate) fn role(&self) -> Option<&'static ArtifactRegistration> {
        self.role
    }

    pub(crate) fn into_instance(self) -> LoadedInstance {
        self.instance
    }
}

macro_rules! of_each_role {
    (
        artifacts { $($artifact:ident, $a_attribute:ident $(, $a_fact:ident: $a_type:ty)?;)* }
        listeners { $($listener:ident, $l_attribute:ident, $places:tt $(, $l_fact:ident: $l_type:ty)?;)* }
        methods { $($method:ident),* }
    ) => {
        impl LoadedArtifact {
            $(of_each_role!(@constructor $artifact $a_attribute);)*
            $(of_each_role!(@constructor $listener $l_attribute);)*
        }
    };
    (@constructor $role:ident $attribute:ident) => {
        #[doc = concat!(
            "Wraps an instance of a type with `#[", stringify!($attribute), "]`, which may be generic and needs no registered ",
            "alias. Like [`new`](Self::new), but the artifact has only this role.\n\nSpec: LOADER-05"
        )]
        pub fn $attribute<T: role::$role + BatchArtifact>(instance: T) -> Self {
            Self {
                role: Some(const {
                    &ArtifactRegistration::$attribute::<T>(stringify!($attribute), "", None, "the artifact loader", 0)
                }),
                ..Self::new(instance)
            }
        }
    };
}

batch_macros::__for_each_role!(of_each_role);

impl fmt::Debug for LoadedArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.instance.is_made() { "new" } else { "of" };
        write!(f, "LoadedArtifact::{how}({})", self.type_name())
    }
}

/// One `#[artifact_loader]`: its class names for `<loader classname="..">`, and its constructor.
pub struct LoaderRegistration {
    /// Full path of the Rust type.
    pub class: &'static str,
    /// `class = "..."`, the class name of a ported application.
    pub declared_class: Option<&'static str>,
    /// Source file of the attribute.
    pub file: &'static str,
    /// Source line of the attribute.
    pub line: u32,
    /// Creates the loader.
    pub make: fn() -> Arc<dyn BatchArtifactLoader>,
}

impl LoaderRegistration {
    /// Registers a loader. Called by generated code.
    // Spec: LOADER-06
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
