//! The job element, and the common parts of job and step.

use super::Lowering;
use super::flow::digits;
use crate::codes;
use crate::diagnostics::quoted;
use crate::model::{ArtifactRef, ElementKind, ExecutionElement, Job, Target};
use crate::outline::{JOB, Node};
use crate::schema;
use crate::span::Spanned;
use crate::substitute::Value;
use crate::tree::Element;
use crate::values;

impl<'a> Lowering<'a> {
    // Spec: JSL-JOB-01, JSL-JOB-06, JSL-JOB-09, DOM-04
    pub(super) fn job(&mut self, root: &'a Element) -> Option<Job> {
        self.scope.enter(root);
        if self.boolean(root, "abstract", false) {
            return self.abstract_job(root);
        }
        let id = self.required(root, "id");
        let lacks_parent = self.lacks_parent(root);
        let restartable = self.boolean(root, "restartable", true);
        let properties = self.scope.own();
        let listeners = self.listeners(root);
        let elements = root
            .children
            .iter()
            .filter_map(|child| self.execution_element(child))
            .collect();
        self.check_first(root);
        if !lacks_parent
            && !self.outline.has_concrete_element
            && !schema::has_unknown_child(self.scope.dialect, root)
        {
            self.error(codes::EMPTY_JOB, &root.name.span, |d| {
                d.message(format!(
                    "job {} has nothing to execute",
                    quoted(id.as_deref().map_or("", |id| id))
                ))
                .label("a step, flow or split that is not abstract is required")
            });
        }
        self.scope.leave();
        Some(Job {
            dialect: self.scope.dialect,
            id: id?,
            restartable,
            properties,
            listeners,
            elements,
            symbols: Default::default(),
            property_names: std::mem::take(&mut self.scope.names),
            source: root.tag.source().clone(),
        })
    }

    fn abstract_job(&mut self, root: &Element) -> Option<Job> {
        let span = root
            .attribute("abstract")
            .map_or(&root.name.span, |attribute| &attribute.name.span);
        self.error(codes::ABSTRACT_JOB, span, |d| {
            d.message("an abstract job cannot be started")
                .label("can only be used as a parent")
        });
        None
    }

    pub(super) fn execution_element(&mut self, element: &'a Element) -> Option<ExecutionElement> {
        match ElementKind::from_name(&element.name)? {
            ElementKind::Step => self.step(element).map(Box::new).map(ExecutionElement::Step),
            ElementKind::Flow => self.flow(element).map(Box::new).map(ExecutionElement::Flow),
            ElementKind::Split => self.split(element).map(Box::new).map(ExecutionElement::Split),
            ElementKind::Decision => self
                .decision(element)
                .map(Box::new)
                .map(ExecutionElement::Decision),
        }
    }

    /// Returns the element as one of its siblings. Attributes that determine the order of execution are the same in
    /// all partitions.
    // Spec: SEQ-02, D-44
    pub(super) fn node(&mut self, element: &Element, kind: ElementKind, is_abstract: bool) -> Option<Node> {
        let is_concrete = !is_abstract && kind != ElementKind::Decision;
        self.outline.has_concrete_element |= is_concrete && self.at == JOB;
        let id = self.fixed(|lowering| lowering.required(element, "id"));
        if let Some(id) = &id {
            self.check_id(id, element);
        }
        // An abstract element is never executed, so no element follows it.
        let next = if is_abstract {
            None
        } else {
            self.fixed(|lowering| lowering.named(element, "next"))
        };
        Some(Node {
            id: id?,
            kind,
            container: self.at,
            is_abstract,
            is_partitioned: element.child("partition").is_some(),
            next,
            targets: Vec::new(),
            restarts_here: false,
        })
    }

    // Spec: JSL-STEP-02, D-75
    fn check_id(&mut self, id: &Spanned<String>, element: &Element) {
        let length = id.chars().count();
        let partition = element.child("partition");
        let numbers = self.prefix + partition.map_or(0, |partition| ":".len() + digits(partition));
        if length > values::MAX_ID_CHARS {
            values::long_id(&id.span, self.scope.sink);
        } else if element.name.value == "step" && numbers + length > values::MAX_ID_CHARS {
            self.error(codes::BAD_ID, &id.span, |d| {
                d.message(format!(
                    "the id with a partition number is longer than {} characters",
                    values::MAX_ID_CHARS
                ))
                .label("the job repository cannot store it")
            });
        }
        if let Some(c) = id.chars().find(|c| c.is_control()) {
            self.error(codes::BAD_ID, &id.span, |d| {
                d.message("the id contains a control character")
                    .label(format!("{c:?} is not allowed"))
            });
        }
    }

    /// Returns whether the element has an unusable parent. Its inherited parts are unknown then, so none of them is
    /// reported as missing.
    pub(super) fn lacks_parent(&self, element: &Element) -> bool {
        element.attribute("parent").is_some()
    }

    /// Returns the listeners of a job or step, in a list or without one, in the order of the text.
    // Spec: JSL-JOBLIS-02, JSL-JOBLIS-03, JSL-JOBLIS-08, JSL-STEPLIS-01, JSL-STEPLIS-05, D-52
    pub(super) fn listeners(&mut self, element: &'a Element) -> Vec<ArtifactRef> {
        let mut listeners = Vec::new();
        for child in &element.children {
            match child.name.value.as_str() {
                "listener" => listeners.extend(self.artifact(child)),
                "listeners" => {
                    self.boolean(child, "merge", true);
                    listeners.extend(
                        child
                            .children("listener")
                            .filter_map(|listener| self.artifact(listener)),
                    );
                }
                _ => {}
            }
        }
        listeners
    }

    /// Returns the artifact of an element with a `ref` and optional properties.
    // Spec: JSL-JOBLIS-04, JSL-JOBLIS-09, JSL-STEPLIS-04, JSL-STEPLIS-06, CHUNK-CKPT-02, CHUNK-CKPT-05
    pub(super) fn artifact(&mut self, element: &'a Element) -> Option<ArtifactRef> {
        self.scope.enter(element);
        let artifact = self.artifact_named(element, "ref", None);
        self.scope.leave();
        artifact
    }

    /// Returns the artifact named by an attribute, with the properties that reach it here.
    pub(super) fn artifact_named(
        &mut self,
        element: &Element,
        attribute: &str,
        target: Option<Target>,
    ) -> Option<ArtifactRef> {
        let name = self.required_value(element, attribute);
        let properties = self.scope.reaching(target);
        let Value { text, deferred } = name?;
        Some(ArtifactRef {
            name: text,
            properties,
            deferred,
        })
    }
}
