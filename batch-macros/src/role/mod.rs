//! The roles: the parts of an artifact attribute, and the table of all of them. Parsing, checking, expansion and diagnostics
//! read the table.

mod export;
mod table;

pub(crate) use export::{for_each_role, index, methods};
pub(crate) use table::{ROLES, role_table};

/// An artifact attribute.
pub(crate) struct Role {
    /// Name of the attribute, and of the constructor of its registration.
    pub(crate) attribute: &'static str,
    /// Name of the role trait.
    pub(crate) trait_name: &'static str,
    /// The purpose of the artifact, for the index of the documentation.
    pub(crate) summary: &'static str,
    /// Its method attributes.
    pub(crate) methods: &'static [Method],
    /// True if the attribute takes the argument `buffered = ...`.
    pub(crate) buffered: bool,
    /// True if the attribute takes the argument `pipelined = ...`.
    pub(crate) pipelined: bool,
    /// True if the attribute takes the argument `rewindable = ...`.
    pub(crate) rewindable: bool,
    /// The associated function of the trait that the loader inspects a type with, and its result.
    pub(crate) fact: Option<(&'static str, &'static str)>,
    /// For a listener, the `listeners` elements that accept it. `None` for every other artifact.
    pub(crate) places: Option<&'static [Place]>,
}

/// A `listeners` element of Job XML.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Of a job.
    Job,
    /// Of a chunk step.
    Chunk,
    /// Of a batchlet step.
    Batchlet,
}

/// A method attribute of a role.
pub(crate) struct Method {
    /// Name of the attribute, and of the trait's method where the shape gives it no other.
    pub(crate) attribute: &'static str,
    /// The documentation of the attribute; empty if an earlier role has the same one.
    pub(crate) doc: &'static str,
    /// Another name of the attribute, which the draft uses too.
    pub(crate) alias: Option<&'static str>,
    /// Parameters and result.
    pub(crate) shape: Shape,
    /// The accepted receivers.
    pub(crate) receiver: Receiver,
    /// True if the role is incomplete without it.
    pub(crate) required: bool,
    /// The whole signature, for diagnostics.
    pub(crate) signature: &'static str,
    /// The other signature that is accepted.
    pub(crate) alternative: Option<&'static str>,
    /// Method names that suggest a forgotten attribute, besides the attribute's own.
    pub(crate) usual_names: &'static [&'static str],
}

/// Parameters and result of a method, and with them what is generated for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `(checkpoint: Option<C>)` or no parameter, no result.
    Open,
    /// No parameter, the checkpoint as the result.
    Checkpoint,
    /// The parameters of an event, no result.
    Notice(&'static [ParamKind]),
    /// No parameter, no result; the loader checks whether there is such a method.
    Compensation,
    /// No parameter, the next item as the result.
    Read,
    /// No parameter, a number of items or none as the result.
    Count,
    /// No parameter, the origin of an item or none as the result.
    Origin,
    /// `(item: &In)` or `(item: In)`, the processed item as the result.
    Process,
    /// `(items: &[Out])` or `(items: &[Out], tx: &mut ChunkTransaction)`, no result.
    Write,
    /// No parameter, the destination of the items as the result.
    Destination,
    /// No parameter, an exit status or nothing as the result.
    Text,
    /// No parameter or `(steps: &[StepExecution])`, an exit status as the result.
    Decide,
    /// No parameter, a `bool` as the result.
    Flag,
    /// `(timeout: i32)`, seconds as the result.
    Timeout,
    /// `(failed: &FailedItem<'_>)`, a `bool` as the result.
    Judge,
    /// No parameter, a partition plan as the result.
    Plan,
    /// No parameter, a payload or none as the result.
    Collect,
    /// `(data: P)`, no result.
    Analyze,
    /// `(exit_status: &str)` or `(batch_status: BatchStatus, exit_status: &str)`, no result.
    AnalyzeStatus,
}

