//! The tables of a database, and their upgrade to the current ones.

use std::fmt;

use diesel::backend::Backend;
use diesel::connection::BoxableConnection;
use diesel::migration::{self, Migration, MigrationMetadata, MigrationName, MigrationVersion};
use diesel_migrations::MigrationHarness;

use batch_migrations::{Script, Scripts};

use super::session::Session;
use super::table_prefix::TablePrefix;
use crate::repository::RepositoryLayout;

pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The prefix of the runtime's migration versions; the program's versions start with a year.
const OUR_VERSIONS: &str = "0000000000";
/// Their length; diesel's own first migration is `00000000000000`.
const OUR_VERSION_LENGTH: usize = 13;

/// The table of applied migrations, which diesel creates.
const LIST_OF_MIGRATIONS: &str = "__DIESEL_SCHEMA_MIGRATIONS";

/// The existing columns, as `TABLE.COLUMN` in upper case, of tables and sequences.
pub(super) struct Catalog {
    columns: Vec<String>,
    /// The applied migrations, including the program's.
    listed: Vec<String>,
}

/// The tables of an up-to-date repository.
pub(super) const TABLES: [&str; 14] = [
    "BATCH_JOB_INSTANCE",
    "BATCH_JOB_EXECUTION",
    "BATCH_JOB_EXECUTION_PARAMS",
    "BATCH_STEP_EXECUTION",
    "BATCH_STEP_EXECUTION_CONTEXT",
    "BATCH_JOB_EXECUTION_CONTEXT",
    "BATCH_JOB_INSTANCE_LEASE",
    "BATCH_PARTITION_LEASE",
    "BATCH_PARTITION_TICKET",
    "BATCH_PARTITION_REPORT",
    "BATCH_WORKER",
    "BATCH_LAUNCH",
    "BATCH_JOB_TURN",
    "BATCH_NOTIFICATION",
];

impl<C> Session<C> {
    /// Takes the layout and the kind of the sequences from the catalog.
    pub(super) fn adopt(&mut self, catalog: &Catalog) {
        let wanted = self.settings.wanted_layout;
        self.settings.format.layout = catalog.layout_or(wanted).or(wanted).unwrap_or_default();
        self.settings.has_sequences = catalog.has_sequences();
    }
}

impl Catalog {
    /// Creates a catalog from columns, with table names converted to the default prefix; skips tables with other prefixes.
    pub(super) fn new(columns: Vec<Name>, prefix: &TablePrefix) -> Self {
        let columns = columns.into_iter().map(|column| column.name);
        let columns = columns.filter_map(|column| match column.starts_with(LIST_OF_MIGRATIONS) {
            true => Some(column),
            false => prefix.plain_name(&column),
        });
        Self {
            columns: columns.collect(),
            listed: Vec::new(),
        }
    }

