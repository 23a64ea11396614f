//! The URL of a repository: parsing, display without the password, and queries of its tables.

use crate::repository::Result;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use batch_migrations::{Script, Scripts};

use super::conversion::{Backup, LayoutConversion};
use super::diesel::{
    Connector, RepositoryConnection, check_url, connect, convert, current_in, layout_of, missing_migrations,
    named_as_in, open_database, shown_url,
};
use super::{DatabaseKind, JobRepository, RepositoryConfig, RepositoryError, RepositoryLayout, memory};
use crate::time_zone::TimeZone;

/// Opens the repository of `url`. On a database, brings its tables up to date.
// Spec: REPO-06, MEM-01
pub(crate) fn open(url: &str, config: RepositoryConfig) -> Result<Arc<dyn JobRepository>> {
    let checked: RepositoryUrl = url.parse()?;
    match checked.database() {
        DatabaseKind::Memory => Ok(memory::create(config)),
        _ => open_database(url, config),
    }
}

/// The URL of a repository, as [`BatchRuntimeBuilder::repository`](crate::BatchRuntimeBuilder::repository) takes it.
///
/// It is checked when it is parsed; no database is opened for that. `Display` and `Debug` mask the password.
///
/// ```
/// use batch_runtime::repository::RepositoryUrl;
///
/// let url: RepositoryUrl = "sqlite://orders.db".parse()?;
/// assert_eq!(url.to_string(), "sqlite://orders.db");
/// assert!("oracle://me:secret@host".parse::<RepositoryUrl>().is_err());
/// # Ok::<(), batch_runtime::repository::RepositoryError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RepositoryUrl(String);

/// The state of a repository's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MigrationStatus {
    /// The database has no job repository, or does not exist.
    Absent,
    /// All migrations are applied.
    UpToDate,
    /// These migrations are missing; building a runtime applies them in this order.
    Pending(Vec<String>),
}

impl RepositoryUrl {
    /// Returns the URL as it was given, with its password.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the database that the URL names.
    pub fn database(&self) -> DatabaseKind {
        // The scheme was checked when the URL was parsed.
        DatabaseKind::named_in(&self.0).unwrap_or(DatabaseKind::Sqlite)
    }

    /// Opens a connection to the database. Neither reads nor creates the repository's tables.
    ///
    /// # Errors
    /// When the database cannot be opened; the message does not contain the password. When the repository is in memory.
    pub fn connect(&self) -> Result<RepositoryConnection> {
        match self.database() {
            DatabaseKind::Memory => Connector::without_database().connect(),
            _ => connect(&self.0).map_err(RepositoryError::of_other_database),
        }
    }

    /// Reads which migrations the repository lacks. Changes nothing.
    ///
    /// # Errors
    /// When the database cannot be read, or its tables were made by a newer version.
    pub fn migration_status(&self) -> Result<MigrationStatus> {
        if self.database() == DatabaseKind::Memory {
            return Ok(MigrationStatus::UpToDate);
        }
        Ok(match missing_migrations(&self.0)? {
            None => MigrationStatus::Absent,
            Some((_, missing)) if missing.is_empty() => MigrationStatus::UpToDate,
            Some((_, missing)) => MigrationStatus::Pending(missing),
        })
    }

    /// Returns the layout of the tables; `None` if there are none. Changes nothing.
    ///
    /// # Errors
    /// As [`migration_status`](Self::migration_status).
    // Spec: REPO-87
    pub fn layout(&self) -> Result<Option<RepositoryLayout>> {
        if self.database() == DatabaseKind::Memory {
            return Ok(None);
        }
        Ok(missing_migrations(&self.0)?.map(|(layout, _)| layout))
    }

    /// Reports what a conversion to another layout would change, and what blocks it. Changes nothing. `zone` is as for
    /// [`BatchRuntimeBuilder::repository_time_zone`](crate::BatchRuntimeBuilder::repository_time_zone).
    ///
    /// # Errors
    /// When the database cannot be read, has no tables, or has tables that are not up to date; when the repository is in memory.
    pub fn plan_conversion(&self, to: RepositoryLayout, zone: &TimeZone) -> Result<LayoutConversion> {
        self.conversion(to, zone, None)
    }

