//! The table of roles: every artifact attribute, its method attributes and their signatures. Parsing, checking,
//! expansion and diagnostics all read it; a new role is a new row.

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
}

/// A method attribute of a role.
pub(crate) struct Method {
    /// Name of the attribute.
    pub(crate) attribute: &'static str,
    /// Section of the draft.
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
    /// No parameter, no result.
    Unit,
    /// No parameter, the next item as the result.
    Read,
    /// `(item: &In)` or `(item: In)`, the processed item as the result.
    Process,
    /// `(items: &[Out])` or `(items: &[Out], tx: &mut ChunkTransaction)`, no result.
    Write,
    /// No parameter, an exit status as the result.
    Text,
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
        self.methods.iter().find(|method| method.attribute == attribute)
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
pub(crate) static ROLES: [&Role; 6] = [
    &ITEM_READER,
    &ITEM_PROCESSOR,
    &ITEM_WRITER,
    &BATCHLET,
    &STEP_LISTENER,
    &JOB_LISTENER,
];

pub(crate) static ITEM_READER: Role = Role {
    attribute: "item_reader",
    trait_name: "ItemReader",
    methods: &[
        Method {
            section: "5.1.1.1.1",
            ..OPEN
        },
        Method {
            section: "5.1.1.1.2",
            ..CLOSE
        },
        Method {
            attribute: "read_item",
            section: "5.1.1.1.3",
            shape: Shape::Read,
            receiver: Receiver::Any,
            required: true,
            signature: "fn read(&mut self) -> Result<Option<Item>, E>",
            alternative: None,
            usual_names: &["read", "next", "next_item"],
        },
        Method {
            section: "5.1.1.1.4",
            ..GET_CHECKPOINT_INFO
        },
    ],
    buffered: false,
};

pub(crate) static ITEM_PROCESSOR: Role = Role {
    attribute: "item_processor",
    trait_name: "ItemProcessor",
    methods: &[Method {
        attribute: "process_item",
        section: "5.1.1.2.1",
        shape: Shape::Process,
        receiver: Receiver::Any,
        required: true,
        signature: "fn process(&mut self, item: &In) -> Result<Option<Out>, E>",
        alternative: Some("fn process(&mut self, item: In) -> Result<Option<Out>, E>"),
        usual_names: &["process", "transform"],
    }],
    buffered: false,
};

pub(crate) static ITEM_WRITER: Role = Role {
    attribute: "item_writer",
    trait_name: "ItemWriter",
    methods: &[
        Method {
            section: "5.1.1.3.1",
            ..OPEN
        },
        Method {
            section: "5.1.1.3.2",
            ..CLOSE
        },
        Method {
            attribute: "write_items",
            section: "5.1.1.3.3",
            shape: Shape::Write,
            receiver: Receiver::Any,
            required: true,
            signature: "fn write(&mut self, items: &[Out]) -> Result<(), E>",
            alternative: Some(
                "fn write(&mut self, items: &[Out], tx: &mut ChunkTransaction) -> Result<(), E>",
            ),
            usual_names: &["write"],
        },
        Method {
            section: "5.1.1.3.4",
            ..GET_CHECKPOINT_INFO
        },
    ],
    buffered: true,
};

pub(crate) static BATCHLET: Role = Role {
    attribute: "batchlet",
    trait_name: "Batchlet",
    methods: &[
        Method {
            attribute: "begin_step",
            section: "5.1.2.1",
            receiver: Receiver::Shared,
            signature: "fn begin_step(&self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "process",
            section: "5.1.2.2",
            shape: Shape::Text,
            receiver: Receiver::Shared,
            required: true,
            signature: "fn process(&self) -> Result<String, E>",
            alternative: None,
            usual_names: &["run", "execute"],
        },
        Method {
            attribute: "cancel",
            section: "5.1.2.3",
            shape: Shape::Unit,
            receiver: Receiver::Shared,
            required: true,
            signature: "fn cancel(&self) -> Result<(), E>",
            alternative: None,
            usual_names: &["stop"],
        },
        Method {
            attribute: "end_step",
            section: "5.1.2.4",
            receiver: Receiver::Shared,
            signature: "fn end_step(&self) -> Result<(), E>",
            ..NOTICE
        },
    ],
    buffered: false,
};

pub(crate) static STEP_LISTENER: Role = Role {
    attribute: "step_listener",
    trait_name: "StepListener",
    methods: &[
        Method {
            section: "5.2.2.1",
            ..BEFORE_STEP
        },
        Method {
            section: "5.2.2.2",
            ..AFTER_STEP
        },
    ],
    buffered: false,
};

pub(crate) static JOB_LISTENER: Role = Role {
    attribute: "job_listener",
    trait_name: "JobListener",
    methods: &[
        Method {
            attribute: "before_job",
            section: "5.2.1.1",
            signature: "fn before_job(&mut self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "after_job",
            section: "5.2.1.2",
            signature: "fn after_job(&mut self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            section: "5.2.1.3",
            ..BEFORE_STEP
        },
        Method {
            section: "5.2.1.4",
            ..AFTER_STEP
        },
    ],
    buffered: false,
};

// What several rows share; each row adds its own section.

const OPEN: Method = Method {
    attribute: "open",
    section: "",
    shape: Shape::Open,
    receiver: Receiver::Any,
    required: true,
    signature: "fn open(&mut self, checkpoint: Option<C>) -> Result<(), E>",
    alternative: None,
    usual_names: &[],
};

const GET_CHECKPOINT_INFO: Method = Method {
    attribute: "get_checkpoint_info",
    section: "",
    shape: Shape::Checkpoint,
    receiver: Receiver::Any,
    required: true,
    signature: "fn checkpoint(&mut self) -> Result<C, E>",
    alternative: None,
    usual_names: &["checkpoint", "checkpoint_info"],
};

const NOTICE: Method = Method {
    attribute: "",
    section: "",
    shape: Shape::Unit,
    receiver: Receiver::Any,
    required: false,
    signature: "",
    alternative: None,
    usual_names: &[],
};

const CLOSE: Method = Method {
    attribute: "close",
    signature: "fn close(&mut self) -> Result<(), E>",
    ..NOTICE
};

const BEFORE_STEP: Method = Method {
    attribute: "before_step",
    signature: "fn before_step(&mut self) -> Result<(), E>",
    ..NOTICE
};

const AFTER_STEP: Method = Method {
    attribute: "after_step",
    signature: "fn after_step(&mut self) -> Result<(), E>",
    ..NOTICE
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec: READ-01, READ-02, PROC-01, WRITE-01, BLET-01, LISTEN-JOB-01, LISTEN-STEP-01
    #[test]
    fn every_row_is_complete() {
        for role in ROLES {
            for method in role.methods {
                assert!(
                    !method.attribute.is_empty(),
                    "a method of `{}` has no name",
                    role.attribute
                );
                assert!(
                    method.section.starts_with("5."),
                    "section of `{}`",
                    method.attribute
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
