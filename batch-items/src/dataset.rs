//! The datasets that readers, writers and batchlets report, under the names that OpenLineage gives them.
//!
//! Names contain neither users nor passwords nor queries of URLs.

use std::path::Path;

use batch_runtime::JobExecutionId;
use batch_runtime::observer::{Dataset, DatasetRole};
use batch_runtime::prelude::*;

use crate::file::redact;

/// The maximum number of files of an input or output that are reported. Of more files, the folder is.
const MOST_FILES: usize = 100;

/// The contexts of an artifact that reports datasets; `None` outside of a step, where nothing is reported.
#[derive(BatchArtifact)]
pub struct Datasets {
    #[batch_context]
    job: Option<JobContext>,
    #[batch_context]
    step: Option<StepContext>,
}

/// The namespace and the name of a dataset.
pub type DatasetName = (String, String);

impl Datasets {
    /// Returns the URL of the repository, the job execution and the id of the step; `None` outside of a step.
    pub fn place(&self) -> Option<(String, JobExecutionId, String)> {
        let (job, step) = self.job.as_ref().zip(self.step.as_ref())?;
        Some((job.repository_url(), job.execution_id(), step.id().to_owned()))
    }

    /// Reports a dataset.
    pub fn report(&self, role: DatasetRole, (namespace, name): DatasetName) {
        if let Some(step) = &self.step {
            step.report_dataset(Dataset::new(role, namespace, name));
        }
    }

    /// Reports a file that is written beside the output of the step.
    pub fn report_beside(&self, file: &Path) {
        if let Some(step) = &self.step {
            let (namespace, name) = of_file(file);
            step.report_dataset(Dataset::new(DatasetRole::Output, namespace, name).uncounted());
        }
    }

    /// Reports the files of an input or output; of many, the folder that `pattern` names.
    pub fn report_files(
        &self,
        role: DatasetRole,
        pattern: &str,
        files: impl ExactSizeIterator<Item = DatasetName>,
    ) {
        if files.len() > MOST_FILES {
            return self.report(role, of_url(folder_of(pattern)));
        }
        files.for_each(|file| self.report(role, file));
    }

    /// Reports a table with its columns. `url` names its database; it is empty for the database of the repository; `schema` is the one in
    /// which the database has found it.
    pub(crate) fn report_table(
        &self,
        role: DatasetRole,
        url: &str,
        schema: Option<&str>,
        table: &str,
        columns: impl IntoIterator<Item = (String, Option<String>)>,
    ) {
        let (Some(job), Some(step)) = (&self.job, &self.step) else {
            return;
        };
        let url = match url {
            "" => job.repository_url(),
            other => other.to_owned(),
        };
        if let Some((namespace, name)) = table_at(&url, schema, table) {
            step.report_dataset(Dataset::new(role, namespace, name).with_fields(columns));
        }
    }
}

/// Returns the folder that all files of a pattern are in.
fn folder_of(pattern: &str) -> &str {
    let wildcard = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    match pattern[..wildcard].rfind('/') {
        None => ".",
        Some(0) => "/",
        Some(end) => &pattern[..end],
    }
}

/// Returns the dataset of a local file.
pub fn of_file(path: &Path) -> DatasetName {
    let absolute = std::path::absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    ("file".to_owned(), path.to_string_lossy().into_owned())
}

/// Returns the dataset of a path or URL.
pub(crate) fn of_url(text: &str) -> DatasetName {
    let shown = redact(text);
    match shown.split_once("://") {
        None => of_file(Path::new(&shown)),
        Some(("file", path)) => of_file(Path::new(path)),
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            // The name of an object is its key.
            let name = match scheme {
                // The whole bucket, or the root of a server.
                _ if path.len() < 2 => "/",
                "http" | "https" => path,
                _ => path.strip_prefix('/').unwrap_or(path),
            };
            (format!("{scheme}://{authority}"), name.to_owned())
        }
    }
}

