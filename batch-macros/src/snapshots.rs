//! The expansions of the macros, one artifact per role: `quote!` in, the formatted expansion out.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use syn::Meta;

fn pretty(tokens: TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(tokens).unwrap())
}

/// Expands the first attribute of an item, as the compiler does.
fn expand(item: TokenStream) -> String {
    let mut tokens = item.into_iter().skip(1);
    let Some(TokenTree::Group(attribute)) = tokens.next() else {
        panic!("no attribute");
    };
    let attribute: Meta = syn::parse2(attribute.stream()).unwrap();
    let name = attribute.path().get_ident().unwrap().to_string();
    let role = crate::role::role(&name).unwrap().attribute;
    let arguments = attribute.require_list().map(|list| list.tokens.clone());
    pretty(crate::artifact_attribute(
        role,
        arguments.unwrap_or_default(),
        tokens.collect(),
    ))
}

// Spec: READ-01 to READ-08
#[test]
fn item_reader() {
    insta::assert_snapshot!(expand(quote! {
        #[item_reader("FlightReader", class = "com.example.FlightReader")]
        impl io::Flights {
            #[open]
            fn open(&mut self, checkpoint: Option<Position>) -> Result<(), csv::Error> { Ok(()) }
            #[read_item]
            fn read(&mut self) -> Result<Option<Flight>, csv::Error> { Ok(None) }
            #[get_checkpoint_info]
            fn checkpoint(&self) -> Position { Position }
        }
    }));
}

// Spec: READ-05
#[test]
fn conditional_methods() {
    insta::assert_snapshot!(expand(quote! {
        #[item_reader]
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
    }));
}

/// Implements the role for every type that satisfies the bounds, and registers none.
// Spec: ART-01
#[test]
fn generic_block() {
    insta::assert_snapshot!(expand(quote! {
        #[decider]
        impl<T: FromStr + Send, const N: usize> Sample<T, N>
        where
            T::Err: Display,
        {
            #[decide]
            fn which(&mut self) -> String { String::new() }
        }
    }));
}

// Spec: ART-01, ART-02
#[test]
fn type_alias() {
    insta::assert_snapshot!(expand(quote! {
        #[item_reader("FlightReader", class = "com.example.FlightReader")]
        #[cfg(feature = "flights")]
        pub type Flights = csv::Reader<Flight>;
    }));
}

// Spec: ART-10, BPROP-10
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

// Spec: D-97
#[test]
fn nested_artifact() {
    insta::assert_snapshot!(pretty(crate::artifact::derive(quote! {
        struct Both<A> {
            #[batch_artifact(prefix = "accepted.")]
            accepted: A,
            #[batch_artifact]
            rejected: FileWriter,
            #[batch_property]
            limit: u64,
        }
    })));
}

// Spec: PROC-01 to PROC-04
#[test]
fn item_processor() {
    insta::assert_snapshot!(expand(quote! {
        #[item_processor]
        impl Late {
            #[process_item]
            fn late(&mut self, flight: &Flight) -> Option<Delay> { None }
        }
    }));
}

// Spec: PROC-02
#[test]
fn item_processor_by_value() {
    insta::assert_snapshot!(expand(quote! {
        #[item_processor(value = "late")]
        impl Late {
            #[process_item]
            fn late(&self, flight: Flight) -> Result<Option<Delay>, Error> { Ok(None) }
        }
    }));
}

// Spec: WRITE-01 to WRITE-08
#[test]
fn item_writer() {
    insta::assert_snapshot!(expand(quote! {
        #[item_writer("FlightWriter", buffered = false)]
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
    }));
}

// Spec: BLET-01 to BLET-06
#[test]
fn batchlet() {
    insta::assert_snapshot!(expand(quote! {
        #[batchlet]
        impl Download {
            #[process]
            fn run(&self) -> Result<String, io::Error> { Ok(String::new()) }
            #[cancel]
            fn cancel(&self) {}
        }
    }));
}

// Spec: LISTEN-STEP-01 to LISTEN-STEP-03
#[test]
fn step_listener_without_methods() {
    insta::assert_snapshot!(expand(quote! {
        #[step_listener]
        impl Silent {}
    }));
}

// Spec: LISTEN-JOB-01 to LISTEN-JOB-06
#[test]
fn job_listener() {
    insta::assert_snapshot!(expand(quote! {
        #[job_listener]
        impl Log {
            #[before_job]
            #[after_job]
            fn log(&mut self) {}
        }
    }));
}

// Spec: BPROP-02, CTX-02
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
    insta::assert_snapshot!(expand(quote! {
        #[batchlet]
        impl Download {
            #[process]
            #[inline]
            fn run(&mut self) -> String { String::new() }
            #[cancel]
            fn cancel(&self) {}
        }
    }));
}

