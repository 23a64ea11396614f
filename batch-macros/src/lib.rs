//! The attribute macros of `batch-runtime`, which re-exports them: the annotations of the batch artifacts.
//! Each entry is one line; `role` holds the table of what each attribute means.
//!
//! `parse` -> `validate` -> `expand`, or `fallback` when a check found an error.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod alias;
mod artifact;
mod diagnostics;
mod exception;
mod expand;
mod fallback;
mod loader;
mod parameters;
mod parse;
mod role;
mod settings;
#[cfg(test)]
mod snapshots;
mod types;
mod validate;
mod warnings;

use proc_macro::TokenStream;
use quote::quote;

use diagnostics::{Errors, stray};
use role::Role;

/// The runtime can make the struct.
#[proc_macro_derive(BatchArtifact, attributes(batch_property, batch_context))]
pub fn derive_batch_artifact(input: TokenStream) -> TokenStream {
    artifact::derive(input.into()).into()
}

/// The type is a preferred artifact loader.
#[proc_macro_attribute]
pub fn artifact_loader(attr: TokenStream, item: TokenStream) -> TokenStream {
    loader::attribute(attr.into(), item.into()).into()
}

/// The error type has a class name.
#[proc_macro_derive(BatchException, attributes(batch_exception))]
pub fn derive_batch_exception(input: TokenStream) -> TokenStream {
    exception::derive(input.into()).into()
}

/// Parse, validate, then expand or fall back: the whole of an artifact attribute.
fn role_impl(
    role: &'static Role,
    attr: proc_macro2::TokenStream,
    item: proc_macro2::TokenStream,
) -> proc_macro2::TokenStream {
    let mut errors = Errors::default();
    let arguments = parse::arguments(attr).unwrap_or_else(|error| {
        errors.syntax(error);
        Vec::new()
    });
    let item = match syn::parse2::<syn::Item>(item.clone()) {
        Ok(syn::Item::Impl(item)) => item,
        Ok(syn::Item::Type(item)) => return alias::alias(role, &arguments, &item, errors),
        Ok(other) => {
            validate::not_an_impl_block(role, &other, &mut errors);
            let errors = errors.into_tokens();
            return quote!(#other #errors);
        }
        Err(error) => {
            errors.syntax(error);
            let errors = errors.into_tokens();
            return quote!(#item #errors);
        }
    };
    let block = parse::block(role, item);
    match validate::artifact(role, &arguments, &block, &mut errors) {
        Some(artifact) => expand::role(role, &artifact, &block.item),
        None => fallback::role(&block.item, errors),
    }
}

macro_rules! artifact_attributes {
    ($($(#[$doc:meta])* $attribute:ident: $role:ident;)*) => {$(
        $(#[$doc])*
        #[proc_macro_attribute]
        pub fn $attribute(attr: TokenStream, item: TokenStream) -> TokenStream {
            role_impl(&role::$role, attr.into(), item.into()).into()
        }
    )*};
}

artifact_attributes! {
    /// The type is an item reader.
    item_reader: ITEM_READER;
    /// The type is an item processor.
    item_processor: ITEM_PROCESSOR;
    /// The type is an item writer.
    item_writer: ITEM_WRITER;
    /// The type is a checkpoint algorithm.
    checkpoint_algorithm: CHECKPOINT_ALGORITHM;
    /// The type is a batchlet.
    batchlet: BATCHLET;
    /// The type is a job listener.
    job_listener: JOB_LISTENER;
    /// The type is a step listener.
    step_listener: STEP_LISTENER;
    /// The type is a checkpoint listener.
    checkpoint_listener: CHECKPOINT_LISTENER;
    /// The type is an item read listener.
    item_read_listener: ITEM_READ_LISTENER;
    /// The type is an item process listener.
    item_process_listener: ITEM_PROCESS_LISTENER;
    /// The type is an item write listener.
    item_write_listener: ITEM_WRITE_LISTENER;
    /// The type is a skip listener.
    skip_listener: SKIP_LISTENER;
    /// The type is a retry listener.
    retry_listener: RETRY_LISTENER;
    /// The type is a partition algorithm.
    partition_algorithm: PARTITION_ALGORITHM;
    /// The type is a logical transaction.
    logical_tx: LOGICAL_TX;
    /// The type is a collector of subjobs.
    sub_job_collector: SUB_JOB_COLLECTOR;
    /// The type is an analyzer of subjobs.
    sub_job_analyzer: SUB_JOB_ANALYZER;
    /// The type is a decider.
    decider: DECIDER;
}

// `#[batch_property]` and `#[batch_context]` are not among these: they are helpers of the derive, and a macro of the
// same name in scope would make each use of a helper ambiguous (E0659).
macro_rules! method_attributes {
    ($($attribute:ident: $what:literal;)*) => {$(
        #[doc = concat!("Marks the method of an artifact that ", $what, ".")]
        #[proc_macro_attribute]
        pub fn $attribute(_: TokenStream, item: TokenStream) -> TokenStream {
            stray(stringify!($attribute), item.into()).into()
        }
    )*};
}

method_attributes! {
    open: "positions a reader or writer at its checkpoint";
    close: "releases what a reader or writer holds";
    read_item: "returns a reader's next item";
    get_checkpoint_info: "returns the position of a reader or writer";
    get_item_count: "returns how many items a reader has in all";
    process_item: "processes one item";
    write_items: "writes a list of items";
    get_checkpoint_timeout: "gives the time-out of the next checkpoint's transaction";
    begin_checkpoint: "is called when a checkpoint's transaction has begun";
    is_ready_to_checkpoint: "says whether a checkpoint is due";
    end_checkpoint: "is called before a checkpoint's transaction commits";
    begin_step: "a batchlet runs before its work";
    process: "does a batchlet's work";
    cancel: "asks a batchlet to end its work";
    end_step: "a batchlet runs after its work";
    before_job: "is called before a job begins";
    after_job: "is called after a job has ended";
    before_step: "is called before a step begins";
    after_step: "is called after a step has ended";
    before_checkpoint: "is called before the data of a checkpoint is collected";
    after_checkpoint: "is called after a checkpoint's transaction has committed";
    before_read: "is called before an item is read";
    after_read: "is told of an item that was read";
    on_read_error: "is told of an error of the reader";
    before_process: "is told of an item before it is processed";
    after_process: "is told of an item that was processed, and of the result";
    after_processor: "is told of an item that was processed, and of the result";
    on_process_error: "is told of an error of the processor";
    before_write: "is told of a list of items before it is written";
    after_write: "is told of a list of items that was written";
    on_write_error: "is told of an error of the writer";
    on_skip_in_read: "is told of an error of the reader that is skipped";
    on_skip_in_process: "is told of an item that is skipped because of the processor";
    on_skip_in_write: "is told of an item that is skipped because of the writer";
    on_retry_exception: "is told of an error of the writer that is retried";
    on_retry_item: "is told of an item before it is written again";
    calculate_partitions: "says how a step or flow is partitioned";
    logical_tx_begin: "begins a logical transaction";
    logical_tx_before_completion: "is called before a logical transaction completes";
    logical_tx_rollback: "undoes a logical transaction";
    logical_tx_after_completion: "is told how a logical transaction ended";
    collect_sub_job_data: "returns what a subjob sends to the analyzer";
    analyze_collector_data: "receives what a subjob sends";
    analyze_exit_status: "is told of a subjob's exit status";
    decide: "makes a decision";
}
