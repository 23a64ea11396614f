//! `db`: the tables of the repository.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use batch_runtime::repository::{
    DatabaseKind, LayoutConversion, MigrationStatus, RepositoryError, RepositoryLayout, RepositoryUrl,
    SpringBatchVersion,
};
use clap::{Args, Subcommand, ValueEnum};

use crate::error::CliError;
use crate::print::{out, outln};
use crate::session::{Outcome, Session, exit_code};

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
    /// Converts the tables to the layout of another version of Spring Batch
    ///
    /// Keeps all values and recomputes the keys of instances. Stop all programs that use the repository first. If it fails, nothing has
    /// changed on SQLite and PostgreSQL; on MySQL and MariaDB, run it again.
    Upgrade(Upgrade),
    /// Prints the statements that create the tables, in the layout that the URL names
    ///
    /// The statements do not record that they were run. After they were run by hand, `db status` reports "not up to date"
    /// until `db migrate`, or the first start, has found the tables and recorded them.
    ExportSchema {
        /// Database to print them for [default: the database of --repository]
        #[arg(long, value_enum)]
        database: Option<Database>,
        /// Prints the statements that upgrade tables of this version of Spring Batch to 4.3 instead; `db upgrade` converts them to 5 or 6
        #[arg(long, value_enum, value_name = "VERSION")]
        upgrade_from: Option<Version>,
    },
}

#[derive(Args, Debug)]
struct Upgrade {
    /// Version of Spring Batch: 4.3, 5 or 6
    #[arg(long, value_name = "VERSION")]
    to: RepositoryLayout,
    /// Only reports what would be changed, and what prevents it
    #[arg(long)]
    dry_run: bool,
    /// File to create for the backup: all instances, one JSON line each, as `import` reads them
    #[arg(long, value_name = "FILE", required_unless_present = "dry_run")]
    backup: Option<PathBuf>,
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
            Action::Upgrade(upgrade) => return upgrade.run(session),
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

impl Upgrade {
    /// The exit code of a dry run reports to scripts whether the conversion can be done.
    fn run(self, session: &Session) -> Outcome {
        let (url, zone) = (
            &session.settings.repository,
            &session.settings.repository_time_zone,
        );
        let converted = match self.backup.filter(|_| !self.dry_run) {
            None => url.plan_conversion(self.to, zone)?,
            Some(path) => url.convert(self.to, zone, &mut Backup { path, file: None })?,
        };
        print_conversion(url, &converted, self.dry_run);
        Ok(exit_code(converted.obstacles.is_empty()))
    }
}

fn print_conversion(url: &RepositoryUrl, conversion: &LayoutConversion, is_plan: bool) {
    let (from, to) = (conversion.from, conversion.to);
    let verb = if is_plan { "would be" } else { "was" };
    match from == to {
        true => outln!("`{url}` has the layout of Spring Batch {to}"),
        false => outln!("`{url}` {verb} converted from the layout of Spring Batch {from} to that of {to}"),
    }
    let (instances, replaced) = (conversion.instances, conversion.replaced_keys);
    outln!("  keys replaced: {replaced} of {instances}");
    if conversion.kept_keys > 0 {
        let kept = conversion.kept_keys;
        outln!("  keys kept: {kept}; Spring Batch {to} may compute others, see the guide");
    }
    outln!("  parameters: {}", conversion.parameters);
    if conversion.null_parameters > 0 && to != RepositoryLayout::V4_3 {
        let nulls = conversion.null_parameters;
        outln!("  null parameters: {nulls}; Spring Batch {to} cannot read their executions");
    }
    if !conversion.obstacles.is_empty() {
        outln!("  cannot be converted:");
        let obstacles = conversion.obstacles.iter();
        obstacles.for_each(|obstacle| outln!("    {obstacle}"));
    }
}

/// Creates the file at the first write: repeating an interrupted conversion writes no backup. `flush` syncs it to disk.
struct Backup {
    path: PathBuf,
    file: Option<File>,
}

impl Backup {
    fn create(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        // It holds all parameters, which may be confidential.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)
    }

    fn named(&self, error: &io::Error) -> io::Error {
        let path = self.path.display();
        io::Error::new(
            error.kind(),
            format!("cannot write the backup `{path}`: {error}; name a new file"),
        )
    }
}

impl Write for Backup {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.create().map_err(|error| self.named(&error))?,
        };
        let written = file.write(bytes).map_err(|error| self.named(&error));
        match written {
            Ok(_) => self.file = Some(file),
            // An incomplete file must not look like a backup.
            Err(_) => drop(std::fs::remove_file(&self.path)),
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        let synced = self.file.as_ref().map_or(Ok(()), File::sync_all);
        synced.map_err(|error| self.named(&error))
    }
}

/// Prints the status of the tables. The exit code reports to scripts whether a start would change them.
fn print_status(url: &RepositoryUrl) -> Result<ExitCode, CliError> {
    match url.migration_status()? {
        MigrationStatus::UpToDate => {
            match url.layout()? {
                Some(layout) => outln!("`{url}` is up to date, in the layout of Spring Batch {layout}"),
                None => outln!("`{url}` is up to date"),
            }
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
