//! The writer of XML files.

use batch_runtime::BatchArtifact;
use quick_xml::se::Serializer;
use serde::Serialize;

use super::name::{ElementName, RootTag};
use crate::file::{Encode, FileItemWriter, TextOutput};

/// Writes items as the elements of an XML document, exactly once, each on a separate line.
///
/// It has the properties of [`FileOutput`](crate::file::FileOutput), but `if.exists` = `append` is not possible, and of
/// [`TextOutput`], and:
///
/// | property | default | |
/// |---|---|---|
/// | `element` | required | the name of the element of an item |
/// | `root` | `items` | the name of the element around them; attributes may follow it: `orders xmlns="urn:orders"` |
///
/// The fields of an item are written as [`quick_xml::se`] documents: a field `name` as an element or a list of elements, `@name` as
/// an attribute, `$text` as text. `None` is an empty element, which is read as `None`, but into a `String` as an empty text:
/// `#[serde(skip_serializing_if = "Option::is_none")]` leaves the element out. A character that XML does not allow, such as U+0000, is
/// an [`EncodeError`](crate::EncodeError).
///
/// The header and footer of a [`FileFrame`](crate::file::FileFrame) are inside the root, and have to be XML.
///
/// ```
/// use batch_items::XmlItemWriter;
/// use batch_runtime::prelude::*;
///
/// #[derive(serde::Serialize)]
/// struct Order {
///     #[serde(rename = "@id")]
///     id: u64,
///     customer: String,
/// }
///
/// #[item_writer("OrderWriter")]
/// type OrderWriter = XmlItemWriter<Order>;
/// ```
///
/// ```xml
/// <chunk reader="OrderReader" processor="Orders" writer="OrderWriter">
///   <properties>
///     <property name="output" value="out/orders.xml" target="writer"/>
///     <property name="element" value="order" target="writer"/>
///     <property name="root" value="orders" target="writer"/>
///   </properties>
/// </chunk>
/// ```
pub type XmlItemWriter<T, F = ()> = FileItemWriter<XmlOutput, T, F>;

/// The format of a writer of XML elements.
#[derive(BatchArtifact)]
pub struct XmlOutput {
    #[batch_artifact]
    text: TextOutput,
    /// The name of the element of an item.
    #[batch_property(name = "element")]
    element: ElementName,
    /// The name of the element around them; attributes may follow it.
    #[batch_property(name = "root", value = "items")]
    root: RootTag,
}

impl XmlOutput {
    fn item<T: Serialize>(&self, item: &T) -> Result<String, String> {
        let ElementName(name) = &self.element;
        let mut text = String::new();
        let serializer = Serializer::with_root(&mut text, Some(name));
        serializer
            .and_then(|serializer| item.serialize(serializer))
            .map_err(|error| error.to_string())?;
        let is_element = text.strip_prefix('<').and_then(|text| text.strip_prefix(&**name));
        if !is_element.is_some_and(|rest| rest.starts_with([' ', '>', '/'])) {
            return Err(format!(
                "it is not one element `{name}`: an item must be a struct or a single value"
            ));
        }
        // A `<` in a text is escaped.
        if text.contains("<>") || text.contains("</>") {
            return Err("a field has no name".to_owned());
        }
        match text.chars().find(|c| !is_allowed(*c)) {
            Some(forbidden) => Err(format!(
                "the character U+{:04X} is not allowed in XML",
                u32::from(forbidden)
            )),
            None => Ok(text + self.text.line_end.as_str()),
        }
    }
}

impl<T: Serialize> Encode<T> for XmlOutput {
    fn form(&self) -> String {
        format!("{} {} {}", self.element.0, self.root.tag, self.text.form())
    }

    const APPENDABLE: bool = false;

    fn begin(&mut self, header: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        let (encoding, root, end) = (
            self.text.encoding().name(),
            &self.root.tag,
            self.text.line_end.as_str(),
        );
        let begin = format!("<?xml version=\"1.0\" encoding=\"{encoding}\"?>{end}<{root}>{end}");
        self.text.append(&begin, out)?;
        self.text.append(&header.unwrap_or_default(), out)
    }

    fn items<'a>(
        &mut self,
        items: impl Iterator<Item = &'a T>,
        _first: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), (usize, String)>
    where
        T: 'a,
    {
        for (index, item) in items.enumerate() {
            let item = self.item(item).map_err(|cause| (index, cause))?;
            self.text.append(&item, out).map_err(|cause| (index, cause))?;
        }
        Ok(())
    }

    fn end(&mut self, footer: Option<String>, out: &mut Vec<u8>) -> Result<(), String> {
        self.text.append(&footer.unwrap_or_default(), out)?;
        let end = format!("</{}>{}", self.root.name, self.text.line_end.as_str());
        self.text.append(&end, out)
    }
}

/// Returns whether XML 1.0 allows a character.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{FFFE}' | '\u{FFFF}'))
}
