//! Leases: who may run an instance, decided by the database's clock.
//!
//! Spec: OP-35

use diesel::prelude::*;
use diesel::sql_types::BigInt;

use super::schema::batch_job_instance_lease::dsl as lease;
use super::{
    Backend, Connection, Repository, RunQueryDsl, TransactionError, database_now, overtaken_by_a_change,
    overtaken_by_a_double,
};
use crate::repository::{Lease, RepositoryError};

/// The owner of a lease that nobody holds.
pub(super) const NOBODY: &str = "";

#[derive(Queryable, Selectable)]
#[diesel(table_name = super::schema::batch_job_instance_lease, check_for_backend(Backend))]
pub(super) struct LeaseRow {
    pub(super) job_execution_id: i64,
    pub(super) owner: String,
    pub(super) fence: i64,
    pub(super) expires_at: i64,
    pub(super) takeovers: i64,
    pub(super) last_checkpoint_version: i64,
}

impl LeaseRow {
    /// Whether it was given back.
    pub(super) fn is_free(&self) -> bool {
        self.owner == NOBODY
    }

    /// How often in a row its owners have died without a new checkpoint, when `progress` is what there is now. A lease that
    /// was not given back is one whose owner died.
    pub(super) fn crashes(&self, progress: i64) -> i64 {
        if progress > self.last_checkpoint_version {
            0
        } else {
            self.takeovers + i64::from(!self.is_free())
        }
    }

    /// The row, if it is still as it was read: its owner may have come back to life, or have given it back.
    #[diesel::dsl::auto_type(no_type_alias)]
    fn unchanged<'a>(&'a self, instance: i64) -> _ {
        let owner: &'a str = self.owner.as_str();
        let fence: i64 = self.fence;
        let expires_at: i64 = self.expires_at;
        lease::batch_job_instance_lease
            .filter(lease::job_instance_id.eq(instance))
            .filter(lease::fence.eq(fence))
            .filter(lease::owner.eq(owner))
            .filter(lease::expires_at.eq(expires_at))
    }
}

fn overtaken_if_none<E>(changed: usize) -> Result<(), TransactionError<E>> {
    if changed == 1 {
        Ok(())
    } else {
        Err(overtaken_by_a_change())
    }
}

pub(super) fn lease_of(connection: &mut Connection, instance: i64) -> QueryResult<Option<LeaseRow>> {
    lease::batch_job_instance_lease
        .find(instance)
        .select(LeaseRow::as_select())
        .first(connection)
        .optional()
}

impl Repository {
    fn expiry(&self) -> diesel::helper_types::Add<diesel::expression::SqlLiteral<BigInt>, i64> {
        database_now() + i64::try_from(self.lease_time.as_millis()).unwrap_or(i64::MAX / 2)
    }

    /// Whether somebody lives who runs the instance.
    pub(super) fn is_held(&self, connection: &mut Connection, row: &LeaseRow) -> QueryResult<bool> {
        if row.owner == NOBODY || self.owner.is_dead(&row.owner) {
            return Ok(false);
        }
        let now: i64 = diesel::select(database_now()).get_result(connection)?;
        Ok(row.expires_at > now)
    }

    /// Who holds a lease; and when it shows, if that cannot be seen at once, that he is dead.
    pub(super) fn described_owner(&self, connection: &mut Connection, row: &LeaseRow) -> QueryResult<String> {
        if row.owner.ends_with("/locked") {
            return Ok(row.owner.clone());
        }
        let now: i64 = diesel::select(database_now()).get_result(connection)?;
        let seconds = (row.expires_at - now).max(0) / 1_000 + 1;
        Ok(format!(
            "{}; should its process be dead, that shows when its lease ends, in {seconds} s",
            row.owner
        ))
    }

