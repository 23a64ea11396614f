//! Records that are compared with totals, such as those of a trailer.

use std::fmt;

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::traits::ReadItems;
use crate::error::{Origin, RecordError};
use crate::record::{Condition, Expectation, Record, Totals};

/// Reads the records of `R`, and compares them with what is expected. The readers of records of files and queries for Job XML are made of it,
/// except those of ODBC.
///
/// | property | default | |
/// |---|---|---|
/// | `expect` | none | a condition on totals of the records: `count() = records and sum(amount) = total` |
/// | `trailer` | none | a condition that trailers meet, such as `kind = 'T'`: they end the records before them, and are not items of the step |
///
/// It has the properties of the inner reader, without a prefix.
///
/// Totals are `count()`, `count(condition)`, `sum(number)`, `every(condition)`, and `skipped()`, the number of records that were skipped because
/// they cannot be read. Other fields are those of the trailer. Each trailer is compared with the records since the trailer before it, so each of
/// several files may have one. Without `trailer`, all records are compared when they are read.
///
/// What is not as expected fails the step, whatever it skips: files do not get their names, and committed chunks of tables stay. So does input
/// that does not end with a trailer.
///
/// ```xml
/// <chunk reader="fixedWidthRecordReader" writer="recordTableWriter">
///   <properties>
///     <property name="resource" value="in/statement.txt"/>
///     <property name="columns" value="kind 1, account 2-11, amount 12-20 zeros"/>
///     <property name="trailer" value="kind = 'T'"/>
///     <property name="expect" value="sum(amount) = amount"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct ExpectingItemReader<R> {
    #[batch_artifact]
    reader: R,
    #[batch_property(name = "expect")]
    expect: Option<Expectation>,
    #[batch_property(name = "trailer", value = "")]
    trailer: Condition,
    progress: Progress,
}

/// What was read since the last trailer.
#[derive(Default)]
struct Progress {
    totals: Totals,
    /// The number of records.
    records: u64,
    /// Whether a trailer was read.
    has_trailer: bool,
}

/// The checkpoint of an [`ExpectingItemReader`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExpectingPosition<P> {
    /// With totals.
    Expecting {
        /// The position of the inner reader.
        inner: P,
        /// The totals and their values.
        totals: Vec<(String, String)>,
        /// The number of records since the last trailer.
        records: u64,
        /// Whether a trailer was read.
        has_trailer: bool,
    },
    /// The position of the inner reader, where nothing is expected.
    Plain(P),
}

/// Records that are not as expected.
#[derive(Debug, BatchException)]
struct ExpectationFailed(String);

impl ExpectationFailed {
    /// Creates the error, which no step skips.
    fn of(cause: String) -> BatchError {
        ConfigurationError::new(Self(cause)).into()
    }
}

impl fmt::Display for ExpectationFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ExpectationFailed {}

const OTHER_TOTALS: &str = "the totals of `expect` are others than before the restart; restore them, or run `abandon` for this execution and \
    `start` the job again";

#[item_reader(rewindable = true)]
impl<R: ReadItems<Item = Record>> ExpectingItemReader<R> {
    /// Opens the inner reader, at the checkpoint.
    #[open]
    pub fn open(&mut self, checkpoint: Option<ExpectingPosition<R::Position>>) -> Result<(), BatchError> {
        if let (Some(field), true) = (
            self.expect.as_ref().and_then(Expectation::field),
            self.trailer.is_empty(),
        ) {
            let cause = format!(
                "`expect` has the field `{field}` outside of a total, so it is the field of a trailer; say by `trailer` which record that is"
            );
            return Err(ConfigurationError::new(cause).into());
        }
        let (inner, progress) = match checkpoint {
            None => (None, self.beginning(false)),
            Some(ExpectingPosition::Plain(_)) if self.expects() => {
                return Err(ConfigurationError::new(OTHER_TOTALS).into());
            }
            Some(ExpectingPosition::Plain(inner)) => (Some(inner), Progress::default()),
            Some(ExpectingPosition::Expecting {
                inner,
                totals,
                records,
                has_trailer,
            }) => {
                let resumed = match &self.expect {
                    Some(expect) => expect.resumed(&totals),
                    None => totals.is_empty().then(Totals::default),
                };
                let totals = resumed.ok_or_else(|| ConfigurationError::new(OTHER_TOTALS))?;
                (
                    Some(inner),
                    Progress {
                        totals,
                        records,
                        has_trailer,
                    },
                )
            }
        };
        self.progress = progress;
        self.reader.open(inner)
    }

    /// Reads the next record that is no trailer.
    #[read_item]
    pub fn read(&mut self) -> Result<Option<Record>, BatchError> {
        if !self.expects() {
            return self.reader.read();
        }
        loop {
            let read = self.reader.read();
            let Some(record) = read.inspect_err(|_| self.skip())? else {
                return self.end().map(|()| None);
            };
            if !self.trailer.is_empty() && self.is_trailer(&record)? {
                self.compare(&record)?;
                self.progress = self.beginning(true);
                continue;
            }
            if let Some(expect) = &self.expect {
                let added = expect.add(&mut self.progress.totals, &record);
                added.map_err(|error| self.bad_record(error))?;
            }
            self.progress.records += 1;
            return Ok(Some(record));
        }
    }

