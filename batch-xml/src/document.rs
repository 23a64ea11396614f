//! One parsed document and how it is made: `parse`.

use std::sync::Arc;

use crate::codes;
use crate::diagnostics::{Diagnostic, JobXmlErrors, Sink, quoted};
use crate::dialect::Dialect;
use crate::limits::Limits;
use crate::reader;
use crate::schema;
use crate::span::{Source, Spanned};
use crate::suggest;
use crate::symbols;
use crate::tree::Element;
use crate::values;

/// What the root element of a job file is. Only jobs are started; the others serve inheritance.
///
/// Spec: JSL-DOC-03
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RootKind {
    /// `job`
    Job,
    /// `step`
    Step,
    /// `flow`
    Flow,
    /// `split`
    Split,
}

impl RootKind {
    /// The name of the element.
    pub fn as_str(self) -> &'static str {
        match self {
            RootKind::Job => "job",
            RootKind::Step => "step",
            RootKind::Flow => "flow",
            RootKind::Split => "split",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<RootKind> {
        [RootKind::Job, RootKind::Step, RootKind::Flow, RootKind::Split]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// A well-formed job file, as written: nothing is substituted yet.
///
/// It may hold mistakes against the schema: [`resolve`](crate::resolve) reports them together with all
/// others.
#[derive(Clone, Debug)]
pub struct Document {
    dialect: Dialect,
    kind: RootKind,
    id: Spanned<String>,
    source: Arc<Source>,
    root: Element,
    errors: JobXmlErrors,
    warnings: Vec<Diagnostic>,
}

impl Document {
    /// The dialect that the document is written in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What the document defines.
    pub fn root_kind(&self) -> RootKind {
        self.kind
    }

    /// The id of the root element, under which the document is found. At most 100 of the characters `A-Z`,
    /// `a-z`, `0-9`, `.`, `_` and `-`.
    ///
    /// Spec: JSL-JOB-02, SUBST-19
    pub fn id(&self) -> &Spanned<String> {
        &self.id
    }

    /// The text it was read from.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Whether the root element says `abstract="true"` (or `1`) literally.
    pub fn is_abstract(&self) -> bool {
        self.root
            .attribute("abstract")
            .and_then(|value| values::boolean(&value.value))
            .unwrap_or(false)
    }

    /// Mistakes against the schema, if any: unknown elements and attributes, repeated elements, text. A
    /// document that has some cannot be resolved.
    pub fn errors(&self) -> &JobXmlErrors {
        &self.errors
    }

    /// What was strange, though not wrong, while reading.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    pub(crate) fn root(&self) -> &Element {
        &self.root
    }
}

/// Reads a document and checks that it is well-formed XML and can be found under an id. Mistakes against the
/// schema are kept in the document, for [`resolve`](crate::resolve) to report with everything else.
///
/// Spec: JSL-DOC-01, JSL-DOC-02, JSL-DOC-03, JSL-DOC-18, SUBST-19
///
/// # Errors
///
/// All that was found, if the text is not well-formed, passes a limit, has another root than job, step, flow
/// or split (code `JSL0007`, and nothing else), or its root has no usable id.
pub fn parse(source: &Arc<Source>, limits: &Limits) -> Result<Document, JobXmlErrors> {
    let mut sink = Sink::default();
    let Some(root) = reader::read(source, limits, &mut sink) else {
        return Err(sink.into_errors());
    };
    let Some(kind) = RootKind::from_name(&root.name) else {
        if !sink.failed() {
            other_root(&root, &mut sink);
        }
        return Err(sink.into_errors());
    };
    let dialect = Dialect::default();
    let id = document_id(dialect, &root, &mut sink);
    let mut schema_sink = Sink::default();
    schema::check(dialect, &root, &mut schema_sink);
    let errors = schema_sink.into_errors();
    match id {
        Some(id) if !sink.failed() => {
            let source = Arc::clone(source);
            let warnings = sink.into_errors().into_inner();
            Ok(Document {
                dialect,
                kind,
                id,
                source,
                root,
                errors,
                warnings,
            })
        }
        _ => {
            sink.adopt(&errors);
            Err(sink.into_errors())
        }
    }
}

fn other_root(root: &Element, sink: &mut Sink) {
    let name = root.name.value.as_str();
    sink.error(codes::OTHER_ROOT, &root.name.span, |d| {
        let kinds = ["job", "step", "flow", "split"];
        d.message(format!(
            "the root element {} is not one of a job file",
            quoted(name)
        ))
        .label("expected `job`, `step`, `flow` or `split`")
        .suggestion(suggest::nearest(name, kinds))
    });
}

/// Documents are looked up by id before anything is substituted, so their ids are literal.
fn document_id(dialect: Dialect, root: &Element, sink: &mut Sink) -> Option<Spanned<String>> {
    let Some(id) = root.attribute("id") else {
        // Where the tag is not well-formed, the id may be there and only not readable.
        if !sink.failed() {
            values::missing_attribute(root, "id", sink);
        }
        return None;
    };
    let id = &id.value;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if id.is_empty() {
        values::empty_value(root, "id", &id.span, sink);
    } else if symbols::has_symbols(dialect, id) {
        sink.error(codes::LITERAL_ONLY, &id.span, |d| {
            d.message("the id of a document may not hold `${..}`")
                .label("read before anything is substituted")
        });
    } else if id.chars().count() > values::MAX_ID_CHARS {
        values::long_id(&id.span, sink);
    } else if let Some(c) = id.chars().find(|c| !allowed(*c)) {
        sink.error(codes::BAD_ID, &id.span, |d| {
            d.message(format!(
                "the id {} holds a character that ids of documents may not hold",
                quoted(id)
            ))
            .label(format!("{c:?} is not allowed"))
            .help("use letters without accents, digits, `.`, `_` and `-`")
        });
    } else {
        return Some(id.clone());
    }
    None
}
