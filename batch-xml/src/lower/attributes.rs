//! Attributes by type. A missing attribute is `None` or its default; a wrong one too, and is reported.

use super::Lowering;
use crate::schema;
use crate::span::Spanned;
use crate::tree::Element;
use crate::values;

impl Lowering<'_> {
    /// Any text, the empty one included.
    pub(super) fn text(&mut self, element: &Element, name: &str) -> Option<Spanned<String>> {
        self.scope.attribute(element.attribute(name)?, self.sink)
    }

    /// Text that names something.
    ///
    /// Spec: JSL-DOC-09
    pub(super) fn named(&mut self, element: &Element, name: &str) -> Option<Spanned<String>> {
        let value = self.text(element, name)?;
        if value.is_empty() {
            values::empty_value(element, name, &value.span, self.sink);
            return None;
        }
        Some(value)
    }

    /// Text that names something and must be there.
    ///
    /// Spec: JSL-DOC-08
    pub(super) fn required(&mut self, element: &Element, name: &str) -> Option<Spanned<String>> {
        // A mistyped name was reported as such.
        if element.attribute(name).is_none() && !schema::is_mistyped(element, name) {
            values::missing_attribute(element, name, self.sink);
        }
        self.named(element, name)
    }

    pub(super) fn boolean(&mut self, element: &Element, name: &str, default: bool) -> bool {
        let attribute = element.attribute(name);
        attribute
            .and_then(|attribute| self.scope.boolean(attribute, self.sink))
            .unwrap_or(default)
    }

    /// An integer of at least `least`.
    pub(super) fn integer(&mut self, element: &Element, name: &str, least: u32) -> Option<u32> {
        let value = self.text(element, name)?;
        let integer = values::integer(&value, least);
        if integer.is_none() {
            values::bad_integer(name, &value, least, self.sink);
        }
        integer
    }
}