    /// Returns the query for the applied migrations, if their table exists. (diesel's own function would create the
    /// table, which requires more privileges than reading.)
    pub(super) fn query_for_listed(&self) -> Option<&'static str> {
        self.has_table(LIST_OF_MIGRATIONS)
            .then_some("SELECT version AS name FROM __diesel_schema_migrations")
    }

    pub(super) fn set_listed(&mut self, listed: Vec<Name>) {
        self.listed = listed.into_iter().map(|version| version.name).collect();
    }

    pub(super) fn has_table(&self, table: &str) -> bool {
        self.columns_of(table).next().is_some()
    }

    fn has_column(&self, column: &str) -> bool {
        self.columns.iter().any(|other| other == column)
    }

    /// Returns the columns of a table.
    pub(super) fn columns_of(&self, table: &str) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter().filter_map(|column| column.split_once('.'));
        columns
            .filter(move |(of, _)| *of == table)
            .map(|(_, column)| column)
    }

    /// Returns the layout of the tables; `None` if there are none. Tables of versions before 4.3 are upgraded to 4.3.
    // Spec: REPO-87
    pub(super) fn layout(&self) -> Option<RepositoryLayout> {
        let is_typed = self.has_column("BATCH_JOB_EXECUTION_PARAMS.PARAMETER_TYPE");
        if !is_typed && !self.has_table("BATCH_JOB_INSTANCE") {
            return None;
        }
        Some(match self.has_instance_sequence_of_6() {
            _ if !is_typed => RepositoryLayout::V4_3,
            true => RepositoryLayout::V6,
            false => RepositoryLayout::V5,
        })
    }

    /// Returns whether ids are from sequences of MariaDB, which has tables for them in older layouts.
    pub(super) fn has_sequences(&self) -> bool {
        self.is_sequence("STEP_EXECUTION_SEQ")
    }

    /// Returns whether the creation of the tables of 4.3 was interrupted: their script creates this one last. MySQL commits each of them. The
    /// tables of Spring Batch have no list of migrations before they are complete.
    fn is_unfinished(&self) -> bool {
        self.has_table(LIST_OF_MIGRATIONS) && !self.has_table("BATCH_JOB_SEQ")
    }

    /// Returns whether a conversion to another layout was interrupted.
    pub(super) fn is_between_layouts(&self) -> bool {
        self.has_table("BATCH_CONVERSION")
    }

    /// Returns whether an interrupted conversion has replaced the parameters.
    pub(super) fn is_replaced(&self) -> bool {
        self.has_table("BATCH_REPLACED_JOB_EXECUTION_PARAMS")
    }

    /// Returns whether the parameters were taken away, and not yet replaced.
    pub(super) fn is_half_replaced(&self) -> bool {
        self.is_replaced() && !self.has_table("BATCH_JOB_EXECUTION_PARAMS")
    }

    /// Returns whether there are two sequences of instances, one of Spring Batch 5 and one of 6: only one of them is used.
    pub(super) fn has_both_instance_sequences(&self) -> bool {
        self.has_table("BATCH_JOB_SEQ") && self.has_instance_sequence_of_6()
    }

    /// Returns the layout of the tables; if they fit both 5 and 6, the wanted one.
    pub(super) fn layout_or(&self, wanted: Option<RepositoryLayout>) -> Option<RepositoryLayout> {
        let layout = self.layout()?;
        let is_either = layout.has_typed_parameters() && self.has_both_instance_sequences();
        let wanted = wanted.filter(|wanted| is_either && wanted.has_typed_parameters());
        Some(wanted.unwrap_or(layout))
    }

    /// Returns whether ids of a kind are from a sequence of MariaDB.
    pub(super) fn is_sequence(&self, name: &str) -> bool {
        self.has_column(&format!("BATCH_{name}.NEXT_NOT_CACHED_VALUE"))
    }

    pub(super) fn has_creation(&self) -> bool {
        self.has_column("BATCH_STEP_EXECUTION.CREATE_TIME")
    }

    pub(super) fn has_instance_sequence_of_6(&self) -> bool {
        self.has_table("BATCH_JOB_INSTANCE_SEQ")
    }

    /// Returns the repository's layout, or the layout for a new repository. Rejects a layout other than the URL's, and an interrupted
    /// conversion.
    fn layout_for(&self, wanted: Option<RepositoryLayout>) -> Result<RepositoryLayout, String> {
        if self.is_between_layouts() {
            return Err(
                "a conversion of its tables was interrupted; run `db upgrade` again, with the same layout"
                    .into(),
            );
        }
        let Some(layout) = self.layout_or(wanted) else {
            return Ok(wanted.unwrap_or_default());
        };
        if layout.has_typed_parameters() && self.has_both_instance_sequences() && wanted != Some(layout) {
            return Err(
                "it has the sequence of instances of Spring Batch 5, BATCH_JOB_SEQ, and of 6, BATCH_JOB_INSTANCE_SEQ: drop the one \
                 that is not used, or name the layout in the URL (`layout=5` or `layout=6`)"
                    .into(),
            );
        }
        if let Some(wanted) = wanted.filter(|wanted| *wanted != layout) {
            return Err(format!(
                "its tables have the layout of Spring Batch {layout}, and the URL says `layout={wanted}`; remove that option, or convert \
                 the tables by `db upgrade --to {wanted}`"
            ));
        }
        if layout.has_typed_parameters() {
            let has_sequence = layout == RepositoryLayout::V6 || self.has_table("BATCH_JOB_SEQ");
            let columns = ["BATCH_JOB_INSTANCE.JOB_KEY", "BATCH_STEP_EXECUTION.CREATE_TIME"];
            let missing = columns.into_iter().find(|column| !self.has_column(column));
            if let Some(name) = missing.or((!has_sequence).then_some("BATCH_JOB_SEQ")) {
                return Err(format!(
                    "its tables have the layout of Spring Batch {layout} except for {name}, which is missing; complete the migration to \
                     Spring Batch {layout}"
                ));
            }
        }
        Ok(layout)
    }

    /// Returns the version of Spring Batch before 5 that created the tables, as the last upgrade that they do not require;
    /// `None` if there are no tables.
    fn age(&self, prefix: &TablePrefix) -> Result<Option<&'static str>, String> {
        if !self.has_table("BATCH_JOB_INSTANCE") || self.is_unfinished() {
            return Ok(None);
        }
        // A creation that was interrupted has no later table.
        let has_parameters = ["BATCH_JOB_EXECUTION_PARAMS", "BATCH_JOB_PARAMS"];
        if self.has_table("BATCH_STEP_EXECUTION") && !has_parameters.iter().any(|table| self.has_table(table))
        {
            let table = prefix.rename("BATCH_JOB_EXECUTION_PARAMS");
            return Err(format!("its table {table} is missing"));
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
            return Err(format!(
                "its {prefix} tables were created by another program, or by a Spring Batch before 2.1; use another database, \
                 or another prefix (`?table_prefix=` in the URL)"
            ));
        }
        Ok(Some(age))
    }
}

