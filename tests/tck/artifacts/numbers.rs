//! The job whose artifacts fail once to be retried and once more to be skipped. Their state machines check that the
//! listeners were called in between, and that a rollback reopens the reader at its checkpoint.

use batch_runtime::ChunkTransaction;
use batch_runtime::prelude::*;
use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::exceptions::{MyParentException, is_parent};
use super::values::Notes;

/// The statements that create the table: 20 numbers with the quantity 10.
pub(crate) const CREATE_NUMBERS: [&str; 2] = [
    "CREATE TABLE NUMBERS (ITEM INTEGER PRIMARY KEY, QUANTITY INTEGER NOT NULL)",
    "WITH RECURSIVE N(I) AS (SELECT 1 UNION ALL SELECT I + 1 FROM N WHERE I < 20) INSERT INTO NUMBERS SELECT I, 10 FROM N",
];

/// The number of rows.
const NUMBERS: i64 = 20;

#[derive(Clone, QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    item: i64,
    #[diesel(sql_type = BigInt)]
    quantity: i64,
}

/// Returns the rows.
fn numbers(job: &JobContext) -> Result<Vec<Number>, BatchError> {
    let query = "SELECT ITEM AS item, QUANTITY AS quantity FROM NUMBERS ORDER BY ITEM";
    Ok(diesel::sql_query(query).load(job.connect()?.sqlite()?)?)
}

/// Stores the quantities.
fn update(numbers: &[Number], tx: &mut ChunkTransaction) -> QueryResult<()> {
    for number in numbers {
        diesel::sql_query("UPDATE NUMBERS SET QUANTITY = ? WHERE ITEM = ?")
            .bind::<BigInt, _>(number.quantity)
            .bind::<BigInt, _>(number.item)
            .execute(tx.sqlite()?)?;
    }
    Ok(())
}

/// Returns the notes of the step, and creates them.
fn notes(step: &StepContext) -> Result<std::sync::Arc<Notes>, BatchError> {
    if step.transient_user_data::<Notes>()?.is_none() {
        step.set_transient_user_data(Notes::default());
    }
    step.transient_user_data()?
        .ok_or_else(|| BatchError::msg("the transient user data is lost"))
}

/// Reads 20 numbers with the quantity of the first.
#[derive(BatchArtifact)]
struct InitReader {
    #[batch_context]
    job: JobContext,
    count: i64,
}

#[item_reader("retryInitReader")]
impl InitReader {
    #[open]
    fn open(&mut self, _checkpoint: Option<i64>) {}

    #[read_item]
    fn read(&mut self) -> Result<Option<Number>, BatchError> {
        if self.count == NUMBERS {
            return Ok(None);
        }
        self.count += 1;
        let first = numbers(&self.job)?.into_iter().next();
        Ok(first.map(|number| Number {
            item: self.count,
            ..number
        }))
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> i64 {
        self.count
    }
}

/// Replaces the quantity.
#[derive(BatchArtifact)]
struct InitProcessor {
    #[batch_property(name = "init.numbers.quantity")]
    quantity: i64,
}

#[item_processor("retryInitProcessor")]
impl InitProcessor {
    #[process_item]
    fn process(&mut self, number: &Number) -> Option<Number> {
        Some(Number {
            quantity: self.quantity,
            ..number.clone()
        })
    }
}

/// Stores the quantities.
#[derive(BatchArtifact)]
struct InitWriter;

#[item_writer("retryInitWriter")]
impl InitWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, numbers: &[Number], tx: &mut ChunkTransaction) -> QueryResult<()> {
        update(numbers, tx)
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// The states of an artifact that fails twice.
#[derive(Default)]
enum State {
    /// Has not failed, or has done both.
    #[default]
    Normal,
    /// Has failed for the first time; the call is to be retried.
    Retry,
    /// Was retried.
    Retried,
    /// Has failed for the second time; the item is to be skipped.
    Skip,
}

/// Fails at a call to be retried, and at a later one to be skipped.
#[derive(Default)]
struct Failing {
    state: State,
    /// The number of the call that fails; 0: none.
    fail_at: i64,
}

impl Failing {
    /// Fails, or checks what the listeners of the operation have noted, before a call. The second failure is at the call
    /// `fails_again_at` or a later one.
    fn call(
        &mut self,
        call: i64,
        fails_again_at: i64,
        operation: &str,
        step: &StepContext,
    ) -> Result<(), BatchError> {
        let fails = self.fail_at != 0;
        match self.state {
            State::Normal if fails && call >= self.fail_at => {
                self.state = State::Retry;
                return Err(MyParentException("fails to be retried").into());
            }
            State::Retried if fails && call >= fails_again_at => {
                self.state = State::Skip;
                self.fail_at = 0;
                return Err(MyParentException("fails to be skipped").into());
            }
            State::Normal | State::Retried => {}
            State::Retry => {
                expect_noted(step, &format!("retry.{operation}"))?;
                self.state = State::Retried;
            }
            State::Skip => {
                expect_noted(step, &format!("skip.{operation}"))?;
                self.state = State::Normal;
            }
        }
        Ok(())
    }
}

/// Fails unless a listener has noted that it was called with the right exception.
fn expect_noted(step: &StepContext, call: &str) -> Result<(), BatchError> {
    if notes(step)?.is(call, "true") {
        return Ok(());
    }
    Err(BatchError::msg(format!("the listener has not noted `{call}`")))
}

/// Reads the numbers.
#[derive(BatchArtifact)]
struct RetryReader {
    #[batch_property(name = "forced.fail.count.read")]
    fail_at: i64,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    failing: Failing,
    numbers: Vec<Number>,
    /// The next item, from 1.
    next: i64,
}

#[item_reader("retryReader")]
impl RetryReader {
    #[open]
    fn open(&mut self, checkpoint: Option<i64>) -> Result<(), BatchError> {
        self.failing.fail_at = self.fail_at;
        self.numbers = numbers(&self.job)?;
        self.next = checkpoint.unwrap_or(1);
        match checkpoint {
            Some(next) if !notes(&self.step)?.is("checkpoint.index", &next.to_string()) => Err(
                BatchError::msg(format!("reopened at {next}, which is not the last checkpoint")),
            ),
            _ => Ok(()),
        }
    }

