//! The table of roles: every artifact attribute, its method attributes and their signatures. Parsing, checking,
//! expansion and diagnostics all read it; a new role is a new row.

mod listeners;
mod parallel;
mod work;

pub(crate) use listeners::{
    CHECKPOINT_LISTENER, ITEM_PROCESS_LISTENER, ITEM_READ_LISTENER, ITEM_WRITE_LISTENER, JOB_LISTENER,
    RETRY_LISTENER, SKIP_LISTENER, STEP_LISTENER,
};
pub(crate) use parallel::{LOGICAL_TX, PARTITION_ALGORITHM, SUB_JOB_ANALYZER, SUB_JOB_COLLECTOR};
pub(crate) use work::{BATCHLET, CHECKPOINT_ALGORITHM, DECIDER, ITEM_PROCESSOR, ITEM_READER, ITEM_WRITER};

/// An artifact attribute.
pub(crate) struct Role {
    /// Name of the attribute, and of the constructor of its registration.
    pub(crate) attribute: &'static str,
    /// Name of the role trait.
    pub(crate) trait_name: &'static str,
    /// Its method attributes.
    pub(crate) methods: &'static [Method],
    /// Whether `buffered = ...` is an argument.
    pub(crate) buffered: bool,
    /// Whether its methods take items, whose types the loader asks for: a listener of items.
    pub(crate) hears_items: bool,
}

/// A method attribute of a role.
pub(crate) struct Method {
    /// Name of the attribute, and of the trait's method where the shape gives it no other.
    pub(crate) attribute: &'static str,
    /// Another name of the attribute, which the draft uses too.
    pub(crate) alias: Option<&'static str>,
    /// Section of the draft; empty for an extension.
    pub(crate) section: &'static str,
    /// Parameters and result.
    pub(crate) shape: Shape,
    /// Which receivers are accepted.
    pub(crate) receiver: Receiver,
    /// Whether the role is incomplete without it.
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
    /// `(checkpoint: Option<C>)`, no result.
    Open,
    /// No parameter, the checkpoint as the result.
    Checkpoint,
    /// What the method is told of, no result.
    Notice(&'static [Told]),
    /// No parameter, no result; that there is such a method is asked for.
    Compensation,
    /// No parameter, the next item as the result.
    Read,
    /// No parameter, a number of items or none as the result.
    Count,
    /// `(item: &In)` or `(item: In)`, the processed item as the result.
    Process,
    /// `(items: &[Out])` or `(items: &[Out], tx: &mut ChunkTransaction)`, no result.
    Write,
    /// No parameter, an exit status as the result.
    Text,
    /// No parameter, a yes or no as the result.
    Flag,
    /// `(timeout: i32)`, seconds as the result.
    Timeout,
    /// No parameter, a partition plan as the result.
    Plan,
    /// No parameter, a payload or none as the result.
    Collect,
    /// `(data: P)`, no result.
    Analyze,
}

/// A parameter of a method that is told of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// `&BatchError`
    Error,
    /// `&In`, or `&dyn Any` for items of every type.
    Item(Side),
    /// `Option<&Out>`, or `Option<&dyn Any>`.
    Result,
    /// `&[Out]`, or `Items<'_>`.
    List,
    /// `&str`
    Status,
    /// `i32`
    Seconds,
}

/// On which side of the processor items are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// What the reader gives.
    Input,
    /// What the processor gives.
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
    /// The role in words.
    pub(crate) fn title(&self) -> String {
        self.attribute.replace('_', " ")
    }

    /// The method attribute of that name.
    pub(crate) fn method(&self, attribute: &str) -> Option<&'static Method> {
        self.methods
            .iter()
            .find(|method| method.attribute == attribute || method.alias == Some(attribute))
    }
}

/// The roles that have a method attribute of that name.
pub(crate) fn roles_with(attribute: &str) -> Vec<&'static Role> {
    ROLES
        .iter()
        .copied()
        .filter(|role| role.method(attribute).is_some())
        .collect()
}

/// Every role.
pub(crate) static ROLES: [&Role; 18] = [
    &ITEM_READER,
    &ITEM_PROCESSOR,
    &ITEM_WRITER,
    &CHECKPOINT_ALGORITHM,
    &BATCHLET,
    &JOB_LISTENER,
    &STEP_LISTENER,
    &CHECKPOINT_LISTENER,
    &ITEM_READ_LISTENER,
    &ITEM_PROCESS_LISTENER,
    &ITEM_WRITE_LISTENER,
    &SKIP_LISTENER,
    &RETRY_LISTENER,
    &PARTITION_ALGORITHM,
    &LOGICAL_TX,
    &SUB_JOB_COLLECTOR,
    &SUB_JOB_ANALYZER,
    &DECIDER,
];

/// What a method without parameters, result and peculiarities has; each row adds its names and its section.
const NOTICE: Method = Method {
    attribute: "",
    alias: None,
    section: "",
    shape: Shape::Notice(&[]),
    receiver: Receiver::Any,
    required: false,
    signature: "",
    alternative: None,
    usual_names: &[],
};

/// What most roles have.
const ROLE: Role = Role {
    attribute: "",
    trait_name: "",
    methods: &[],
    buffered: false,
    hears_items: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// The draft has 18 artifact annotations and 48 method annotations in them. The others are extensions.
    ///
    /// Spec: READ-01, READ-02, PROC-01, WRITE-01, CKALG-01, BLET-01, LISTEN-JOB-01, LISTEN-STEP-01, LISTEN-CKPT-01,
    /// LISTEN-READ-01, LISTEN-PROC-01, LISTEN-WRITE-01, LISTEN-SKIP-01, LISTEN-RETRY-01, PALG-02, PALG-05, PALG-07, PALG-10
    #[test]
    fn every_row_is_complete() {
        let all = ROLES.iter().flat_map(|role| role.methods);
        let (extensions, of_draft): (Vec<&Method>, Vec<_>) =
            all.partition(|method| method.section.is_empty());
        assert_eq!(of_draft.len(), 48);
        let extensions: Vec<&str> = extensions.iter().map(|method| method.attribute).collect();
        assert_eq!(extensions, ["get_item_count"]);
        for role in ROLES {
            for method in role.methods {
                assert!(
                    !method.attribute.is_empty(),
                    "a method of `{}` has no name",
                    role.attribute
                );
                assert!(
                    method.section.is_empty() || method.section.starts_with("5."),
                    "section of `{}`",
                    method.attribute
                );
                assert_eq!(
                    role.method(method.attribute).map(|found| found.section),
                    Some(method.section)
                );
                let shared = method.receiver == Receiver::Shared;
                assert_eq!(
                    method.signature.contains("(&self"),
                    shared,
                    "signature of `{}`",
                    method.attribute
                );
            }
        }
    }
}
