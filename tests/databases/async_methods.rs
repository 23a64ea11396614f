//! `async` methods of artifacts, and the asynchronous calls of the operator.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use batch_runtime::execution::StepExecution;
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchRuntimeBuilder, BatchStatus, BuildError};
use batch_tests::stage::{Stage, say};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// Returns the name of a thread of the current tokio runtime, after a timer of it.
async fn place() -> String {
    let task = tokio::spawn(async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        std::thread::current().name().unwrap_or_default().to_owned()
    });
    task.await.unwrap()
}

/// Reads `1..=items`.
#[derive(BatchArtifact)]
struct AsyncReader {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "items")]
    items: u64,
    last: u64,
}

#[item_reader]
impl AsyncReader {
    #[open]
    async fn open(&mut self, checkpoint: Option<u64>) {
        self.last = checkpoint.unwrap_or(0);
        say(&self.log, format!("open {checkpoint:?} on {}", place().await));
    }
    #[read_item]
    async fn read(&mut self) -> Result<Option<u64>, std::io::Error> {
        tokio::task::yield_now().await;
        self.last += 1;
        Ok((self.last <= self.items).then_some(self.last))
    }
    #[get_checkpoint_info]
    async fn checkpoint(&mut self) -> u64 {
        self.last
    }
    #[get_item_count]
    async fn count(&mut self) -> Option<u64> {
        Some(self.items)
    }
    #[close]
    async fn close(&mut self) {
        say(&self.log, format!("close on {}", place().await));
    }
}

#[derive(BatchArtifact)]
struct AsyncProcessor {
    #[batch_property(name = "wrong")]
    wrong: Option<u64>,
    /// The expected name of its tokio threads.
    #[batch_property(name = "thread")]
    thread: Option<String>,
}

#[item_processor]
impl AsyncProcessor {
    #[process_item]
    async fn process(&mut self, item: &u64) -> Result<Option<u64>, std::io::Error> {
        if let Some(thread) = &self.thread {
            assert_eq!(place().await, *thread);
        }
        match self.wrong == Some(*item) {
            true => Err(std::io::Error::other(format!("{item} is wrong"))),
            false => Ok((!item.is_multiple_of(3)).then_some(item * 10)),
        }
    }
}

#[derive(BatchArtifact)]
struct AsyncWriter {
    #[batch_property(name = "log")]
    log: String,
}

#[item_writer]
impl AsyncWriter {
    #[write_items]
    async fn write(&mut self, items: &[u64]) -> Result<(), std::io::Error> {
        say(&self.log, format!("write {items:?} on {}", place().await));
        Ok(())
    }
}

/// Spec: ART-15
#[decider("AsyncDecider")]
async fn decide(steps: &[StepExecution], #[batch_property(value = "AFTER")] what: &str) -> String {
    tokio::task::yield_now().await;
    format!("{what} {}", steps[0].step_name)
}

#[derive(BatchArtifact)]
struct AsyncListener {
    #[batch_property(name = "log")]
    log: String,
}

#[job_listener]
impl AsyncListener {
    #[before_job]
    async fn before(&mut self) {
        say(&self.log, format!("before the job on {}", place().await));
    }
}

#[derive(BatchArtifact)]
struct AsyncBatchlet {
    #[batch_property(name = "log")]
    log: String,
    stop: Notify,
}

#[batchlet]
impl AsyncBatchlet {
    #[process]
    async fn process(&self) -> String {
        say(&self.log, format!("process on {}", place().await));
        self.stop.notified().await;
        "NOTIFIED".to_owned()
    }
    #[cancel]
    fn cancel(&self) {
        self.stop.notify_one();
    }
}

/// Not `async` itself, but within the tokio runtime.
#[derive(BatchArtifact)]
struct SpawningBatchlet {
    #[batch_property(name = "log")]
    log: String,
}

#[batchlet]
impl SpawningBatchlet {
    #[process]
    fn process(&self) {
        let handle = tokio::runtime::Handle::current();
        say(&self.log, handle.block_on(place()));
    }
}

#[derive(BatchArtifact)]
struct PanickingBatchlet;

#[batchlet]
impl PanickingBatchlet {
    #[process]
    async fn process(&self) {
        tokio::task::yield_now().await;
        panic!("after the first pause");
    }
}

