//! The elements of XML files.

use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::sync::Arc;

use batch_runtime::BatchArtifact;
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use quick_xml::DeError;
use quick_xml::de::Deserializer;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::empty::{marked_blanks, without_empty};
use super::markup::{Kind, Markup};
use super::name::{ElementName, ListName};
use crate::added::{Added, from_record, from_record_with_path};
use crate::error::{Origin, ReadError, RecordError};
use crate::file::{
    Bytes, FileItemReader, Format, Items, OpenFile, Part, Place, Records, Source, decode, encode,
};
use crate::record::{Record, SCHEMA_INSTANCE, with_lists};
use crate::rows::fields_of;

/// Reads the elements of one name in XML files as items of type `T`. A file is not loaded into memory: an element is read when
/// it is needed.
///
/// It has the properties of [`FileInput`](crate::file::FileInput), and:
///
/// | property | default | |
/// |---|---|---|
/// | `element` | required | the name of the elements that are items, at any depth; without a prefix, it is compared with the local name |
/// | `lists` | none | in a [`Record`](crate::Record), the names of the elements that may occur several times: `Ustrd, TxDtls` |
///
/// The fields of an item are found as [`quick_xml::de`] documents: a field `name` is an element or a list of elements, `@name` an
/// attribute, `$text` the text. Prefixes of namespaces are ignored. The elements of a list may have others between them. An element without
/// content, or with comments only, is an empty `String`; in a field of another type it is like a missing one, `None`, also if it has attributes.
/// One with `xsi:nil="true"` is `None` in a field of any type.
///
/// A child or an attribute without a field in `T` is ignored. So if a name is misspelt, an `Option` is `None`: similar names are not
/// searched, because that would cost time for each element. With `#[serde(deny_unknown_fields)]`, an unknown child is a [`RecordError`].
///
/// In a [`Record`](crate::Record), an element with children is an object of JSON. An element named in `lists` becomes a list of JSON, at any
/// depth, even if it occurs once; lists are the last fields of their object. Another element that occurs twice at the same place, and text on
/// both sides of an element, are a [`RecordError`].
///
/// An element that is not an item is a [`RecordError`]. A file is a [`ResourceError`](crate::ResourceError) if it ends too early, or if its
/// start and end tags differ in number; outside of items, their names are not compared. So is a file with a document type declaration,
/// because it can define entities that expand without limit. The property `encoding` decides; an XML declaration that says otherwise is an
/// error.
///
/// An `order` inside another `order` is part of the outer item, and is not read as an item. If the item type has no field for the child
/// that contains it, the outer element is a [`RecordError`]; the fields of that child are not checked.
///
/// ```
/// use batch_items::XmlItemReader;
/// use batch_runtime::prelude::*;
///
/// /// `<order id="7"><customer>Ada</customer><line>pen</line><line>ink</line></order>`
/// #[derive(serde::Deserialize)]
/// struct Order {
///     #[serde(rename = "@id")]
///     id: u64,
///     customer: String,
///     #[serde(default, rename = "line")]
///     lines: Vec<String>,
/// }
///
/// #[item_reader("OrderReader")]
/// type OrderReader = XmlItemReader<Order>;
/// ```
///
/// ```xml
/// <chunk reader="OrderReader" processor="Totals" writer="TotalWriter">
///   <properties>
///     <property name="resource" value="in/orders-*.xml" target="reader"/>
///     <property name="element" value="order" target="reader"/>
///   </properties>
/// </chunk>
/// ```
pub type XmlItemReader<T> = FileItemReader<Xml, T>;

/// The format of a reader of XML elements.
#[derive(BatchArtifact)]
pub struct Xml {
    /// The name of the elements that are items, at any depth.
    #[batch_property(name = "element")]
    element: ElementName,
    /// In a record, the names of the elements that may occur several times: `Ustrd, TxDtls`.
    #[batch_property(name = "lists")]
    lists: Vec<ListName>,
}

