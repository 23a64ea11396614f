//! Properties and contexts reach the artifacts of every role, concrete and generic ones. One test per role.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use batch_macros::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Role;
use crate::artifact::{BatchArtifact, ContextScope, InjectionScope, PartitionPlan, Properties, linked};
use crate::context::{FlowContext, JobContext, SplitContext, StepContext};

fn properties() -> Properties {
    let xml = [("list", "1, 2"), ("given", "from the XML"), ("number", "7")];
    let parameters = [("number".to_owned(), "8".to_owned())];
    Properties {
        parameters: Arc::new(BTreeMap::from(parameters)),
        xml: xml
            .map(|(name, value)| (name.to_owned(), value.to_owned(), "job.xml:1:1".to_owned()))
            .into(),
        ..Properties::default()
    }
}

fn contexts() -> ContextScope {
    ContextScope {
        flow: Some(FlowContext::new("flow")),
        split: Some(SplitContext::new("split")),
        ..ContextScope::default()
    }
}

/// The bounds that the methods below need on their item type.
trait Item:
    Copy + Default + Serialize + DeserializeOwned + FromStr<Err: Display> + Send + Sync + 'static
{
}

impl<T> Item for T where
    T: Copy + Default + Serialize + DeserializeOwned + FromStr<Err: Display> + Send + Sync + 'static
{
}

macro_rules! artifact {
    ($name:ident $(<$parameter:ident>)?, $value:ty) => {
        #[derive(BatchArtifact)]
        struct $name $(<$parameter>)? {
            #[batch_property]
            given: String,
            #[batch_property(name = "number", value = "5")]
            parsed: $value,
            #[batch_property]
            list: Vec<$value>,
            #[batch_property(name = "not.given", value = "the default")]
            defaulted: String,
            #[batch_property]
            absent: Option<$value>,
            #[batch_context]
            job: Option<JobContext>,
            #[batch_context]
            step: Option<StepContext>,
            #[batch_context]
            flow: FlowContext,
            #[batch_context]
            split: Option<SplitContext>,
        }
    };
}

macro_rules! check {
    ($artifact:ty, $number:ty, $name:literal, $role:ident) => {
        let (properties, contexts) = (properties(), contexts());
        let made = <$artifact>::inject(&InjectionScope::new(&properties, &contexts)).unwrap();
        assert_eq!((made.given.as_str(), made.parsed), ("from the XML", 8));
        assert_eq!((made.list, made.defaulted.as_str()), (vec![1, 2], "the default"));
        assert_eq!(made.absent, None::<$number>);
        assert!(made.job.is_none() && made.step.is_none());
        assert_eq!(
            (made.flow.id(), made.split.as_ref().map(SplitContext::id)),
            ("flow", Some("split"))
        );

        let registered: Vec<_> = linked::artifacts()
            .filter(|one| one.type_id == TypeId::of::<$artifact>())
            .collect();
        let [registered] = registered.as_slice() else {
            panic!("it is registered once, not {} times", registered.len());
        };
        assert_eq!((registered.role(), registered.name), (Role::$role, $name));
        assert_eq!(registered.class, concat!(module_path!(), "::", $name));
        assert_eq!((registered.properties)().len(), 5);
        assert_eq!((registered.contexts)().len(), 4);
    };
}

// The methods of each role, in a concrete type, where `T` is an alias, and in a generic one.
macro_rules! roles {
    ($($attribute:ident, $role:ident { $($methods:tt)* })*) => {
        #[test]
        fn every_role_has_a_test() {
            let mut tested = [$(Role::$role),*];
            tested.sort_unstable();
            assert_eq!(tested, Role::ALL);
        }

        $(
            mod $attribute {
                use super::*;

                #[allow(dead_code)]
                type T = u8;

                artifact!(Concrete, u8);

                #[$attribute]
                impl Concrete {
                    $($methods)*
                }

                artifact!(Generic<T>, T);

                #[$attribute]
                impl<T: Item> Generic<T> {
                    $($methods)*
                }

                #[$attribute]
                type Alias = Generic<u16>;

                // Spec: BPROP-03, BPROP-04, BPROP-05, BPROP-10, CTX-02, CTX-03, CTX-05
                #[test]
                fn is_injected_and_registered() {
                    check!(Concrete, u8, "Concrete", $role);
                    check!(Generic<u16>, u16, "Alias", $role);
                }
            }
        )*
    };
}

roles! {
    item_reader, ItemReader {
        #[open]
        fn open(&mut self, _checkpoint: Option<T>) {}
        #[read_item]
        fn read(&mut self) -> Option<T> { None }
        #[get_checkpoint_info]
        fn checkpoint(&self) -> T { self.parsed }
    }
    item_processor, ItemProcessor {
        #[process_item]
        fn process(&mut self, item: &T) -> Option<T> { Some(*item) }
    }
    item_writer, ItemWriter {
        #[open]
        fn open(&mut self, _checkpoint: Option<T>) {}
        #[write_items]
        fn write(&mut self, _items: &[T]) {}
        #[get_checkpoint_info]
        fn checkpoint(&self) -> T { self.parsed }
    }
    checkpoint_algorithm, CheckpointAlgorithm {
        #[is_ready_to_checkpoint]
        fn is_ready(&mut self) -> bool { true }
    }
    skip_policy, SkipPolicy {
        #[should_skip]
        fn skips(&mut self, _failed: &crate::FailedItem<'_>) -> bool { true }
    }
    batchlet, Batchlet {
        #[process]
        fn run(&self) -> String { self.given.clone() }
        #[cancel]
        fn cancel(&self) {}
    }
    job_listener, JobListener {
        #[after_job]
        fn after(&mut self) {}
    }
    step_listener, StepListener {
        #[after_step]
        fn after(&mut self) {}
    }
    checkpoint_listener, CheckpointListener {
        #[after_checkpoint]
        fn after(&mut self) {}
    }
    chunk_listener, ChunkListener {
        #[after_chunk]
        fn after(&mut self) {}
    }
    item_read_listener, ItemReadListener {
        #[after_read]
        fn after(&mut self, _item: &T) {}
    }
    item_process_listener, ItemProcessListener {
        #[before_process]
        fn before(&mut self, _item: &T) {}
    }
    item_write_listener, ItemWriteListener {
        #[after_write]
        fn after(&mut self, _items: &[T]) {}
    }
    skip_listener, SkipListener {
        #[on_skip_in_read]
        fn skipped(&mut self, _ex: &crate::BatchError) {}
    }
    retry_listener, RetryListener {
        #[on_retry_item]
        fn again(&mut self, _ex: &crate::BatchError, _item: &T) {}
    }
    partition_algorithm, PartitionAlgorithm {
        #[calculate_partitions]
        fn calculate(&mut self) -> PartitionPlan { PartitionPlan::new(1) }
    }
    logical_tx, LogicalTX {
        #[logical_tx_begin]
        fn begin(&mut self) {}
    }
    sub_job_collector, SubJobCollector {
        #[collect_sub_job_data]
        fn collect(&mut self) -> Option<T> { Some(self.parsed) }
    }
    sub_job_analyzer, SubJobAnalyzer {
        #[analyze_exit_status]
        fn ended(&mut self, _exit_status: &str) {}
    }
    decider, Decider {
        #[decide]
        fn decide(&mut self) -> String { self.given.clone() }
    }
}
