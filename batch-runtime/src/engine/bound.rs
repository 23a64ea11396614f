//! A job as the engine runs it: every `ref` is resolved to a registered artifact.

use std::any::Any;
use std::sync::Arc;

use super::call::{Failure, call};
use crate::artifact::{
    ArtifactRegistration, BatchArtifactLoader, ContextScope, InjectError, InjectionScope, Properties,
};
use crate::error::BatchError;
use crate::role::{self, Factory, ListenerObject, Make};

/// A `ref` with its artifact and properties.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) name: String,
    pub(crate) registration: &'static ArtifactRegistration,
    /// The preferred loader, if it creates the instances.
    pub(crate) loader: Option<Arc<dyn BatchArtifactLoader>>,
    pub(crate) properties: Properties,
}

impl Bound {
    fn factory(&self) -> Factory {
        self.registration.factory
    }
}

impl Bound {
    /// Returns the text of an error of the artifact, without secrets.
    pub(crate) fn shown(&self, error: &BatchError) -> String {
        self.properties.secrets.hidden(error.chain())
    }

    /// Calls a method of the artifact; an error or panic becomes the failure.
    // Spec: CHUNK-EXC-03
    pub(crate) fn call<T>(
        &self,
        method: &str,
        artifact: impl FnOnce() -> Result<T, BatchError>,
    ) -> Result<T, Failure> {
        call(artifact).map_err(|error| Failure::thrown(self, method, error))
    }

    /// Returns the properties and contexts of an instance, and the preferred loader's artifact, which is a new one for each.
    // Spec: LOADER-03, LOADER-07, LOADER-18
    fn scope<'a>(&'a self, contexts: &'a ContextScope) -> Result<InjectionScope<'a>, String> {
        let scope = InjectionScope::new(&self.properties, contexts);
        let Some(loader) = &self.loader else {
            return Ok(scope);
        };
        match call(|| loader.load(&self.name)) {
            Ok(Some(loaded)) => Ok(scope.with_loaded(loaded.into_instance())),
            Ok(None) => Err(
                "the artifact loader returned it when the job was bound, but does not return it now".into(),
            ),
            Err(error) => Err(format!("the artifact loader failed: {}", error.chain())),
        }
    }

    /// Creates an instance. `make` is `None` for another role: a bug of the runtime, because the loader checks roles.
    fn make<T: ?Sized>(&self, make: Option<Make<T>>, contexts: &ContextScope) -> Result<Box<T>, Failure> {
        let made = self.scope(contexts).and_then(|scope| {
            let make = make.ok_or("it is registered for another role")?;
            // The `Default` of a field or the parsing of a property may panic. Spec: CHUNK-EXC-03
            let made = call(|| Ok(make(&scope))).map_err(|panic| panic.chain())?;
            made.map_err(|error| error.to_string())
        });
        made.map_err(|problem| Failure::not_made(self, problem))
    }
}

impl Failure {
    /// Creates the failure for an `error` that `artifact` threw in `method`.
    pub(crate) fn thrown(artifact: &Bound, method: &str, error: impl Into<Arc<BatchError>>) -> Self {
        let error = error.into();
        let registration = artifact.registration;
        // The place of an artifact of a library does not help its user.
        let place = match registration.is_declared_in_library() {
            true => String::new(),
            false => format!(" ({})", registration.place()),
        };
        let message = format!(
            "{}\nthrown by #[{method}] of {} `{}`{place}",
            artifact.shown(&error),
            registration.role(),
            artifact.name,
        );
        Self {
            message,
            exception: Some(error),
        }
    }

    /// Creates the failure for a panic in the loop of reader and processor; only the backtrace shows which of them
    /// panicked.
    pub(crate) fn panicked(reader: &Bound, processor: Option<&Bound>, panic: BatchError) -> Self {
        let mut message = reader.properties.secrets.hidden(panic.chain());
        message += &format!("\nin item reader `{}`", reader.name);
        if let Some(processor) = processor {
            message += &format!(" or item processor `{}`", processor.name);
        }
        Self {
            message,
            exception: Some(Arc::new(panic)),
        }
    }

    /// Creates the failure for an artifact that cannot be created.
    pub(crate) fn not_made(artifact: &Bound, problem: String) -> Self {
        Self::new(format!(
            "cannot create {} `{}`: {}",
            artifact.registration.role(),
            artifact.name,
            artifact.properties.secrets.hidden(problem)
        ))
    }
}

macro_rules! makers {
    (
        artifacts { $($artifact:ident, $attribute:ident $(, $fact:ident: $type:ty)?;)* }
        $($others:tt)*
    ) => {
        impl Bound {
            $(
                /// Creates an instance with its properties and contexts.
                // Spec: ART-08, ART-10, LOADER-18
                pub(crate) fn $attribute(&self, contexts: &ContextScope) -> Result<Box<dyn role::$artifact>, Failure> {
                    let make = match self.registration.factory {
                        Factory::$artifact(make, ..) => Some(make),
                        _ => None,
                    };
                    self.make(make, contexts)
                }
            )*
        }
    };
}

batch_macros::__for_each_role!(makers);

/// A `listener` element: one type, in all its listener roles that are accepted there.
pub(crate) struct BoundListener {
    pub(crate) roles: Vec<Bound>,
}

/// The one instance of a `listener` element in its scope.
// Spec: JSL-STEPLIS-07, ART-08
pub(crate) struct Listener {
    bound: Arc<BoundListener>,
    object: Box<dyn Any + Send>,
}

impl Listener {
    pub(crate) fn make(listener: &Arc<BoundListener>, contexts: &ContextScope) -> Result<Self, Failure> {
        let object = match listener.roles.first() {
            Some(bound) => bound.make(bound.factory().listener_maker(), contexts)?,
            // The loader binds at least one role; without roles, the listener would never be called.
            None => Box::new(()),
        };
        Ok(Self {
            bound: Arc::clone(listener),
            object,
        })
    }
}

impl Listener {
    /// Returns the instance as the role's trait, if it has the role.
    pub(crate) fn cast<R: ListenerObject + ?Sized>(&mut self) -> Option<(&Bound, &mut R)> {
        let of_role = |bound| Some((bound, R::of(Bound::factory(bound))?));
        let (bound, role) = self.bound.roles.iter().find_map(of_role)?;
        Some((bound, (role.cast)(self.object.as_mut())?))
    }

    /// Calls a method of the listener, if it has the role.
    pub(crate) fn call<R: ListenerObject + ?Sized>(
        &mut self,
        method: &str,
        call: impl FnOnce(&mut R) -> Result<(), BatchError>,
    ) -> Result<(), Failure> {
        match self.cast::<R>() {
            Some((bound, role)) => bound.call(method, || call(role)),
            None => Ok(()),
        }
    }

    /// Sets the context fields again, because a listener of the job outlives the steps.
    // Spec: LISTEN-JOB-06, D-66
    pub(crate) fn bind_contexts(&mut self, contexts: &ContextScope) -> Result<(), InjectError> {
        match self.bound.roles.first() {
            Some(bound) => (bound.registration.bind_contexts)(self.object.as_mut(), contexts),
            None => Ok(()),
        }
    }
}
