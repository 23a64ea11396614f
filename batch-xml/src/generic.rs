//! The tree of any XML, in a form that tests and fuzz targets compare with other parsers.

use std::sync::Arc;

use crate::diagnostics::Sink;
use crate::limits::Limits;
use crate::reader;
use crate::span::Source;
use crate::tree::Element;

/// An element in a form that every parser can give.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// The local name.
    pub name: String,
    /// The attributes without a prefix, in the order of the text.
    pub attributes: Vec<(String, String)>,
    /// True if the element contains text other than blanks.
    pub has_text: bool,
    /// The child elements.
    pub children: Vec<Seen>,
}

/// Reads the tree of a text; `None` if it is not well-formed or exceeds a limit.
pub fn read(source: &Arc<Source>, limits: &Limits) -> Option<Seen> {
    let mut sink = Sink::default();
    let root = reader::read(source, limits, &mut sink);
    root.filter(|_| !sink.failed()).map(|root| seen(&root))
}

fn seen(element: &Element) -> Seen {
    let attributes = element.attributes.iter();
    Seen {
        name: element.name.value.clone(),
        attributes: attributes
            .map(|attribute| (attribute.name.value.clone(), attribute.value.value.clone()))
            .collect(),
        has_text: element.text.is_some(),
        children: element.children.iter().map(seen).collect(),
    }
}
