//! The documents that others inherit from.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::document::{Document, RootKind};
use crate::span::Span;

/// The documents of the job path, as parents for a job.
// Spec: INH-15, INH-27, PATH-10
pub trait Library {
    /// Returns every document whose root has the id; several if the id is duplicated.
    fn find(&self, id: &str) -> Vec<Arc<Document>>;

    /// Returns the ids of all documents of a kind, for suggestions.
    fn ids(&self, kind: RootKind) -> Vec<String>;

    /// Returns a place in each unreadable file that may define the id, for hints.
    fn broken(&self, id: &str) -> Vec<Span> {
        let _ = id;
        Vec::new()
    }
}

/// Returns the documents that the document may inherit from, over all generations, and their numbers by id; 0 is the
/// document itself.
pub(crate) fn gather(
    document: &Document,
    library: &dyn Library,
) -> (Vec<Arc<Document>>, HashMap<String, Vec<usize>>) {
    let mut found: Vec<Arc<Document>> = Vec::new();
    let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
    let mut wanted = VecDeque::from(parents_named(document));
    while let Some(id) = wanted.pop_front() {
        if by_id.contains_key(&id) {
            continue;
        }
        let mut numbers = Vec::new();
        for parent in library.find(&id) {
            let is = |other: &Document| Arc::ptr_eq(other.source(), parent.source());
            let known = found
                .iter()
                .position(|other| is(other))
                .map(|position| position + 1);
            let number = known.or(is(document).then_some(0)).unwrap_or_else(|| {
                wanted.extend(parents_named(&parent));
                found.push(parent);
                found.len()
            });
            numbers.push(number);
        }
        // A document that names itself is found even if the library does not contain it.
        if numbers.is_empty() && document.id().value == id {
            numbers.push(0);
        }
        by_id.insert(id, numbers);
    }
    (found, by_id)
}

fn parents_named(document: &Document) -> Vec<String> {
    let mut ids = Vec::new();
    document.root().walk(&mut |element| {
        let parent = element.attribute("parent");
        ids.extend(parent.map(|parent| parent.value.value.clone()));
    });
    ids
}
