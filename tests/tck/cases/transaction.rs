//! `TransactionTests`, on the tables of the repository's database.

use batch_runtime::BatchStatus::{Completed, Failed};
use batch_runtime::execution::MetricName;

use crate::artifacts::inventory::CREATE_INVENTORY;
use crate::artifacts::numbers::CREATE_NUMBERS;
use crate::case::{Case, case};

/// The milliseconds of the long delay: three times the timeout of one second that a step must not inherit. The TCK takes
/// 10 s by default.
const DELAY: u32 = 3000;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = retries();
    cases.extend(rollbacks());
    cases.extend(timeouts());
    cases
}

/// One artifact fails at the eighth item, to be retried and then to be skipped. The TCK leaves out the metrics; without
/// them the job would also complete if nothing failed.
fn retry(method: &'static str, [read, process, write]: [u32; 3], skips: MetricName) -> Case {
    case(method, "job_chunk_retryskip_rollback")
        .sql(&CREATE_NUMBERS)
        .start(format!(
            "init.numbers.quantity=10, forced.fail.count.read={read}, forced.fail.count.process={process}, \
             forced.fail.count.write={write}, dummy.delay.seconds=0, rollback=true, auto.commit=false, \
             jakarta.transaction.global.mode=true, jakarta.transaction.global.timeout=20"
        ))
        .is(Completed)
        .step_metric("step2", MetricName::RollbackCount, 1)
        .step_metric("step2", skips, 1)
}

fn retries() -> Vec<Case> {
    vec![
        retry(
            "TransactionTests.testTranRollbackRetryReadSkipRead",
            [8, 0, 0],
            MetricName::ReadSkipCount,
        ),
        retry(
            "TransactionTests.testTranRollbackRetryProcessSkipProcess",
            [0, 8, 0],
            MetricName::ProcessSkipCount,
        ),
        retry(
            "TransactionTests.testTranRollbackRetryWriteSkipWrite",
            [0, 0, 8],
            MetricName::WriteSkipCount,
        ),
    ]
}

fn rollbacks() -> Vec<Case> {
    let globaltran = |method| case(method, "job_chunk_globaltran").sql(&CREATE_INVENTORY);
    let parameters =
        "init.inventory.quantity=99, dummy.delay.seconds=0, jakarta.transaction.global.timeout=300";
    vec![
        globaltran("TransactionTests.testGlobalTranNoExceptions")
            .start(format!(
                "commit.interval=5, forced.fail.count=0, expected.inventory=0, {parameters}"
            ))
            .ends(Completed, "Inventory=0 InitialCheckpoint=null OrderCount=99"),
        globaltran("TransactionTests.testGlobalTranForcedExceptionWithRollback")
            .start(format!(
                "commit.interval=9, forced.fail.count=20, expected.inventory=81, {parameters}"
            ))
            .ends(Failed, "Inventory=81 InitialCheckpoint=null OrderCount=18"),
        globaltran("TransactionTests.testGlobalTranForcedExceptionCheckpointRestart")
            .start(format!(
                "commit.interval=9, forced.fail.count=20, expected.inventory=81, {parameters}"
            ))
            .ends(Failed, "Inventory=81 InitialCheckpoint=null OrderCount=18")
            .restart_with("forced.fail.count=0")
            .ends(Completed, "Inventory=0 InitialCheckpoint=18 OrderCount=99"),
        case(
            "TransactionTests.testGlobalTranNoDelayLongTimeout",
            "job_chunk_globaltran_default",
        )
        .sql(&CREATE_INVENTORY)
        .start("commit.interval=9, init.inventory.quantity=99, forced.fail.count=0, dummy.delay.seconds=0, expected.inventory=0")
        .ends(Completed, "Inventory=0 InitialCheckpoint=null OrderCount=99"),
    ]
}

fn timeouts() -> Vec<Case> {
    let delayed = |method, file| {
        case(method, file)
            .slow()
            .sql(&CREATE_INVENTORY)
            .start(format!(
                "commit.interval=9, init.inventory.quantity=99, forced.fail.count=15, dummy.delay.seconds={DELAY}"
            ))
            .ends(Completed, "Inventory=0 InitialCheckpoint=null OrderCount=99")
            .step("step2", Completed)
            .step("step3", Completed)
    };
    vec![
        delayed(
            "TransactionTests.testGlobalTranLongDelayMixOfLongTimeoutStepsAndShortTimeoutSteps",
            "job_chunk_globaltran_multiple_steps",
        ),
        delayed(
            "TransactionTests.testGlobalTranLongDelayMixOfLongTimeoutStepsAndShortTimeoutStepsCustomCheckpointAlgorithm",
            "job_chunk_globaltran_multiple_steps-customCA",
        ),
    ]
}
