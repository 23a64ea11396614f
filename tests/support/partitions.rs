//! The expected result of the example `partitions` for an input of eight months, computed without its code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use crate::flights::{self, compare};
use crate::great_circle::{Place, between, miles};
use crate::logical_tx::{self, Story};
use crate::sqlite;

/// Twice the number of concurrent partitions.
const MONTHS: usize = 8;
/// Every n-th flight of the real data is used.
const EVERY: usize = 25;

/// The example's job without its logical transaction, written into a folder for `--job-path`.
pub fn write_job_without_transaction(folder: &Path) {
    let xml = fs::read_to_string(flights::data().join("../partitions/partitions.xml")).unwrap();
    let without = xml.replace(r#"<logicalTX ref="AllMonths"/>"#, "");
    assert_ne!(xml, without);
    fs::write(folder.join("partitions.xml"), without).unwrap();
}

/// The expected work of the partitions, in order.
pub struct Input {
    months: Vec<Month>,
}

/// The expected work of one partition.
#[derive(Default)]
struct Month {
    flights: i64,
    minutes: i64,
    /// The rows of the late flights, one text each.
    late: Vec<String>,
}

impl Input {
    /// Writes `flights.csv`, whose months alternate, and `airports.csv` into a folder.
    pub fn write(folder: &Path) -> Self {
        let mut source = csv::Reader::from_path(flights::data().join("flights.csv")).unwrap();
        let mut rows = csv::Writer::from_path(folder.join("flights.csv")).unwrap();
        rows.write_record(source.headers().unwrap()).unwrap();
        let mut flights = Vec::new();
        for (index, row) in source.records().step_by(EVERY).enumerate() {
            let row = row.unwrap();
            let month = format!("2001/{:02}", index % MONTHS + 1);
            let date = month.clone() + &row[0][month.len()..];
            rows.write_record([&date, &row[1], &row[2], &row[3], &row[4]])
                .unwrap();
            flights.push((month, row));
        }
        rows.flush().unwrap();

        let ends = |iata: &str| flights.iter().any(|(_, row)| iata == &row[3] || iata == &row[4]);
        let airports = airports(ends);
        let mut rows = csv::Writer::from_path(folder.join("airports.csv")).unwrap();
        rows.write_record(["iata", "latitude", "longitude"]).unwrap();
        for (iata, place) in &airports {
            rows.serialize((iata, place.0, place.1)).unwrap();
        }
        rows.flush().unwrap();

        let mut months: BTreeMap<String, Month> = BTreeMap::new();
        for (index, (name, row)) in flights.iter().enumerate() {
            let month = months.entry(name.clone()).or_default();
            month.flights += 1;
            let (delay, distance): (u32, f64) = (row[1].parse().unwrap_or(0), row[2].parse().unwrap());
            if delay > 0 {
                let missing = (f64::from(delay) * 7.5 / distance).min(1.0);
                let place = between(airports[&row[4]], airports[&row[3]], missing);
                let near = |iata: &&String| miles(airports[*iata], place);
                let nearest = airports.keys().min_by(|a, b| near(a).total_cmp(&near(b)));
                let nearest = nearest.unwrap();
                month.minutes += i64::from(delay);
                month.late.push(format!("{name}|{}|{delay}|{nearest}", index + 1));
            }
        }
        Self {
            months: months.into_values().collect(),
        }
    }

    /// Returns the minutes of all months.
    fn minutes(&self) -> i64 {
        self.months.iter().map(|month| month.minutes).sum()
    }

    /// Checks that an instance without a logical transaction has done everything once: every partition completed once
    /// and did not run again, and all its executions together have read and written its month. Returns the number of
    /// executions that resumed from a checkpoint.
    ///
    /// # Errors
    /// The first difference.
    pub fn verify_checkpoints(&self, database: &Path, instance: i64) -> Result<usize, String> {
        let ended = Ended::read(database, instance)?;
        ended.verify_rows(self)?;
        ended.verify_parents(|_| true)?;
        let mut continued = 0;
        for (number, month) in (1..).zip(&self.months) {
            let runs: Vec<&Step> = ended.partition(number).collect();
            let Some((last, before)) = runs.split_last() else {
                return Err(format!("partition {number} did not run"));
            };
            if last.status != "COMPLETED" || before.iter().any(|step| step.exit_code != "CRASHED") {
                return Err(format!("partition {number}: {runs:?}"));
            }
            month.verify_counts(&runs)?;
            let began: Vec<_> = runs.iter().map(|step| step.reads > 0).collect();
            continued += began.windows(2).filter(|pair| pair[0] && pair[1]).count();
        }
        Ok(continued)
    }

    /// Checks that one execution loaded the whole instance with its logical transaction after all earlier work was
    /// undone, and that the sum of the analyzer is right. Returns the result of its calls.
    ///
    /// # Errors
    /// The first difference.
    pub fn verify_logical_tx(&self, database: &Path, instance: i64) -> Result<Story, String> {
        let ended = Ended::read(database, instance)?;
        let story = logical_tx::read(&ended.calls)?;
        ended.verify_rows(self)?;
        let total = format!("{} MINUTES LATE", self.minutes());
        // An execution after the commit has nothing to sum.
        ended.verify_parents(|load| {
            load.exit_code
                == if load.execution == story.loaded_by {
                    &*total
                } else {
                    "COMPLETED"
                }
        })?;
        for (number, month) in (1..).zip(&self.months) {
            let (of_load, undone): (Vec<_>, Vec<_>) = ended
                .partition(number)
                .partition(|step| step.execution == story.loaded_by);
            month.verify_counts(&of_load)?;
            if of_load.iter().any(|step| step.status != "COMPLETED") {
                return Err(format!("partition {number}: {of_load:?}"));
            }
            if let Some(wrong) = undone
                .iter()
                .find(|step| step.rows > 0 || step.execution > story.loaded_by)
            {
                return Err(format!("partition {number} was not undone: {wrong:?}"));
            }
        }
        Ok(story)
    }
}

impl Month {
    /// Checks that these executions of one partition have together read and written its month, each with true counters.
    fn verify_counts(&self, runs: &[&Step]) -> Result<(), String> {
        let late = i64::try_from(self.late.len()).unwrap();
        let sum = |count: fn(&Step) -> i64| -> i64 { runs.iter().map(|step| count(step)).sum() };
        let all = (
            sum(|step| step.reads),
            sum(|step| step.filters),
            sum(|step| step.writes),
        );
        if all != (self.flights, self.flights - late, late)
            || runs.iter().any(|step| step.writes != step.rows)
        {
            return Err(format!("{} flights, {late} late: {runs:?}", self.flights));
        }
        Ok(())
    }
}

/// All rows of an instance.
struct Ended {
    /// In the order of the executions.
    steps: Vec<Step>,
    /// The rows of the late flights, one text each.
    rows: Vec<String>,
    /// The calls of the logical transaction.
    calls: Vec<(i64, String)>,
}

/// A step execution.
#[derive(Debug, QueryableByName)]
struct Step {
    #[diesel(sql_type = BigInt)]
    execution: i64,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Text)]
    exit_code: String,
    #[diesel(sql_type = BigInt)]
    reads: i64,
    #[diesel(sql_type = BigInt)]
    filters: i64,
    #[diesel(sql_type = BigInt)]
    writes: i64,
    /// Returns its rows in the table.
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = BigInt)]
    execution: i64,
    #[diesel(sql_type = Text)]
    text: String,
}

