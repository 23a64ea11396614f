//! Error types of every shape declare classes, for themselves and for their variants.
//!
//! Spec: CHUNK-EXC-01
#![deny(warnings)]

use std::error::Error;
use std::fmt;

use batch_runtime::__private::ExceptionRegistration;
use batch_runtime::prelude::*;

#[derive(Debug, BatchException)]
#[batch_exception(class = "com.example.LoadError", extends = "java.io.IOException")]
enum LoadError {
    #[batch_exception(class = "com.example.BadRow")]
    BadRow {
        #[allow(dead_code)]
        line: u64,
    },
    Io(#[allow(dead_code)] std::io::Error),
    Gone,
}

#[derive(Debug, BatchException)]
struct Unit;

#[derive(Debug, BatchException)]
#[batch_exception(extends = "com.example.LoadError")]
struct Tuple(#[allow(dead_code)] u8);

// A variant may have the same name as a type.
#[derive(Debug, BatchException)]
enum Only {
    Unit,
}

macro_rules! errors {
    ($($error:ty),*) => {$(
        impl fmt::Display for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self:?}")
            }
        }

        impl Error for $error {}
    )*};
}

errors!(LoadError, Unit, Tuple, Only);

/// Returns the class of an error, as registered.
fn class(
    error: &(dyn Error + 'static),
) -> Option<(&'static str, Option<&'static str>, Option<&'static str>)> {
    batch_runtime::__private::inventory::iter::<ExceptionRegistration>().find_map(|one| {
        let class = one.classes[(one.classify)(error)?];
        let path = class.path.strip_prefix(concat!(module_path!(), "::"))?;
        Some((path, class.declared, class.extends))
    })
}

#[test]
fn every_error_has_the_class_of_its_variant() {
    assert_eq!(
        class(&LoadError::BadRow { line: 7 }),
        Some(("LoadError::BadRow", Some("com.example.BadRow"), None))
    );
    assert_eq!(
        class(&LoadError::Io(std::io::Error::other("disk"))),
        Some(("LoadError::Io", None, None))
    );
    assert_eq!(class(&LoadError::Gone), Some(("LoadError::Gone", None, None)));
    assert_eq!(class(&Unit), Some(("Unit", None, None)));
    assert_eq!(
        class(&Tuple(1)),
        Some(("Tuple", None, Some("com.example.LoadError")))
    );
    assert_eq!(class(&Only::Unit), Some(("Only::Unit", None, None)));
    assert_eq!(class(&fmt::Error), None);
}
