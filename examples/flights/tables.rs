//! The tables of the example, beside the job repository's in the same database.

use diesel::connection::SimpleConnection;
use diesel::prelude::*;

table! {
    airport (iata) {
        iata -> Text,
        name -> Text,
        city -> Text,
        state -> Text,
    }
}

table! {
    // No unique key, so that a flight written twice would be visible.
    flight (rowid) {
        rowid -> BigInt,
        job_instance_id -> BigInt,
        job_execution_id -> BigInt,
        record -> BigInt,
        date -> Text,
        local_hour -> Integer,
        origin -> Text,
        origin_city -> Text,
        destination -> Text,
        destination_city -> Text,
        distance -> Integer,
        distance_class -> Text,
        delay -> Integer,
        delay_class -> Text,
    }
}

/// Creates the tables if they do not exist.
pub(crate) fn create(connection: &mut SqliteConnection) -> QueryResult<()> {
    connection.batch_execute(
        "CREATE TABLE IF NOT EXISTS airport (
            iata TEXT NOT NULL PRIMARY KEY, name TEXT NOT NULL, city TEXT NOT NULL, state TEXT NOT NULL);
         CREATE TABLE IF NOT EXISTS flight (
            job_instance_id INTEGER NOT NULL, job_execution_id INTEGER NOT NULL, record INTEGER NOT NULL,
            date TEXT NOT NULL, local_hour INTEGER NOT NULL, origin TEXT NOT NULL, origin_city TEXT NOT NULL,
            destination TEXT NOT NULL, destination_city TEXT NOT NULL, distance INTEGER NOT NULL,
            distance_class TEXT NOT NULL, delay INTEGER NOT NULL, delay_class TEXT NOT NULL);",
    )
}