impl Ended {
    fn read(database: &Path, instance: i64) -> Result<Self, String> {
        let mut connection = sqlite::open(database);
        let steps: Vec<Step> = diesel::sql_query(
            "SELECT E.JOB_EXECUTION_ID AS execution, S.STEP_NAME AS name, S.STATUS AS status, S.EXIT_CODE AS exit_code,
                S.READ_COUNT AS reads, S.FILTER_COUNT AS filters, S.WRITE_COUNT AS writes,
                (SELECT COUNT(*) FROM late_flight F WHERE F.job_execution_id = E.JOB_EXECUTION_ID
                    AND S.STEP_NAME = 'load:' || CAST(SUBSTR(F.month, 6) AS INTEGER)) AS rows
             FROM BATCH_JOB_EXECUTION E JOIN BATCH_STEP_EXECUTION S ON S.JOB_EXECUTION_ID = E.JOB_EXECUTION_ID
             WHERE E.JOB_INSTANCE_ID = ? ORDER BY S.STEP_EXECUTION_ID",
        )
        .bind::<BigInt, _>(instance)
        .load(&mut connection)
        .map_err(|error| error.to_string())?;
        let mut lines = |query: &str| -> Result<Vec<Line>, String> {
            let query = diesel::sql_query(query).bind::<BigInt, _>(instance);
            query.load(&mut connection).map_err(|error| error.to_string())
        };
        let rows = lines(
            "SELECT job_execution_id AS execution, month || '|' || record || '|' || minutes || '|' || nearest AS text
             FROM late_flight WHERE job_instance_id = ? ORDER BY month, record, rowid",
        )?;
        let calls = lines(
            "SELECT job_execution_id AS execution, call AS text FROM load_call WHERE job_instance_id = ? ORDER BY rowid",
        )?;
        Ok(Self {
            steps,
            rows: rows.into_iter().map(|line| line.text).collect(),
            calls: calls
                .into_iter()
                .map(|line| (line.execution, line.text))
                .collect(),
        })
    }

    /// Returns the executions of a partition.
    fn partition(&self, number: usize) -> impl Iterator<Item = &Step> {
        let name = format!("load:{number}");
        self.steps.iter().filter(move |step| step.name == name)
    }

    /// Checks that every row exists exactly once.
    fn verify_rows(&self, input: &Input) -> Result<(), String> {
        let expected: Vec<String> = input.months.iter().flat_map(|month| month.late.clone()).collect();
        compare(&self.rows, &expected)
    }

    /// Checks the step itself: its executions died, and one is complete; the partitions have the counters, so it has
    /// none.
    fn verify_parents(&self, right: impl Fn(&Step) -> bool) -> Result<(), String> {
        let parents: Vec<&Step> = self.steps.iter().filter(|step| step.name == "load").collect();
        let (last, before) = parents.split_last().ok_or("the step did not run")?;
        let ended = last.status == "COMPLETED" && before.iter().all(|step| step.exit_code == "CRASHED");
        if !ended || !right(last) || parents.iter().any(|step| step.reads + step.writes > 0) {
            return Err(format!("the step: {parents:?}"));
        }
        Ok(())
    }
}

/// Returns the places of the relevant airports.
fn airports(wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Place> {
    let mut airports = csv::Reader::from_path(flights::data().join("airports.csv")).unwrap();
    airports
        .records()
        .map(|row| row.unwrap())
        .filter(|row| wanted(&row[0]))
        .map(|row| {
            (
                row[0].to_owned(),
                (row[5].parse().unwrap(), row[6].parse().unwrap()),
            )
        })
        .collect()
}
