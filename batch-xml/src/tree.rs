//! The generic tree of one document: elements and attributes by local name, each with its spans. Knows no Job
//! XML.

use crate::span::{Span, Spanned};

/// One attribute with its value after resolution of references and normalisation of blanks.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: Spanned<String>,
    /// The span is the text between the quotes, as written.
    pub(crate) value: Spanned<String>,
}

/// One element with everything between its tags.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    /// The local name: a prefix and its namespace mean nothing in Job XML.
    pub(crate) name: Spanned<String>,
    /// The whole start tag.
    pub(crate) tag: Span,
    /// Without `xmlns*` and prefixed attributes.
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) children: Vec<Element>,
    /// The first text between the tags that is more than blanks.
    pub(crate) text: Option<Span>,
}

impl Element {
    /// An element without attributes and children that nobody wrote, at the place of another one.
    pub(crate) fn at(name: &str, place: &Element) -> Element {
        Element {
            name: Spanned::new(name.to_owned(), place.name.span.clone()),
            tag: place.tag.clone(),
            attributes: Vec::new(),
            children: Vec::new(),
            text: None,
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

    /// The first child of that name.
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
