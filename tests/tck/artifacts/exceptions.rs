//! The exceptions that the jobs name by their Java classes.

use std::fmt;

use batch_runtime::prelude::*;

/// Declares an exception with a message.
macro_rules! exception {
    ($name:ident, $class:literal, $extends:literal) => {
        #[derive(Debug, BatchException)]
        #[batch_exception(class = $class, extends = $extends)]
        pub(crate) struct $name(pub(crate) &'static str);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0)
            }
        }

        impl std::error::Error for $name {}
    };
}

exception!(
    MyParentException,
    "com.ibm.jbatch.tck.artifacts.reusable.MyParentException",
    "java.lang.Exception"
);
exception!(
    MyChildException,
    "com.ibm.jbatch.tck.artifacts.reusable.MyChildException",
    "com.ibm.jbatch.tck.artifacts.reusable.MyParentException"
);
exception!(
    MyGrandchildException,
    "com.ibm.jbatch.tck.artifacts.reusable.MyGrandchildException",
    "com.ibm.jbatch.tck.artifacts.reusable.MyChildException"
);
exception!(
    BasicChunkStepException,
    "com.ibm.jbatch.tck.artifacts.basicchunk.BasicChunkStepException",
    "java.lang.Exception"
);
// Some lists exclude it; nothing throws it.
exception!(
    FileNotFound,
    "java.io.FileNotFoundException",
    "java.io.IOException"
);

/// Returns whether an error is a `MyParentException`, or one of the classes that extend it.
pub(crate) fn is_parent(error: &BatchError) -> bool {
    error.downcast_ref::<MyParentException>().is_some()
        || error.downcast_ref::<MyChildException>().is_some()
        || error.downcast_ref::<MyGrandchildException>().is_some()
}
