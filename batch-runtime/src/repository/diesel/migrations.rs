//! Which layout a database has, and how it comes to the current one.

use diesel::backend::Backend;
use diesel::migration::{Migration, MigrationSource};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};

pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the versions of our migrations begin with; those of the program's own begin with a year.
const OUR_VERSIONS: &str = "0000000000";
/// How long they are; diesel's own first migration is `00000000000000`.
const OUR_VERSION_LENGTH: usize = 13;

/// The columns that are there, as `TABLE.COLUMN` in upper case.
pub(super) struct Layout {
    columns: Vec<String>,
}

impl Layout {
    pub(super) fn new(columns: Vec<Name>) -> Self {
        let columns = columns.into_iter().map(|column| column.name).collect();
        Self { columns }
    }

    pub(super) fn has_table(&self, table: &str) -> bool {
        let columns = self.columns.iter().filter_map(|column| column.split_once('.'));
        columns.into_iter().any(|(of, _)| of == table)
    }

    fn has_column(&self, column: &str) -> bool {
        self.columns.iter().any(|other| other == column)
    }

    /// The version of Spring Batch whose tables these are, as the last upgrade that they do not need; `None` when there
    /// are none.
    fn age(&self) -> Result<Option<&'static str>, String> {
        if self.has_column("BATCH_JOB_EXECUTION_PARAMS.PARAMETER_TYPE") {
            return Err(
                "its tables are those of Spring Batch 5 or later; this runtime keeps those of 4.3. Use another database"
                    .into(),
            );
        }
        if !self.has_table("BATCH_JOB_INSTANCE") {
            return Ok(None);
        }
        let has_all = |columns: &[&str]| columns.iter().all(|column| self.has_column(column));
        let age = if has_all(&["BATCH_JOB_EXECUTION.JOB_CONFIGURATION_LOCATION"])
            || !self.has_table("BATCH_JOB_EXECUTION")
        {
            "0000000000300"
        } else if has_all(&[
            "BATCH_JOB_EXECUTION_PARAMS.TYPE_CD",
            "BATCH_JOB_EXECUTION_PARAMS.IDENTIFYING",
        ]) {
            "0000000000220"
        } else if has_all(&["BATCH_JOB_PARAMS.JOB_INSTANCE_ID", "BATCH_JOB_PARAMS.TYPE_CD"]) {
            "0000000000210"
        } else {
            ""
        };
        if age.is_empty() || !has_all(&["BATCH_JOB_INSTANCE.JOB_NAME", "BATCH_JOB_INSTANCE.JOB_KEY"]) {
            return Err(
                "its BATCH_ tables were made by another program, or by a Spring Batch before 2.1. Use another database"
                    .into(),
            );
        }
        Ok(Some(age))
    }
}

/// One row of a query for names.
#[derive(diesel::QueryableByName)]
pub(super) struct Name {
    #[diesel(sql_type = diesel::sql_types::Text)]
    pub(super) name: String,
}

/// The migrations of a database.
pub(super) struct Migrations {
    /// All that a new database needs. The first makes what Spring Batch 4.3 makes, and passes over what is there.
    pub(super) current: EmbeddedMigrations,
    /// What the tables of older versions of Spring Batch need before these.
    pub(super) upgrades: EmbeddedMigrations,
}

impl Migrations {
    /// Refuses tables of another make, without changing anything. Returns whether nothing is to be done.
    ///
    /// Spec: REPO-12
    pub(super) fn are_applied<DB: Backend, C: MigrationHarness<DB>>(
        &self,
        connection: &mut C,
        layout: &Layout,
    ) -> Result<bool, Failure> {
        Ok(self.missing(connection, layout)?.is_empty())
    }

    /// The names of the migrations that are missing; `None` where there are no tables at all. Changes nothing.
    #[cfg(feature = "cli")]
    pub(super) fn names_of_missing<DB: Backend, C: MigrationHarness<DB>>(
        &self,
        connection: &mut C,
        layout: &Layout,
    ) -> Result<Option<Vec<String>>, Failure> {
        if !layout.has_table("BATCH_JOB_INSTANCE") {
            return Ok(None);
        }
        let missing = self.missing(connection, layout)?;
        let names = missing.iter().map(|migration| migration.name().to_string());
        Ok(Some(names.collect()))
    }

    /// Runs the migrations that are missing. The caller has seen to it that nobody else does so at the same time.
    ///
    /// Spec: REPO-08 to REPO-12, D-71
    pub(super) fn run<DB: Backend, C: MigrationHarness<DB>>(
        &self,
        connection: &mut C,
        layout: &Layout,
    ) -> Result<(), Failure> {
        // This makes diesel's own table.
        connection.applied_migrations()?;
        for migration in self.missing(connection, layout)? {
            connection.run_migration(&migration)?;
        }
        Ok(())
    }

    fn missing<DB: Backend, C: MigrationHarness<DB>>(
        &self,
        connection: &mut C,
        layout: &Layout,
    ) -> Result<Vec<Box<dyn Migration<DB>>>, Failure> {
        let age = layout.age()?;
        let current: Vec<Box<dyn Migration<DB>>> = self.current.migrations()?;
        let upgrades: Vec<Box<dyn Migration<DB>>> = self.upgrades.migrations()?;
        let version = |migration: &dyn Migration<DB>| migration.name().version().to_string();
        // The program's own diesel migrations may stand in the same table.
        let ours =
            |version: &String| version.starts_with(OUR_VERSIONS) && version.len() == OUR_VERSION_LENGTH;
        // Asking would make the table.
        let applied: Vec<String> = if layout.has_table("__DIESEL_SCHEMA_MIGRATIONS") {
            let applied = connection.applied_migrations()?;
            applied.iter().map(ToString::to_string).filter(ours).collect()
        } else {
            Vec::new()
        };
        let is_known = |applied: &String| {
            current
                .iter()
                .chain(&upgrades)
                .any(|known| version(known) == *applied)
        };
        if let Some(newer) = applied.iter().find(|version| !is_known(version)) {
            return Err(format!(
                "its schema has version {newer}, which this runtime does not know: it was made by a newer one. Update \
                 this program"
            )
            .into());
        }
        let is_made = current
            .first()
            .is_none_or(|first| applied.contains(&version(first)));
        let mut missing = upgrades;
        missing.retain(|upgrade| age.is_some_and(|age| !is_made && version(upgrade).as_str() > age));
        missing.extend(current);
        missing.retain(|migration| !applied.contains(&version(migration)));
        Ok(missing)
    }
}

/// An error that diesel's transactions can pass on.
pub(super) struct MigrationFailed(pub(super) Failure);

impl From<diesel::result::Error> for MigrationFailed {
    fn from(error: diesel::result::Error) -> Self {
        Self(error.into())
    }
}

impl From<Failure> for MigrationFailed {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}
