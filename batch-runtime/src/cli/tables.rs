//! `db`: the tables of the repository.

use std::process::ExitCode;

use super::args::{DbVerb, Schema};
use super::print::out;
use crate::repository::{missing_migrations, named_as_in, shown_url};
use crate::runtime::BatchRuntimeBuilder;

pub(super) fn run(url: &str, builder: BatchRuntimeBuilder, verb: DbVerb) -> Result<ExitCode, String> {
    match verb {
        DbVerb::Status => return status(url),
        DbVerb::Migrate => {
            builder.build().map_err(|error| error.to_string())?;
            out(format_args!("`{}` is up to date", shown_url(url)));
        }
        DbVerb::ExportSchema { database } => {
            let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
            let database = database.unwrap_or(match scheme {
                "postgres" | "postgresql" => Schema::Postgresql,
                "mysql" | "mariadb" => Schema::Mysql,
                _ => Schema::Sqlite,
            });
            let statements = match database {
                Schema::Sqlite => include_str!("../../../migrations/schema-sqlite.sql"),
                Schema::Postgresql => include_str!("../../../migrations/schema-postgresql.sql"),
                Schema::Mysql => include_str!("../../../migrations/schema-mysql.sql"),
            };
            let statements = named_as_in(url, statements).map_err(|error| error.to_string())?;
            out(statements.trim_end());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The exit code tells scripts whether a start would change something.
fn status(url: &str) -> Result<ExitCode, String> {
    let shown = shown_url(url);
    match missing_migrations(url).map_err(|error| error.to_string())? {
        None => out(format_args!(
            "`{shown}` holds no repository yet: the first start makes it"
        )),
        Some(missing) if missing.is_empty() => {
            out(format_args!("`{shown}` is up to date"));
            return Ok(ExitCode::SUCCESS);
        }
        Some(missing) => {
            out(format_args!(
                "`{shown}` is not up to date; the next start, or `db migrate`, runs"
            ));
            missing.iter().for_each(|name| out(format_args!("  {name}")));
        }
    }
    Ok(ExitCode::FAILURE)
}