impl Format for Xml {
    type Records = Fragments;

    fn start(&self, file: OpenFile<'_>) -> Result<Fragments, ReadError> {
        let source = file.source();
        let (input, record) = file.bytes(&source)?;
        if let Some(name) = file
            .added_names()
            .find(|name| self.lists.iter().any(|ListName(list)| list == name))
        {
            let cause =
                format!("`lists` has the name `{name}` of an added field; give the field another name");
            return Err(source.fail(cause).into());
        }
        let ElementName(element) = &self.element;
        let mut encoded = Vec::new();
        encode(source.encoding(), element, &mut encoded).map_err(|cause| source.fail(cause))?;
        Ok(Fragments {
            start: input.place(record),
            input,
            element: encoded,
            lists: self.lists.iter().map(|ListName(name)| name.clone()).collect(),
            record,
            depth: file.resume_at.map_or(0, |place| place.depth),
            inner: Vec::new(),
            is_empty: record == 0,
            has_others: false,
            raw: Part::new(source.max_record_length()),
            text: String::new(),
            source,
        })
    }

    fn other_lines(&self) -> Option<u64> {
        None
    }
}

/// The elements of a name.
pub struct Fragments {
    input: Bytes,
    /// The name, in the encoding of the file.
    element: Vec<u8>,
    lists: Arc<[String]>,
    record: u64,
    /// The number of open elements around the next byte.
    depth: u32,
    /// The names of the children of the current element that contain other elements of the name, or are such elements.
    inner: Vec<String>,
    /// True until an element is found.
    is_empty: bool,
    /// True if the file has elements of other names, besides its root.
    has_others: bool,
    /// The place of the current element.
    start: Place,
    raw: Part,
    text: String,
    source: Source,
}

/// The children of an element that is being read.
#[derive(Default)]
struct Children {
    /// The number of open elements in the element.
    depth: usize,
    /// The name of the current child.
    name: Vec<u8>,
}

