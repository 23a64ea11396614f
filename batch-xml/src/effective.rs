//! The effective Job XML: a document with everything it inherits, before anything is substituted.

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
use crate::substitute::{Scope, Values};
use crate::tree::Element;
use crate::write;

/// A document with everything it inherits, before anything is substituted.
///
/// Spec: JSL-DOC-13, JSL-DOC-19
#[derive(Clone)]
pub struct Effective {
    dialect: Dialect,
    root: Arc<Element>,
    origins: Origins,
    warnings: Vec<Diagnostic>,
}

impl Effective {
    /// Gives a document, of whatever kind, what it inherits.
    ///
    /// # Errors
    ///
    /// All mistakes of the document and of its parents that can be seen without values.
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

    /// The same, as far as it goes; whatever is wrong is in `sink`.
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

    /// What is strange, though not wrong.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// The effective document as XML, on lines of its own: without `parent` and `merge`, every list entry in
    /// its list, symbols as written.
    ///
    /// Spec: JSL-DOC-19, D-52, D-84
    pub fn to_xml(&self) -> String {
        write::effective(&self.root)
    }

    /// What a partitioned step or flow is in one of its partitions, every symbol resolved. `path` leads to
    /// the partition: of a partitioned step within a partitioned flow the flow first. Of the [`Partition`]
    /// itself only the collector is there, as everything else of it runs outside of the partitions.
    ///
    /// Spec: PART-12, PART-13, PART-14, PART-16, SUBST-09, FPART-03, FPART-07, D-34
    ///
    /// # Errors
    ///
    /// What has no value, or a wrong one, in that partition; a path that leads to no element.
    ///
    /// [`Partition`]: crate::model::Partition
    pub fn resolve_partition(
        &self,
        path: &[PartitionView<'_>],
        values: &Values<'_>,
        limits: &Limits,
    ) -> Result<ExecutionElement, JobXmlErrors> {
        let mut sink = Sink::default();
        sink.set_origins(self.origins.clone());
        let element = lower::lower_partition(
            &self.root,
            Scope::new(self.dialect, *values, limits),
            path,
            &mut sink,
        );
        if element.is_none() && !sink.failed() {
            let ids: Vec<&str> = path.iter().map(|view| view.element).collect();
            sink.error(codes::UNKNOWN_TARGET, &self.root.tag, |d| {
                d.message(format!(
                    "there is no partitioned element {}",
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

impl fmt::Debug for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Effective({})", self.root.tag)
    }
}
