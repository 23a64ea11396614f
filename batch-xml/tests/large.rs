//! Large jobs: accepted by default, in time proportional to their size.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use batch_xml::{Document, Library, Limits, RootKind, Source, Values, parse, resolve};

/// A library that counts look-ups.
struct Counting {
    documents: Vec<Arc<Document>>,
    finds: Cell<usize>,
    lists: Cell<usize>,
}

impl Library for Counting {
    fn find(&self, id: &str) -> Vec<Arc<Document>> {
        self.finds.set(self.finds.get() + 1);
        self.documents.find(id)
    }

    fn ids(&self, kind: RootKind) -> Vec<String> {
        self.lists.set(self.lists.get() + 1);
        self.documents.ids(kind)
    }
}

fn read(text: &str) -> Arc<Document> {
    Arc::new(
        parse(&Source::new("t.xml", text), &Limits::default()).unwrap_or_else(|errors| panic!("{errors}")),
    )
}

fn steps(count: usize, parent: &str) -> String {
    let step = |n: usize| {
        let next = match n + 1 {
            next if next < count => format!(" next='s{next}'"),
            _ => String::new(),
        };
        format!(
            "<step id='s{n}' parent='{parent}'{next}><batchlet ref='B'><properties><property name='file' \
             value='${{dir}}/{n}'/></properties></batchlet></step>\n"
        )
    };
    let steps: String = (0..count).map(step).collect();
    format!("<job id='j' parent='base'>{steps}</job>")
}

fn library() -> Counting {
    let parents = [
        "<job id='base' abstract='true'><properties><property name='dir' value='/data'/></properties>
           <listeners><listener ref='L'/></listeners></job>",
        "<step id='worker' parent='all' abstract='true'><listeners><listener ref='M'/></listeners></step>",
        "<step id='all' abstract='true'><properties><property name='p' value='1'/></properties></step>",
    ];
    Counting {
        documents: parents.into_iter().map(read).collect(),
        finds: Cell::new(0),
        lists: Cell::new(0),
    }
}

/// A job of 10,000 steps with inheritance is within the default limits; each parent is looked up once.
///
/// Spec: INH-01, INH-15
#[test]
fn ten_thousand_steps_with_parents() {
    let library = library();
    let values = Values {
        parameters: &BTreeMap::new(),
        system: &BTreeMap::new(),
    };
    let document = read(&steps(10_000, "worker"));
    let resolved =
        resolve(&document, &library, &values, &Limits::default()).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(resolved.job.elements.len(), 10_000);
    assert!(resolved.warnings.is_empty());
    assert_eq!((library.finds.get(), library.lists.get()), (3, 0));
    let batch_xml::model::ExecutionElement::Step(last) = &resolved.job.elements[9_999] else {
        panic!("a step");
    };
    assert_eq!((last.listeners.len(), last.properties.len()), (1, 1));
}

/// Suggestions are computed only for the diagnostics that are shown.
#[test]
fn ten_thousand_unknown_parents() {
    let library = library();
    let values = Values {
        parameters: &BTreeMap::new(),
        system: &BTreeMap::new(),
    };
    let document = read(&steps(10_000, "wroker"));
    let errors = resolve(&document, &library, &values, &Limits::default()).unwrap_err();
    assert_eq!((errors.iter().count(), errors.omitted()), (100, 9_900));
    assert!(library.lists.get() <= 101, "{}", library.lists.get());
}

/// Cycles are reported in jobs of up to some thousand elements and transitions; in larger jobs, only cycles of an
/// element to itself.
///
/// Spec: SEQ-25, D-76
#[test]
fn many_ways_back() {
    let warnings = |count: usize| {
        let step = |n: usize| {
            format!(
                "<step id='s{n}'><batchlet ref='B'/><next on='BACK' to='s0'/><next on='*' to='s{}'/></step>\n",
                (n + 1).min(count - 1)
            )
        };
        let steps: String = (0..count).map(step).collect();
        let document = read(&format!("<job id='j'>{steps}</job>"));
        let values = Values {
            parameters: &BTreeMap::new(),
            system: &BTreeMap::new(),
        };
        let resolved = resolve(&document, &library(), &values, &Limits::default())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let warnings = resolved.warnings;
        assert!(warnings.iter().all(|one| one.code == "JSL0054"));
        warnings.len()
    };
    assert_eq!(warnings(50), 51);
    assert_eq!(warnings(1_333), 100);
    assert_eq!(warnings(10_000), 2);
}