    /// Takes the lease of an instance for `execution`; the caller has seen that nobody holds it, and what stood there. If
    /// something else stands there now, somebody else was faster. Returns the fence.
    pub(super) fn take_lease<E>(
        &self,
        connection: &mut Connection,
        instance: i64,
        execution: i64,
        previous: Option<&LeaseRow>,
        (crashes, progress): (i64, i64),
    ) -> Result<i64, TransactionError<E>> {
        let fence = previous.map_or(1, |row| row.fence + 1);
        let values = (
            lease::job_execution_id.eq(execution),
            lease::owner.eq(self.owner.name()),
            lease::fence.eq(fence),
            lease::expires_at.eq(self.expiry()),
            lease::takeovers.eq(crashes),
            lease::last_checkpoint_version.eq(progress),
        );
        let Some(previous) = previous else {
            diesel::insert_into(lease::batch_job_instance_lease)
                .values((lease::job_instance_id.eq(instance), values))
                .execute(connection)
                .map_err(overtaken_by_a_double)?;
            return Ok(fence);
        };
        let changed = diesel::update(previous.unchanged(instance))
            .set(values)
            .execute(connection)?;
        overtaken_if_none(changed)?;
        Ok(fence)
    }

    /// Extends the lease. `false` when it is no longer ours.
    pub(super) fn extend_lease(&self, connection: &mut Connection, held: &Lease) -> QueryResult<bool> {
        let changed = diesel::update(self.ours(held))
            .set(lease::expires_at.eq(self.expiry()))
            .execute(connection)?;
        #[cfg(feature = "sabotage")]
        if crate::sabotage::is_on(crate::sabotage::Fault::NoFence) {
            return Ok(true);
        }
        Ok(changed == 1)
    }

    /// Gives the lease back. `false` when it is no longer ours.
    pub(super) fn release_lease(&self, connection: &mut Connection, held: &Lease) -> QueryResult<bool> {
        let nobody = (
            lease::owner.eq(NOBODY),
            lease::expires_at.eq(0),
            lease::takeovers.eq(0),
        );
        Ok(diesel::update(self.ours(held)).set(nobody).execute(connection)? == 1)
    }

    /// Whether the lease is still ours.
    pub(super) fn holds(&self, connection: &mut Connection, held: &Lease) -> QueryResult<bool> {
        Ok(self.ours(held).count().get_result::<i64>(connection)? == 1)
    }

    /// Takes the lease away from a dead owner without giving it to anybody. Should the owner live after all, nothing that
    /// it writes is accepted any more.
    pub(super) fn void_lease<E>(
        connection: &mut Connection,
        instance: i64,
        previous: &LeaseRow,
    ) -> Result<(), TransactionError<E>> {
        let nobody = (
            lease::owner.eq(NOBODY),
            lease::expires_at.eq(0),
            lease::fence.eq(previous.fence + 1),
        );
        let changed = diesel::update(previous.unchanged(instance))
            .set(nobody)
            .execute(connection)?;
        overtaken_if_none(changed)
    }

    /// Takes it from a dead owner because of too many crashes, which it keeps in mind.
    pub(super) fn leave_lease<E>(
        connection: &mut Connection,
        instance: i64,
        previous: &LeaseRow,
        crashes: i64,
        progress: i64,
    ) -> Result<(), TransactionError<E>> {
        let nobody = (
            lease::owner.eq(NOBODY),
            lease::expires_at.eq(0),
            lease::fence.eq(previous.fence + 1),
            lease::takeovers.eq(crashes),
            lease::last_checkpoint_version.eq(progress),
        );
        let changed = diesel::update(previous.unchanged(instance))
            .set(nobody)
            .execute(connection)?;
        overtaken_if_none(changed)
    }

    #[diesel::dsl::auto_type(no_type_alias)]
    fn ours<'a>(&'a self, held: &'a Lease) -> _ {
        let instance: i64 = held.instance_id.0;
        let fence: i64 = held.fence;
        let owner: &'a str = self.owner.name();
        lease::batch_job_instance_lease
            .filter(lease::job_instance_id.eq(instance))
            .filter(lease::fence.eq(fence))
            .filter(lease::owner.eq(owner))
    }

    pub(super) fn renew_lease(&self, held: &Lease) -> Result<bool, RepositoryError> {
        self.pool.write_first("renew the lease", |connection, _| {
            Ok(self.extend_lease(connection, held)?)
        })
    }
}
