//! The sequences of MariaDB, which Spring Batch takes ids from since version 5. MySQL has tables with one row instead, as both have in the
//! layout of Spring Batch 4.3.

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use super::Connection;
use super::per_backend::catalog;
use crate::repository::RepositoryLayout;
use crate::repository::diesel::backend::Sequence;
use crate::repository::diesel::fixed_sql::{fixed_queries, fixed_query};
use crate::repository::diesel::session::RunQueryDsl;

fixed_queries! {
    InstancesFrom5: "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < ", ")
        SELECT NEXT VALUE FOR BATCH_JOB_SEQ FROM n";
    InstancesFrom6: "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < ", ")
        SELECT NEXT VALUE FOR BATCH_JOB_INSTANCE_SEQ FROM n";
    ExecutionsFrom: "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < ", ")
        SELECT NEXT VALUE FOR BATCH_JOB_EXECUTION_SEQ FROM n";
    StepsFrom: "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < ", ")
        SELECT NEXT VALUE FOR BATCH_STEP_EXECUTION_SEQ FROM n";
}

/// Allocates ids from a sequence of MariaDB.
// Spec: REPO-87
pub(super) fn next_ids(connection: &mut Connection, sequence: Sequence, count: i64) -> QueryResult<Vec<i64>> {
    let mut ids: Vec<i64> = match sequence {
        Sequence::Instance if connection.layout() == RepositoryLayout::V6 => {
            fixed_query::<InstancesFrom6>(count).load(connection)?
        }
        Sequence::Instance => fixed_query::<InstancesFrom5>(count).load(connection)?,
        Sequence::Execution => fixed_query::<ExecutionsFrom>(count).load(connection)?,
        Sequence::Step => fixed_query::<StepsFrom>(count).load(connection)?,
    };
    ids.sort_unstable();
    Ok(ids)
}

/// Implements `Backend::convert_sequences`, one after the other: each may have been converted before an interruption.
pub(super) fn convert(connection: &mut Connection, to: RepositoryLayout) -> QueryResult<()> {
    let version: String = diesel::select(sql::<Text>("VERSION()")).get_result(connection)?;
    let wants_sequences = to.has_typed_parameters() && version.contains("MariaDB");
    let instances = match to {
        RepositoryLayout::V6 => "JOB_INSTANCE_SEQ",
        _ => "JOB_SEQ",
    };
    for name in [instances, "JOB_EXECUTION_SEQ", "STEP_EXECUTION_SEQ"] {
        let [now, new, old] = ["", "CONVERTED_", "REPLACED_"].map(|kind| format!("BATCH_{kind}{name}"));
        let found = catalog(connection)?;
        if !found.has_table(&now) {
            // A server that crashed has renamed one of two.
            connection.run_script(&format!("RENAME TABLE {old} TO {now}"))?;
        }
        if catalog(connection)?.is_sequence(name) != wants_sequences {
            // What an interrupted run has prepared may repeat ids that another program has taken since.
            connection.run_script(&format!("DROP TABLE IF EXISTS {new}; DROP TABLE IF EXISTS {old}"))?;
            match wants_sequences {
                true => create_sequence(connection, &now, &new)?,
                false => create_table(connection, &now, &new)?,
            }
            connection.run_script(&format!("RENAME TABLE {now} TO {old}, {new} TO {now}"))?;
        }
        connection.run_script(&format!("DROP TABLE IF EXISTS {old}"))?;
    }
    Ok(())
}

fn create_sequence(connection: &mut Connection, table: &str, sequence: &str) -> QueryResult<()> {
    let next = sql::<BigInt>(&format!("(SELECT ID + 1 FROM {table})"));
    let next: i64 = diesel::select(next).get_result(connection)?;
    connection.run_script(&format!(
        "CREATE SEQUENCE {sequence} START WITH {next} MINVALUE 1 MAXVALUE 9223372036854775806 INCREMENT BY 1 NOCACHE NOCYCLE
             ENGINE=InnoDB"
    ))
}

fn create_table(connection: &mut Connection, sequence: &str, table: &str) -> QueryResult<()> {
    connection.run_script(&format!(
        "CREATE TABLE {table} (
             ID BIGINT NOT NULL,
             UNIQUE_KEY CHAR(1) NOT NULL,
             constraint UNIQUE_KEY_UN unique (UNIQUE_KEY)
         ) ENGINE=InnoDB;
         INSERT INTO {table} (ID, UNIQUE_KEY) SELECT NEXT_NOT_CACHED_VALUE - 1, '0' FROM {sequence}"
    ))
}
