//! What was read of any XML, Job XML or not, in a form that can be compared with what other parsers read. For
//! tests and fuzz targets only.

use std::sync::Arc;

use crate::diagnostics::Sink;
use crate::limits::Limits;
use crate::reader;
use crate::span::Source;
use crate::tree::Element;

/// An element as any parser sees it.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// The local name.
    pub name: String,
    /// The attributes without a prefix, in the order of the text.
    pub attributes: Vec<(String, String)>,
    /// Whether there is text that is more than blanks.
    pub has_text: bool,
    /// The elements in it.
    pub children: Vec<Seen>,
}

/// The tree of a text; `None` if it is not well-formed, or refused.
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
