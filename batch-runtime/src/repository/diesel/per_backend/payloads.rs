//! The payloads of collectors, from workers to the coordinator: in the table of reports, with the claim of their worker.
//!
//! The transaction that commits a checkpoint, or the end of a step, commits the payload: a coordinator that has read the end of a partition
//! finds all of them, and a worker that dies loses and doubles none.
// Spec: SUBJOB-09, SUBJOB-11, D-108

use std::collections::BTreeMap;

use diesel::prelude::*;

use super::contexts::change_job_data;
use super::queue_store::{chunks, reports};
use super::schema::partition_report;
use super::{Connection, Repository, Work};
use crate::ids::{JobExecutionId, StepExecutionId};
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::{PartitionReport, PayloadKey, Result, SideWrites};

/// Writes what a transaction stores beside the rows of a step execution.
pub(super) fn write_beside(
    connection: &mut Connection,
    execution: JobExecutionId,
    side_writes: &SideWrites,
) -> Work<()> {
    change_job_data(connection, execution, &side_writes.data)?;
    for payload in &side_writes.payloads {
        diesel::insert_into(partition_report::table)
            .values((
                partition_report::step_execution_id.eq(payload.step_execution.0),
                partition_report::claim.eq(payload.claim),
                partition_report::report_number.eq(stored(payload.number)),
                partition_report::job_execution_id.eq(payload.job_execution.0),
                partition_report::report.eq(payload.report.as_str()),
            ))
            .execute(connection)?;
    }
    Ok(())
}

impl Repository {
    /// Implements `QueueStore::take_payloads`.
    pub(super) fn new_payloads(
        &self,
        after: &BTreeMap<StepExecutionId, PayloadKey>,
    ) -> Result<Vec<PartitionReport>> {
        let ids: Vec<StepExecutionId> = after.keys().copied().collect();
        // Without the right to write, because most calls find nothing.
        let found: Result<Vec<PartitionReport>> = self.run(Tx::read("look for payloads"), |connection, _| {
            let mut found = Vec::new();
            for ids in chunks(&ids) {
                found.extend(reports(connection, &ids, 1..=i64::MAX)?);
            }
            Ok(found)
        });
        let mut found = found?;
        if let Err(error) = self.remove_payloads(&found) {
            tracing::debug!(%error, "payloads that were read stay until their job ends");
        }
        found.retain(|payload| payload.key() > after[&payload.step_execution]);
        Ok(found)
    }

    /// Removes the payloads up to those that were found.
    fn remove_payloads(&self, found: &[PartitionReport]) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        // Of each partition the last one.
        let last: BTreeMap<i64, PayloadKey> = found
            .iter()
            .map(|payload| (payload.step_execution.0, payload.key()))
            .collect();
        self.run(Tx::write("remove payloads").once(), |connection, _| {
            for (id, (claim, number)) in &last {
                let of_claim = partition_report::claim
                    .eq(claim)
                    .and(partition_report::report_number.le(stored(*number)));
                let of_earlier_claims = partition_report::claim
                    .gt(0)
                    .and(partition_report::claim.lt(claim));
                let taken = partition_report::table
                    .filter(partition_report::step_execution_id.eq(id))
                    .filter(of_claim.or(of_earlier_claims));
                diesel::delete(taken).execute(connection)?;
            }
            Ok(())
        })
    }
}

fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