/// A parameter of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParamKind {
    /// `&BatchError`
    Error,
    /// `&In`, or `&dyn Any` for items of every type.
    Item(Side),
    /// `Option<&Out>`, or `Option<&dyn Any>`.
    Result,
    /// `&[Out]`, or `ChunkItems<'_>`.
    List,
    /// `&Out` or `&dyn Any`, for a call with each item; `&[Out]` or `ChunkItems<'_>`, for one with all.
    Each,
    /// `&str`
    Status,
    /// `BatchStatus`
    BatchStatus,
    /// `i32`
    Seconds,
    /// `&[StepExecution]`
    Steps,
    /// `&FailedItem<'_>`
    Failed,
}

/// The side of the processor that items are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Items of the reader.
    Input,
    /// Results of the processor.
    Output,
}

/// The receivers that a method may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// `&mut self` or `&self`.
    Any,
    /// `&self` only, because two threads call the artifact at the same time.
    Shared,
}

impl Role {
    /// Returns the role in words.
    pub(crate) fn title(&self) -> String {
        self.attribute.replace('_', " ")
    }

    /// Returns the method attribute of that name.
    pub(crate) fn method(&self, attribute: &str) -> Option<&'static Method> {
        self.methods
            .iter()
            .find(|method| method.attribute == attribute || method.alias == Some(attribute))
    }

    /// Returns whether its methods name item types, which the loader compares.
    pub(crate) fn names_items(&self) -> bool {
        self.fact.is_some_and(|(function, _)| function == "items")
    }
}

impl Method {
    /// Returns the help of an error in the signature.
    pub(crate) fn expected(&self) -> String {
        match self.alternative {
            None => format!("expected `{}`", self.signature),
            Some(alternative) => format!("expected `{}`\n      or `{alternative}`", self.signature),
        }
    }
}

/// Returns the role with that attribute.
pub(crate) fn role(attribute: &str) -> Option<&'static Role> {
    ROLES.iter().find(|role| role.attribute == attribute)
}

/// Returns the roles that have a method attribute of that name.
pub(crate) fn roles_with(attribute: &str) -> Vec<&'static Role> {
    ROLES
        .iter()
        .filter(|role| role.method(attribute).is_some())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attributes that the draft does not have.
    const EXTENSIONS: [&str; 8] = [
        "get_item_count",
        "get_item_origin",
        "destination",
        "finish",
        "chunk_listener",
        "skip_policy",
        "on_retry_read_exception",
        "on_retry_process_exception",
    ];

    /// The draft has 18 artifact annotations and 48 method annotations in them.
    // Spec: READ-01, READ-02, PROC-01, WRITE-01, CKALG-01, BLET-01, LISTEN-JOB-01, LISTEN-STEP-01, LISTEN-CKPT-01, LISTEN-READ-01,
    // LISTEN-PROC-01, LISTEN-WRITE-01, LISTEN-SKIP-01, LISTEN-RETRY-01, PALG-02, PALG-05, PALG-07, PALG-10
    #[test]
    fn the_table_holds_the_annotations_of_the_draft() {
        let is_of_draft = |attribute: &str| !EXTENSIONS.contains(&attribute);
        let of_draft = ROLES.iter().filter(|role| is_of_draft(role.attribute));
        let methods = of_draft.clone().flat_map(|role| role.methods);
        assert_eq!(of_draft.count(), 18);
        assert_eq!(methods.filter(|method| is_of_draft(method.attribute)).count(), 48);
    }

    #[test]
    fn every_row_is_consistent() {
        for role in ROLES {
            for method in role.methods {
                let attribute = method.attribute;
                assert_eq!(
                    role.method(attribute).map(|found| found.shape),
                    Some(method.shape),
                    "{attribute}"
                );
                let shared = method.receiver == Receiver::Shared;
                assert_eq!(method.signature.contains("(&self"), shared, "{attribute}");
                for signature in [Some(method.signature), method.alternative].into_iter().flatten() {
                    assert!(syn::parse_str::<syn::Signature>(signature).is_ok(), "{signature}");
                }
            }
        }
    }
}
