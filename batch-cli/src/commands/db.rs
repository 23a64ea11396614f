//! `db`: the tables of the repository.

use std::process::ExitCode;

use batch_runtime::repository::{
    DatabaseKind, MigrationStatus, RepositoryError, RepositoryUrl, SpringBatchVersion,
};
use clap::{Args, Subcommand, ValueEnum};

use crate::error::CliError;
use crate::print::{out, outln};
use crate::session::{Outcome, Session};

/// The tables of the repository
#[derive(Args, Debug)]
pub(crate) struct Db {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Reports whether the tables exist and are up to date; changes nothing
    Status,
    /// Creates the tables, or brings them up to date, as every start does
    Migrate,
    /// Prints the statements that create the tables
    ///
    /// The statements do not record that they were run. After they were run by hand, `db status` reports "not up to date"
    /// until `db migrate`, or the first start, has found the tables and recorded them.
    ExportSchema {
        /// Database to print them for [default: that of --repository]
        #[arg(long, value_enum)]
        database: Option<Database>,
        /// Prints the statements that upgrade tables of this version of Spring Batch instead
        #[arg(long, value_enum, value_name = "VERSION")]
        upgrade_from: Option<Version>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Database {
    Sqlite,
    Postgresql,
    /// Also for MariaDB
    Mysql,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Version {
    #[value(name = "2.1")]
    V2_1,
    #[value(name = "2.2")]
    V2_2,
    /// Also for 4.0 to 4.2
    #[value(name = "3.0")]
    V3_0,
    #[value(name = "4.3")]
    V4_3,
}

impl From<Version> for SpringBatchVersion {
    fn from(version: Version) -> Self {
        match version {
            Version::V2_1 => Self::V2_1,
            Version::V2_2 => Self::V2_2,
            Version::V3_0 => Self::V3_0,
            Version::V4_3 => Self::V4_3,
        }
    }
}

impl From<Database> for DatabaseKind {
    fn from(database: Database) -> Self {
        match database {
            Database::Sqlite => Self::Sqlite,
            Database::Postgresql => Self::Postgresql,
            Database::Mysql => Self::Mysql,
        }
    }
}

impl Db {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let url = &session.settings.repository;
        let needs_tables = !matches!(
            self.action,
            Action::ExportSchema {
                database: Some(_),
                ..
            }
        );
        if session.is_in_memory() && needs_tables {
            return Err(RepositoryError::InMemory { missing: "tables" }.into());
        }
        match self.action {
            Action::Status => return print_status(url),
            Action::Migrate => {
                session.create()?;
                outln!("`{url}` is up to date");
            }
            Action::ExportSchema {
                database,
                upgrade_from,
            } => {
                let database = database.map_or_else(|| url.database(), DatabaseKind::from);
                let statements = match upgrade_from {
                    Some(version) => url.upgrade_statements(database, version.into()),
                    None => url.schema(database),
                };
                out(statements.trim_end());
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints the status of the tables. The exit code reports to scripts whether a start would change them.
fn print_status(url: &RepositoryUrl) -> Result<ExitCode, CliError> {
    match url.migration_status()? {
        MigrationStatus::UpToDate => {
            outln!("`{url}` is up to date");
            return Ok(ExitCode::SUCCESS);
        }
        MigrationStatus::Pending(missing) => {
            outln!("`{url}` is not up to date; the next start, or `db migrate`, runs");
            missing.iter().for_each(|name| outln!("  {name}"));
        }
        _ => outln!("`{url}` has no tables; the first start creates them"),
    }
    Ok(ExitCode::FAILURE)
}
