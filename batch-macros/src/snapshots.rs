//! What the macros expand to, one artifact per role: `quote!` in, the formatted expansion out.

use proc_macro2::TokenStream;
use quote::quote;

use crate::role::{BATCHLET, ITEM_PROCESSOR, ITEM_READER, ITEM_WRITER, JOB_LISTENER, Role, STEP_LISTENER};

fn pretty(tokens: TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

fn expand(role: &'static Role, arguments: TokenStream, item: TokenStream) -> String {
    pretty(crate::role_impl(role, arguments, item))
}

/// Spec: READ-01 to READ-08
#[test]
fn item_reader() {
    insta::assert_snapshot!(expand(
        &ITEM_READER,
        quote!("FlightReader", class = "com.example.FlightReader"),
        quote! {
            impl io::Flights {
                #[open]
                fn open(&mut self, checkpoint: Option<Position>) -> Result<(), csv::Error> { Ok(()) }
                #[read_item]
                fn read(&mut self) -> Result<Option<Flight>, csv::Error> { Ok(None) }
                #[get_checkpoint_info]
                fn checkpoint(&self) -> Position { Position }
            }
        }
    ));
}

/// Spec: READ-05
#[test]
fn conditional_methods() {
    insta::assert_snapshot!(expand(
        &ITEM_READER,
        quote!(),
        quote! {
            impl Numbers {
                #[cfg(unix)]
                #[open]
                fn open_unix(&mut self, checkpoint: Option<u32>) {}
                #[cfg(not(unix))]
                #[open]
                fn open_elsewhere(&mut self, checkpoint: Option<u64>) {}
                #[read_item]
                fn read(&mut self) -> Option<u32> { None }
                #[get_checkpoint_info]
                fn checkpoint(&mut self) -> u32 { 0 }
                #[cfg(unix)]
                #[cfg(feature = "files")]
                #[close]
                fn close(&mut self) {}
            }
        }
    ));
}

/// Spec: PROC-01 to PROC-04
#[test]
fn item_processor() {
    insta::assert_snapshot!(expand(
        &ITEM_PROCESSOR,
        quote!(),
        quote! {
            impl Late {
                #[process_item]
                fn late(&mut self, flight: &Flight) -> Option<Delay> { None }
            }
        }
    ));
}

/// Spec: PROC-02
#[test]
fn item_processor_by_value() {
    insta::assert_snapshot!(expand(
        &ITEM_PROCESSOR,
        quote!(value = "late"),
        quote! {
            impl Late {
                #[process_item]
                fn late(&self, flight: Flight) -> Result<Option<Delay>, Error> { Ok(None) }
            }
        }
    ));
}

/// Spec: WRITE-01 to WRITE-08
#[test]
fn item_writer() {
    insta::assert_snapshot!(expand(
        &ITEM_WRITER,
        quote!("FlightWriter", buffered = false),
        quote! {
            impl FlightWriter {
                #[open]
                fn open(&mut self, checkpoint: Option<()>) {}
                #[write_items]
                fn write(&mut self, flights: &[Flight], tx: &mut ChunkTransaction) -> QueryResult<()> { Ok(()) }
                #[get_checkpoint_info]
                fn checkpoint(&mut self) {}
                #[close]
                fn close(&mut self) {}
            }
        }
    ));
}

/// Spec: BLET-01 to BLET-06
#[test]
fn batchlet() {
    insta::assert_snapshot!(expand(
        &BATCHLET,
        quote!(),
        quote! {
            impl Download {
                #[process]
                fn run(&self) -> Result<String, io::Error> { Ok(String::new()) }
                #[cancel]
                fn cancel(&self) {}
            }
        }
    ));
}

/// Spec: LISTEN-STEP-01 to LISTEN-STEP-03
#[test]
fn step_listener_without_methods() {
    insta::assert_snapshot!(expand(&STEP_LISTENER, quote!(), quote!(impl Silent {})));
}

/// Spec: LISTEN-JOB-01 to LISTEN-JOB-06
#[test]
fn job_listener() {
    insta::assert_snapshot!(expand(
        &JOB_LISTENER,
        quote!(),
        quote! {
            impl Log {
                #[before_job]
                #[after_job]
                fn log(&mut self) {}
            }
        }
    ));
}

/// Spec: BPROP-02, CTX-02
#[test]
fn batch_artifact() {
    insta::assert_snapshot!(pretty(crate::artifact::derive(quote! {
        struct FlightReader {
            #[batch_property(name = "fileName", value = "flights.csv")]
            file_name: PathBuf,
            #[batch_property(name = "limit")]
            limit: Option<u32>,
            #[batch_context]
            step: StepContext,
            rows: Option<csv::Reader<File>>,
        }
    })));
}

/// One mistake leaves the item as it is, without method attributes and without a registration.
#[test]
fn fallback() {
    insta::assert_snapshot!(expand(
        &BATCHLET,
        quote!(),
        quote! {
            impl Download {
                #[process]
                #[inline]
                fn run(&mut self) -> String { String::new() }
                #[cancel]
                fn cancel(&self) {}
            }
        }
    ));
}

/// Spec: LOADER-06
#[test]
fn artifact_loader() {
    insta::assert_snapshot!(pretty(crate::loader::attribute(
        quote!(class = "com.example.Loader"),
        quote! {
            #[cfg(unix)]
            impl BatchArtifactLoader for pools::Loader {
                fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> { Ok(None) }
            }
        }
    )));
}
