//! Inheritance (4.8 of the draft): builds the effective tree from a document and the parents of its elements. Works
//! on the generic tree before substitution; the tables below hold all knowledge of Job XML.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use crate::codes;
use crate::diagnostics::{INHERITED, Sink, quoted};
use crate::dialect::Dialect;
use crate::document::{Document, RootKind};
use crate::library::{Library, gather};
use crate::limits::Limits;
use crate::origins::Origins;
use crate::schema;
use crate::span::Span;
use crate::suggest;
use crate::symbols;
use crate::tree::{Attribute, Element};
use crate::values;

/// Maximum number of unreadable files that are listed with an unknown parent.
const MAX_BROKEN: usize = 3;

/// A library of these documents.
impl Library for Vec<Arc<Document>> {
    fn find(&self, id: &str) -> Vec<Arc<Document>> {
        let same = self.iter().filter(|document| document.id().value == id);
        same.cloned().collect()
    }

    fn ids(&self, kind: RootKind) -> Vec<String> {
        let same = self.iter().filter(|document| document.root_kind() == kind);
        same.map(|document| document.id().value.clone()).collect()
    }
}

/// The identity of list entries: elements of one group whose key attributes are equal are the same entry, and the
/// child's replaces the parent's. All other elements are the same if their names are, and are combined.
// Spec: INH-10, INH-19, INH-20
const ENTRIES: &[(&str, &str, &[&str])] = &[
    ("property", "property", &["name", "target"]),
    ("listener", "listener", &["ref"]),
    ("include", "include", &["class"]),
    ("exclude", "exclude", &["class"]),
    ("step", "execution element", &["id"]),
    ("flow", "execution element", &["id"]),
    ("split", "execution element", &["id"]),
    ("decision", "execution element", &["id"]),
    ("next", "transition", &["on"]),
    ("fail", "transition", &["on"]),
    ("end", "transition", &["on"]),
    ("stop", "transition", &["on"]),
];

/// A child with one of these drops the other of its parent.
// Spec: INH-21
const EXCLUSIVE: [&str; 2] = ["chunk", "batchlet"];

/// The elements that may have a `parent`, with their containers.
// Spec: INH-01
const INHERITING: &[(&str, &[&str])] = &[
    ("job", &["step", "flow", "split"]),
    ("split", &["flow"]),
    ("flow", &["step"]),
];

/// Entries that are allowed without their list: the owner, the entry, the list.
// Spec: D-52, D-84
const BARE: &[(&str, &str, &str)] = &[
    ("job", "listener", "listeners"),
    ("step", "listener", "listeners"),
    ("chunk", "property", "properties"),
];

type Key<'k> = (&'k str, Vec<Option<&'k str>>);

fn key(element: &Element) -> Key<'_> {
    match ENTRIES.iter().find(|(name, ..)| element.name.value == *name) {
        Some((_, group, attributes)) => {
            let value = |name: &&str| Some(element.attribute(name)?.value.value.as_str());
            (group, attributes.iter().map(value).collect())
        }
        None => (element.name.value.as_str(), Vec::new()),
    }
}

fn is_entry(element: &Element) -> bool {
    ENTRIES.iter().any(|(name, ..)| element.name.value == *name)
}

/// Returns the effective tree of a document and reports mistakes to `sink`. An element keeps its attribute `parent`
/// if that parent could not be used.
// Spec: INH-01, INH-03, INH-06, INH-14, JSL-JOB-07, JSL-JOB-08, JSL-STEP-15, FLOW-05, SPLIT-05
pub(crate) fn inherit(
    document: &Document,
    library: &dyn Library,
    limits: &Limits,
    origins: &mut Origins,
    sink: &mut Sink,
) -> Element {
    let (parents, by_id) = gather(document, library);
    let documents: Vec<&Document> = std::iter::once(document)
        .chain(parents.iter().map(Arc::as_ref))
        .collect();
    let files = documents.into_iter().map(File::new).collect();
    let mut inheritance = Inheritance {
        dialect: document.dialect(),
        files,
        by_id: &by_id,
        library,
        limits,
        origins,
        sink,
        known: HashMap::new(),
        adopted: HashSet::from([0]),
        copied: 0,
        copied_bytes: 0,
        full: false,
    };
    let root = Place {
        file: 0,
        element: document.root(),
    };
    inheritance.build(root, &mut Vec::new()).element
}