/// Returns the dataset of a table in the database of a URL; `None` in a database that ends with the process.
fn table_at(url: &str, schema: Option<&str>, table: &str) -> Option<DatasetName> {
    let (scheme, rest) = url.split_once("://")?;
    let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
    if scheme == "sqlite" {
        let (_, path) = of_file(Path::new(rest));
        return (rest != ":memory:").then(|| (format!("sqlite://{path}"), table.to_owned()));
    }
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let user = user.split(':').next().unwrap_or_default();
    let (scheme, port) = match scheme {
        "postgres" | "postgresql" => ("postgres", 5432),
        _ => ("mysql", 3306),
    };
    // libpq has both as options, too.
    let option = |wanted: &str| {
        let mut pairs = options.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(name, value)| (name == wanted && !value.is_empty()).then_some(value))
    };
    let (host, given) = match host.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (host, None),
    };
    let host = option("host").unwrap_or(host);
    let is_socket = host.is_empty() || host.starts_with('/') || host.to_ascii_lowercase().starts_with("%2f");
    let host = if is_socket { "localhost" } else { host };
    let port = option("port").or(given).map_or(port.to_string(), str::to_owned);
    // The default of the client library.
    let database = if database.is_empty() { user } else { database };
    let name = match (schema, table.contains('.')) {
        // In MySQL a schema is a database.
        (_, true) if scheme == "mysql" => table.to_owned(),
        (Some(schema), false) if scheme == "postgres" => format!("{database}.{schema}.{table}"),
        _ => format!("{database}.{table}"),
    };
    Some((format!("{scheme}://{host}:{port}"), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: LIN-02
    #[test]
    fn tables_are_named_by_their_servers() {
        for (url, schema, table, namespace, name) in [
            (
                "postgres://me:***@db/shop",
                Some("public"),
                "payment",
                "postgres://db:5432",
                "shop.public.payment",
            ),
            (
                "postgresql://db:5433/shop?sslmode=require",
                Some("sales"),
                "sales.payment",
                "postgres://db:5433",
                "shop.sales.payment",
            ),
            (
                "postgres://me:p@[::1]",
                None,
                "payment",
                "postgres://[::1]:5432",
                "me.payment",
            ),
            (
                "postgres:///shop?host=%2Fvar%2Frun&port=5433",
                None,
                "payment",
                "postgres://localhost:5433",
                "shop.payment",
            ),
            (
                "mariadb://me:p@db/shop",
                None,
                "payment",
                "mysql://db:3306",
                "shop.payment",
            ),
            (
                "mysql://db:1/shop",
                None,
                "other.payment",
                "mysql://db:1",
                "other.payment",
            ),
            (
                "sqlite:///var/shop.db?table_prefix=X_",
                None,
                "payment",
                "sqlite:///var/shop.db",
                "payment",
            ),
        ] {
            let expected = (namespace.to_owned(), name.to_owned());
            assert_eq!(table_at(url, schema, table), Some(expected), "{url}");
        }
        assert_eq!(table_at("sqlite://:memory:", None, "payment"), None);
        assert_eq!(table_at("memory:", None, "payment"), None);
    }

    // Spec: LIN-02
    #[test]
    fn files_and_objects_have_no_secrets() {
        for (url, namespace, name) in [
            ("/data/in.csv", "file", "/data/in.csv"),
            ("file:///data/in.csv", "file", "/data/in.csv"),
            ("s3://bucket/in/a.csv", "s3://bucket", "in/a.csv"),
            ("gs://bucket", "gs://bucket", "/"),
            (
                "https://me:secret@host:81/a.csv?token=secret",
                "https://host:81",
                "/a.csv",
            ),
            ("https://host?token=secret", "https://host", "/"),
        ] {
            assert_eq!(of_url(url), (namespace.to_owned(), name.to_owned()), "{url}");
        }
        for (pattern, folder) in [
            ("in/2026-*/a.csv", "in"),
            ("*.csv", "."),
            ("/*.csv", "/"),
            ("s3://bucket/*.csv", "s3://bucket"),
        ] {
            assert_eq!(folder_of(pattern), folder, "{pattern}");
        }
        let (_, name) = of_url("in.csv");
        assert!(Path::new(&name).is_absolute(), "{name}");
    }
}
