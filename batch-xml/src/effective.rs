//! The effective Job XML: a document with everything it inherits, before substitution.

use std::fmt;
use std::sync::Arc;

use crate::codes;
use crate::diagnostics::{Diagnostic, JobXmlErrors, Sink, quoted};
use crate::dialect::Dialect;
use crate::document::Document;
use crate::inherit;
use crate::library::Library;
use crate::limits::Limits;
use crate::lower::{self, PartitionView};
use crate::model::ExecutionElement;
use crate::origins::Origins;
use crate::span::Spanned;
use crate::substitute::{Scope, Values};
use crate::tree::{Attribute, Element};
use crate::write;

/// A document with everything it inherits, before substitution.
// Spec: JSL-DOC-13, JSL-DOC-19
#[derive(Clone)]
pub struct Effective {
    dialect: Dialect,
    root: Arc<Element>,
    origins: Origins,
    warnings: Vec<Diagnostic>,
}

impl Effective {
    /// Resolves the inheritance of a document of any kind.
    ///
    /// # Errors
    ///
    /// All mistakes of the document and of its parents that can be found without values.
    pub fn new(
        document: &Document,
        library: &dyn Library,
        limits: &Limits,
    ) -> Result<Effective, JobXmlErrors> {
        let mut sink = Sink::default();
        let effective = Effective::collect(document, library, limits, &mut sink);
        if sink.failed() {
            return Err(sink.into_errors());
        }
        Ok(Effective {
            warnings: sink.into_errors().into_inner(),
            ..effective
        })
    }

    /// Resolves as far as possible, and reports mistakes to `sink`.
    pub(crate) fn collect(
        document: &Document,
        library: &dyn Library,
        limits: &Limits,
        sink: &mut Sink,
    ) -> Effective {
        let mut origins = Origins::new(document.source());
        sink.extend(document.warnings());
        sink.adopt(document.errors());
        let root = inherit::inherit(document, library, limits, &mut origins, sink);
        sink.set_origins(origins.clone());
        Effective {
            dialect: document.dialect(),
            root: Arc::new(root),
            origins,
            warnings: Vec::new(),
        }
    }

    /// Returns the dialect of the document.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Returns the warnings.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns the effective document as XML: without `parent` and `merge`, every list entry in its list, symbols as
    /// written, one element per line.
    // Spec: JSL-DOC-19, D-52, D-84
    pub fn to_xml(&self) -> String {
        write::effective(&self.root)
    }

    /// Returns the document with only one of its steps, flows or splits, and with the flows and splits around it, whose properties it
    /// sees. Nothing follows it. `None` if there is no such element.
    pub fn only(&self, id: &str) -> Option<Effective> {
        let mut root = Element::clone(&self.root);
        root.children = only(&self.root.children, id)?;
        Some(Effective {
            root: Arc::new(root),
            warnings: Vec::new(),
            ..self.clone()
        })
    }

    /// Returns the document of a job with a further listener of the job, which is called after the others.
    #[must_use]
    pub fn with_listener(&self, name: &str) -> Effective {
        let mut root = Element::clone(&self.root);
        let mut listener = Element::at("listener", &root);
        listener.attributes.push(Attribute {
            name: Spanned::new("ref".to_owned(), root.tag.clone()),
            value: Spanned::new(name.to_owned(), root.tag.clone()),
        });
        match root
            .children
            .iter_mut()
            .find(|child| child.name.value == "listeners")
        {
            Some(listeners) => listeners.children.push(listener),
            None => {
                let mut listeners = Element::at("listeners", &root);
                listeners.children.push(listener);
                root.children.push(listeners);
            }
        }
        Effective {
            root: Arc::new(root),
            ..self.clone()
        }
    }

    /// Resolves a partitioned step or flow for one of its partitions, with every symbol. `path` leads to the
    /// partition: for a partitioned step in a partitioned flow, the flow comes first. Of the [`Partition`] itself
    /// only the collector is present: everything else runs outside of the partitions.
    ///
    /// # Errors
    ///
    /// A missing or invalid value in that partition; a path that leads to no element.
    ///
    /// [`Partition`]: crate::model::Partition
    // Spec: PART-12, PART-13, PART-14, PART-16, SUBST-09, FPART-03, FPART-07, D-34
    pub fn resolve_partition(
        &self,
        path: &[PartitionView<'_>],
        values: &Values<'_>,
        limits: &Limits,
    ) -> Result<ExecutionElement, JobXmlErrors> {
        let mut sink = Sink::default();
        sink.set_origins(self.origins.clone());
        let scope = Scope::new(self.dialect, *values, limits, &mut sink);
        let element = lower::lower_partition(&self.root, scope, path);
        if element.is_none() && !sink.failed() {
            let ids: Vec<&str> = path.iter().map(|view| view.element).collect();
            sink.error(codes::UNKNOWN_TARGET, &self.root.tag, |d| {
                d.message(format!(
                    "no partitioned element has the id {}",
                    quoted(&ids.join("/"))
                ))
            });
        }
        match element {
            Some(element) if !sink.failed() => Ok(element),
            _ => Err(sink.into_errors()),
        }
    }

    pub(crate) fn root(&self) -> &Element {
        &self.root
    }
}

const EXECUTABLE: [&str; 3] = ["step", "flow", "split"];
const TRANSITIONS: [&str; 4] = ["next", "fail", "end", "stop"];

/// Returns the children with a single execution element: the one with the id, or the one that contains it.
fn only(children: &[Element], id: &str) -> Option<Vec<Element>> {
    let name = |child: &Element| child.name.value.clone();
    let is_executable = |child: &&Element| EXECUTABLE.contains(&name(child).as_str());
    let kept = children.iter().filter(is_executable).find_map(|child| {
        let mut child = child.clone();
        if child.attribute("id").is_none_or(|found| found.value.value != id) {
            child.children = only(&child.children, id)?;
        }
        child
            .attributes
            .retain(|attribute| attribute.name.value != "next");
        child
            .children
            .retain(|child| !TRANSITIONS.contains(&name(child).as_str()));
        Some(child)
    })?;
    let is_other = |child: &&Element| !is_executable(child) && name(child) != "decision";
    Some(children.iter().filter(is_other).cloned().chain([kept]).collect())
}

impl fmt::Debug for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Effective({})", self.root.tag)
    }
}