/// A document with its elements by kind and id; of duplicates the first.
struct File<'a> {
    document: &'a Document,
    nested: HashMap<(&'a str, &'a str), &'a Element>,
}

impl<'a> File<'a> {
    fn new(document: &'a Document) -> File<'a> {
        let mut nested = HashMap::new();
        for child in &document.root().children {
            child.walk(&mut |element| {
                if let Some(id) = element.attribute("id") {
                    let key = (element.name.value.as_str(), id.value.value.as_str());
                    nested.entry(key).or_insert(element);
                }
            });
        }
        File { document, nested }
    }
}

/// An element and the index of its document.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: usize,
    element: &'a Element,
}

impl Place<'_> {
    fn is(self, other: Place<'_>) -> bool {
        std::ptr::eq(self.element, other.element)
    }
}

/// An effective element.
struct Inherited {
    element: Element,
    /// The number of generations above it.
    depth: usize,
}

struct Inheritance<'a, 's> {
    dialect: Dialect,
    files: Vec<File<'a>>,
    by_id: &'s HashMap<String, Vec<usize>>,
    library: &'s dyn Library,
    limits: &'s Limits,
    origins: &'s mut Origins,
    sink: &'s mut Sink,
    /// The elements used as parents, by address.
    known: HashMap<usize, Rc<Inherited>>,
    /// The documents whose own mistakes have been reported.
    adopted: HashSet<usize>,
    /// Number of elements inherited.
    copied: usize,
    /// Bytes of attribute values inherited.
    copied_bytes: usize,
    /// True if one of these limits is exceeded: nothing more is inherited.
    full: bool,
}

