//! The generic tree of a document: elements and attributes by local name, with their spans. Knows no Job XML.

use crate::span::{Span, Spanned};

/// An attribute. References in its value are resolved, and blanks normalized.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: Spanned<String>,
    /// The span is the text between the quotes, as written.
    pub(crate) value: Spanned<String>,
}

/// An element with everything between its tags.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    /// The local name: Job XML ignores prefixes and namespaces.
    pub(crate) name: Spanned<String>,
    /// The whole start tag.
    pub(crate) tag: Span,
    /// Without `xmlns*` and prefixed attributes.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) children: Vec<Element>,
    /// The first text other than blanks between the tags.
    pub(crate) text: Option<Span>,
    /// The namespace of its name, as far as its own start tag declares it.
    pub(crate) namespace: Option<Spanned<String>>,
}

impl Element {
    /// Creates an element that is not in the text, at the place of another one.
    pub(crate) fn at(name: &str, place: &Element) -> Element {
        Element {
            name: Spanned::new(name.to_owned(), place.name.span.clone()),
            tag: place.tag.clone(),
            attributes: Vec::new(),
            children: Vec::new(),
            text: None,
            namespace: None,
        }
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name.value == name)
    }

    pub(crate) fn children<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name.value == name)
    }

    /// Returns the first child of that name.
    pub(crate) fn child<'a>(&'a self, name: &'a str) -> Option<&'a Element> {
        self.children(name).next()
    }

    /// Calls `visit` for this element and all below it, parents first.
    pub(crate) fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Element)) {
        visit(self);
        for child in &self.children {
            child.walk(visit);
        }
    }
}
