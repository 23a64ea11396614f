//! The texts that a job was made from, each with the `parent` that it was inherited through. Diagnostics are sorted
//! and explained by it.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::span::{Source, Span};
use crate::tree::Element;

/// Maximum number of generations shown with a diagnostic.
const MAX_TRAIL: usize = 4;

/// The texts of one job, and the inherited pieces of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    // Invariant: each source once; the job's own is the first.
    sources: Vec<Arc<Source>>,
    pieces: Vec<Piece>,
    /// The address of the source and the start of each piece.
    known: HashSet<(usize, usize)>,
}

/// An inherited piece of text.
#[derive(Clone, Debug)]
struct Piece {
    source: Arc<Source>,
    range: Range<usize>,
    /// The value of the first `parent` that refers to it.
    by: Span,
}

impl Origins {
    pub(crate) fn new(source: &Arc<Source>) -> Origins {
        Origins {
            sources: vec![Arc::clone(source)],
            ..Origins::default()
        }
    }

    /// Records that an element is used as a parent. An element that runs itself is skipped: its mistakes need no
    /// explanation.
    pub(crate) fn inherited(&mut self, element: &Element, is_document: bool, by: &Span) {
        let source = element.tag.source();
        if !self.sources.iter().any(|known| Arc::ptr_eq(known, source)) {
            self.sources.push(Arc::clone(source));
        }
        let range = if is_document {
            0..source.text().len() + 1
        } else if element.attribute("abstract").is_some() {
            extent(element)
        } else {
            return;
        };
        if self.known.insert((Arc::as_ptr(source).addr(), range.start)) {
            self.pieces.push(Piece {
                source: Arc::clone(source),
                range,
                by: by.clone(),
            });
        }
    }

    /// Returns the position of a source in reports.
    pub(crate) fn rank(&self, source: &Arc<Source>) -> usize {
        let position = self.sources.iter().position(|known| Arc::ptr_eq(known, source));
        position.unwrap_or(self.sources.len())
    }

    /// Returns the `parent` attributes that a place was inherited through, the nearest first.
    pub(crate) fn trail(&self, span: &Span) -> Vec<Span> {
        let mut trail: Vec<Span> = Vec::new();
        let mut at = span;
        while let Some(piece) = self.pieces.iter().find(|piece| piece.holds(at)) {
            let is_there = |there: &Span| there.range() == piece.by.range();
            if trail.len() == MAX_TRAIL || trail.iter().any(is_there) {
                break;
            }
            trail.push(piece.by.clone());
            at = &piece.by;
        }
        trail
    }
}

impl Piece {
    fn holds(&self, span: &Span) -> bool {
        Arc::ptr_eq(&self.source, span.source()) && self.range.contains(&span.range().start)
    }
}

/// Returns the range from the start of an element to the end of its last start tag.
fn extent(element: &Element) -> Range<usize> {
    let mut end = element.tag.range().end;
    element.walk(&mut |inner| end = end.max(inner.tag.range().end));
    element.tag.range().start..end
}