fn job(body: &str) -> String {
    format!(
        r#"<job id="job" xmlns="http://batch.jsr352/jsl">
             {body}</job>"#
    )
}

/// Threads have the name of the runtime.
fn tokio_runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("of-the-program")
        .enable_all()
        .build()
        .unwrap()
}

fn on(runtime: &Runtime) -> impl FnOnce(BatchRuntimeBuilder) -> BatchRuntimeBuilder {
    let handle = runtime.handle().clone();
    |builder| builder.tokio_handle(handle)
}

const CHUNK: &str = r#"<listeners><listener ref="AsyncListener"/></listeners>
    <step id="load" next="decide"><properties><property name="items" value="5"/>PROPERTIES</properties>
      <chunk reader="AsyncReader" processor="AsyncProcessor" writer="AsyncWriter" commit-interval="3"/></step>
    <decision id="decide" ref="AsyncDecider"><end on="AFTER load" exit-status="DECIDED"/><fail on="*"/></decision>"#;

/// In every mode of a chunk step. Without a handle, the methods run on a runtime of the engine.
///
/// Spec: ASYNC-01, ASYNC-02
#[test]
fn methods_of_all_roles_may_be_async() {
    let tokio = tokio_runtime();
    for properties in [
        "",
        r#"<property name="batch.chunk.pipeline" value="true"/>"#,
        r#"<property name="batch.chunk.processors" value="2"/>"#,
    ] {
        let xml = job(&CHUNK.replace("PROPERTIES", properties));
        for (stage, thread) in [
            (Stage::new(&xml), "batch-async"),
            (Stage::configured(&xml, on(&tokio)), "of-the-program"),
        ] {
            let id = stage.start("job", [("log", stage.log_name()), ("thread", thread)]);
            let ended = stage.operator().job_execution(id).unwrap().unwrap();
            assert_eq!(
                (ended.status, ended.exit_status.as_str()),
                (BatchStatus::Completed, "DECIDED"),
                "{}",
                stage.tree(id)
            );
            let expected = [
                "before the job on T",
                "open None on T",
                "write [10, 20] on T",
                "write [40, 50] on T",
                "close on T",
            ];
            assert_eq!(
                stage.log(),
                expected.map(|line| line.replace('T', thread)),
                "{properties}"
            );
        }
    }
}

/// Errors and panics of `async` methods count as the artifact's; a restart resumes at the checkpoint.
///
/// Spec: ASYNC-01
#[test]
fn async_methods_fail_like_others() {
    let wrong = "";
    let stage = Stage::new(&job(&CHUNK.replace("PROPERTIES", wrong)));
    let parameters = [("log", stage.log_name()), ("wrong", "4")];
    let id = stage.start("job", parameters);
    let ended = stage.operator().job_execution(id).unwrap().unwrap();
    assert_eq!(ended.status, BatchStatus::Failed);
    let message = ended.exit_message;
    assert!(
        message.starts_with("4 is wrong\nthrown by #[process_item] of item processor `AsyncProcessor`"),
        "{message}"
    );
    let stage_log = stage.log();
    assert_eq!(stage_log[2], "write [10, 20] on batch-async", "{stage_log:?}");
    let operator = stage.operator();
    let again = operator.restart(id, [("wrong", "0")]).unwrap();
    assert_eq!(operator.wait(again).unwrap().status, BatchStatus::Completed);
    assert!(
        stage.log().contains(&"open Some(3) on batch-async".to_owned()),
        "{:?}",
        stage.log()
    );

    let stage = Stage::new(&job(
        r#"<step id="one"><batchlet ref="PanickingBatchlet"/></step>"#,
    ));
    let id = stage.start("job", ());
    let ended = stage.operator().job_execution(id).unwrap().unwrap();
    let message = ended.exit_message;
    assert!(
        message.contains("after the first pause") && message.contains("PanickingBatchlet"),
        "{message}"
    );
}

