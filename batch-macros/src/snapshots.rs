//! What the macros expand to, one artifact per role: `quote!` in, the formatted expansion out.

use proc_macro2::TokenStream;
use quote::quote;

fn pretty(tokens: TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

fn expand(role: &'static str, arguments: TokenStream, item: TokenStream) -> String {
    pretty(crate::artifact_attribute(role, arguments, item))
}

/// Spec: READ-01 to READ-08
#[test]
fn item_reader() {
    insta::assert_snapshot!(expand(
        "item_reader",
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
        "item_reader",
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

/// Implements the role for every type that satisfies the bounds, and registers none.
///
/// Spec: ART-01
#[test]
fn generic_block() {
    insta::assert_snapshot!(expand(
        "decider",
        quote!(),
        quote! {
            impl<T: FromStr + Send, const N: usize> Sample<T, N>
            where
                T::Err: Display,
            {
                #[decide]
                fn which(&mut self) -> String { String::new() }
            }
        }
    ));
}

/// Spec: ART-01, ART-02
#[test]
fn type_alias() {
    insta::assert_snapshot!(expand(
        "item_reader",
        quote!("FlightReader", class = "com.example.FlightReader"),
        quote! {
            #[cfg(feature = "flights")]
            pub type Flights = csv::Reader<Flight>;
        }
    ));
}

/// Spec: ART-10, BPROP-10
#[test]
fn generic_artifact() {
    insta::assert_snapshot!(pretty(crate::artifact::derive(quote! {
        struct Sample<T: Ord, const N: usize = 4> where T: Clone {
            #[batch_property]
            limits: Option<Vec<T>>,
            #[batch_context]
            step: StepContext,
            rows: [Option<T>; N],
            count: u64,
        }
    })));
}

/// Spec: PROC-01 to PROC-04
#[test]
fn item_processor() {
    insta::assert_snapshot!(expand(
        "item_processor",
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
        "item_processor",
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
        "item_writer",
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
        "batchlet",
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
    insta::assert_snapshot!(expand("step_listener", quote!(), quote!(impl Silent {})));
}

/// Spec: LISTEN-JOB-01 to LISTEN-JOB-06
#[test]
fn job_listener() {
    insta::assert_snapshot!(expand(
        "job_listener",
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
        "batchlet",
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

/// Spec: CKALG-01 to CKALG-07
#[test]
fn checkpoint_algorithm() {
    insta::assert_snapshot!(expand(
        "checkpoint_algorithm",
        quote!(),
        quote! {
            impl Sample {
                #[is_ready_to_checkpoint]
                fn ready(&mut self) -> bool { true }
                #[get_checkpoint_timeout]
                fn timeout(&mut self, timeout: i32) -> Result<i32, Error> { Ok(timeout) }
            }
        }
    ));
}

/// Spec: LISTEN-CKPT-01 to LISTEN-CKPT-03
#[test]
fn checkpoint_listener() {
    insta::assert_snapshot!(expand(
        "checkpoint_listener",
        quote!(),
        quote! {
            impl Sample {
                #[before_checkpoint]
                fn before(&mut self) {}
            }
        }
    ));
}

/// Spec: LISTEN-READ-01 to LISTEN-READ-04
#[test]
fn item_read_listener() {
    insta::assert_snapshot!(expand(
        "item_read_listener",
        quote!(),
        quote! {
            impl Sample {
                #[after_read]
                fn after(&mut self, item: &Flight) {}
                #[on_read_error]
                fn error(&mut self, ex: &BatchError) -> Result<(), Error> { Ok(()) }
            }
        }
    ));
}

/// Spec: LISTEN-PROC-01 to LISTEN-PROC-05
#[test]
fn item_process_listener() {
    insta::assert_snapshot!(expand(
        "item_process_listener",
        quote!(),
        quote! {
            impl Sample {
                #[before_process]
                fn before(&mut self, item: &Flight) {}
                #[cfg(feature = "audit")]
                #[after_processor]
                fn after(&mut self, item: &io::Flight, result: Option<&Delay>) {}
            }
        }
    ));
}

/// Spec: LISTEN-WRITE-01 to LISTEN-WRITE-04
#[test]
fn item_write_listener() {
    insta::assert_snapshot!(expand(
        "item_write_listener",
        quote!(),
        quote! {
            impl Sample {
                #[before_write]
                fn before(&mut self, items: ChunkItems<'_>) {}
                #[on_write_error]
                fn error(&mut self, ex: &BatchError, items: &[Delay]) {}
            }
        }
    ));
}

/// Spec: LISTEN-SKIP-01 to LISTEN-SKIP-04
#[test]
fn skip_listener() {
    insta::assert_snapshot!(expand(
        "skip_listener",
        quote!(),
        quote! {
            impl Sample {
                #[on_skip_in_write]
                fn skipped(&mut self, ex: &BatchError, item: &dyn Any) {}
            }
        }
    ));
}

/// Spec: LISTEN-RETRY-01, LISTEN-RETRY-02, LISTEN-RETRY-06
#[test]
fn retry_listener() {
    insta::assert_snapshot!(expand(
        "retry_listener",
        quote!(),
        quote! {
            impl Sample {
                #[on_retry_item]
                fn again(&mut self, ex: &BatchError, item: &Delay) {}
            }
        }
    ));
}

/// Spec: PALG-02, PALG-04
#[test]
fn partition_algorithm() {
    insta::assert_snapshot!(expand(
        "partition_algorithm",
        quote!(),
        quote! {
            impl Sample {
                #[calculate_partitions]
                fn months(&mut self) -> PartitionPlan { PartitionPlan::new(12) }
            }
        }
    ));
}

/// Spec: PALG-10
#[test]
fn logical_tx() {
    insta::assert_snapshot!(expand(
        "logical_tx",
        quote!(),
        quote! {
            impl Sample {
                #[logical_tx_rollback]
                fn undo(&mut self) {}
                #[logical_tx_after_completion]
                fn after(&mut self, status: &str) {}
            }
        }
    ));
}

/// Spec: PALG-05, PALG-06
#[test]
fn sub_job_collector() {
    insta::assert_snapshot!(expand(
        "sub_job_collector",
        quote!(),
        quote! {
            impl Sample {
                #[collect_sub_job_data]
                fn collect(&mut self) -> Option<Sum> { None }
            }
        }
    ));
}

/// Spec: PALG-07 to PALG-09
#[test]
fn sub_job_analyzer() {
    insta::assert_snapshot!(expand(
        "sub_job_analyzer",
        quote!(),
        quote! {
            impl Sample {
                #[analyze_collector_data]
                fn add(&mut self, data: Sum) {}
            }
        }
    ));
}

/// Spec: DECIDER-01, DECIDER-02
#[test]
fn decider() {
    insta::assert_snapshot!(expand(
        "decider",
        quote!(),
        quote! {
            impl Sample {
                #[decide]
                fn which(&mut self) -> Result<String, Error> { Ok(String::new()) }
            }
        }
    ));
}

/// Spec: CHUNK-EXC-01
#[test]
fn exception() {
    insta::assert_snapshot!(pretty(crate::exception::derive(quote! {
        #[batch_exception(class = "com.example.LoadError", extends = "java.io.IOException")]
        enum LoadError {
            #[batch_exception(class = "com.example.BadRow")]
            BadRow { line: u64 },
            Io(io::Error),
            Gone,
        }
    })));
}
