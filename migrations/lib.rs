//! The SQL scripts of the job repository of `batch-runtime`, as constants.
//!
//! Each database has [`Scripts`]: the migrations that a new database needs, those that tables of older versions of Spring Batch
//! need before them, and the whole schema in one script. Tables have the prefix `BATCH_`. The runtime runs the migrations; to
//! create tables by hand, run the schema, or the files in this package's folders.
//!
//! ```
//! assert!(batch_migrations::SQLITE.schema.contains("CREATE TABLE IF NOT EXISTS BATCH_JOB_INSTANCE"));
//! ```
// Spec: REPO-05, REPO-07 to REPO-11

/// A migration.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The version, an underscore, and a description.
    pub name: &'static str,
    /// The SQL statements.
    pub statements: &'static str,
}

impl Script {
    /// Returns the version: migrations are ordered and recorded by it.
    pub fn version(&self) -> &'static str {
        self.name
            .split_once('_')
            .map_or(self.name, |(version, _)| version)
    }
}

/// The scripts of one database.
#[derive(Clone, Copy, Debug)]
pub struct Scripts {
    /// The migrations of a new database. The first creates the tables of Spring Batch 4.3 and skips those that exist.
    pub current: &'static [Script],
    /// The migrations that tables of older versions of Spring Batch need before [`current`](Self::current).
    pub upgrades: &'static [Script],
    /// The tables of Spring Batch 5; replaces the first of [`current`](Self::current) in a repository with that layout.
    pub layout_5: Script,
    /// The tables of Spring Batch 6.
    pub layout_6: Script,
    /// The column for the file of a job, which the layouts of Spring Batch 5 and 6 lack.
    pub definition: Script,
    /// The scripts that convert tables between the layouts.
    pub conversion: Conversion,
    /// All tables in one script, in the layout of Spring Batch 4.3.
    pub schema: &'static str,
}

/// The scripts that convert tables between the layouts of Spring Batch. The runtime runs them, and copies the parameters in between.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// Adds the creation of step executions, if the tables lack it.
    pub creation: &'static str,
    /// From 4.3 to 5.
    pub to_5: Replacement,
    /// From 5 to 4.3.
    pub to_4_3: Replacement,
    /// Renames the sequence of instances, from 5 to 6.
    pub to_6: &'static str,
    /// Renames the sequence of instances, from 6 to 5.
    pub from_6: &'static str,
}

/// The scripts that replace the table of parameters.
#[derive(Clone, Copy, Debug)]
pub struct Replacement {
    /// Creates the new table, with `CONVERTED_` after the prefix.
    pub prepare: &'static str,
    /// Replaces the old table by the new one, which contains the parameters.
    pub replace: &'static str,
    /// Removes what only an interrupted conversion needs.
    pub complete: &'static str,
}

macro_rules! conversion {
    ($folder:literal, $complete_5:expr, $complete_4_3:expr) => {
        Conversion {
            creation: include_str!(concat!("convert/", $folder, "/creation.sql")),
            to_5: Replacement {
                prepare: include_str!(concat!("convert/", $folder, "/to_5_prepare.sql")),
                replace: include_str!(concat!("convert/", $folder, "/to_5_replace.sql")),
                complete: $complete_5,
            },
            to_4_3: Replacement {
                prepare: include_str!(concat!("convert/", $folder, "/to_4_3_prepare.sql")),
                replace: include_str!(concat!("convert/", $folder, "/to_4_3_replace.sql")),
                complete: $complete_4_3,
            },
            to_6: include_str!(concat!("convert/", $folder, "/to_6.sql")),
            from_6: include_str!(concat!("convert/", $folder, "/from_6.sql")),
        }
    };
}

macro_rules! script {
    ($folder:literal: $name:literal) => {
        Script {
            name: $name,
            statements: include_str!(concat!($folder, "/", $name, "/up.sql")),
        }
    };
}

macro_rules! scripts {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        &[$(script!($folder: $name)),+]
    };
}