impl<'a> Inheritance<'a, '_> {
    /// Returns an element with everything it inherits. `chain` holds the elements whose parent is being built.
    fn build(&mut self, place: Place<'a>, chain: &mut Vec<Place<'a>>) -> Inherited {
        let mut element = self.own(place);
        let Some(parent) = place.element.attribute("parent") else {
            return Inherited { element, depth: 0 };
        };
        chain.push(place);
        let found = self.parent(place, parent, chain);
        chain.pop();
        let Some(found) = found else {
            return Inherited { element, depth: 0 };
        };
        element
            .attributes
            .retain(|attribute| attribute.name.value != "parent");
        Inherited {
            element: self.combine(&found.element, element, &parent.value.span),
            depth: found.depth + 1,
        }
    }

    /// Returns the element as written, with what its children inherit, and bare entries moved into their lists.
    fn own(&mut self, place: Place<'a>) -> Element {
        let written = place.element;
        let inheriting = INHERITING.iter().find(|(name, _)| written.name.value == *name);
        let inheriting = inheriting.map_or(&[][..], |(_, children)| children);
        let mut children = Vec::with_capacity(written.children.len());
        for child in &written.children {
            if inheriting.contains(&child.name.value.as_str()) {
                let child = Place {
                    file: place.file,
                    element: child,
                };
                children.push(self.build(child, &mut Vec::new()).element);
            } else {
                children.push(with_lists(child.clone()));
            }
        }
        with_lists(Element {
            name: written.name.clone(),
            tag: written.tag.clone(),
            attributes: written.attributes.clone(),
            children,
            text: written.text.clone(),
            namespace: written.namespace.clone(),
        })
    }

    /// Returns the effective parent that an attribute names; `None`, after a report, if it cannot be used.
    fn parent(
        &mut self,
        place: Place<'a>,
        parent: &'a Attribute,
        chain: &mut Vec<Place<'a>>,
    ) -> Option<Rc<Inherited>> {
        if self.full {
            return None;
        }
        let target = self.look_up(place, parent)?;
        if let Some(start) = chain.iter().position(|waiting| waiting.is(target)) {
            self.report_cycle(&chain[start..], parent);
            return None;
        }
        self.origins
            .inherited(target.element, self.is_root(target), &parent.value.span);
        let address = std::ptr::from_ref(target.element).addr();
        let found = match self.known.get(&address) {
            Some(found) => Rc::clone(found),
            None if chain.len() > self.limits.max_parents() => {
                self.report_depth(&parent.value.span);
                return None;
            }
            None => {
                let built = Rc::new(self.build(target, chain));
                self.known.insert(address, Rc::clone(&built));
                self.check_document(target, &built.element);
                built
            }
        };
        // A parent whose own parent is missing is unusable; that has been reported.
        if found.element.attribute("parent").is_some() {
            return None;
        }
        if found.depth >= self.limits.max_parents() {
            self.report_depth(&parent.value.span);
            return None;
        }
        Some(found)
    }

    fn is_root(&self, place: Place<'_>) -> bool {
        std::ptr::eq(self.files[place.file].document.root(), place.element)
    }

    // Spec: INH-02, INH-15, INH-26, PATH-12, SUBST-03, D-42
    fn look_up(&mut self, place: Place<'a>, parent: &'a Attribute) -> Option<Place<'a>> {
        let id = parent.value.value.as_str();
        let kind = place.element.name.value.as_str();
        if symbols::has_symbols(self.dialect, id) {
            self.sink.error(codes::LITERAL_ONLY, &parent.value.span, |d| {
                d.message("`parent` cannot contain `${..}`")
                    .label("read before substitution")
            });
            return None;
        }
        if id.is_empty() {
            values::empty_value(place.element, "parent", &parent.value.span, self.sink);
            return None;
        }
        let mut other_kind = None;
        if !self.is_root(place) {
            for file in self.jobs_above(place.file) {
                if let Some(element) = self.files[file].nested.get(&(kind, id)).copied() {
                    return Some(Place { file, element });
                }
                let kinds = self.dialect.rules().inheritable.iter();
                let others = kinds.filter_map(|kind| self.files[file].nested.get(&(*kind, id)));
                other_kind = other_kind.or(others.copied().next());
            }
        }
        let found: &[usize] = self.by_id.get(id).map_or(&[], Vec::as_slice);
        let roots = found.iter().map(|file| (*file, self.files[*file].document));
        match roots.collect::<Vec<_>>().as_slice() {
            [(file, document)] if document.root().name.value == kind => {
                return Some(Place {
                    file: *file,
                    element: document.root(),
                });
            }
            [(_, document)] => other_kind = Some(document.root()),
            [] => {}
            several => {
                self.sink.error(codes::AMBIGUOUS_PARENT, &parent.value.span, |d| {
                    let d = d
                        .message(format!("several documents have the id {}", quoted(id)))
                        .label("ambiguous parent");
                    several.iter().fold(d, |d, (_, document)| {
                        d.related(document.id().span.clone(), "defined here")
                    })
                });
                return None;
            }
        }
        self.report_unknown(place, parent, other_kind);
        None
    }

    /// Returns the document and, for a job, the jobs it inherits from: their elements belong to it too.
    fn jobs_above(&self, file: usize) -> Vec<usize> {
        let mut jobs = vec![file];
        let mut at = file;
        while self.files[at].document.root_kind() == RootKind::Job {
            let parent = self.files[at].document.root().attribute("parent");
            match parent.and_then(|parent| self.by_id.get(&parent.value.value)) {
                Some(found) if found.len() == 1 && !jobs.contains(&found[0]) => at = found[0],
                _ => break,
            }
            jobs.push(at);
        }
        jobs
    }

    fn report_unknown(&mut self, place: Place<'a>, parent: &Attribute, other_kind: Option<&Element>) {
        let kind = place.element.name.value.as_str();
        let id = parent.value.value.as_str();
        if let Some(other) = other_kind {
            self.sink.error(codes::PARENT_KIND, &parent.value.span, |d| {
                d.message(format!(
                    "{} is a {}, but a {kind} can inherit only from a {kind}",
                    quoted(id),
                    other.name.value
                ))
                .label(format!("expected the id of a {kind}"))
                .related(other.tag.clone(), "the element is here")
            });
            return;
        }
        let (files, library) = (&self.files, self.library);
        self.sink.error(codes::UNKNOWN_PARENT, &parent.value.span, |d| {
            let nested = files[place.file].nested.keys();
            let mut known: Vec<String> = nested
                .filter(|(other, _)| *other == kind)
                .map(|(_, id)| (*id).to_owned())
                .collect();
            known.sort();
            known.extend(RootKind::from_name(kind).map_or(Vec::new(), |kind| library.ids(kind)));
            let of = if kind == "job" { "" } else { "of this job or " };
            let d = d
                .message(format!("`parent` refers to an unknown {kind} {}", quoted(id)))
                .label(format!("no {kind} {of}of the job path has this id"))
                .suggestion(suggest::nearest(id, known.iter().map(String::as_str)));
            let mut broken = library.broken(id);
            broken.truncate(MAX_BROKEN);
            if broken.is_empty() {
                return d;
            }
            let names = broken.iter().map(|place| quoted(place.source().name()));
            let names = names.collect::<Vec<_>>().join(", ");
            let help = format!("a file that may define it cannot be read: {names}; fix that file first");
            let d = broken.into_iter().fold(d, |d, place| {
                d.related(place, "this file cannot be read and may define it")
            });
            d.help(help)
        });
    }

    // Spec: INH-14
    fn report_cycle(&mut self, cycle: &[Place<'a>], closing: &Attribute) {
        let id = |place: &Place<'a>| {
            let id = place.element.attribute("id");
            quoted(id.map_or("", |id| id.value.value.as_str()))
        };
        let path: Vec<String> = cycle.iter().chain(cycle.first()).map(id).collect();
        self.sink
            .error(codes::INHERITANCE_CYCLE, &closing.value.span, |d| {
                let d = d
                    .message(format!("`parent` is circular: {}", path.join(" -> ")))
                    .label("an element cannot inherit from itself");
                let before = cycle.iter().rev().skip(1).rev();
                let others = before.filter_map(|place| place.element.attribute("parent"));
                others.fold(d, |d, parent| d.related(parent.value.span.clone(), INHERITED))
            });
    }

    fn report_depth(&mut self, span: &Span) {
        let limit = self.limits.max_parents();
        self.sink.error(codes::INHERITANCE_LIMIT, span, |d| {
            d.message(format!("inheritance spans more than {limit} generations"))
                .label("the limit is exceeded here")
        });
    }

    /// Reports mistakes of another document that matter once it is used as a parent.
    // Spec: INH-17
    fn check_document(&mut self, place: Place<'a>, effective: &Element) {
        let document = self.files[place.file].document;
        if self.adopted.insert(place.file) {
            self.sink.extend(document.warnings());
            self.sink.adopt(document.errors());
        }
        let complete = !self.is_root(place)
            || document.root_kind() == RootKind::Job
            || effective.attribute("parent").is_some();
        // If `abstract` depends on a symbol, the parent may be abstract.
        let is_abstract = |attribute: &Attribute| values::boolean(&attribute.value) != Some(false);
        if !complete && !effective.attribute("abstract").is_some_and(is_abstract) {
            schema::check_complete(self.dialect, effective, self.sink);
        }
    }

    /// Combines the children of both, the parent's first, and the attributes; for child elements, attributes that
    /// only the parent has are inherited too.
    // Spec: INH-03, INH-04, INH-05, INH-09, INH-12, INH-22
    fn combine(&mut self, parent: &Element, child: Element, link: &Span) -> Element {
        let partners = partners(&parent.children, &child.children);
        let chosen = |name: &str| EXCLUSIVE.contains(&name);
        let has_own_body = child.children.iter().any(|own| chosen(&own.name));
        let mut own: Vec<Option<Element>> = child.children.into_iter().map(Some).collect();
        let mut children = Vec::with_capacity(parent.children.len() + own.len());
        for (inherited, partner) in parent.children.iter().zip(partners) {
            match partner.and_then(|index| own[index].take()) {
                Some(own) if is_entry(inherited) => children.push(own),
                Some(own) => children.push(self.combine_nested(inherited, own, link)),
                None if has_own_body && chosen(&inherited.name) => {}
                None => children.extend(self.copy(inherited, link)),
            }
        }
        children.extend(own.into_iter().flatten());
        Element { children, ..child }
    }

    // Spec: INH-07, INH-08, INH-11, D-41
    fn combine_nested(&mut self, parent: &Element, mut child: Element, link: &Span) -> Element {
        if let Some(merge) = child.attribute("merge") {
            if symbols::has_symbols(self.dialect, &merge.value) {
                self.sink.error(codes::LITERAL_ONLY, &merge.value.span, |d| {
                    d.message("`merge` of a list that inherits cannot contain `${..}`")
                        .label("read before substitution")
                });
            }
            if values::boolean(&merge.value) == Some(false) {
                return child;
            }
        }
        for attribute in &parent.attributes {
            let is_new = attribute.name.value != "merge" && child.attribute(&attribute.name).is_none();
            if is_new && self.spend(0, bytes_of(attribute), link) {
                child.attributes.push(attribute.clone());
            }
        }
        self.combine(parent, child, link)
    }

    /// Copies an element of the parent; `None` once the limit is exceeded.
    fn copy(&mut self, element: &Element, link: &Span) -> Option<Element> {
        let (mut count, mut bytes) = (0, 0);
        element.walk(&mut |element| {
            count += 1;
            bytes += element.attributes.iter().map(bytes_of).sum::<usize>();
        });
        self.spend(count, bytes, link).then(|| element.clone())
    }

    /// Accounts for inherited elements and bytes; returns `false` once a limit is exceeded. A long value may be
    /// inherited by every element.
    fn spend(&mut self, elements: usize, bytes: usize, link: &Span) -> bool {
        self.copied += elements;
        self.copied_bytes += bytes;
        let limits = self.limits;
        let (limit, what) = if self.copied > limits.inherited_elements {
            (limits.inherited_elements, "elements")
        } else if self.copied_bytes > limits.inherited_bytes {
            (limits.inherited_bytes, "bytes of values")
        } else {
            return true;
        };
        if !self.full {
            self.full = true;
            self.sink.error(codes::INHERITANCE_LIMIT, link, |d| {
                d.message(format!("the job inherits more than {limit} {what}"))
                    .label("the limit is exceeded here")
            });
        }
        false
    }
}

