//! Writes trees and models as XML text.

mod draft;
mod jakarta;

use crate::model::{ExceptionClasses, Job, Target, Transition, TransitionKind};
use crate::span::Spanned;
use crate::tree::Element;
use crate::xml;

/// The lists that are written before the other children of an element.
const LEADING: [&str; 2] = ["properties", "listeners"];

/// Attributes that only control inheritance.
const CONSUMED: [&str; 2] = ["parent", "merge"];

/// An element to be written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    name: String,
    attributes: Vec<(String, String)>,
    children: Vec<Node>,
}

impl Node {
    pub(crate) fn new(name: impl Into<String>) -> Node {
        Node {
            name: name.into(),
            attributes: Vec::new(),
            children: Vec::new(),
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: impl ToString) {
        self.attributes.retain(|(other, _)| other != name);
        self.attributes.push((name.to_owned(), value.to_string()));
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn rename(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Node {
        self.set(name, value);
        self
    }

    pub(crate) fn with_some(self, name: &str, value: Option<impl ToString>) -> Node {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    pub(crate) fn push(&mut self, child: Node) {
        self.children.push(child);
    }

    pub(crate) fn push_property(&mut self, name: &str, value: &str, target: Option<Target>) {
        self.child("properties")
            .push(draft::property(name, value, target));
    }

    pub(crate) fn and(mut self, children: impl IntoIterator<Item = Node>) -> Node {
        self.children.extend(children);
        self
    }

    /// Returns the child of that name, and adds it if there is none.
    pub(crate) fn child(&mut self, name: &str) -> &mut Node {
        let found = self.children.iter().position(|child| child.name == name);
        let index = found.unwrap_or_else(|| {
            self.children.push(Node::new(name));
            self.children.len() - 1
        });
        &mut self.children[index]
    }

    /// Returns the document as XML. Characters that XML cannot hold are written as they are.
    pub(crate) fn to_xml(&self) -> String {
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        self.write(&mut out, 0);
        out
    }

    /// Returns the document as XML. Characters that XML cannot hold are replaced.
    pub(crate) fn to_well_formed_xml(&self) -> String {
        well_formed(self.to_xml())
    }

    fn write(&self, out: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        out.push_str(&indent);
        out.push('<');
        out.push_str(&self.name);
        for (name, value) in &self.attributes {
            out.push(' ');
            out.push_str(name);
            out.push_str("=\"");
            xml::push_escaped(out, value);
            out.push('"');
        }
        if self.children.is_empty() {
            out.push_str("/>\n");
            return;
        }
        out.push_str(">\n");
        // Lists come first; execution elements and list entries keep their order.
        let rank = |child: &&Node| LEADING.iter().position(|name| child.name == *name);
        let mut children: Vec<&Node> = self.children.iter().collect();
        children.sort_by_key(|child| rank(child).unwrap_or(LEADING.len()));
        for child in children {
            child.write(out, depth + 1);
        }
        out.push_str(&indent);
        out.push_str("</");
        out.push_str(&self.name);
        out.push_str(">\n");
    }
}

/// Returns an effective tree as XML.
// Spec: JSL-DOC-19, INH-06
pub(crate) fn effective(root: &Element) -> String {
    let mut root_node = node(root);
    // It decides the dialect.
    if let Some(namespace) = &root.namespace {
        let declaration = ("xmlns".to_owned(), namespace.value.clone());
        root_node.attributes.push(declaration);
    }
    root_node.to_well_formed_xml()
}

fn node(element: &Element) -> Node {
    let attributes = element.attributes.iter();
    let kept = attributes.filter(|attribute| !CONSUMED.contains(&attribute.name.value.as_str()));
    Node {
        name: element.name.value.clone(),
        attributes: kept
            .map(|attribute| (attribute.name.value.clone(), attribute.value.value.clone()))
            .collect(),
        children: element.children.iter().map(node).collect(),
    }
}

/// Replaces characters that XML cannot hold.
fn well_formed(text: String) -> String {
    if text.chars().all(xml::is_char) {
        return text;
    }
    let legal = |c| {
        Some(c)
            .filter(|c| xml::is_char(*c))
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    };
    text.chars().map(legal).collect()
}

impl Job {
    /// Returns the job as self-contained XML of its dialect: every value is written where it takes effect, without defaults and
    /// abstract elements. Read without parameters and system properties it is the same job, with two exceptions that
    /// XML cannot express: the start of a symbol in a value, and values [deferred](crate::model::Partition::deferred) to partitions.
    // Spec: JSL-DOC-19
    pub fn to_xml(&self) -> String {
        let job = match self.dialect.rules().parts_are_elements {
            true => jakarta::job(self),
            false => draft::job(self),
        };
        job.to_well_formed_xml()
    }
}

fn classes(name: &str, classes: &ExceptionClasses) -> Option<Node> {
    classes.span.as_ref()?;
    let entry = |name: &'static str| move |class: &Spanned<String>| Node::new(name).with("class", class);
    let node = Node::new(name)
        .and(classes.include.iter().map(entry("include")))
        .and(classes.exclude.iter().map(entry("exclude")));
    Some(node)
}

fn transition(transition: &Transition) -> Node {
    let (name, exit_status, restart) = match &transition.kind {
        TransitionKind::Next { to } => return Node::new("next").with("on", &transition.on).with("to", to),
        TransitionKind::Fail { exit_status } => ("fail", exit_status, &None),
        TransitionKind::End { exit_status } => ("end", exit_status, &None),
        TransitionKind::Stop { exit_status, restart } => ("stop", exit_status, restart),
    };
    Node::new(name)
        .with("on", &transition.on)
        .with_some("exit-status", exit_status.as_ref())
        .with_some("restart", restart.as_ref())
}

/// Returns a node with these children, unless there are none.
fn node_of(name: &str, children: Vec<Node>) -> Option<Node> {
    (!children.is_empty()).then(|| Node::new(name).and(children))
}
