//! The preferred loader: resolves a `ref` to an artifact in code of the program, before the built-in loader.
//!
//! Spec: LOADER-03 to LOADER-07

use std::any::{Any, TypeId};
use std::fmt;

use super::inject::{BatchArtifact, InjectError};
use crate::error::BatchError;

/// Registers a preferred artifact loader, so that batch.xml can name it: `<loader classname="my_crate::Clients"/>`, or by
/// the class that `class = ".."` declares. On the impl of [`BatchArtifactLoader`](crate::BatchArtifactLoader); the runtime
/// creates the loader by its `Default`. Section 5.7.1 of the draft.
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
///
/// Spec: LOADER-03, LOADER-06, LOADER-10, LOADER-13
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
///
/// Spec: LOADER-03, LOADER-05 to LOADER-07, LOADER-18
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
    type_id: TypeId,
    type_name: &'static str,
    instance: Option<Box<dyn Any + Send>>,
}

impl LoadedArtifact {
    /// Wraps an instance. The runtime sets its `#[batch_property]` and `#[batch_context]` fields, as for every artifact, and
    /// leaves the other fields as they are; the same in its nested artifacts.
    ///
    /// Spec: ART-10, LOADER-05
    pub fn new<T: BatchArtifact + Send>(instance: T) -> Self {
        Self {
            instance: Some(Box::new(instance)),
            ..Self::of::<T>()
        }
    }

    /// Names a type. The runtime creates the instance, as if the `ref` named it.
    ///
    /// Spec: LOADER-05
    pub fn of<T: BatchArtifact + Send>() -> Self {
        Self {
            type_id: TypeId::of::<T>(),
            type_name: std::any::type_name::<T>(),
            instance: None,
        }
    }

    pub(crate) fn type_id(&self) -> TypeId {
        self.type_id
    }

    pub(crate) fn type_name(&self) -> &'static str {
        self.type_name
    }

    /// Returns the instance, if the loader created one.
    ///
    /// # Errors
    /// If the type differs.
    pub(crate) fn into_instance<T: BatchArtifact>(self) -> Result<Option<Box<T>>, InjectError> {
        let another = InjectError::AnotherType {
            expected: std::any::type_name::<T>(),
            given: self.type_name,
        };
        if self.type_id != TypeId::of::<T>() {
            return Err(another);
        }
        let typed = |instance: Box<dyn Any + Send>| instance.downcast().map_err(|_| another);
        self.instance.map(typed).transpose()
    }
}

impl fmt::Debug for LoadedArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.instance.is_some() { "new" } else { "of" };
        write!(f, "LoadedArtifact::{how}({})", self.type_name)
    }
}