// Spec: LOADER-06
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

// Spec: CKALG-01 to CKALG-07
#[test]
fn checkpoint_algorithm() {
    insta::assert_snapshot!(expand(quote! {
        #[checkpoint_algorithm]
        impl Sample {
            #[is_ready_to_checkpoint]
            fn ready(&mut self) -> bool { true }
            #[get_checkpoint_timeout]
            fn timeout(&mut self, timeout: i32) -> Result<i32, Error> { Ok(timeout) }
        }
    }));
}

// Spec: FAULT-04
#[test]
fn skip_policy() {
    insta::assert_snapshot!(expand(quote! {
        #[skip_policy]
        impl Sample {
            #[should_skip]
            fn should_skip(&mut self, failed: &FailedItem<'_>) -> bool { failed.skips() < 5 }
        }
    }));
}

// Spec: LISTEN-CKPT-01 to LISTEN-CKPT-03
#[test]
fn checkpoint_listener() {
    insta::assert_snapshot!(expand(quote! {
        #[checkpoint_listener]
        impl Sample {
            #[before_checkpoint]
            fn before(&mut self) {}
        }
    }));
}

// Spec: LISTEN-READ-01 to LISTEN-READ-04
#[test]
fn item_read_listener() {
    insta::assert_snapshot!(expand(quote! {
        #[item_read_listener]
        impl Sample {
            #[after_read]
            fn after(&mut self, item: &Flight) {}
            #[on_read_error]
            fn error(&mut self, ex: &BatchError) -> Result<(), Error> { Ok(()) }
        }
    }));
}

// Spec: LISTEN-PROC-01 to LISTEN-PROC-05
#[test]
fn item_process_listener() {
    insta::assert_snapshot!(expand(quote! {
        #[item_process_listener]
        impl Sample {
            #[before_process]
            fn before(&mut self, item: &Flight) {}
            #[cfg(feature = "audit")]
            #[after_processor]
            fn after(&mut self, item: &io::Flight, result: Option<&Delay>) {}
        }
    }));
}

// Spec: LISTEN-WRITE-01 to LISTEN-WRITE-04
#[test]
fn item_write_listener() {
    insta::assert_snapshot!(expand(quote! {
        #[item_write_listener]
        impl Sample {
            #[before_write]
            fn before(&mut self, items: ChunkItems<'_>) {}
            #[on_write_error]
            fn error(&mut self, ex: &BatchError, items: &[Delay]) {}
        }
    }));
}

// Spec: LISTEN-SKIP-01 to LISTEN-SKIP-04
#[test]
fn skip_listener() {
    insta::assert_snapshot!(expand(quote! {
        #[skip_listener]
        impl Sample {
            #[on_skip_in_write]
            fn skipped(&mut self, ex: &BatchError, item: &dyn Any) {}
        }
    }));
}

// Spec: LISTEN-RETRY-01, LISTEN-RETRY-02, LISTEN-RETRY-06
#[test]
fn retry_listener() {
    insta::assert_snapshot!(expand(quote! {
        #[retry_listener]
        impl Sample {
            #[on_retry_item]
            fn again(&mut self, ex: &BatchError, item: &Delay) {}
        }
    }));
}

// Spec: PALG-02, PALG-04
#[test]
fn partition_algorithm() {
    insta::assert_snapshot!(expand(quote! {
        #[partition_algorithm]
        impl Sample {
            #[calculate_partitions]
            fn months(&mut self) -> PartitionPlan { PartitionPlan::new(12) }
        }
    }));
}

// Spec: PALG-10
#[test]
fn logical_tx() {
    insta::assert_snapshot!(expand(quote! {
        #[logical_tx]
        impl Sample {
            #[logical_tx_rollback]
            fn undo(&mut self) {}
            #[logical_tx_after_completion]
            fn after(&mut self, status: &str) {}
        }
    }));
}

// Spec: PALG-05, PALG-06
#[test]
fn sub_job_collector() {
    insta::assert_snapshot!(expand(quote! {
        #[sub_job_collector]
        impl Sample {
            #[collect_sub_job_data]
            fn collect(&mut self) -> Option<Sum> { None }
        }
    }));
}

// Spec: PALG-07 to PALG-09
#[test]
fn sub_job_analyzer() {
    insta::assert_snapshot!(expand(quote! {
        #[sub_job_analyzer]
        impl Sample {
            #[analyze_collector_data]
            fn add(&mut self, data: Sum) {}
        }
    }));
}

// Spec: DECIDER-01, DECIDER-02
#[test]
fn decider() {
    insta::assert_snapshot!(expand(quote! {
        #[decider]
        impl Sample {
            #[decide]
            fn which(&mut self) -> Result<String, Error> { Ok(String::new()) }
        }
    }));
}

// Spec: CHUNK-EXC-01
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