    /// Returns the position of the next record, with the totals.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<ExpectingPosition<R::Position>, BatchError> {
        let inner = self.reader.position()?;
        Ok(match self.expects() {
            true => self.expecting(inner),
            false => ExpectingPosition::Plain(inner),
        })
    }

    /// Returns the number of items of the inner reader, if it knows it.
    #[get_item_count]
    pub fn item_count(&mut self) -> Option<u64> {
        self.reader.item_count()
    }

    /// Returns the file and line of the last record, as errors name them.
    #[get_item_origin]
    pub fn item_origin(&self) -> Option<String> {
        let Origin { resource, line, .. } = self.reader.origin()?;
        Some(format!("{resource}:{line}"))
    }

    fn expects(&self) -> bool {
        self.expect.is_some() || !self.trailer.is_empty()
    }

    fn beginning(&self, has_trailer: bool) -> Progress {
        Progress {
            totals: self.expect.as_ref().map(Expectation::totals).unwrap_or_default(),
            records: 0,
            has_trailer,
        }
    }

    fn expecting(&self, inner: R::Position) -> ExpectingPosition<R::Position> {
        let Progress {
            totals,
            records,
            has_trailer,
        } = &self.progress;
        ExpectingPosition::Expecting {
            inner,
            totals: self
                .expect
                .as_ref()
                .map(|expect| expect.stored(totals))
                .unwrap_or_default(),
            records: *records,
            has_trailer: *has_trailer,
        }
    }

    fn skip(&mut self) {
        if let Some(expect) = &self.expect {
            expect.skip(&mut self.progress.totals);
        }
    }

    fn is_trailer(&mut self, record: &Record) -> Result<bool, BatchError> {
        self.trailer.holds(record).map_err(|error| self.bad_record(error))
    }

    /// Counts a record that is an error, and adds its place.
    fn bad_record(&mut self, error: crate::record::MappingError) -> BatchError {
        self.skip();
        match self.reader.origin() {
            Some(origin) => RecordError::at(origin, error).into(),
            None => error.into(),
        }
    }

    /// Compares the totals with a trailer.
    fn compare(&self, trailer: &Record) -> Result<(), BatchError> {
        let Some(expect) = &self.expect else { return Ok(()) };
        expect.check(&self.progress.totals, trailer).map_err(|cause| {
            let place = self.item_origin();
            ExpectationFailed::of(match place {
                Some(place) => format!("the trailer at {place} does not fit the records before it: {cause}"),
                None => format!("the records are not as expected: {cause}"),
            })
        })
    }

    /// Checks what was read when the input ends.
    fn end(&self) -> Result<(), BatchError> {
        let Progress {
            records, has_trailer, ..
        } = &self.progress;
        match (self.trailer.is_empty(), records, has_trailer) {
            (true, ..) => self.compare_all(),
            (false, 0, true) => Ok(()),
            (false, 0, false) => Err(ExpectationFailed::of(
                "the input has no trailer, so it may be incomplete".to_owned(),
            )),
            (false, records, _) => Err(ExpectationFailed::of(format!(
                "the input ends with {records} records without a trailer, so it may be incomplete"
            ))),
        }
    }

    fn compare_all(&self) -> Result<(), BatchError> {
        let Some(expect) = &self.expect else { return Ok(()) };
        let checked = expect.check(&self.progress.totals, &Record::default());
        checked.map_err(|cause| ExpectationFailed::of(format!("the records are not as expected: {cause}")))
    }
}

impl<R: ReadItems<Item = Record>> ReadItems for ExpectingItemReader<R> {
    type Item = Record;
    type Position = ExpectingPosition<R::Position>;

    fn open(&mut self, checkpoint: Option<Self::Position>) -> Result<(), BatchError> {
        self.open(checkpoint)
    }

    fn read(&mut self) -> Result<Option<Record>, BatchError> {
        self.read()
    }

    fn position(&mut self) -> Result<Self::Position, BatchError> {
        self.checkpoint()
    }

    fn update_position(&mut self, position: &mut Self::Position) -> Result<(), BatchError> {
        match position {
            ExpectingPosition::Plain(inner) => self.reader.update_position(inner),
            ExpectingPosition::Expecting { .. } => {
                *position = self.checkpoint()?;
                Ok(())
            }
        }
    }

    fn item_count(&mut self) -> Option<u64> {
        self.item_count()
    }

    fn place(&self) -> Option<String> {
        self.reader.place()
    }

    fn origin(&self) -> Option<Origin<'_>> {
        self.reader.origin()
    }

    fn close(&mut self) {
        self.reader.close();
    }
}
