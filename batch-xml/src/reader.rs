//! Reads source text into an element tree. The only file that names quick-xml.
//!
//! quick-xml splits the text into tags and text. The other rules of well-formedness are checked here and in
//! [`xml`](crate::xml): one root, every element closed, legal characters, references, attributes.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use quick_xml::Reader;
use quick_xml::errors::IllFormedError;
use quick_xml::events::{BytesStart, Event};

use crate::codes;
use crate::decode;
use crate::diagnostics::{Diagnostic, Sink, quoted};
use crate::limits::Limits;
use crate::span::{Source, Span, Spanned};
use crate::tree::{Attribute, Element};
use crate::xml::{self, Flaw, FlawKind};

/// Returns the local name of the root element, without reading the rest of the text; `None` if it cannot be found.
///
/// A quick filter for the files of a directory; [`parse`](crate::parse) decides whether a file is a job file.
pub fn sniff_root(source: &Source) -> Option<String> {
    let mut reader = Reader::from_str(source.text());
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                return Some(xml::local_name(tag.name().as_ref()).to_owned())
                    .filter(|name| xml::is_name(name));
            }
            Ok(Event::Eof) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Reads the tree and reports every mistake to `sink`. `None` if there is no root, or if the rest of the text could
/// not be read.
// Spec: JSL-DOC-01, JSL-DOC-02, JSL-DOC-05, JSL-DOC-18
pub(crate) fn read(source: &Arc<Source>, limits: &Limits, sink: &mut Sink) -> Option<Element> {
    let mut builder = Builder {
        source,
        limits,
        sink,
        open: Vec::new(),
        root: None,
        elements: 0,
    };
    builder.document().ok().and(builder.root)
}

/// The rest of the text cannot be read; the reason has been reported.
struct Unreadable;

struct Builder<'a> {
    source: &'a Arc<Source>,
    limits: &'a Limits,
    sink: &'a mut Sink,
    open: Vec<Open>,
    root: Option<Element>,
    elements: usize,
}

/// An element whose end tag has not been seen.
struct Open {
    /// The name as written, prefix included: the end tag repeats it.
    name: String,
    element: Element,
}