fn bytes_of(attribute: &Attribute) -> usize {
    attribute.value.value.len()
}

/// Returns, for each element of a parent, the index of the child's element that is the same entry. The second of two
/// equal entries corresponds to the second.
fn partners(parent: &[Element], child: &[Element]) -> Vec<Option<usize>> {
    let mut waiting: HashMap<Key<'_>, VecDeque<usize>> = HashMap::new();
    for (index, element) in child.iter().enumerate() {
        waiting.entry(key(element)).or_default().push_back(index);
    }
    let mut partner = |element| waiting.get_mut(&key(element)).and_then(VecDeque::pop_front);
    parent.iter().map(&mut partner).collect()
}

/// Moves bare entries into the list that they belong to, in the order of the text.
// Spec: D-52, D-84
fn with_lists(mut element: Element) -> Element {
    for (owner, entry, list) in BARE {
        let is_bare = |child: &Element| child.name.value == *entry;
        if element.name.value != *owner || !element.children.iter().any(is_bare) {
            continue;
        }
        let (parts, others): (Vec<_>, Vec<_>) = element
            .children
            .into_iter()
            .partition(|child| is_bare(child) || child.name.value == *list);
        let written = parts.iter().find(|part| !is_bare(part));
        let mut whole = Element::at(list, written.unwrap_or(&parts[0]));
        whole.attributes = written.map_or(Vec::new(), |list| list.attributes.clone());
        for part in parts {
            if is_bare(&part) {
                whole.children.push(part);
            } else {
                whole.children.extend(part.children);
            }
        }
        element.children = others;
        element.children.push(whole);
    }
    element
}
