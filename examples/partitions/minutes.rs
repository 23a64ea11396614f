//! Data that the partitions send to the step while they run: the minutes of delay that they have loaded.

use batch_runtime::context::UserDataError;
use batch_runtime::prelude::*;

/// Adds minutes to those not yet collected: the transient user data of a partition's step.
pub(crate) fn add(step: &StepContext, minutes: i64) -> Result<(), UserDataError> {
    let waiting = step.transient_user_data::<i64>()?.map_or(0, |minutes| *minutes);
    step.set_transient_user_data(waiting + minutes);
    Ok(())
}

/// Sends the minutes since its last call. It is called before each commit, on the thread of the partition.
#[derive(BatchArtifact)]
struct MinutesLate {
    #[batch_context]
    step: StepContext,
}

#[sub_job_collector("MinutesLate")]
impl MinutesLate {
    #[collect_sub_job_data]
    fn collect(&mut self) -> Result<Option<i64>, UserDataError> {
        let minutes = self.step.transient_user_data::<i64>()?;
        self.step.set_transient_user_data(0_i64);
        Ok(minutes.map(|minutes| *minutes).filter(|minutes| *minutes > 0))
    }
}

/// Sums the minutes of all months, on the thread that waits for the partitions, and sets the step's exit status.
///
/// Payloads of collectors are not kept, so the sum of a process that dies is lost. Here the sum covers all months anyway,
/// because the logical transaction makes a restart load all of them again. (If the process dies between the commit and the
/// end of the step, the restart has nothing to load, and the exit status stays COMPLETED.) Without a logical transaction the
/// sum would cover the last execution only.
#[derive(BatchArtifact)]
struct TotalMinutesLate {
    #[batch_context]
    step: StepContext,
    total: i64,
}

#[sub_job_analyzer("TotalMinutesLate")]
impl TotalMinutesLate {
    #[analyze_collector_data]
    fn add(&mut self, minutes: i64) {
        self.total += minutes;
        self.step
            .set_exit_status(Some(&format!("{} MINUTES LATE", self.total)));
    }
}