impl Children {
    fn pass(&mut self, markup: &Markup) {
        let kind = markup.kind();
        if self.depth == 0 && matches!(kind, Kind::Start | Kind::Empty) {
            self.name.clear();
            self.name.extend_from_slice(markup.name());
        }
        match kind {
            Kind::Start => self.depth += 1,
            Kind::End => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Adds the local name of the current child, unless it is there already.
    fn name_current(&self, encoding: &'static Encoding, names: &mut Vec<String>) {
        let local = self.name.rsplit(|byte| *byte == b':').next().unwrap_or_default();
        let (local, _) = encoding.decode_without_bom_handling(local);
        if !names.iter().any(|name| *name == local) {
            names.push(local.into_owned());
        }
    }
}

/// The end of an element.
enum Fragment {
    Complete,
    /// It has a tag that does not end.
    Broken,
}

const BROKEN: &str = "a `<` that does not begin a tag, or a tag without its `>`";

impl Fragments {
    /// Moves behind the start tag of the next element of the name; `None` at the end of the file.
    fn find_next(&mut self) -> Result<Option<Markup>, ReadError> {
        loop {
            self.raw.clear();
            let more = self.skip_text()?;
            if self.depth == 0 && (self.raw.is_too_long() || !self.raw.bytes().trim_ascii().is_empty()) {
                return Err(self.malformed("the file has text outside of its elements"));
            }
            if !more {
                return self.end().map(|()| None);
            }
            self.raw.clear();
            self.start = self.input.place(self.record);
            let Some(markup) = self.read_markup()? else {
                return Err(self.malformed("the file ends within a tag or a comment"));
            };
            match markup.kind() {
                Kind::Start | Kind::Empty if self.is_wanted(markup.name()) => return Ok(Some(markup)),
                Kind::Broken if !markup.is_end_tag() && self.is_wanted(markup.name()) => {
                    return Ok(Some(markup));
                }
                kind @ (Kind::Start | Kind::Empty) => {
                    self.is_empty = false;
                    self.has_others |= self.depth > 0;
                    self.depth += u32::from(kind == Kind::Start);
                }
                Kind::End => {
                    let name = String::from_utf8_lossy(markup.name());
                    let outer = self.depth.checked_sub(1);
                    self.depth = outer
                        .ok_or_else(|| self.malformed(&format!("`</{name}>` has no start tag before it")))?;
                }
                Kind::Skipped => {}
                Kind::Instruction => self.check_declaration()?,
                Kind::Declaration => return Err(self.declaration()),
                Kind::Broken => return Err(self.malformed(BROKEN)),
            }
        }
    }

    fn is_wanted(&self, name: &[u8]) -> bool {
        let local = name.iter().rposition(|byte| *byte == b':');
        name == self.element || local.is_some_and(|colon| name[colon + 1..] == self.element)
    }

    /// Checks that nothing is missing at the end of the file.
    fn end(&self) -> Result<(), ReadError> {
        match self.depth {
            0 if self.is_empty => Err(self.malformed("the file has no element")),
            0 => {
                if self.record == 0 && self.has_others {
                    // Probably a typing error in the property.
                    let (file, element) = (self.source.name(), String::from_utf8_lossy(&self.element));
                    tracing::warn!(file, "the file has elements, but none with the name `{element}`");
                }
                Ok(())
            }
            1 => Err(self.malformed("the file ends within an element that is not closed")),
            open => Err(self.malformed(&format!(
                "the file ends within {open} elements that are not closed"
            ))),
        }
    }

    /// Reads the rest of an element. It ends at the end tag that belongs to its start tag by the number of elements of this
    /// name, so that another tag that is missing in it makes one bad record, and not many.
    fn read_rest(&mut self, start: &Markup) -> Result<Fragment, ReadError> {
        self.inner.clear();
        let mut fragment = match start.kind() {
            Kind::Empty => return Ok(Fragment::Complete),
            Kind::Broken => Fragment::Broken,
            _ => Fragment::Complete,
        };
        let mut open = 1_usize;
        let mut children = Children::default();
        while open > 0 {
            let markup = match self.skip_text()? {
                true => self.read_markup()?,
                false => None,
            };
            let Some(markup) = markup else {
                let name = String::from_utf8_lossy(start.name());
                let cause = format!(
                    "the file ends within the element `{name}` that begins in line {}",
                    self.start.line
                );
                return Err(self.malformed(&cause));
            };
            let same_name = markup.name() == start.name();
            children.pass(&markup);
            if !markup.is_end_tag() && self.is_wanted(markup.name()) {
                children.name_current(self.source.encoding(), &mut self.inner);
            }
            match markup.kind() {
                Kind::Declaration => return Err(self.declaration()),
                Kind::Empty => continue,
                Kind::Broken => fragment = Fragment::Broken,
                _ => {}
            }
            if same_name && markup.is_end_tag() {
                open -= 1;
            } else if same_name {
                open += 1;
            }
        }
        Ok(fragment)
    }

    /// Consumes text; returns whether markup follows.
    fn skip_text(&mut self) -> Result<bool, ReadError> {
        let raw = &mut self.raw;
        let found = self
            .input
            .read_until(|bytes| memchr::memchr(b'<', bytes), |bytes| raw.push(bytes));
        found.map_err(|error| self.fail(error))
    }

    /// Consumes markup; returns `None` if the file ends within it.
    fn read_markup(&mut self) -> Result<Option<Markup>, ReadError> {
        let (mut markup, raw) = (Markup::new(), &mut self.raw);
        let found = self
            .input
            .read_until(|bytes| markup.end_in(bytes), |bytes| raw.push(bytes));
        let found = found.map_err(|error| self.fail(error))?;
        Ok(found.then_some(markup))
    }

    /// Checks that an XML declaration does not contradict the property `encoding`.
    fn check_declaration(&self) -> Result<(), ReadError> {
        let Some(label) = declared_encoding(self.raw.bytes()) else {
            return Ok(());
        };
        let encoding = self.source.given_encoding();
        let declared = Encoding::for_label(label);
        // Which of the two, a byte-order mark or the property says.
        let are_utf16 = |declared: &Encoding| {
            [declared, encoding]
                .iter()
                .all(|one| [UTF_16BE, UTF_16LE].contains(one))
        };
        if declared.is_some_and(|declared| declared == encoding || are_utf16(declared)) {
            return Ok(());
        }
        // Every encoding but UTF-16 contains it.
        if ["us-ascii", "ascii", "ansi_x3.4-1968"]
            .iter()
            .any(|ascii| label.eq_ignore_ascii_case(ascii.as_bytes()))
        {
            return Ok(());
        }
        let (label, encoding) = (String::from_utf8_lossy(label), encoding.name());
        let remedy = match declared {
            Some(_) => format!("set the property `encoding` to `{label}`"),
            None => "this encoding is not known: convert the file".to_owned(),
        };
        let cause = format!("it declares the encoding `{label}`, but is read as {encoding}; {remedy}");
        Err(self.source.fail(cause).into())
    }

    fn fail(&self, error: io::Error) -> ReadError {
        self.source.fail(error).into()
    }

    fn malformed(&self, cause: &str) -> ReadError {
        let line = self.input.line;
        self.source.fail(format!("line {line}: {cause}")).into()
    }

    fn declaration(&self) -> ReadError {
        self.malformed(
            "`<!DOCTYPE` and other declarations are rejected, because they can define entities that expand without \
             limit; remove them from the file",
        )
    }

    /// Checks that the items have fields for the elements of the name in the current one, which are not items.
    fn check_inner<T: DeserializeOwned>(&self) -> Result<(), ReadError> {
        if self.inner.is_empty() {
            return Ok(());
        }
        let Some(fields) = fields_of::<T>().filter(|fields| !fields.contains(&"$value")) else {
            return Ok(());
        };
        match self.inner.iter().find(|name| !fields.contains(&name.as_str())) {
            Some(name) => {
                let element = String::from_utf8_lossy(&self.element);
                Err(self.bad(format!(
                    "it contains another element `{element}` in `{name}`, for which the item type has no field; the inner element would be \
                     lost"
                )))
            }
            None => Ok(()),
        }
    }

    fn bad(&self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> ReadError {
        RecordError::new(self.source.name(), self.start.line, cause)
            .with_raw(self.raw.bytes(), self.source.encoding())
            .into()
    }
}

impl Records for Fragments {
    fn advance(&mut self) -> Result<bool, ReadError> {
        let Some(start) = self.find_next()? else {
            return Ok(false);
        };
        let fragment = self.read_rest(&start)?;
        self.record += 1;
        self.is_empty = false;
        if self.raw.is_too_long() {
            let limit = self.source.max_record_length();
            let cause = format!("the element is longer than `max.record.length`, {limit} bytes");
            return Err(self.bad(cause));
        }
        if let Fragment::Broken = fragment {
            return Err(self.bad(format!("the element has {BROKEN}")));
        }
        self.text.clear();
        let decoded = decode(self.source.encoding(), self.raw.bytes(), &mut self.text);
        decoded.map_err(|cause| self.bad(cause))?;
        Ok(true)
    }

    fn place(&self) -> Place {
        Place {
            depth: self.depth,
            ..self.input.place(self.record)
        }
    }

    fn origin(&self) -> Origin<'_> {
        self.source.origin(self.start.line, self.raw.bytes())
    }
}

impl<T: DeserializeOwned> Items<T> for Fragments {
    fn check(&self) -> Result<(), ReadError> {
        if self.lists.is_empty() || is_record::<T>() {
            return Ok(());
        }
        let cause = "the property `lists` has an effect on records only; remove it, and give the item type a field `Vec`";
        Err(self.source.fail(cause).into())
    }

    fn item(&mut self) -> Result<T, ReadError> {
        let added = self.source.added(self.start.line, self.record, &self.text);
        self.check_inner::<T>()?;
        let text = with_nil(&self.text);
        // In a record, blanks are a value; the parser would drop them as indentation. Other types would show the mark.
        let marked = is_record::<T>().then(|| marked_blanks(&text)).flatten();
        let text = marked.map_or(text, Cow::Owned);
        let item = with_lists(&self.lists, || {
            match from_record(&mut Deserializer::from_str(&text), &added) {
                Ok(item) => Ok(item),
                Err(_) => from_text(&text, &added),
            }
        });
        item.map_err(|cause| self.bad(cause))
    }
}

fn is_record<T>() -> bool {
    std::any::type_name::<T>() == std::any::type_name::<Record>()
}

/// Declares the prefix of `xsi:nil` in an element, which may be declared around it. Its fields with this attribute are `None`.
fn with_nil(text: &str) -> Cow<'_, str> {
    const NIL: &str = ":nil=";
    let Some(at) = memchr::memmem::find(text.as_bytes(), NIL.as_bytes()) else {
        return Cow::Borrowed(text);
    };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let prefix = text[..at].rsplit(|c| !is_name(c)).next().unwrap_or_default();
    let name = text.find(|c: char| c.is_whitespace() || matches!(c, '/' | '>'));
    match name {
        Some(name) if !prefix.is_empty() && !text.contains(&format!("xmlns:{prefix}=")) => {
            let (start, rest) = text.split_at(name);
            Cow::Owned(format!("{start} xmlns:{prefix}=\"{SCHEMA_INSTANCE}\"{rest}"))
        }
        _ => Cow::Borrowed(text),
    }
}

/// Deserializes an element whose fields may be empty, or returns the cause with the field.
fn from_text<T: DeserializeOwned>(text: &str, added: &[Added<'_>]) -> Result<T, String> {
    let (mut text, mut last_cause) = (Cow::Borrowed(text), None);
    loop {
        let item = from_record_with_path(&mut Deserializer::from_str(&text), added);
        let error = match item {
            Ok(item) => return Ok(item),
            Err(error) => error,
        };
        if let DeError::TooDeeplyNested(most) = error.inner() {
            return Err(format!("it has more than {most} elements in one another"));
        }
        let (path, inner) = (error.path().to_string(), error.inner().to_string());
        let is_missing = inner.starts_with("missing field");
        let cause = match last_cause.take() {
            // The element was removed, but is required.
            Some(cause) if is_missing => cause,
            _ if path == "." => inner,
            _ => format!("field `{path}`: {inner}"),
        };
        // The field may be optional, and then it has to be missing.
        let shorter = match error.path().iter().next_back() {
            // A struct that lacks another field than its attributes is not empty.
            Some(Segment::Map { key }) => without_empty(&text, key, !is_missing),
            _ => None,
        };
        match shorter {
            Some(shorter) => (text, last_cause) = (Cow::Owned(shorter), Some(cause)),
            None => return Err(cause),
        }
    }
}

/// Returns the label of the encoding in an XML declaration.
fn declared_encoding(instruction: &[u8]) -> Option<&[u8]> {
    let rest = instruction.strip_prefix(b"<?xml")?;
    rest.first().filter(|byte| byte.is_ascii_whitespace())?;
    let at = memchr::memmem::find(rest, b"encoding")?;
    let value = &rest[at + b"encoding".len()..];
    let open = value.iter().position(|byte| matches!(byte, b'"' | b'\''))?;
    let quoted = &value[open + 1..];
    let close = quoted.iter().position(|byte| *byte == value[open])?;
    Some(&quoted[..close])
}