    #[read_item]
    fn read(&mut self) -> Result<Option<Number>, BatchError> {
        self.failing.call(self.next, self.fail_at, "read", &self.step)?;
        let index = usize::try_from(self.next - 1)?;
        let number = self.numbers.get(index).cloned();
        self.next += i64::from(number.is_some());
        Ok(number)
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) -> Result<i64, BatchError> {
        notes(&self.step)?.set("checkpoint.index", self.next);
        Ok(self.next)
    }
}

/// Adds 1 to the quantity.
#[derive(BatchArtifact)]
struct RetryProcessor {
    #[batch_property(name = "forced.fail.count.process")]
    fail_at: i64,
    #[batch_context]
    step: StepContext,
    failing: Failing,
    count: i64,
}

#[item_processor("retryProcessor")]
impl RetryProcessor {
    #[process_item]
    fn process(&mut self, number: &Number) -> Result<Option<Number>, BatchError> {
        if self.count == 0 {
            self.failing.fail_at = self.fail_at;
            self.count = 1;
        }
        self.failing
            .call(self.count, self.fail_at, "process", &self.step)?;
        self.count += 1;
        Ok(Some(Number {
            quantity: number.quantity + 1,
            ..number.clone()
        }))
    }
}

/// Stores the quantities.
#[derive(BatchArtifact)]
struct RetryWriter {
    #[batch_property(name = "forced.fail.count.write")]
    fail_at: i64,
    #[batch_context]
    step: StepContext,
    failing: Failing,
    count: i64,
}

#[item_writer("retryWriter")]
impl RetryWriter {
    #[open]
    fn open(&mut self, _checkpoint: Option<()>) {}

    #[write_items]
    fn write(&mut self, numbers: &[Number], tx: &mut ChunkTransaction) -> Result<(), BatchError> {
        if self.count == 0 {
            self.failing.fail_at = self.fail_at;
            self.count = 1;
        }
        for number in numbers {
            self.failing
                .call(self.count, self.fail_at + 1, "write", &self.step)?;
            update(std::slice::from_ref(number), tx)?;
            self.count += 1;
        }
        Ok(())
    }

    #[get_checkpoint_info]
    fn checkpoint(&self) {}
}

/// Notes a call of a listener with the exception.
fn note(step: &StepContext, call: &str, ex: &BatchError) -> Result<(), BatchError> {
    notes(step)?.set(call, is_parent(ex));
    Ok(())
}

/// Notes a skipped read.
#[derive(BatchArtifact)]
struct SkippedRead {
    #[batch_context]
    step: StepContext,
}

#[skip_listener("numbersSkipReadListener")]
impl SkippedRead {
    #[on_skip_in_read]
    fn skipped(&mut self, ex: &BatchError) -> Result<(), BatchError> {
        note(&self.step, "skip.read", ex)
    }
}

/// Notes a skipped item.
#[derive(BatchArtifact)]
struct SkippedItem {
    #[batch_context]
    step: StepContext,
}

#[skip_listener("numbersSkipProcessListener")]
impl SkippedItem {
    #[on_skip_in_process]
    fn skipped(&mut self, ex: &BatchError, _number: &Number) -> Result<(), BatchError> {
        note(&self.step, "skip.process", ex)
    }
}

/// Notes a skipped write.
#[derive(BatchArtifact)]
struct SkippedWrite {
    #[batch_context]
    step: StepContext,
}

#[skip_listener("numbersSkipWriteListener")]
impl SkippedWrite {
    #[on_skip_in_write]
    fn skipped(&mut self, ex: &BatchError, _numbers: &[Number]) -> Result<(), BatchError> {
        note(&self.step, "skip.write", ex)
    }
}

/// Notes the retry of a read.
#[derive(BatchArtifact)]
struct RetriedRead {
    #[batch_context]
    step: StepContext,
}

#[retry_listener("numbersRetryReadListener")]
impl RetriedRead {
    #[on_retry_read_exception]
    fn retried(&mut self, ex: &BatchError) -> Result<(), BatchError> {
        note(&self.step, "retry.read", ex)
    }
}

/// Notes the retry of the processor.
#[derive(BatchArtifact)]
struct RetriedItem {
    #[batch_context]
    step: StepContext,
}

#[retry_listener("numbersRetryProcessListener")]
impl RetriedItem {
    #[on_retry_process_exception]
    fn retried(&mut self, ex: &BatchError, _number: &Number) -> Result<(), BatchError> {
        note(&self.step, "retry.process", ex)
    }
}

/// Notes the retry of a write.
#[derive(BatchArtifact)]
struct RetriedWrite {
    #[batch_context]
    step: StepContext,
}

#[retry_listener("numbersRetryWriteListener")]
impl RetriedWrite {
    #[on_retry_write_exception]
    fn retried(&mut self, ex: &BatchError, _numbers: &[Number]) -> Result<(), BatchError> {
        note(&self.step, "retry.write", ex)
    }
}