/// A row of a query for names.
#[derive(diesel::QueryableByName)]
pub(super) struct Name {
    #[diesel(sql_type = diesel::sql_types::Text)]
    pub(super) name: String,
}

/// The migrations of a database.
pub(super) struct Migrations(pub(super) Scripts);

impl Migrations {
    /// Returns whether all migrations are applied. Rejects unsupported tables, and changes nothing.
    // Spec: REPO-12
    pub(super) fn are_applied<DB: Backend, C: MigrationHarness<DB>>(
        &self,
        connection: &mut Session<C>,
        catalog: &Catalog,
    ) -> Result<bool, Failure> {
        Ok(self.missing(connection, catalog)?.is_empty())
    }

    /// Returns the layout of the tables, and the names of the missing migrations; `None` if there are no tables. Changes nothing.
    pub(super) fn names_of_missing<DB: Backend, C: MigrationHarness<DB>>(
        &self,
        connection: &mut Session<C>,
        catalog: &Catalog,
    ) -> Result<Option<(RepositoryLayout, Vec<String>)>, Failure> {
        if !catalog.has_table("BATCH_JOB_INSTANCE") {
            return Ok(None);
        }
        let missing = self.missing(connection, catalog)?;
        let names = missing.iter().map(|step| step.name.to_string()).collect();
        let layout = catalog.layout_or(connection.settings().wanted_layout);
        Ok(layout.map(|layout| (layout, names)))
    }

    /// Runs the missing migrations. The caller ensures that no other process does so at the same time.
    // Spec: REPO-08 to REPO-12, D-71
    pub(super) fn run<DB: Backend, C: MigrationHarness<DB>>(
        &self,
        connection: &mut Session<C>,
        catalog: &Catalog,
    ) -> Result<(), Failure> {
        let missing = self.missing(connection, catalog)?;
        if !missing.is_empty() {
            // Creates diesel's table of applied migrations.
            connection.applied_migrations()?;
        }
        for step in missing {
            connection.run_migration(&step)?;
        }
        Ok(())
    }

