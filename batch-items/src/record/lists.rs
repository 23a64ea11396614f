//! The elements of XML that are lists in a record.

use std::cell::RefCell;
use std::sync::Arc;

use serde::de::{self, MapAccess};

use super::nested::Nested;

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

/// The lists of an object: the name of each, and its elements as JSON, separated by commas.
#[derive(Default)]
pub(super) struct Lists(Vec<(String, String)>);

impl Lists {
    /// Returns whether an element is one of a list.
    pub(super) fn has(name: &str) -> bool {
        NAMES.with_borrow(|names| names.iter().any(|list| list == name))
    }

    /// Adds the next element of a list.
    pub(super) fn add<'de, A: MapAccess<'de>>(&mut self, name: &str, fields: &mut A) -> Result<(), A::Error> {
        let at = self.0.iter().position(|(list, _)| list == name);
        let at = at.unwrap_or_else(|| {
            self.0.push((name.to_owned(), String::new()));
            self.0.len() - 1
        });
        let elements = &mut self.0[at].1;
        if !elements.is_empty() {
            elements.push(',');
        }
        fields.next_value_seed(Nested::new(elements))
    }

    /// Returns the name and the JSON of each list.
    pub(super) fn into_json(self) -> impl Iterator<Item = (String, String)> {
        self.0
            .into_iter()
            .map(|(name, elements)| (name, format!("[{elements}]")))
    }
}

/// Returns the error of a name that occurs twice.
pub(super) fn twice<E: de::Error>(name: &str, is_xml: bool) -> E {
    let remedy = match is_xml {
        true => "; if it may occur several times, name it in `lists`",
        false => "",
    };
    E::custom(format!("two fields have the name `{name}`{remedy}"))
}
