//! The contexts of flows and splits: only what all contexts share.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::element::{ElementState, ShowsStop, element_methods, ended, lock, shows_stop};
use crate::checkpoint::UserDataError;
use crate::context_gate;
use crate::status::BatchStatus;

macro_rules! plain_context {
    ($(#[$doc:meta])* $name:ident, $element:literal) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name(Arc<PlainShared>);

        impl $name {
            pub(crate) fn new(id: &str) -> Self {
                Self(Arc::new(PlainShared {
                    id: id.to_owned(),
                    element: Mutex::default(),
                }))
            }

            #[doc = concat!("Returns the ", $element, "'s id in its Job XML.")]
            pub fn id(&self) -> &str {
                &self.0.id
            }

            element_methods!($element);
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.id)
            }
        }

        shows_stop!($name);
        ended!($name);
    };
}

struct PlainShared {
    id: String,
    element: Mutex<ElementState>,
}

plain_context!(
    /// The context of a running flow.
    // Spec: CTX-08, CTX-31 to CTX-33
    FlowContext,
    "flow"
);
plain_context!(
    /// The context of a running split.
    // Spec: CTX-09, CTX-34 to CTX-36
    SplitContext,
    "split"
);