    fn missing<DB: Backend, C: MigrationHarness<DB>>(
        &self,
        connection: &mut Session<C>,
        catalog: &Catalog,
    ) -> Result<Vec<Step>, Failure> {
        let prefix = connection.settings().prefix.clone();
        let layout = catalog.layout_for(connection.settings().wanted_layout)?;
        let age = match layout {
            RepositoryLayout::V4_3 => catalog.age(&prefix)?,
            _ => None,
        };
        // The table may also list migrations of the program, and of other prefixes.
        let listed = catalog.listed.iter();
        let applied: Vec<&str> = listed
            .filter_map(|listed| prefix.version_of(listed))
            .filter(|version| version.starts_with(OUR_VERSIONS) && version.len() == OUR_VERSION_LENGTH)
            .collect();
        let scripts = self.0;
        let is_known = |applied: &&&str| {
            let known = scripts.current.iter().chain(scripts.upgrades);
            let mut known = known.chain([&scripts.layout_5, &scripts.layout_6, &scripts.definition]);
            known.any(|known| known.version() == **applied)
        };
        if let Some(newer) = applied.iter().find(|applied| !is_known(applied)) {
            return Err(format!(
                "its schema has version {newer}, which a newer version of this runtime created; update \
                 this program"
            )
            .into());
        }
        let has_definition = catalog.has_column("BATCH_JOB_EXECUTION.JOB_CONFIGURATION_LOCATION");
        let is_applied = |script: &Script| {
            applied.contains(&script.version())
                || (script.version() == scripts.definition.version() && has_definition)
        };
        let current = current_in(&scripts, layout);
        let is_made = current.first().is_none_or(is_applied);
        let upgrades = scripts.upgrades.iter();
        let upgrades = upgrades.filter(|upgrade| age.is_some_and(|age| !is_made && upgrade.version() > age));
        // All scripts are recorded as applied, so none would create the table, and its rows are lost.
        if current.iter().all(is_applied)
            && let Some(table) = TABLES.iter().find(|table| !catalog.has_table(table))
        {
            return Err(format!("its table {} is missing", prefix.rename(table)).into());
        }
        let missing = upgrades.chain(&current).filter(|script| !is_applied(script));
        Ok(missing.map(|script| Step::new(script, &prefix)).collect())
    }
}

/// Returns the migrations of a new database with a layout.
pub(in crate::repository) fn current_in(scripts: &Scripts, layout: RepositoryLayout) -> Vec<Script> {
    let (of_4_3, own) = match scripts.current {
        [of_4_3, own @ ..] => (of_4_3, own),
        [] => return Vec::new(),
    };
    let mut current = match layout {
        RepositoryLayout::V4_3 => vec![*of_4_3],
        RepositoryLayout::V5 => vec![scripts.layout_5, scripts.definition],
        RepositoryLayout::V6 => vec![scripts.layout_6, scripts.definition],
    };
    current.extend(own);
    current
}

/// A migration that is to be run, as diesel wants it.
struct Step {
    name: &'static str,
    /// The version in the table of applied migrations.
    version: String,
    statements: String,
}

impl Step {
    fn new(script: &Script, prefix: &TablePrefix) -> Self {
        Self {
            name: script.name,
            version: prefix.listed(script.version()),
            statements: prefix.rename_all(script.statements),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl MigrationName for Step {
    fn version(&self) -> MigrationVersion<'_> {
        MigrationVersion::from(&*self.version)
    }
}

impl MigrationMetadata for Step {}

impl<DB: Backend> Migration<DB> for Step {
    fn run(&self, connection: &mut dyn BoxableConnection<DB>) -> migration::Result<()> {
        // MySQL commits each change of the schema by itself.
        connection
            .batch_execute(&self.statements)
            .map_err(|error| MigrationError {
                name: self.name,
                source: error,
            })?;
        Ok(())
    }

    fn revert(&self, _connection: &mut dyn BoxableConnection<DB>) -> migration::Result<()> {
        Err("migrations are not reverted automatically; run the `down.sql` of the migration".into())
    }

    fn metadata(&self) -> &dyn MigrationMetadata {
        self
    }

    fn name(&self) -> &dyn MigrationName {
        self
    }
}

/// A migration that failed. Its script skips what an interrupted run has changed.
#[derive(Debug, thiserror::Error)]
#[error("migration `{name}` failed: {source}; fix the cause, then run `db migrate` to repeat it")]
struct MigrationError {
    name: &'static str,
    source: diesel::result::Error,
}

/// An error that diesel's transactions can return.
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
