//! Typed attributes. A missing attribute is `None` or its default; so is an invalid one, after a report.

use super::Lowering;
use crate::schema;
use crate::span::Spanned;
use crate::substitute::Value;
use crate::tree::Element;
use crate::values;

impl Lowering<'_> {
    /// Returns the value of an attribute, which may be deferred.
    pub(super) fn value(&mut self, element: &Element, name: &str) -> Option<Value> {
        self.scope.attribute(element.attribute(name)?)
    }

    /// Returns any text, including the empty one; `None` if it is deferred.
    pub(super) fn text(&mut self, element: &Element, name: &str) -> Option<Spanned<String>> {
        self.value(element, name)?.known()
    }

    /// Returns any text; as written, if it is deferred.
    pub(super) fn text_or_written(&mut self, element: &Element, name: &str) -> Option<Spanned<String>> {
        Some(self.value(element, name)?.text)
    }

    /// Returns text that names something.
    // Spec: JSL-DOC-09
    pub(super) fn named(&mut self, element: &Element, name: &str) -> Option<Spanned<String>> {
        self.named_value(element, name)?.known()
    }

    /// Returns required text that names something.
    // Spec: JSL-DOC-08
    pub(super) fn required(&mut self, element: &Element, name: &str) -> Option<Spanned<String>> {
        self.required_value(element, name)?.known()
    }

    /// Returns required text that names something, which may be deferred.
    pub(super) fn required_value(&mut self, element: &Element, name: &str) -> Option<Value> {
        // A mistyped name has been reported already.
        if element.attribute(name).is_none() && !schema::is_mistyped(self.scope.dialect, element, name) {
            values::missing_attribute(element, name, self.scope.sink);
        }
        self.named_value(element, name)
    }

    fn named_value(&mut self, element: &Element, name: &str) -> Option<Value> {
        let value = self.value(element, name)?;
        if value.text.is_empty() {
            values::empty_value(element, name, &value.text.span, self.scope.sink);
            return None;
        }
        Some(value)
    }

    pub(super) fn boolean(&mut self, element: &Element, name: &str, default: bool) -> bool {
        let attribute = element.attribute(name);
        attribute
            .and_then(|attribute| self.scope.boolean(attribute))
            .unwrap_or(default)
    }

    /// Returns an integer of at least `least`.
    pub(super) fn integer(&mut self, element: &Element, name: &str, least: u32) -> Option<u32> {
        let value = self.text(element, name)?;
        let integer = values::integer(&value, least);
        if integer.is_none() {
            values::bad_integer(name, &value, least, self.scope.sink);
        }
        integer
    }
}
