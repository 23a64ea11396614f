//! Leases: who may run an instance, decided by the clock of the database.
// Spec: OP-35

use diesel::helper_types::Add;
use diesel::prelude::*;

use super::rows::number;
use super::schema::instance_lease::dsl as lease;
use super::schema::{instance_lease, partition_lease, worker};
use super::{Connection, Db, Repository, Work, fenced, rejected};
use crate::ids::{JobInstanceId, StepExecutionId};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::fixed_sql::FixedSql;
use crate::repository::diesel::pool::Tx;
use crate::repository::diesel::session::RunQueryDsl;
use crate::repository::diesel::transaction_error::{
    TransactionError, concurrent_change, on_unique_violation,
};
use crate::repository::diesel::update::update;
use crate::repository::owner::Liveness;
use crate::repository::{HolderState, Lease, LeaseKey, RepositoryError, Result};

/// The expiry of a released lease. The row keeps its last owner, which pages show; see [`is_released`].
pub(super) const RELEASED: i64 = -1;

/// Returns whether a lease with this owner and expiry is released. An early version of the runtime has removed the owner.
pub(super) fn is_released(owner: &str, expires_at: i64) -> bool {
    expires_at == RELEASED || owner.is_empty()
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = instance_lease)]
pub(super) struct LeaseRow {
    pub(super) job_execution_id: i64,
    pub(super) owner: String,
    pub(super) fence: i64,
    pub(super) expires_at: i64,
    pub(super) takeovers: i64,
    pub(super) last_checkpoint_version: i64,
}

/// The crashes of an instance, as its lease records them.
#[derive(Clone, Copy, Default)]
pub(super) struct Crashes {
    /// How many in a row were without progress.
    pub(super) in_a_row: i64,
    /// The version of the last checkpoint.
    pub(super) progress: i64,
}

impl LeaseRow {
    /// Returns whether the lease was released.
    pub(super) fn is_free(&self) -> bool {
        is_released(&self.owner, self.expires_at)
    }

    /// Returns how often in a row its owners have died without a new checkpoint, given the current `progress`. The owner of a
    /// lease that was not released has died.
    pub(super) fn crashes(&self, progress: i64) -> i64 {
        if progress > self.last_checkpoint_version {
            0
        } else {
            self.takeovers + i64::from(!self.is_free())
        }
    }

    /// Selects the row if it is still as it was read: its owner may have renewed or released it.
    #[diesel::dsl::auto_type(no_type_alias)]
    fn unchanged<'a>(&'a self, instance: i64) -> _ {
        let owner: &'a str = self.owner.as_str();
        let fence: i64 = self.fence;
        let expires_at: i64 = self.expires_at;
        lease::instance_lease
            .filter(lease::job_instance_id.eq(instance))
            .filter(lease::fence.eq(fence))
            .filter(lease::owner.eq(owner))
            // A renewal changes nothing but the expiry: owner and fence would not show that the owner is alive.
            .filter(lease::expires_at.eq(expires_at))
    }
}

fn conflict_if_none<E>(changed: usize) -> Result<(), TransactionError<E>> {
    if changed == 1 {
        Ok(())
    } else {
        Err(concurrent_change())
    }
}

pub(super) fn lease_of<E: From<RepositoryError>>(
    connection: &mut Connection,
    instance: i64,
) -> Result<Option<LeaseRow>, TransactionError<E>> {
    let found = lease::instance_lease
        .find(instance)
        .select(LeaseRow::as_select())
        .first(connection)
        .optional()?;
    let check = |row: &LeaseRow| -> Result<()> {
        let name = || format!("the row of job instance {instance} in BATCH_JOB_INSTANCE_LEASE");
        number(row.fence, "FENCE", name)?;
        number(row.takeovers, "TAKEOVERS", name)?;
        // -1 is none.
        number(
            row.last_checkpoint_version.max(0),
            "LAST_CHECKPOINT_VERSION",
            name,
        )?;
        Ok(())
    };
    found.as_ref().map_or(Ok(()), check).map_err(rejected)?;
    Ok(found)
}

impl Repository {
    pub(super) fn expiry(&self) -> Add<FixedSql<<Db as Backend>::Clock>, i64> {
        Db::now() + i64::try_from(self.lease_time.as_millis()).unwrap_or(i64::MAX / 2)
    }

    /// Returns whether the lease of an instance is held: until its holder is certainly dead.
    pub(super) fn is_held(
        &self,
        connection: &mut Connection,
        instance: i64,
        row: &LeaseRow,
    ) -> QueryResult<bool> {
        let state = self.holder_of(connection, instance, row)?;
        Ok(state != HolderState::Dead)
    }

