//! The databases beside the repository: the table `[databases]` of `batch.toml`, for processes that run jobs.
// Spec: MARK-13

use batch_runtime::BatchRuntimeBuilder;
use batch_runtime::destination::ConnectionString;
use batch_runtime::parameters::SecretReference;
use batch_runtime::repository::RepositoryUrl;

use crate::error::CliError;
use crate::settings::DatabaseSettings;

/// Names the databases in a runtime that runs jobs. Reads the secrets.
pub(crate) fn add(
    mut runtime: BatchRuntimeBuilder,
    databases: &[DatabaseSettings],
) -> Result<BatchRuntimeBuilder, CliError> {
    let mut problems = Vec::new();
    for database in databases {
        let url = revealed(&database.url).and_then(|url| {
            let is_other = url.parse::<ConnectionString>().is_ok();
            match url.parse::<RepositoryUrl>() {
                Err(problem) if !is_other => Err(problem.to_string()),
                _ => Ok(url),
            }
        });
        match url {
            Ok(url) => runtime = runtime.database(&database.name, url),
            Err(problem) => problems.push(format!(
                "{}: the database `{}`: {problem}",
                database.origin, database.name
            )),
        }
    }
    match problems.is_empty() {
        true => Ok(runtime),
        false => Err(CliError::Settings(problems)),
    }
}

/// Names the databases in a runtime that runs nothing. Reads no secrets.
pub(crate) fn only_names(
    runtime: BatchRuntimeBuilder,
    databases: &[DatabaseSettings],
) -> BatchRuntimeBuilder {
    databases.iter().fold(runtime, |runtime, database| {
        runtime.database(&database.name, &database.url)
    })
}

/// Returns the text that a setting is, or refers to.
pub(crate) fn revealed(text: &str) -> Result<String, String> {
    match text.parse::<SecretReference>() {
        Ok(reference) => secret(&reference),
        Err(_) => Ok(text.to_owned()),
    }
}

/// Reads a secret.
pub(crate) fn secret(reference: &SecretReference) -> Result<String, String> {
    reference
        .read()
        .map_err(|problem| format!("cannot read the secret {reference}: {problem}"))
}