/// SQLite.
pub const SQLITE: Scripts = Scripts {
    current: scripts!(
        "sqlite":
        "0000000000430_spring_batch_4_3",
        "0000000000431_job_instance_lease",
        "0000000000432_partition_lease",
        "0000000000433_repeated_steps",
        "0000000000434_workers",
        "0000000000435_turns_of_jobs",
        "0000000000436_notifications",
    ),
    upgrades: scripts!(
        "upgrade/sqlite":
        "0000000000220_parameters_of_executions",
        "0000000000300_configuration_location",
        "0000000000410_character_lengths",
    ),
    layout_5: script!("layout/sqlite": "0000000000500_spring_batch_5"),
    layout_6: script!("layout/sqlite": "0000000000600_spring_batch_6"),
    definition: script!("layout/sqlite": "0000000000650_definition_of_jobs"),
    conversion: conversion!("sqlite", "", ""),
    schema: include_str!("schema-sqlite.sql"),
};

/// PostgreSQL.
pub const POSTGRESQL: Scripts = Scripts {
    current: scripts!(
        "postgres":
        "0000000000430_spring_batch_4_3",
        "0000000000431_job_instance_lease",
        "0000000000432_partition_lease",
        "0000000000433_repeated_steps",
        "0000000000434_workers",
        "0000000000435_turns_of_jobs",
        "0000000000436_notifications",
    ),
    upgrades: scripts!(
        "upgrade/postgres":
        "0000000000220_parameters_of_executions",
        "0000000000300_configuration_location",
        "0000000000410_character_lengths",
    ),
    layout_5: script!("layout/postgres": "0000000000500_spring_batch_5"),
    layout_6: script!("layout/postgres": "0000000000600_spring_batch_6"),
    definition: script!("layout/postgres": "0000000000650_definition_of_jobs"),
    conversion: conversion!("postgres", "", ""),
    schema: include_str!("schema-postgresql.sql"),
};

/// MySQL and MariaDB.
pub const MYSQL: Scripts = Scripts {
    current: scripts!(
        "mysql":
        "0000000000430_spring_batch_4_3",
        "0000000000431_job_instance_lease",
        "0000000000432_partition_lease",
        "0000000000433_repeated_steps",
        "0000000000434_workers",
        "0000000000435_turns_of_jobs",
        "0000000000436_notifications",
    ),
    upgrades: scripts!(
        "upgrade/mysql":
        "0000000000220_parameters_of_executions",
        "0000000000300_configuration_location",
        "0000000000410_unique_sequences",
        "0000000000420_fractions_of_seconds",
    ),
    layout_5: script!("layout/mysql": "0000000000500_spring_batch_5"),
    layout_6: script!("layout/mysql": "0000000000600_spring_batch_6"),
    definition: script!("layout/mysql": "0000000000650_definition_of_jobs"),
    conversion: conversion!(
        "mysql",
        include_str!("convert/mysql/to_5_complete.sql"),
        include_str!("convert/mysql/to_4_3_complete.sql")
    ),
    schema: include_str!("schema-mysql.sql"),
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Every folder of scripts is exported, in the order of the versions.
    #[test]
    fn every_folder_is_exported() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (folder, scripts) in [("sqlite", SQLITE), ("postgres", POSTGRESQL), ("mysql", MYSQL)] {
            let later = [scripts.layout_5, scripts.layout_6, scripts.definition];
            for (folder, scripts) in [
                (folder.to_owned(), scripts.current),
                (format!("upgrade/{folder}"), scripts.upgrades),
                (format!("layout/{folder}"), &later),
            ] {
                let entries = std::fs::read_dir(root.join(&folder)).into_iter().flatten();
                let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
                let exported: Vec<&str> = scripts.iter().map(|script| script.name).collect();
                assert!(exported.is_sorted(), "{exported:?}");
                let exported = exported.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
                assert_eq!(names.collect::<BTreeSet<_>>(), exported, "{folder}");
            }
        }
    }
}
