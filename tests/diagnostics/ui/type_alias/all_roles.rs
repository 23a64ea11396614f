// Spec: ART-01
// A type without roles, in each of them.
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Nothing;

#[item_reader]
type ItemReader = Nothing;

#[item_processor]
type ItemProcessor = Nothing;

#[item_writer]
type ItemWriter = Nothing;

#[checkpoint_algorithm]
type CheckpointAlgorithm = Nothing;

#[skip_policy]
type SkipPolicy = Nothing;

#[batchlet]
type Batchlet = Nothing;

#[job_listener]
type JobListener = Nothing;

#[step_listener]
type StepListener = Nothing;

#[checkpoint_listener]
type CheckpointListener = Nothing;
#[chunk_listener]
type ChunkListener = Nothing;

#[item_read_listener]
type ItemReadListener = Nothing;

#[item_process_listener]
type ItemProcessListener = Nothing;

#[item_write_listener]
type ItemWriteListener = Nothing;

#[skip_listener]
type SkipListener = Nothing;

#[retry_listener]
type RetryListener = Nothing;

#[partition_algorithm]
type PartitionAlgorithm = Nothing;

#[logical_tx]
type LogicalTx = Nothing;

#[sub_job_collector]
type SubJobCollector = Nothing;

#[sub_job_analyzer]
type SubJobAnalyzer = Nothing;

#[decider]
type Decider = Nothing;

fn main() {}
