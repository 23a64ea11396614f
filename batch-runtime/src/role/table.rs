//! The roles as values: generated from the table of `batch-macros`, which the attributes are generated from as well.
// Spec: LOADER-16, LOADER-19

use std::any::Any;
use std::fmt;

use super::*;
use crate::artifact::inject::{InjectError, InjectionScope};
use crate::artifact::item::ItemType;
use crate::artifact::listener_items::ListenerItems;

/// Creates an instance.
pub type Make<T> = fn(&InjectionScope<'_>) -> Result<Box<T>, InjectError>;

/// A listener role of a type. One instance of the type may have several: it is created as an object without a role, and
/// cast to each of its roles.
// Spec: JSL-STEPLIS-07
pub struct ListenerRole<R: ?Sized> {
    /// Creates an instance.
    pub make: Make<dyn Any + Send>,
    /// Returns the instance in this role; `None` for an instance of another type.
    pub cast: fn(&mut (dyn Any + Send)) -> Option<&mut R>,
}

impl<R: ?Sized> Clone for ListenerRole<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: ?Sized> Copy for ListenerRole<R> {}

/// A role trait as an object, of a listener.
pub(crate) trait ListenerObject {
    /// Returns the listener role of a factory, if it is this one.
    fn of(factory: Factory) -> Option<ListenerRole<Self>>;
}

/// A `listeners` element of Job XML. It accepts listeners of certain roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Of a job.
    // Spec: D-51
    Job,
    /// Of a chunk step.
    // Spec: JSL-STEPLIS-02
    Chunk,
    /// Of a batchlet step.
    // Spec: JSL-STEPLIS-03
    Batchlet,
}

impl Place {
    /// Returns the roles of the listeners here, the place's own first.
    pub(crate) fn roles(self) -> Vec<Role> {
        let here = |role: &Role| role.places().contains(&self);
        Role::ALL.iter().copied().filter(here).collect()
    }
}

macro_rules! table {
    (
        artifacts { $($artifact:ident, $a_attribute:ident $(, $a_fact:ident: $a_type:ty)?;)* }
        listeners { $($listener:ident, $l_attribute:ident, [$($place:ident),*] $(, items: $items:ty)? $(, payload_type: $payload:ty)?;)* }
        methods { $($method:ident),* }
    ) => {
        /// The roles of artifacts.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Role {
            $(#[doc = concat!("`#[", stringify!($a_attribute), "]`")] $artifact,)*
            $(#[doc = concat!("`#[", stringify!($l_attribute), "]`")] $listener,)*
        }

        impl Role {
            pub(crate) const ALL: &[Self] = &[$(Self::$artifact,)* $(Self::$listener),*];

            /// Returns the attribute's name.
            pub fn attribute(self) -> &'static str {
                match self {
                    $(Self::$artifact => stringify!($a_attribute),)*
                    $(Self::$listener => stringify!($l_attribute),)*
                }
            }

            /// Returns the places where it is a listener.
            pub(crate) fn places(self) -> &'static [Place] {
                match self {
                    $(Self::$artifact => &[],)*
                    $(Self::$listener => &[$(Place::$place),*],)*
                }
            }
        }

        /// The constructor of an instance in a role, and the properties of its type that the loader checks.
        #[derive(Clone, Copy)]
        #[non_exhaustive]
        pub enum Factory {
            $(
                #[doc = concat!("Of `#[", stringify!($a_attribute), "]`.")]
                $artifact(Make<dyn $artifact> $(, fn() -> $a_type)?),
            )*
            $(
                #[doc = concat!("Of `#[", stringify!($l_attribute), "]`.")]
                $listener(ListenerRole<dyn $listener> $(, fn() -> $items)? $(, fn() -> $payload)?),
            )*
        }

        impl Factory {
            /// Returns the role of the instances.
            pub fn role(self) -> Role {
                match self {
                    $(Self::$artifact(..) => Role::$artifact,)*
                    $(Self::$listener(..) => Role::$listener,)*
                }
            }

            /// Returns the constructor of a listener, without a role.
            pub(crate) fn listener_maker(self) -> Option<Make<dyn Any + Send>> {
                match self {
                    $(Self::$listener(role, ..) => Some(role.make),)*
                    _ => None,
                }
            }

            /// Returns the item types that a listener names.
            pub(crate) fn listener_items(self) -> ListenerItems {
                match self {
                    $($(Self::$listener(_, items) => {
                        let items: fn() -> $items = items;
                        items()
                    })?)*
                    _ => ListenerItems::default(),
                }
            }
        }

        $(
            impl ListenerObject for dyn $listener {
                fn of(factory: Factory) -> Option<ListenerRole<Self>> {
                    match factory {
                        Factory::$listener(role, ..) => Some(role),
                        _ => None,
                    }
                }
            }
        )*
    };
}

batch_macros::__for_each_role!(table);

impl Role {
    /// Returns whether it is a listener somewhere.
    pub fn is_listener(self) -> bool {
        !self.places().is_empty()
    }

    /// Returns the role in words, such as `an item reader`.
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

/// A set of roles.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoleSet(u32);

impl RoleSet {
    pub(crate) fn contains(self, role: Role) -> bool {
        self.0 & (1 << role as u32) != 0
    }
}

impl FromIterator<Role> for RoleSet {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |set, role| set | 1 << role as u32))
    }
}

const _: () = assert!(Role::ALL.len() <= u32::BITS as usize);
