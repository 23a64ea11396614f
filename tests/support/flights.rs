//! The expected result of the example `flights`, computed from its input without its code.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use crate::sqlite;

/// Returns the input's folder.
pub fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/data")
}

/// Returns the table's rows, one text each, in the order of the input.
pub fn expected_rows() -> Vec<String> {
    let mut airports = csv::Reader::from_path(data().join("airports.csv")).expect("airports.csv");
    let cities: HashMap<String, String> = airports
        .records()
        .map(|row| row.expect("a row"))
        .map(|row| (row[0].into(), row[2].into()))
        .collect();
    let city = |iata: &str| cities.get(iata).cloned().unwrap_or_default();
    let mut flights = csv::Reader::from_path(data().join("flights.csv")).expect("flights.csv");
    let rows = flights.records().map(|row| row.expect("a row")).enumerate();
    rows.filter_map(|(index, row)| {
        let (date, origin, destination) = (&row[0], &row[3], &row[4]);
        let (delay, distance): (i64, i64) = (row[1].parse().expect("minutes"), row[2].parse().expect("miles"));
        if distance < 100 {
            return None;
        }
        let hour: u32 = date[11..13].parse().expect("an hour");
        let distance_class = if distance < 500 { "short" } else if distance < 1500 { "medium" } else { "long" };
        let delay_class = if delay < 0 {
            "early"
        } else if delay < 15 {
            "on time"
        } else if delay < 60 {
            "late"
        } else {
            "very late"
        };
        let (record, from, to) = (index + 1, city(origin), city(destination));
        Some(format!(
            "{record}|{date}|{hour}|{origin}|{from}|{destination}|{to}|{distance}|{distance_class}|{delay}|{delay_class}"
        ))
    })
    .collect()
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    text: String,
}

#[derive(QueryableByName)]
struct Execution {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = BigInt)]
    reads: i64,
    #[diesel(sql_type = BigInt)]
    writes: i64,
    #[diesel(sql_type = BigInt)]
    filters: i64,
    #[diesel(sql_type = BigInt)]
    rows_written: i64,
}

/// Compares rows with the expected ones; the error shows the first difference.
pub(crate) fn compare(rows: &[String], expected: &[String]) -> Result<(), String> {
    if let Some((row, wanted)) = rows.iter().zip(expected).find(|(row, wanted)| row != wanted) {
        return Err(format!("the table has {row}\nwhere the input has {wanted}"));
    }
    if rows.len() != expected.len() {
        return Err(format!("{} rows instead of {}", rows.len(), expected.len()));
    }
    Ok(())
}

/// Compares an instance's table and counters with the expected ones; the error shows the first difference.
pub fn verify(database: &Path, instance: i64, expected: &[String]) -> Result<(), String> {
    let mut connection = sqlite::open(database);
    let rows: Vec<Line> = diesel::sql_query(
        "SELECT record || '|' || date || '|' || local_hour || '|' || origin || '|' || origin_city || '|' || destination
            || '|' || destination_city || '|' || distance || '|' || distance_class || '|' || delay || '|'
            || delay_class AS text
         FROM flight WHERE job_instance_id = ? ORDER BY record, rowid",
    )
    .bind::<BigInt, _>(instance)
    .load(&mut connection)
    .map_err(|error| error.to_string())?;
    let rows: Vec<String> = rows.into_iter().map(|row| row.text).collect();
    compare(&rows, expected)?;
    let executions: Vec<Execution> = diesel::sql_query(
        "SELECT E.JOB_EXECUTION_ID AS id, S.READ_COUNT AS reads, S.WRITE_COUNT AS writes, S.FILTER_COUNT AS filters,
            (SELECT COUNT(*) FROM flight F WHERE F.job_execution_id = E.JOB_EXECUTION_ID) AS rows_written
         FROM BATCH_JOB_EXECUTION E JOIN BATCH_STEP_EXECUTION S ON S.JOB_EXECUTION_ID = E.JOB_EXECUTION_ID
         WHERE E.JOB_INSTANCE_ID = ? AND S.STEP_NAME = 'load-flights'",
    )
    .bind::<BigInt, _>(instance)
    .load(&mut connection)
    .map_err(|error| error.to_string())?;
    if let Some(wrong) = executions
        .iter()
        .find(|execution| execution.writes != execution.rows_written)
    {
        let (id, writes, rows) = (wrong.id, wrong.writes, wrong.rows_written);
        return Err(format!(
            "execution {id} says that it wrote {writes} rows, the table has {rows} of it"
        ));
    }
    let (reads, filters): (i64, i64) = (
        executions.iter().map(|e| e.reads).sum(),
        executions.iter().map(|e| e.filters).sum(),
    );
    let written = i64::try_from(expected.len()).expect("a count");
    if (reads, filters) != (20_000, 20_000 - written) {
        return Err(format!(
            "the executions read {reads} and filtered {filters} in all"
        ));
    }
    Ok(())
}
