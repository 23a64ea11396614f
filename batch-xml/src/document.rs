//! A parsed document.

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

/// The root element of a job file. Only jobs are started; the others serve as parents.
// Spec: JSL-DOC-03
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
    /// Returns the name of the element.
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

/// A well-formed job file, before substitution.
///
/// It may contain mistakes against the schema: [`resolve`](crate::resolve) reports them together with all others.
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
    /// Returns the dialect of the document.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the kind of the root element.
    pub fn root_kind(&self) -> RootKind {
        self.kind
    }

    /// Returns the id of the root element, which identifies the document. At most 100 of the characters `A-Z`,
    /// `a-z`, `0-9`, `.`, `_` and `-`.
    // Spec: JSL-JOB-02, SUBST-19
    pub fn id(&self) -> &Spanned<String> {
        &self.id
    }

    /// Returns the text of the document.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Returns whether the root element literally has `abstract="true"` (or `1`).
    pub fn is_abstract(&self) -> bool {
        self.root
            .attribute("abstract")
            .and_then(|value| values::boolean(&value.value))
            .unwrap_or(false)
    }

    /// Returns the mistakes against the schema: unknown elements and attributes, repeated elements, text. A document
    /// with such mistakes cannot be resolved.
    pub fn errors(&self) -> &JobXmlErrors {
        &self.errors
    }

    /// Returns the warnings found while reading.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    pub(crate) fn root(&self) -> &Element {
        &self.root
    }
}

/// Reads a document and checks that it is well-formed XML and has an id. The document keeps mistakes against the
/// schema, for [`resolve`](crate::resolve) to report with all others.
///
/// # Errors
///
/// All mistakes, if the text is not well-formed or exceeds a limit, if its root is not job, step, flow or split (only
/// code `JSL0007` then), or if the root has no valid id.
// Spec: JSL-DOC-01, JSL-DOC-02, JSL-DOC-03, JSL-DOC-18, SUBST-19
pub fn parse(source: &Arc<Source>, limits: &Limits) -> Result<Document, JobXmlErrors> {
    parse_as(source, limits, None)
}

/// Reads a document like [`parse`], in this dialect if one is given, regardless of its namespace.
///
/// # Errors
///
/// See [`parse`].
pub fn parse_as(
    source: &Arc<Source>,
    limits: &Limits,
    dialect: Option<Dialect>,
) -> Result<Document, JobXmlErrors> {
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
    let namespace = root.namespace.as_ref().map(|namespace| namespace.value.as_str());
    let dialect = dialect.unwrap_or_else(|| Dialect::of_namespace(namespace));
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
        d.message(format!("{} is not a root element of job files", quoted(name)))
            .label("expected `job`, `step`, `flow` or `split`")
            .suggestion(suggest::nearest(name, kinds))
    });
}

/// Documents are looked up by id before anything is substituted, so their ids are literal.
fn document_id(dialect: Dialect, root: &Element, sink: &mut Sink) -> Option<Spanned<String>> {
    let Some(id) = root.attribute("id") else {
        // In a malformed tag, the id may merely be unreadable.
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
            d.message(format!(
                "the id of a document cannot contain `{}`",
                symbols::form(dialect)
            ))
            .label("read before substitution")
        });
    } else if id.chars().count() > values::MAX_ID_CHARS {
        values::long_id(&id.span, sink);
    } else if let Some(c) = id.chars().find(|c| !allowed(*c)) {
        sink.error(codes::BAD_ID, &id.span, |d| {
            d.message(format!(
                "the id {} contains a character that is not allowed in ids of documents",
                quoted(id)
            ))
            .label(format!("{c:?} is not allowed"))
            .help("use ASCII letters, digits, `.`, `_` and `-`")
        });
    } else {
        return Some(id.clone());
    }
    None
}
