//! Which layout a database has, and how it comes to the current one.

use diesel::backend::Backend;
use diesel::migration::MigrationSource;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};

type Failure = Box<dyn std::error::Error + Send + Sync>;

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
}

/// One row of a query for names.
#[derive(diesel::QueryableByName)]
pub(super) struct Name {
    #[diesel(sql_type = diesel::sql_types::Text)]
    pub(super) name: String,
}

/// Refuses tables of another make, without changing anything. Returns whether no migration is missing.
///
/// Spec: REPO-12
pub(super) fn check<DB: Backend, C: MigrationHarness<DB>>(
    connection: &mut C,
    layout: &Layout,
    migrations: EmbeddedMigrations,
) -> Result<bool, String> {
    if layout.has_column("BATCH_JOB_EXECUTION_PARAMS.PARAMETER_TYPE") {
        return Err(
            "its tables are those of Spring Batch 5 or later; this runtime keeps those of 4.3. Use another database"
                .into(),
        );
    }
    let failed = |error: Failure| error.to_string();
    let known: Vec<String> = MigrationSource::<DB>::migrations(&migrations)
        .map_err(failed)?
        .iter()
        .map(|migration| migration.name().version().to_string())
        .collect();
    // The program's own diesel migrations may stand in the same table.
    let ours = |version: &String| version.starts_with(OUR_VERSIONS) && version.len() == OUR_VERSION_LENGTH;
    let applied: Vec<String> = if layout.has_table("__DIESEL_SCHEMA_MIGRATIONS") {
        let applied = connection.applied_migrations().map_err(failed)?;
        applied.iter().map(ToString::to_string).filter(ours).collect()
    } else {
        Vec::new()
    };
    if layout.has_table("BATCH_JOB_INSTANCE") && applied.is_empty() {
        return Err(
            "its BATCH_ tables were made by another program, and this version cannot adopt them. Use another database"
                .into(),
        );
    }
    if let Some(newer) = applied.iter().find(|version| !known.contains(version)) {
        return Err(format!(
            "its schema has version {newer}, which this runtime does not know: it was made by a newer one. Update this \
             program"
        ));
    }
    Ok(known.iter().all(|version| applied.contains(version)))
}

/// Runs the migrations that are missing.
pub(super) fn run<DB: Backend, C: MigrationHarness<DB>>(
    connection: &mut C,
    migrations: EmbeddedMigrations,
) -> Result<(), MigrationFailed> {
    connection
        .run_pending_migrations(migrations)
        .map(drop)
        .map_err(MigrationFailed)
}

/// An error that diesel's transactions can pass on.
pub(super) struct MigrationFailed(Failure);

#[cfg(feature = "mysql")]
impl MigrationFailed {
    /// Somebody else was at it all the time.
    pub(super) fn waited() -> Self {
        Self("another process has been changing the tables for ten minutes".into())
    }
}

impl From<diesel::result::Error> for MigrationFailed {
    fn from(error: diesel::result::Error) -> Self {
        Self(error.into())
    }
}

impl std::fmt::Display for MigrationFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