    /// Converts the tables to another layout, with all values, and with the keys of instances that Spring Batch computes in that layout.
    /// Stop all programs that use the repository first, and restart them afterwards.
    ///
    /// Before the tables are changed, each instance is written to `backup`, as a line that
    /// [`JobOperator::import`](crate::JobOperator::import) reads, and `backup` is flushed.
    ///
    /// On SQLite and PostgreSQL the conversion is one transaction. If it is interrupted on MySQL or MariaDB, no runtime opens the
    /// repository until it is run again; that run writes nothing to `backup` if the first run has written it.
    ///
    /// # Errors
    /// As [`plan_conversion`](Self::plan_conversion); when something prevents the conversion, or the backup fails.
    // Spec: REPO-91
    pub fn convert(
        &self,
        to: RepositoryLayout,
        zone: &TimeZone,
        backup: &mut dyn io::Write,
    ) -> Result<LayoutConversion> {
        self.conversion(to, zone, Some(backup))
    }

    fn conversion(
        &self,
        to: RepositoryLayout,
        zone: &TimeZone,
        backup: Option<Backup<'_>>,
    ) -> Result<LayoutConversion> {
        match self.database() {
            DatabaseKind::Memory => Err(RepositoryError::InMemory { missing: "tables" }),
            _ => convert(&self.0, zone, to, backup),
        }
    }

    /// Returns the statements that create the tables on `database`, with the table prefix and the layout of this URL; none for
    /// [`DatabaseKind::Memory`].
    pub fn schema(&self, database: DatabaseKind) -> String {
        let Some(scripts) = scripts_of(database) else {
            return String::new();
        };
        match layout_of(&self.0) {
            RepositoryLayout::V4_3 => self.named(scripts.schema),
            layout => self.listed(&current_in(&scripts, layout)),
        }
    }

    /// Returns the statements that bring tables of a version of Spring Batch up to date on `database`, with the table prefix of
    /// this URL: the scripts that building a runtime runs.
    pub fn upgrade_statements(&self, database: DatabaseKind, from: SpringBatchVersion) -> String {
        let Some(scripts) = scripts_of(database) else {
            return String::new();
        };
        let upgrades = scripts
            .upgrades
            .iter()
            .filter(|script| script.version() > from.migration());
        let all = upgrades.chain(scripts.current);
        self.listed(&all.copied().collect::<Vec<_>>())
    }

    fn listed(&self, scripts: &[Script]) -> String {
        let text = |script: &Script| {
            let statements = self.named(script.statements);
            format!("-- {}\n{}\n", script.name, statements.trim_end())
        };
        scripts.iter().map(text).collect()
    }

    /// The prefix was checked when the URL was parsed.
    fn named(&self, statements: &str) -> String {
        named_as_in(&self.0, statements).unwrap_or_else(|_| statements.to_owned())
    }
}

fn scripts_of(database: DatabaseKind) -> Option<Scripts> {
    match database {
        DatabaseKind::Sqlite => Some(batch_migrations::SQLITE),
        DatabaseKind::Postgresql => Some(batch_migrations::POSTGRESQL),
        DatabaseKind::Mysql => Some(batch_migrations::MYSQL),
        DatabaseKind::Memory => None,
    }
}

/// A version of Spring Batch whose tables can be upgraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpringBatchVersion {
    /// 2.1, whose parameters belong to instances.
    V2_1,
    /// 2.2, without the file of a job.
    V2_2,
    /// 3.0 to 4.2.
    V3_0,
    /// 4.3.
    V4_3,
}

impl SpringBatchVersion {
    /// Returns the schema version of its tables; they need the migrations after it.
    fn migration(self) -> &'static str {
        match self {
            Self::V2_1 => "0000000000210",
            Self::V2_2 => "0000000000220",
            Self::V3_0 => "0000000000300",
            Self::V4_3 => "0000000000429",
        }
    }
}

impl FromStr for RepositoryUrl {
    type Err = RepositoryError;

    fn from_str(url: &str) -> Result<Self> {
        check_url(url)?;
        Ok(Self(url.to_owned()))
    }
}

impl fmt::Display for RepositoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown_url(&self.0))
    }
}

impl fmt::Debug for RepositoryUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepositoryUrl({:?})", shown_url(&self.0))
    }
}