impl Builder<'_> {
    fn document(&mut self) -> Result<(), Unreadable> {
        self.check_text()?;
        let mut reader = Reader::from_str(self.source.text());
        // End tags are matched here, so that reading can continue after a wrong one, and the report can show the start tag.
        reader.config_mut().check_end_names = false;
        reader.config_mut().allow_unmatched_ends = true;
        reader.config_mut().check_comments = true;
        loop {
            let start = position(&reader);
            let event = reader.read_event();
            let range = start..position(&reader);
            match event {
                Ok(Event::Eof) => break,
                Ok(event) => self.event(&event, range)?,
                Err(error) => {
                    let at = usize::try_from(reader.error_position()).unwrap_or(start);
                    self.not_well_formed(at..at + 1, reason(&error));
                    // Reading can only continue after an error within a complete tag.
                    if !matches!(error, quick_xml::Error::IllFormed(_)) || range.is_empty() {
                        return Err(Unreadable);
                    }
                }
            }
        }
        self.end_of_text();
        Ok(())
    }

    /// Checks the whole text before it is split into events.
    fn check_text(&mut self) -> Result<(), Unreadable> {
        let text = self.source.text();
        if text.len() > self.limits.file_bytes {
            self.sink
                .extend(&[decode::too_large(self.source, text.len(), self.limits)]);
            return Err(Unreadable);
        }
        // The source dropped the byte order mark; quick-xml would drop a second one without counting it.
        if text.starts_with('\u{feff}') {
            self.not_well_formed(0..3, "text outside the root element");
            return Err(Unreadable);
        }
        if let Some((at, c)) = text.char_indices().find(|(_, c)| !xml::is_char(*c)) {
            let message = format!("the character U+{:04X} is not allowed in XML", u32::from(c));
            self.not_well_formed(at..at + c.len_utf8(), message);
            return Err(Unreadable);
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, range: Range<usize>) -> Result<(), Unreadable> {
        match event {
            Event::Start(tag) => self.start_tag(tag, range, false)?,
            Event::Empty(tag) => self.start_tag(tag, range, true)?,
            Event::End(tag) => self.end_tag(tag.name().as_ref(), range),
            Event::Text(_) => self.text(range),
            Event::CData(text) => {
                // Outside of the root, blanks written as references are not allowed either.
                let blank = !self.open.is_empty() && text.chars().all(xml::is_blank);
                self.content(blank, range);
            }
            Event::GeneralRef(_) => self.reference(range),
            Event::DocType(_) => return Err(self.doctype(range)),
            Event::Decl(_) => self.declaration(range),
            Event::PI(_) => self.instruction(range),
            Event::Comment(_) | Event::Eof => {}
        }
        Ok(())
    }

    // Spec: JSL-DOC-18
    fn doctype(&mut self, range: Range<usize>) -> Unreadable {
        let span = self.span(range);
        self.sink.error(codes::DOCTYPE, &span, |d| {
            d.message("document type declarations are not supported")
                .help("remove it; Job XML needs only the predefined entities")
        });
        // The declaration may define entities, so nothing after it can be checked.
        Unreadable
    }

    /// Checks the name of a processing instruction, which is otherwise ignored.
    fn instruction(&mut self, range: Range<usize>) {
        let span = self.span(range);
        let inner = &span.text()["<?".len()..span.text().len() - "?>".len()];
        let target = inner.split(xml::is_blank).next().unwrap_or_default();
        if !xml::is_name(target) || target.eq_ignore_ascii_case("xml") {
            let message = match target {
                "" => "the processing instruction has no name".to_owned(),
                other => format!(
                    "{} is not a valid name of a processing instruction",
                    quoted(other)
                ),
            };
            self.not_well_formed(span.range(), message);
        }
    }

    fn declaration(&mut self, range: Range<usize>) {
        if range.start > 0 {
            return self.not_well_formed(range, "the XML declaration is not at the start of the file");
        }
        let span = self.span(range);
        let text = span.text();
        let inner = "<?xml".len()..text.len() - "?>".len();
        let part = |range: Range<usize>| span.part(inner.start + range.start..inner.start + range.end);
        let mut parts = Vec::new();
        for found in xml::attributes(&text[inner.clone()]) {
            match found {
                Ok(raw) => parts.push((part(raw.name), part(raw.value))),
                Err(flaw) => self.flaw(&span, inner.start, flaw),
            }
        }
        let mut parts = parts.into_iter();
        match parts.next() {
            Some((name, version)) if name.text() == "version" => match version.text() {
                "1.0" => {}
                "1.1" => self.sink.warning(codes::XML_VERSION, &version, |d| {
                    d.message("XML 1.1 is read as XML 1.0")
                }),
                _ => self.not_well_formed(version.range(), "unsupported version of XML; use 1.0"),
            },
            _ => self.not_well_formed(
                span.range(),
                "the XML declaration does not start with the version",
            ),
        }
        let mut allowed = ["encoding", "standalone"].as_slice();
        for (name, value) in parts {
            let Some(at) = allowed.iter().position(|allowed| name.text() == *allowed) else {
                self.not_well_formed(
                    name.range(),
                    "the XML declaration has the attributes `version`, `encoding` and `standalone`, in this order"
                );
                return;
            };
            let is_right = match allowed[at] {
                "encoding" => xml::is_encoding_name(value.text()),
                _ => ["yes", "no"].contains(&value.text()),
            };
            if !is_right {
                let message = format!(
                    "{} is not a valid value of `{}`",
                    quoted(value.text()),
                    allowed[at]
                );
                self.not_well_formed(value.range(), message);
            }
            allowed = &allowed[at + 1..];
        }
    }

    fn start_tag(
        &mut self,
        tag: &BytesStart<'_>,
        range: Range<usize>,
        empty: bool,
    ) -> Result<(), Unreadable> {
        let span = self.span(range.clone());
        self.elements += 1;
        let (limits, depth) = (self.limits, self.open.len() + 1);
        self.limit(&span, "elements in a document", self.elements, limits.elements)?;
        self.limit(&span, "levels of elements", depth, limits.max_depth())?;
        let name = tag.name().as_ref().to_owned();
        let name_span = span.part(1..1 + name.len());
        self.limit(&name_span, "bytes in a name", name.len(), limits.name_bytes)?;
        if !xml::is_name(&name) {
            self.not_well_formed(
                name_span.range(),
                format!("{} is not a valid element name", quoted(&name)),
            );
        }
        if self.open.is_empty() && self.root.is_some() {
            self.ill_formed(span.range(), "a document has only one root element", |d| {
                d.label("this is the second")
            });
        }
        let (attributes, namespace) = self.attributes(&span, &name, tag.attributes_raw())?;
        let element = Element {
            name: Spanned::new(xml::local_name(&name).to_owned(), name_span),
            tag: span,
            attributes,
            children: Vec::new(),
            text: None,
            namespace,
        };
        if empty {
            self.close(element);
        } else {
            self.open.push(Open { name, element });
        }
        Ok(())
    }

    /// Reads the attributes in `raw`, which follow the `element`'s name in `tag`. Returns them with the namespace that they declare for this
    /// name.
    fn attributes(
        &mut self,
        tag: &Span,
        element: &str,
        raw: &str,
    ) -> Result<(Vec<Attribute>, Option<Spanned<String>>), Unreadable> {
        let offset = 1 + element.len();
        let declaration = match element.split_once(':') {
            Some((prefix, _)) => format!("xmlns:{prefix}"),
            None => "xmlns".to_owned(),
        };
        let (mut attributes, mut namespace) = (Vec::new(), None);
        let mut names: HashMap<&str, Span> = HashMap::new();
        for (count, scanned) in xml::attributes(raw).enumerate() {
            let scanned = match scanned {
                Ok(scanned) => scanned,
                Err(flaw) => {
                    self.flaw(tag, offset, flaw);
                    break;
                }
            };
            let name = &raw[scanned.name.clone()];
            let span = tag.part(offset + scanned.name.start..offset + scanned.name.end);
            let limits = self.limits;
            self.limit(&span, "attributes of an element", count + 1, limits.attributes)?;
            self.limit(&span, "bytes in a name", name.len(), limits.name_bytes)?;
            if let Some(first) = names.insert(name, span.clone()) {
                self.ill_formed(
                    span.range(),
                    format!("duplicate attribute {}", quoted(name)),
                    |d| d.related(first, "the first one is here"),
                );
                continue;
            }
            let value = self.value(tag, offset, &raw[scanned.value.clone()], scanned.value)?;
            // Prefixed names and namespace declarations are not part of Job XML.
            if name == declaration {
                namespace = Some(value);
            } else if name != "xmlns" && !name.contains(':') {
                attributes.push(Attribute {
                    name: Spanned::new(name.to_owned(), span),
                    value,
                });
            }
        }
        Ok((attributes, namespace))
    }

    fn value(
        &mut self,
        tag: &Span,
        offset: usize,
        raw: &str,
        range: Range<usize>,
    ) -> Result<Spanned<String>, Unreadable> {
        let span = tag.part(offset + range.start..offset + range.end);
        self.limit(&span, "bytes in a value", raw.len(), self.limits.value_bytes)?;
        let (value, flaws) = xml::attribute_value(raw);
        for flaw in flaws {
            self.flaw(&span, 0, flaw);
        }
        Ok(Spanned::new(value.into_owned(), span))
    }

    fn end_tag(&mut self, name: &str, range: Range<usize>) {
        let Some(matching) = self.open.iter().rposition(|open| open.name == name) else {
            let open = self
                .open
                .last()
                .map(|open| (open.name.clone(), open.element.tag.clone()));
            return self.ill_formed(
                range,
                format!("the end tag {} has no start tag", quoted(name)),
                |d| match open {
                    Some((name, tag)) => d.related(tag, format!("{} is open", quoted(&name))),
                    None => d,
                },
            );
        };
        if matching + 1 < self.open.len() {
            let end = self.span(range);
            self.unclosed(matching + 1, |d| {
                d.related(end, "this end tag closes an outer element")
            });
        }
        while self.open.len() > matching {
            self.close_innermost();
        }
    }

    /// Reports the elements open at this level and deeper as one mistake, at the innermost.
    fn unclosed(&mut self, level: usize, more: impl FnOnce(Diagnostic) -> Diagnostic) {
        let names: Vec<String> = self.open[level..].iter().map(|open| quoted(&open.name)).collect();
        if let Some(innermost) = self.open.last() {
            let range = innermost.element.tag.range();
            let verb = if names.len() == 1 { "is" } else { "are" };
            let message = format!("{} {verb} not closed", names.join(", "));
            self.ill_formed(range, message, |d| more(d.label("the end tag is missing")));
        }
    }

    fn close_innermost(&mut self) {
        if let Some(open) = self.open.pop() {
            self.close(open.element);
        }
    }

    fn close(&mut self, element: Element) {
        match self.open.last_mut() {
            Some(parent) => parent.element.children.push(element),
            None => {
                self.root.get_or_insert(element);
            }
        }
    }

    fn text(&mut self, range: Range<usize>) {
        let text = &self.source.text()[range.clone()];
        if text.contains("]]>") {
            self.not_well_formed(range.clone(), "`]]>` is not allowed in text");
        }
        let trimmed = text.trim_matches(xml::is_blank);
        let start = range.start + text.find(trimmed).unwrap_or(0);
        self.content(trimmed.is_empty(), start..start + trimmed.len());
    }

    fn reference(&mut self, range: Range<usize>) {
        let span = self.span(range.clone());
        match xml::reference(&span.text()[1..]) {
            Ok(c) => self.content(!self.open.is_empty() && xml::is_blank(c), range),
            Err(kind) => self.flaw(
                &span,
                0,
                Flaw {
                    range: 0..range.len(),
                    kind,
                },
            ),
        }
    }

    /// Records text between tags, which the schema check judges; outside of the root it is a mistake.
    fn content(&mut self, blank: bool, range: Range<usize>) {
        if blank {
            return;
        }
        let span = self.span(range);
        match self.open.last_mut() {
            Some(open) => {
                open.element.text.get_or_insert(span);
            }
            None => self.not_well_formed(span.range(), "text outside the root element"),
        }
    }

    fn end_of_text(&mut self) {
        if !self.open.is_empty() {
            self.unclosed(0, |d| d);
            while !self.open.is_empty() {
                self.close_innermost();
            }
        } else if self.root.is_none() {
            let end = self.source.text().len();
            self.not_well_formed(end..end, "the document has no root element");
        }
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.source, range)
    }

    fn limit(&mut self, span: &Span, what: &str, found: usize, limit: usize) -> Result<(), Unreadable> {
        if found <= limit {
            return Ok(());
        }
        self.sink.error(codes::LIMIT, span, |d| {
            d.message(format!("too many {what}: the limit is {limit}"))
                .label("the limit is exceeded here")
        });
        Err(Unreadable)
    }

    fn not_well_formed(&mut self, range: Range<usize>, reason: impl Into<String>) {
        self.ill_formed(range, reason, |d| d);
    }

    /// Reports that the text is not well-formed, with `more` than the reason.
    fn ill_formed(
        &mut self,
        range: Range<usize>,
        reason: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let span = self.span(range);
        let build = |d: Diagnostic| more(d.message(reason));
        self.sink.error(codes::NOT_WELL_FORMED, &span, build);
    }

    /// Reports a flaw whose range counts from `offset` bytes after the start of `span`.
    fn flaw(&mut self, span: &Span, offset: usize, flaw: Flaw) {
        let span = span.part(offset + flaw.range.start..offset + flaw.range.end);
        match flaw.kind {
            FlawKind::Syntax(reason) => self.not_well_formed(span.range(), reason),
            FlawKind::UndefinedEntity => self.sink.error(codes::UNDEFINED_ENTITY, &span, |d| {
                d.message(format!("the entity {} is not defined", quoted(span.text())))
                    .help("write `&amp;` for a literal `&`")
            }),
        }
    }
}

fn position(reader: &Reader<&[u8]>) -> usize {
    // The text is in memory, so every offset within it fits.
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// Returns the reason without the prefix that repeats the diagnostic's code.
fn reason(error: &quick_xml::Error) -> String {
    match error {
        quick_xml::Error::IllFormed(IllFormedError::UnclosedReference) => xml::AMPERSAND.to_owned(),
        quick_xml::Error::IllFormed(error) => error.to_string(),
        quick_xml::Error::Syntax(error) => error.to_string(),
        other => other.to_string(),
    }
}