    /// Returns the state of the holder of an instance's lease.
    pub(super) fn holder_of(
        &self,
        connection: &mut Connection,
        instance: i64,
        row: &LeaseRow,
    ) -> QueryResult<HolderState> {
        let key = LeaseKey::Instance(JobInstanceId(instance));
        self.holder(connection, key, &row.owner, row.expires_at)
    }

    /// Returns the state of the holder of a lease. If its process can be checked, no clock decides.
    // Spec: OP-35
    pub(super) fn holder(
        &self,
        connection: &mut Connection,
        key: LeaseKey,
        owner: &str,
        expires_at: i64,
    ) -> QueryResult<HolderState> {
        let now = || diesel::select(Db::now()).get_result(connection);
        self.holder_at(key, owner, expires_at, now)
    }

    /// As [`holder`](Self::holder), with the clock of the database.
    pub(super) fn holder_at(
        &self,
        key: LeaseKey,
        owner: &str,
        expires_at: i64,
        now: impl FnOnce() -> QueryResult<i64>,
    ) -> QueryResult<HolderState> {
        if is_released(owner, expires_at) {
            // What was seen of this holder says nothing about the next one.
            self.observations.forget(key);
            return Ok(HolderState::Dead);
        }
        match self.owner.liveness(owner) {
            Liveness::Alive => Ok(HolderState::Alive),
            Liveness::Dead => Ok(HolderState::Dead),
            Liveness::Unknown => Ok(self.observations.look(key, owner, expires_at, now()?)),
        }
    }

    /// Removes this runtime's lock file, unless it holds a lease: an execution without a recorded end is to be seen dead.
    pub(super) fn close_owner(&self) {
        let name = self.owner.name();
        let held: Result<i64> = self.run(Tx::read("read the leases"), |connection, _| {
            let instances = instance_lease::table
                .filter(instance_lease::owner.eq(name))
                .filter(instance_lease::expires_at.ne(RELEASED));
            let partitions = partition_lease::table
                .filter(partition_lease::owner.eq(name))
                .filter(partition_lease::expires_at.ne(RELEASED));
            let of_instances: i64 = instances.count().get_result(connection)?;
            let of_partitions: i64 = partitions.count().get_result(connection)?;
            Ok(of_instances + of_partitions)
        });
        // If the leases cannot be read the file stays too: its free lock shows others at once that this owner is
        // dead.
        if held.is_ok_and(|held| held == 0) {
            self.owner.remove_lock();
        }
    }

    /// Removes the lock files of dead owners that hold no lease.
    pub(in crate::repository::diesel) fn sweep_owners(&self) {
        self.owner.sweep(|| {
            let owners: Result<Vec<String>> =
                self.run(Tx::read("read the lease holders"), |connection, _| {
                    let mut owners: Vec<String> = instance_lease::table
                        .filter(instance_lease::expires_at.ne(RELEASED))
                        .select(lease::owner)
                        .load(connection)?;
                    let workers: Vec<String> = partition_lease::table
                        .filter(partition_lease::expires_at.ne(RELEASED))
                        .select(partition_lease::owner)
                        .load(connection)?;
                    owners.extend(workers);
                    // A registered worker without a partition is to be seen dead, too.
                    let now: i64 = diesel::select(Db::now()).get_result(connection)?;
                    let registered: Vec<String> = worker::table
                        .filter(worker::expires_at.ge(now))
                        .select(worker::worker_name)
                        .load(connection)?;
                    owners.extend(registered);
                    Ok(owners)
                });
            // Without the list no file is removed: each may show that the holder of a lease is dead.
            owners.ok()
        });
    }

    /// Describes the lease holder, with the time to expiry if its liveness cannot be checked locally.
    pub(super) fn described_owner(&self, connection: &mut Connection, row: &LeaseRow) -> QueryResult<String> {
        if self.owner.liveness(&row.owner) == Liveness::Alive {
            return Ok(row.owner.clone());
        }
        let now: i64 = diesel::select(Db::now()).get_result(connection)?;
        let seconds = row.expires_at.saturating_sub(now).max(0) / 1_000 + 1;
        Ok(format!(
            "{}; if its process is dead, its lease expires in {seconds} s",
            row.owner
        ))
    }

