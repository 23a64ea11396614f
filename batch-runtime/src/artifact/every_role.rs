//! Properties and contexts reach the artifacts of every role. One test per role.

use std::collections::BTreeMap;
use std::sync::Arc;

use batch_macros::*;

use super::registry;
use super::{BatchArtifact, ContextScope, InjectionScope, PartitionPlan, Properties, Role};
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

macro_rules! roles {
    ($($attribute:ident, $role:ident, $artifact:ident { $($methods:tt)* })*) => {$(
        #[derive(BatchArtifact)]
        struct $artifact {
            #[batch_property]
            given: String,
            #[batch_property(name = "number", value = "5")]
            parsed: u8,
            #[batch_property]
            list: Vec<u32>,
            #[batch_property(name = "not.given", value = "the default")]
            defaulted: String,
            #[batch_property]
            absent: Option<String>,
            #[batch_context]
            job: Option<JobContext>,
            #[batch_context]
            step: Option<StepContext>,
            #[batch_context]
            flow: FlowContext,
            #[batch_context]
            split: Option<SplitContext>,
        }

        #[$attribute]
        impl $artifact {
            $($methods)*
        }

        /// Spec: BPROP-03, BPROP-04, BPROP-05, BPROP-10, CTX-02, CTX-03, CTX-05
        #[test]
        fn $attribute() {
            let (properties, contexts) = (properties(), contexts());
            let made = $artifact::inject(&InjectionScope::new(&properties, &contexts)).unwrap();
            assert_eq!((made.given.as_str(), made.parsed), ("from the XML", 8));
            assert_eq!((made.list, made.defaulted.as_str()), (vec![1, 2], "the default"));
            assert_eq!(made.absent, None);
            assert!(made.job.is_none() && made.step.is_none());
            assert_eq!((made.flow.id(), made.split.as_ref().map(SplitContext::id)), ("flow", Some("split")));

            let is_it = |one: &&&registry::ArtifactRegistration| one.name == stringify!($artifact);
            let linked: Vec<_> = registry::linked().collect();
            let registered = linked.iter().find(is_it).expect("it is registered");
            assert_eq!(registered.role(), Role::$role);
            assert_eq!((registered.properties)().len(), 5);
            assert_eq!((registered.contexts)().len(), 4);
        }
    )*};
}

roles! {
    item_reader, ItemReader, SampleReader {
        #[open]
        fn open(&mut self, _checkpoint: Option<u8>) {}
        #[read_item]
        fn read(&mut self) -> Option<u8> { None }
        #[get_checkpoint_info]
        fn checkpoint(&self) -> u8 { self.parsed }
    }
    item_processor, ItemProcessor, SampleProcessor {
        #[process_item]
        fn process(&mut self, item: &u8) -> Option<u8> { Some(*item) }
    }
    item_writer, ItemWriter, SampleWriter {
        #[open]
        fn open(&mut self, _checkpoint: Option<u8>) {}
        #[write_items]
        fn write(&mut self, _items: &[u8]) {}
        #[get_checkpoint_info]
        fn checkpoint(&self) -> u8 { self.parsed }
    }
    checkpoint_algorithm, CheckpointAlgorithm, SampleAlgorithm {
        #[is_ready_to_checkpoint]
        fn is_ready(&mut self) -> bool { true }
    }
    batchlet, Batchlet, SampleBatchlet {
        #[process]
        fn run(&self) -> String { self.given.clone() }
        #[cancel]
        fn cancel(&self) {}
    }
    job_listener, JobListener, SampleJobListener {
        #[after_job]
        fn after(&mut self) {}
    }
    step_listener, StepListener, SampleStepListener {
        #[after_step]
        fn after(&mut self) {}
    }
    checkpoint_listener, CheckpointListener, SampleCheckpointListener {
        #[after_checkpoint]
        fn after(&mut self) {}
    }
    item_read_listener, ItemReadListener, SampleReadListener {
        #[after_read]
        fn after(&mut self, _item: &u8) {}
    }
    item_process_listener, ItemProcessListener, SampleProcessListener {
        #[before_process]
        fn before(&mut self, _item: &u8) {}
    }
    item_write_listener, ItemWriteListener, SampleWriteListener {
        #[after_write]
        fn after(&mut self, _items: &[u8]) {}
    }
    skip_listener, SkipListener, SampleSkipListener {
        #[on_skip_in_read]
        fn skipped(&mut self, _ex: &crate::BatchError) {}
    }
    retry_listener, RetryListener, SampleRetryListener {
        #[on_retry_item]
        fn again(&mut self, _ex: &crate::BatchError, _item: &u8) {}
    }
    partition_algorithm, PartitionAlgorithm, SampleAlgorithmOfPartitions {
        #[calculate_partitions]
        fn calculate(&mut self) -> PartitionPlan { PartitionPlan::new(1) }
    }
    logical_tx, LogicalTX, SampleLogicalTx {
        #[logical_tx_begin]
        fn begin(&mut self) {}
    }
    sub_job_collector, SubJobCollector, SampleCollector {
        #[collect_sub_job_data]
        fn collect(&mut self) -> Option<u8> { Some(self.parsed) }
    }
    sub_job_analyzer, SubJobAnalyzer, SampleAnalyzer {
        #[analyze_exit_status]
        fn ended(&mut self, _exit_status: &str) {}
    }
    decider, Decider, SampleDecider {
        #[decide]
        fn decide(&mut self) -> String { self.given.clone() }
    }
}
