//! Artifacts of the example: numbers from ranges into a table, and their sum through collectors.

use std::fs::OpenOptions;
use std::path::PathBuf;

use batch_runtime::prelude::*;
use diesel::connection::SimpleConnection;
use diesel::prelude::*;

/// Creates the table `written`. It has no key, so that a row written twice would be visible.
///
/// # Errors
/// If the database rejects the statement.
pub fn create_table(file: &str) -> Result<(), Box<dyn std::error::Error>> {
    let table = "CREATE TABLE IF NOT EXISTS written (n INTEGER, step TEXT, pid INTEGER)";
    Ok(SqliteConnection::establish(file)?.batch_execute(table)?)
}

/// Plans ranges of numbers.
#[derive(BatchArtifact)]
struct Ranges {
    #[batch_property(name = "partitions", value = "4")]
    partitions: u32,
    #[batch_property(name = "size", value = "50")]
    size: u32,
}

#[partition_algorithm("Ranges")]
impl Ranges {
    #[calculate_partitions]
    fn plan(&mut self) -> PartitionPlan {
        PartitionPlan::with_properties((0..self.partitions).map(|number| {
            let from = number * self.size;
            [("from", from.to_string()), ("to", (from + self.size).to_string())]
        }))
    }
}

/// Reads the numbers of a range.
#[derive(BatchArtifact)]
struct Range {
    #[batch_property(name = "from")]
    from: u32,
    #[batch_property(name = "to")]
    to: u32,
    next: u32,
}

#[item_reader("Range")]
impl Range {
    #[open]
    fn open(&mut self, checkpoint: Option<u32>) {
        self.next = checkpoint.unwrap_or(self.from);
    }
    #[read_item]
    fn read(&mut self) -> Option<u32> {
        (self.next < self.to).then(|| {
            self.next += 1;
            self.next - 1
        })
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) -> u32 {
        self.next
    }
}

/// Returns numbers unchanged, and fails at one of them.
#[derive(BatchArtifact)]
struct Trouble {
    #[batch_context]
    job: JobContext,
    /// The number to fail at.
    #[batch_property(name = "trouble.at")]
    at: Option<u32>,
    /// The kind of failure: `fail`, `die`, `freeze`.
    #[batch_property(name = "trouble", value = "fail")]
    what: String,
    /// A file that the first failure creates; later calls do not fail.
    #[batch_property(name = "trouble.once")]
    once: Option<PathBuf>,
}

impl Trouble {
    /// Stops the process as SIGSTOP does. Waits for SQLite's write lock first: a thread that holds it, such as one that renews
    /// the lease, must not be frozen with it.
    fn freeze(&self) -> Result<(), BatchError> {
        let mut connection = self.job.connect()?;
        connection.sqlite()?.batch_execute("BEGIN IMMEDIATE; COMMIT")?;
        Ok(signal_hook::low_level::raise(signal_hook::consts::SIGSTOP)?)
    }

    fn is_first(&self) -> bool {
        match &self.once {
            Some(file) => OpenOptions::new().write(true).create_new(true).open(file).is_ok(),
            None => true,
        }
    }
}

#[item_processor("Trouble")]
impl Trouble {
    #[process_item]
    fn process(&mut self, number: &u32) -> Result<Option<u32>, BatchError> {
        if self.at == Some(*number) && self.is_first() {
            match self.what.as_str() {
                "die" => std::process::abort(),
                "freeze" => self.freeze()?,
                _ => return Err(BatchError::msg(format!("there is trouble at {number}"))),
            }
        }
        Ok(Some(*number))
    }
}

/// Writes numbers into the table `written`, in the transaction of the chunk.
#[derive(BatchArtifact)]
struct Rows {
    #[batch_context]
    step: StepContext,
}

#[item_writer("Rows")]
impl Rows {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}
    #[write_items]
    fn write(&mut self, numbers: &[u32], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        let (step, pid) = (self.step.id(), std::process::id());
        for number in numbers {
            let insert = format!("INSERT INTO written VALUES ({number}, '{step}', {pid})");
            tx.sqlite()?.batch_execute(&insert)?;
        }
        Ok(())
    }
    #[get_checkpoint_info]
    fn checkpoint(&mut self) {}
}

/// Sends the number of items that its partition has written so far.
#[derive(BatchArtifact)]
struct Written {
    #[batch_context]
    step: StepContext,
}

#[sub_job_collector("Written")]
impl Written {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Option<(u32, i64)> {
        Some((std::process::id(), self.step.metrics().len() as i64))
    }
}

/// Counts payloads and the processes that sent them, and sets the exit status of the element.
#[derive(BatchArtifact)]
struct Senders {
    #[batch_context]
    job: JobContext,
    payloads: u32,
    pids: std::collections::BTreeSet<u32>,
}

#[sub_job_analyzer("Senders")]
impl Senders {
    #[analyze_collector_data]
    fn data(&mut self, (pid, _): (u32, i64)) {
        self.payloads += 1;
        self.pids.insert(pid);
        let own = self.pids.contains(&std::process::id());
        self.job.set_exit_status(Some(&format!(
            "{} payloads of {} processes, own: {own}",
            self.payloads,
            self.pids.len()
        )));
    }
    #[analyze_exit_status]
    fn status(&mut self, _exit_status: &str) {}
}

/// Runs until it is stopped.
#[derive(BatchArtifact)]
struct Patient {
    stopped: std::sync::atomic::AtomicBool,
}

#[batchlet("Patient")]
impl Patient {
    #[process]
    fn wait(&self) -> String {
        println!("waiting");
        while !self.stopped.load(std::sync::atomic::Ordering::Relaxed) {
            std::thread::yield_now();
        }
        "STOPPED BY REQUEST".into()
    }
    #[cancel]
    fn cancel(&self) {
        self.stopped.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}