    /// Acquires the lease of an instance for `execution`, after the caller has checked that it is not held. Conflicts if the
    /// row has changed since. Returns the fence.
    pub(super) fn take_lease<E>(
        &self,
        connection: &mut Connection,
        instance: i64,
        execution: i64,
        previous: Option<&LeaseRow>,
        crashes: Crashes,
    ) -> Result<i64, TransactionError<E>> {
        self.observations
            .forget(LeaseKey::Instance(JobInstanceId(instance)));
        // It grows even if the owner is the same: an older lease of this process must not match the row.
        let fence = previous.map_or(1, |row| row.fence + 1);
        let values = (
            lease::job_execution_id.eq(execution),
            lease::owner.eq(self.owner.name()),
            lease::fence.eq(fence),
            lease::expires_at.eq(self.expiry()),
            lease::takeovers.eq(crashes.in_a_row),
            lease::last_checkpoint_version.eq(crashes.progress),
        );
        let Some(previous) = previous else {
            diesel::insert_into(lease::instance_lease)
                .values((lease::job_instance_id.eq(instance), values))
                .execute(connection)
                .map_err(on_unique_violation)?;
            return Ok(fence);
        };
        let changed = update(previous.unchanged(instance))
            .set(values)
            .execute(connection)?;
        conflict_if_none(changed)?;
        Ok(fence)
    }

    /// Extends the lease. Returns `false` if this runtime does not hold it any more.
    pub(super) fn renew_lease_in(&self, connection: &mut Connection, held: &Lease) -> QueryResult<bool> {
        let expires_at = self.expiry();
        let changed = match held.partition {
            None => update(self.held_row(held))
                .set(lease::expires_at.eq(expires_at))
                .execute(connection)?,
            Some(partition) => update(self.held_partition(partition))
                .set(partition_lease::expires_at.eq(expires_at))
                .execute(connection)?,
        };
        #[cfg(debug_assertions)]
        if crate::failpoints::is_on(crate::failpoints::Fault::NoFence) {
            return Ok(true);
        }
        Ok(changed == 1)
    }

    /// Releases the lease. Returns `false` if this runtime does not hold it any more.
    pub(super) fn release_lease_in(&self, connection: &mut Connection, held: &Lease) -> QueryResult<bool> {
        let changed = match held.partition {
            None => {
                let free = (lease::expires_at.eq(RELEASED), lease::takeovers.eq(0));
                update(self.held_row(held)).set(free).execute(connection)?
            }
            Some(partition) => update(self.held_partition(partition))
                .set(partition_lease::expires_at.eq(RELEASED))
                .execute(connection)?,
        };
        Ok(changed == 1)
    }

    /// Returns whether this runtime holds the lease.
    pub(super) fn holds(&self, connection: &mut Connection, held: &Lease) -> QueryResult<bool> {
        let rows: i64 = match held.partition {
            None => self.held_row(held).count().get_result(connection)?,
            Some(partition) => self.held_partition(partition).count().get_result(connection)?,
        };
        Ok(rows == 1)
    }

    /// Fails if this runtime does not hold the lease.
    pub(super) fn ensure_held(
        &self,
        connection: &mut Connection,
        held: &Lease,
        action: &'static str,
    ) -> Work<()> {
        match self.holds(connection, held)? {
            true => Ok(()),
            false => Err(fenced(action)),
        }
    }

    /// Takes the lease from a dead owner without a new owner. If the owner is alive after all, the repository rejects what it
    /// writes. `counted`: the crashes, if their number has changed.
    pub(super) fn void_lease<E>(
        connection: &mut Connection,
        instance: i64,
        previous: &LeaseRow,
        counted: Option<Crashes>,
    ) -> Result<(), TransactionError<E>> {
        let crashes = counted.unwrap_or(Crashes {
            in_a_row: previous.takeovers,
            progress: previous.last_checkpoint_version,
        });
        let free = (
            lease::expires_at.eq(RELEASED),
            lease::fence.eq(previous.fence + 1),
            lease::takeovers.eq(crashes.in_a_row),
            lease::last_checkpoint_version.eq(crashes.progress),
        );
        let changed = update(previous.unchanged(instance))
            .set(free)
            .execute(connection)?;
        conflict_if_none(changed)
    }

    #[diesel::dsl::auto_type(no_type_alias)]
    fn held_partition<'a>(&'a self, partition: StepExecutionId) -> _ {
        let id: i64 = partition.0;
        let owner: &'a str = self.owner.name();
        let released: i64 = RELEASED;
        partition_lease::table
            .filter(partition_lease::step_execution_id.eq(id))
            .filter(partition_lease::owner.eq(owner))
            .filter(partition_lease::expires_at.ne(released))
    }

    #[diesel::dsl::auto_type(no_type_alias)]
    fn held_row<'a>(&'a self, held: &'a Lease) -> _ {
        let instance: i64 = held.instance_id.0;
        let fence: i64 = held.fence;
        let owner: &'a str = self.owner.name();
        let released: i64 = RELEASED;
        lease::instance_lease
            .filter(lease::job_instance_id.eq(instance))
            .filter(lease::fence.eq(fence))
            // The lease of an instance whose row was deleted starts again with fence 1, so the fence alone proves
            // nothing.
            .filter(lease::owner.eq(owner))
            // A released row keeps its last owner and fence.
            .filter(lease::expires_at.ne(released))
    }
}
