//! The elements of XML that are lists in a record.

use std::cell::RefCell;
use std::sync::Arc;

use serde::de;

thread_local! {
    /// The names of the elements that are lists, while an element of XML is read.
    static NAMES: RefCell<Arc<[String]>> = RefCell::new(Arc::new([]));
}

/// Reads an element of XML; those with these names in it are lists.
pub(crate) fn with_lists<T>(names: &Arc<[String]>, read: impl FnOnce() -> T) -> T {
    /// A panic must not leave the names to another reader.
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            NAMES.take();
        }
    }
    NAMES.replace(Arc::clone(names));
    let _reset = Reset;
    read()
}

/// Returns whether an element is one of a list.
pub(super) fn is_list(name: &str) -> bool {
    NAMES.with_borrow(|names| names.iter().any(|list| list == name))
}

/// Returns the error of a name that occurs twice.
pub(super) fn twice<E: de::Error>(name: &str, is_xml: bool) -> E {
    let remedy = match is_xml {
        true if !name.starts_with(['@', '$']) => "; if it may occur several times, name it in `lists`",
        _ => "",
    };
    E::custom(format!("two fields have the name `{name}`{remedy}"))
}
