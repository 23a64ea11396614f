//! A job as the engine runs it: every `ref` is resolved to a registered artifact.

use std::any::Any;
use std::sync::Arc;

use super::call::{Failure, call};
use crate::artifact::{
    ArtifactRegistration, BatchArtifactLoader, ContextScope, InjectError, InjectionScope, Properties,
};
use crate::error::BatchError;
use crate::role::{self, Factory, ListenerObject};

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

/// The reason why an artifact cannot be created.
#[derive(Debug)]
pub(crate) enum MakeError {
    Inject(InjectError),
    /// The `Default` of a field or the parsing of a property panicked. Spec: CHUNK-EXC-03
    Panic(BatchError),
    /// The preferred loader failed or panicked. Spec: LOADER-07
    Loader(BatchError),
    /// The preferred loader returned an artifact when the job was bound, but none now.
    NotLoaded,
    /// The artifact has another role: a bug of the runtime, because the loader checks roles.
    Role,
}

impl Bound {
    /// Returns the properties and contexts of an instance, and the preferred loader's artifact, which is a new one for each. Spec: LOADER-03, LOADER-18
    fn scope<'a>(&'a self, contexts: &'a ContextScope) -> Result<InjectionScope<'a>, MakeError> {
        let scope = InjectionScope::new(&self.properties, contexts);
        let Some(loader) = &self.loader else {
            return Ok(scope);
        };
        match call(|| loader.load(&self.name)).map_err(MakeError::Loader)? {
            Some(loaded) => Ok(scope.with_loaded(loaded)),
            None => Err(MakeError::NotLoaded),
        }
    }
}

macro_rules! makers {
    (
        artifacts { $($artifact:ident, $attribute:ident $(, $fact:ident: $type:ty)?;)* }
        $($others:tt)*
    ) => {
        impl Bound {
            $(
                /// Creates an instance with its properties and contexts. Spec: ART-08, ART-10, LOADER-18
                pub(crate) fn $attribute(&self, contexts: &ContextScope) -> Result<Box<dyn role::$artifact>, MakeError> {
                    match self.registration.factory {
                        Factory::$artifact(make, ..) => {
                            let scope = self.scope(contexts)?;
                            call(|| Ok(make(&scope)))
                                .map_err(MakeError::Panic)?
                                .map_err(MakeError::Inject)
                        }
                        _ => Err(MakeError::Role),
                    }
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

/// The one instance of a `listener` element in its scope. Spec: JSL-STEPLIS-07, ART-08
pub(crate) struct Listener {
    bound: Arc<BoundListener>,
    object: Box<dyn Any + Send>,
}

impl Listener {
    pub(crate) fn make(listener: &Arc<BoundListener>, contexts: &ContextScope) -> Result<Self, Failure> {
        // The loader binds at least one role; without roles, the listener would never be called.
        let Some(bound) = listener.roles.first() else {
            return Ok(Self {
                bound: Arc::clone(listener),
                object: Box::new(()),
            });
        };
        let made = bound.scope(contexts).and_then(|scope| {
            let make = bound.factory().listener_maker().ok_or(MakeError::Role)?;
            call(|| Ok(make(&scope)))
                .map_err(MakeError::Panic)?
                .map_err(MakeError::Inject)
        });
        let object = made.map_err(|error| Failure::not_made(bound, &error))?;
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

    /// Sets the context fields again, because a listener of the job outlives the steps. Spec: LISTEN-JOB-06, D-66
    pub(crate) fn bind_contexts(&mut self, contexts: &ContextScope) -> Result<(), InjectError> {
        match self.bound.roles.first() {
            Some(bound) => (bound.registration.bind_contexts)(self.object.as_mut(), contexts),
            None => Ok(()),
        }
    }
}
