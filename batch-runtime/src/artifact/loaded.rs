//! An instance of a preferred loader, on its way to the injection.

use std::any::{Any, TypeId};

/// A type that a preferred loader names, and the instance if the loader has created one.
pub(crate) struct LoadedInstance {
    pub(super) type_id: TypeId,
    pub(super) type_name: &'static str,
    instance: Option<Box<dyn Any + Send>>,
}

/// The instance has another type.
pub(super) struct AnotherType;

impl LoadedInstance {
    pub(super) fn of<T: Send + 'static>(instance: Option<T>) -> Self {
        Self {
            type_id: TypeId::of::<T>(),
            type_name: std::any::type_name::<T>(),
            instance: instance.map(|instance| Box::new(instance) as Box<dyn Any + Send>),
        }
    }

    pub(super) fn is_made(&self) -> bool {
        self.instance.is_some()
    }

    /// Returns the instance, if the loader created one.
    pub(super) fn typed<T: 'static>(self) -> Result<Option<Box<T>>, AnotherType> {
        if self.type_id != TypeId::of::<T>() {
            return Err(AnotherType);
        }
        let typed = |instance: Box<dyn Any + Send>| instance.downcast().map_err(|_| AnotherType);
        self.instance.map(typed).transpose()
    }
}
