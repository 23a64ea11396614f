//! The listener roles.

use super::{Method, NOTICE, ROLE, Role, Shape, Side, Told};

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
    ..ROLE
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
    ..ROLE
};

pub(crate) static CHECKPOINT_LISTENER: Role = Role {
    attribute: "checkpoint_listener",
    trait_name: "CheckpointListener",
    methods: &[
        Method {
            attribute: "before_checkpoint",
            section: "5.2.3.1",
            signature: "fn before_checkpoint(&mut self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "after_checkpoint",
            section: "5.2.3.2",
            signature: "fn after_checkpoint(&mut self) -> Result<(), E>",
            ..NOTICE
        },
    ],
    ..ROLE
};

pub(crate) static ITEM_READ_LISTENER: Role = Role {
    attribute: "item_read_listener",
    trait_name: "ItemReadListener",
    methods: &[
        Method {
            attribute: "before_read",
            section: "5.2.4.1",
            signature: "fn before_read(&mut self) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "after_read",
            section: "5.2.4.2",
            shape: Shape::Notice(&[Told::Item(Side::Input)]),
            signature: "fn after_read(&mut self, item: &In) -> Result<(), E>",
            alternative: Some("fn after_read(&mut self, item: &dyn Any) -> Result<(), E>"),
            ..NOTICE
        },
        Method {
            attribute: "on_read_error",
            section: "5.2.4.3",
            shape: Shape::Notice(&[Told::Error]),
            signature: "fn on_read_error(&mut self, ex: &BatchError) -> Result<(), E>",
            ..NOTICE
        },
    ],
    hears_items: true,
    ..ROLE
};

pub(crate) static ITEM_PROCESS_LISTENER: Role = Role {
    attribute: "item_process_listener",
    trait_name: "ItemProcessListener",
    methods: &[
        Method {
            attribute: "before_process",
            section: "5.2.5.1",
            shape: Shape::Notice(&[Told::Item(Side::Input)]),
            signature: "fn before_process(&mut self, item: &In) -> Result<(), E>",
            alternative: Some("fn before_process(&mut self, item: &dyn Any) -> Result<(), E>"),
            ..NOTICE
        },
        Method {
            attribute: "after_process",
            alias: Some("after_processor"),
            section: "5.2.5.2",
            shape: Shape::Notice(&[Told::Item(Side::Input), Told::Result]),
            signature: "fn after_process(&mut self, item: &In, result: Option<&Out>) -> Result<(), E>",
            alternative: Some(
                "fn after_process(&mut self, item: &dyn Any, result: Option<&dyn Any>) -> Result<(), E>",
            ),
            ..NOTICE
        },
        Method {
            attribute: "on_process_error",
            section: "5.2.5.3",
            shape: Shape::Notice(&[Told::Error, Told::Item(Side::Input)]),
            signature: "fn on_process_error(&mut self, ex: &BatchError, item: &In) -> Result<(), E>",
            alternative: Some(
                "fn on_process_error(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>",
            ),
            ..NOTICE
        },
    ],
    hears_items: true,
    ..ROLE
};

pub(crate) static ITEM_WRITE_LISTENER: Role = Role {
    attribute: "item_write_listener",
    trait_name: "ItemWriteListener",
    methods: &[
        Method {
            attribute: "before_write",
            section: "5.2.6.1",
            shape: Shape::Notice(&[Told::List]),
            signature: "fn before_write(&mut self, items: &[Out]) -> Result<(), E>",
            alternative: Some("fn before_write(&mut self, items: Items<'_>) -> Result<(), E>"),
            ..NOTICE
        },
        Method {
            attribute: "after_write",
            section: "5.2.6.2",
            shape: Shape::Notice(&[Told::List]),
            signature: "fn after_write(&mut self, items: &[Out]) -> Result<(), E>",
            alternative: Some("fn after_write(&mut self, items: Items<'_>) -> Result<(), E>"),
            ..NOTICE
        },
        Method {
            attribute: "on_write_error",
            section: "5.2.6.3",
            shape: Shape::Notice(&[Told::Error, Told::List]),
            signature: "fn on_write_error(&mut self, ex: &BatchError, items: &[Out]) -> Result<(), E>",
            alternative: Some(
                "fn on_write_error(&mut self, ex: &BatchError, items: Items<'_>) -> Result<(), E>",
            ),
            ..NOTICE
        },
    ],
    hears_items: true,
    ..ROLE
};

pub(crate) static SKIP_LISTENER: Role = Role {
    attribute: "skip_listener",
    trait_name: "SkipListener",
    methods: &[
        Method {
            attribute: "on_skip_in_read",
            section: "5.2.7.1",
            shape: Shape::Notice(&[Told::Error]),
            signature: "fn on_skip_in_read(&mut self, ex: &BatchError) -> Result<(), E>",
            ..NOTICE
        },
        Method {
            attribute: "on_skip_in_process",
            section: "5.2.7.2",
            shape: Shape::Notice(&[Told::Error, Told::Item(Side::Input)]),
            signature: "fn on_skip_in_process(&mut self, ex: &BatchError, item: &In) -> Result<(), E>",
            alternative: Some(
                "fn on_skip_in_process(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>",
            ),
            ..NOTICE
        },
        Method {
            attribute: "on_skip_in_write",
            section: "5.2.7.3",
            signature: "fn on_skip_in_write(&mut self, ex: &BatchError, item: &Out) -> Result<(), E>",
            alternative: Some(
                "fn on_skip_in_write(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>",
            ),
            ..OF_A_WRITE
        },
    ],
    hears_items: true,
    ..ROLE
};

pub(crate) static RETRY_LISTENER: Role = Role {
    attribute: "retry_listener",
    trait_name: "RetryListener",
    methods: &[
        Method {
            attribute: "on_retry_exception",
            section: "5.2.8.1",
            signature: "fn on_retry_exception(&mut self, ex: &BatchError, item: &Out) -> Result<(), E>",
            alternative: Some(
                "fn on_retry_exception(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>",
            ),
            ..OF_A_WRITE
        },
        Method {
            attribute: "on_retry_item",
            section: "5.2.8.2",
            signature: "fn on_retry_item(&mut self, ex: &BatchError, item: &Out) -> Result<(), E>",
            alternative: Some(
                "fn on_retry_item(&mut self, ex: &BatchError, item: &dyn Any) -> Result<(), E>",
            ),
            ..OF_A_WRITE
        },
    ],
    hears_items: true,
    ..ROLE
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

/// Told of an item that the writer failed at.
const OF_A_WRITE: Method = Method {
    shape: Shape::Notice(&[Told::Error, Told::Item(Side::Output)]),
    ..NOTICE
};
