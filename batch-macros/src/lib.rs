//! The attribute macros of `batch-runtime`, which re-exports them: the annotations of the batch artifacts.
//! Each entry is one line; `role.rs` holds the table of what each attribute means.
//!
//! `parse` -> `validate` -> `expand`, or `fallback` when a check found an error.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod artifact;
mod diagnostics;
mod expand;
mod fallback;
mod loader;
mod parse;
mod role;
mod settings;
#[cfg(test)]
mod snapshots;
mod types;
mod validate;

use proc_macro::TokenStream;
use quote::quote;

use diagnostics::{Errors, stray};
use role::Role;

/// Lets the runtime make the struct: `#[batch_property(name = "..", value = "..")]` fields get the value of a
/// property, or the default `value`; `#[batch_context]` fields get a context; every other field its own `Default`.
///
/// ```text
/// #[derive(BatchArtifact)]
/// struct FlightReader {
///     #[batch_property(name = "fileName", value = "flights.csv")]
///     file_name: PathBuf,
///     #[batch_context]
///     step: StepContext,
///     rows: Option<csv::Reader<File>>,
/// }
/// ```
///
/// Spec: ART-10, BPROP-02 to BPROP-10, CTX-02, CTX-03, CTX-05
#[proc_macro_derive(BatchArtifact, attributes(batch_property, batch_context))]
pub fn derive_batch_artifact(input: TokenStream) -> TokenStream {
    artifact::derive(input.into()).into()
}

/// Registers a preferred artifact loader, so that batch.xml can name it: `<loader classname="my_crate::Loader"/>`, or
/// what `class` says. It stands on the impl of the trait `BatchArtifactLoader`; the type is made by its `Default`.
/// Argument: `class = ".."`.
///
/// ```text
/// #[artifact_loader(class = "com.example.Loader")]
/// impl BatchArtifactLoader for Loader {
///     fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> { .. }
/// }
/// ```
///
/// Spec: LOADER-03, LOADER-06, LOADER-10, LOADER-13
#[proc_macro_attribute]
pub fn artifact_loader(attr: TokenStream, item: TokenStream) -> TokenStream {
    loader::attribute(attr.into(), item.into()).into()
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
    /// Makes the type an item reader: `#[open]`, `#[read_item]` and `#[get_checkpoint_info]` are required, `#[close]`
    /// is not. Arguments: the name (default: the type's identifier), `class = ".."`.
    ///
    /// ```text
    /// #[item_reader("FlightReader")]
    /// impl FlightReader {
    ///     #[open]
    ///     fn open(&mut self, checkpoint: Option<u64>) -> Result<(), csv::Error> { .. }
    ///     #[read_item]
    ///     fn read(&mut self) -> Result<Option<Flight>, csv::Error> { .. }
    ///     #[get_checkpoint_info]
    ///     fn checkpoint(&mut self) -> u64 { .. }
    /// }
    /// ```
    ///
    /// Spec: READ-01 to READ-08, ART-01, ART-02
    item_reader: ITEM_READER;
    /// Makes the type an item processor: `#[process_item]` is required. Arguments: the name (default: the type's
    /// identifier), `class = ".."`.
    ///
    /// ```text
    /// #[item_processor]
    /// impl OnTimeFilter {
    ///     #[process_item]
    ///     fn process(&mut self, flight: &Flight) -> Option<Arrival> { .. }
    /// }
    /// ```
    ///
    /// Spec: PROC-01 to PROC-04, ART-01, ART-02
    item_processor: ITEM_PROCESSOR;
    /// Makes the type an item writer: `#[open]`, `#[write_items]` and `#[get_checkpoint_info]` are required,
    /// `#[close]` is not. Arguments: the name (default: the type's identifier), `class = ".."`, `buffered = false` for
    /// one item per call.
    ///
    /// ```text
    /// #[item_writer("FlightWriter", buffered = true)]
    /// impl FlightWriter {
    ///     #[open]
    ///     fn open(&mut self, checkpoint: Option<()>) { .. }
    ///     #[write_items]
    ///     fn write(&mut self, flights: &[Flight], tx: &mut ChunkTransaction) -> QueryResult<()> { .. }
    ///     #[get_checkpoint_info]
    ///     fn checkpoint(&mut self) {}
    /// }
    /// ```
    ///
    /// Spec: WRITE-01 to WRITE-08, ART-01, ART-02
    item_writer: ITEM_WRITER;
    /// Makes the type a batchlet: `#[process]` and `#[cancel]` are required, `#[begin_step]` and `#[end_step]` are
    /// not; all take `&self`. Arguments: the name (default: the type's identifier), `class = ".."`.
    ///
    /// ```text
    /// #[batchlet]
    /// impl Download {
    ///     #[process]
    ///     fn run(&self) -> Result<String, io::Error> { .. }
    ///     #[cancel]
    ///     fn cancel(&self) { .. }
    /// }
    /// ```
    ///
    /// Spec: BLET-01 to BLET-06, BLET-10, ART-01, ART-02
    batchlet: BATCHLET;
    /// Makes the type a step listener: `#[before_step]` and `#[after_step]`, both optional. Arguments: the name
    /// (default: the type's identifier), `class = ".."`.
    ///
    /// ```text
    /// #[step_listener]
    /// impl Stopwatch {
    ///     #[after_step]
    ///     fn report(&mut self) { .. }
    /// }
    /// ```
    ///
    /// Spec: LISTEN-STEP-01 to LISTEN-STEP-03, ART-01, ART-02
    step_listener: STEP_LISTENER;
    /// Makes the type a job listener: `#[before_job]`, `#[after_job]`, `#[before_step]` and `#[after_step]`, all
    /// optional. Arguments: the name (default: the type's identifier), `class = ".."`.
    ///
    /// ```text
    /// #[job_listener]
    /// impl Notifier {
    ///     #[after_job]
    ///     fn notify(&mut self) -> Result<(), smtp::Error> { .. }
    /// }
    /// ```
    ///
    /// Spec: LISTEN-JOB-01 to LISTEN-JOB-06, ART-01, ART-02
    job_listener: JOB_LISTENER;
}

// `#[batch_property]` and `#[batch_context]` are not among these: they are helpers of the derive, and a macro of the
// same name in scope would make each use of a helper ambiguous (E0659).
macro_rules! method_attributes {
    ($($attribute:ident: $what:literal;)*) => {$(
        #[doc = concat!("Marks the method of an artifact that ", $what, ". Only valid inside the impl block of an artifact")]
        /// attribute, which says what the method takes and returns; anywhere else it is a compile error.
        ///
        /// Spec: ART-03 to ART-07
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
    process_item: "processes one item";
    write_items: "writes a list of items";
    begin_step: "a batchlet runs before its work";
    process: "does a batchlet's work";
    cancel: "asks a batchlet to end its work";
    end_step: "a batchlet runs after its work";
    before_job: "is called before a job begins";
    after_job: "is called after a job has ended";
    before_step: "is called before a step begins";
    after_step: "is called after a step has ended";
}
