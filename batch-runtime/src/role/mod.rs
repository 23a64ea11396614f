//! The roles of artifacts: one file per role, with the documentation of its attribute and the erased trait that the
//! attribute implements. `table.rs` lists them, generated from the table of `batch-macros`.
//!
//! Users write methods of any name; generated code adapts them to the traits, whose methods return the artifact's error. A
//! trait's functions without `self` are called by the loader, through the registration of the type.

mod batchlet;
mod checkpoint_algorithm;
mod checkpoint_listener;
mod chunk_listener;
mod decider;
mod item_process_listener;
mod item_processor;
mod item_read_listener;
mod item_reader;
mod item_write_listener;
mod item_writer;
mod job_listener;
mod logical_tx;
mod partition_algorithm;
mod retry_listener;
#[cfg(test)]
mod role_tests;
mod skip_listener;
mod skip_policy;
mod step_listener;
mod sub_job_analyzer;
mod sub_job_collector;
mod table;

pub use decider::StepsBefore;
pub use item_processor::ProcessorInfo;
pub use item_reader::ReaderInfo;
pub use item_writer::WriterInfo;
pub use table::{Factory, ListenerRole, Make, Role};
pub(crate) use table::{ListenerObject, Place, RoleSet};

macro_rules! exports {
    (
        artifacts { $($artifact:ident, $a_attribute:ident $(, $a_fact:ident: $a_type:ty)?;)* }
        listeners { $($listener:ident, $l_attribute:ident, $places:tt $(, $l_fact:ident: $l_type:ty)?;)* }
        methods { $($method:ident),* }
    ) => {
        $(pub use $a_attribute::$artifact;)*
        $(pub use $l_attribute::$listener;)*

        /// The attributes, which users know the roles by.
        pub(crate) mod attributes {
            $(#[doc(inline)] pub use super::$a_attribute::$a_attribute;)*
            $(#[doc(inline)] pub use super::$l_attribute::$l_attribute;)*
            #[doc(inline)]
            pub use batch_macros::{$($method),*};
        }
    };
}

batch_macros::__for_each_role!(exports);
