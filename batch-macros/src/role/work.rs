//! The roles that do a step's work or decide: reader, processor, writer, checkpoint algorithm, batchlet, decider.

use super::{Method, NOTICE, ROLE, Receiver, Role, Shape};

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
            required: true,
            signature: "fn read(&mut self) -> Result<Option<Item>, E>",
            usual_names: &["read", "next", "next_item"],
            ..NOTICE
        },
        Method {
            section: "5.1.1.1.4",
            ..GET_CHECKPOINT_INFO
        },
        Method {
            attribute: "get_item_count",
            shape: Shape::Count,
            signature: "fn item_count(&mut self) -> Result<Option<u64>, E>",
            ..NOTICE
        },
    ],
    ..ROLE
};

pub(crate) static ITEM_PROCESSOR: Role = Role {
    attribute: "item_processor",
    trait_name: "ItemProcessor",
    methods: &[Method {
        attribute: "process_item",
        section: "5.1.1.2.1",
        shape: Shape::Process,
        required: true,
        signature: "fn process(&mut self, item: &In) -> Result<Option<Out>, E>",
        alternative: Some("fn process(&mut self, item: In) -> Result<Option<Out>, E>"),
        usual_names: &["process", "transform"],
        ..NOTICE
    }],
    ..ROLE
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
            required: true,
            signature: "fn write(&mut self, items: &[Out]) -> Result<(), E>",
            alternative: Some(
                "fn write(&mut self, items: &[Out], tx: &mut ChunkTransaction) -> Result<(), E>",
            ),
            usual_names: &["write"],
            ..NOTICE
        },
        Method {
            section: "5.1.1.3.4",
            ..GET_CHECKPOINT_INFO
        },
    ],
    buffered: true,
    ..ROLE
};

pub(crate) static CHECKPOINT_ALGORITHM: Role = Role {
    attribute: "checkpoint_algorithm",
    trait_name: "CheckpointAlgorithm",
    methods: &[
        Method {
            attribute: "get_checkpoint_timeout",
            section: "5.1.1.4.1",
            shape: Shape::Timeout,
            signature: "fn timeout(&mut self, timeout: i32) -> Result<i32, E>",
            usual_names: &["checkpoint_timeout"],
            ..NOTICE
        },
        Method {
            attribute: "begin_checkpoint",
            section: "5.1.1.4.2",
            signature: "fn begin_checkpoint(&mut self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "is_ready_to_checkpoint",
            section: "5.1.1.4.3",
            shape: Shape::Flag,
            required: true,
            signature: "fn is_ready(&mut self) -> Result<bool, E>",
            usual_names: &["is_ready", "ready", "ready_to_checkpoint"],
            ..NOTICE
        },
        Method {
            attribute: "end_checkpoint",
            section: "5.1.1.4.4",
            signature: "fn end_checkpoint(&mut self) -> Result<(), E>",
            ..NOTICE
        },
    ],
    ..ROLE
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
            usual_names: &["run", "execute"],
            ..NOTICE
        },
        Method {
            attribute: "cancel",
            section: "5.1.2.3",
            receiver: Receiver::Shared,
            required: true,
            signature: "fn cancel(&self) -> Result<(), E>",
            usual_names: &["stop"],
            ..NOTICE
        },
        Method {
            attribute: "end_step",
            section: "5.1.2.4",
            receiver: Receiver::Shared,
            signature: "fn end_step(&self) -> Result<(), E>",
            ..NOTICE
        },
    ],
    ..ROLE
};

pub(crate) static DECIDER: Role = Role {
    attribute: "decider",
    trait_name: "Decider",
    methods: &[Method {
        attribute: "decide",
        section: "5.6.1",
        shape: Shape::Text,
        required: true,
        signature: "fn decide(&mut self) -> Result<String, E>",
        usual_names: &["decision"],
        ..NOTICE
    }],
    ..ROLE
};

const OPEN: Method = Method {
    attribute: "open",
    shape: Shape::Open,
    required: true,
    signature: "fn open(&mut self, checkpoint: Option<C>) -> Result<(), E>",
    ..NOTICE
};

const CLOSE: Method = Method {
    attribute: "close",
    signature: "fn close(&mut self) -> Result<(), E>",
    ..NOTICE
};

const GET_CHECKPOINT_INFO: Method = Method {
    attribute: "get_checkpoint_info",
    shape: Shape::Checkpoint,
    required: true,
    signature: "fn checkpoint(&mut self) -> Result<C, E>",
    usual_names: &["checkpoint", "checkpoint_info"],
    ..NOTICE
};