/// The threads of partitions, too.
///
/// Spec: ASYNC-02
#[test]
fn all_methods_are_called_within_the_runtime_of_the_program() {
    let tokio = tokio_runtime();
    let xml = job(r#"<step id="all"><batchlet ref="SpawningBatchlet"/>
             <partition instances="3"/></step>"#);
    let stage = Stage::configured(&xml, on(&tokio));
    let id = stage.start("job", [("log", stage.log_name())]);
    assert_eq!(stage.log(), ["of-the-program"; 3], "{}", stage.tree(id));
}

/// `async` methods of several artifacts could wait for each other.
///
/// Spec: ASYNC-02
#[test]
fn a_runtime_with_one_thread_is_rejected() {
    let one = Builder::new_current_thread().enable_all().build().unwrap();
    let built = BatchRuntime::builder()
        .repository("memory:")
        .tokio_handle(one.handle().clone())
        .build();
    let Err(error @ BuildError::CurrentThreadRuntime) = built else {
        panic!("it was built")
    };
    assert!(error.to_string().contains("new_multi_thread"), "{error}");
}

/// The calls block no thread of the runtime: it has one, which runs the job's methods too.
///
/// Spec: ASYNC-03
#[test]
fn the_operator_has_asynchronous_calls() {
    let tokio = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let stage = Stage::configured(
        &job(r#"<step id="wait"><batchlet ref="AsyncBatchlet"/></step>"#),
        on(&tokio),
    );
    let (operator, log) = (stage.operator(), stage.log_name().to_owned());
    let all = tokio.spawn(async move {
        let id = operator
            .launch_async("job", [("log", log.as_str())])
            .await
            .unwrap();
        let waiting = tokio::spawn({
            let operator = operator.clone();
            async move { operator.wait_async(id).await }
        });
        assert!(operator.stop_async(id).await.unwrap());
        assert_eq!(waiting.await.unwrap().unwrap().status, BatchStatus::Stopped);
        let again = operator.restart_async(id, ()).await.unwrap();
        operator.stop_async(again).await.unwrap();
        assert_eq!(
            operator.wait_async(again).await.unwrap().status,
            BatchStatus::Stopped
        );
        let unknown = operator.start_async("jbo", ()).await.unwrap_err();
        assert!(unknown.to_string().contains("did you mean `job`"), "{unknown}");
    });
    tokio.block_on(all).unwrap();
}

static OWN: AtomicUsize = AtomicUsize::new(0);

/// Awaits its own execution.
#[derive(BatchArtifact)]
struct SelfAwaiting {
    #[batch_context]
    job: JobContext,
}

#[batchlet]
impl SelfAwaiting {
    #[process]
    async fn process(&self) {
        let (operator, id) = (self.job.job_operator().unwrap(), self.job.execution_id());
        let own = operator.wait_async(id).await.unwrap();
        assert_eq!(own.status, BatchStatus::Started);
        assert!(!operator.stop_async(id).await.unwrap());
        OWN.fetch_add(1, Ordering::Relaxed);
    }
}

/// As with the calls that block. Spec: ASYNC-03, D-60
#[test]
fn an_execution_does_not_await_itself() {
    let stage = Stage::new(&job(r#"<step id="one"><batchlet ref="SelfAwaiting"/></step>"#));
    let id = stage.start("job", ());
    assert_eq!(OWN.load(Ordering::Relaxed), 1, "{}", stage.tree(id));
}

/// Spec: ASYNC-03, CLI-07
#[test]
fn a_dropped_call_runs_to_its_end_and_a_shutdown_is_awaited() {
    let tokio = tokio_runtime();
    let stage = Stage::configured(
        &job(r#"<step id="wait"><batchlet ref="AsyncBatchlet"/></step>"#),
        on(&tokio),
    );
    let runtime = stage.another_runtime_with(on(&tokio));
    let operator = runtime.job_operator();
    tokio.block_on(async {
        // It is polled once, and dropped. On a busy machine it may be done by then; so another one is launched.
        let mut number = 0;
        loop {
            number += 1;
            let number = number.to_string();
            let parameters = [("log", stage.log_name()), ("number", number.as_str())];
            let launch = operator.launch_async("job", parameters);
            if tokio::time::timeout(Duration::ZERO, launch).await.is_err() {
                break;
            }
        }
        while operator.running_executions("job").unwrap().len() < number {
            tokio::task::yield_now().await;
        }
        assert!(
            runtime
                .shutdown_async(Duration::from_secs(60))
                .await
                .unwrap()
                .is_empty()
        );
    });
    let id = operator
        .job_executions(operator.job_instances("job", 0, 1).unwrap()[0].id)
        .unwrap()[0]
        .id;
    assert_eq!(
        operator.job_execution(id).unwrap().unwrap().status,
        BatchStatus::Stopped
    );
}
