//! Compares records with totals, for example with the totals of a trailer.

use std::fmt;

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::traits::ReadItems;
use crate::error::{Origin, RecordError};
use crate::record::{Condition, Expectation, Record, StoredTotal, Totals};

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
/// Totals are `count()`, `count(condition)`, `sum(number)`, `every(condition)`, `min(value)`, `max(value)`, and `skipped()`, the number of records
/// that were skipped because they cannot be read. Other fields are the fields of the trailer. Each trailer is compared with the records since the trailer before it, so each of
/// several files may have one. Without `trailer`, all records are compared when they are read.
///
/// If `expect` does not hold, or a file does not end with a trailer, the step fails, regardless of its skip rules. Its files do not get their
/// names; committed chunks of tables stay.
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
    since_trailer: SinceTrailer,
    /// The position at which the last record could not be read.
    failed_at: Option<String>,
}

/// The records since the last trailer.
#[derive(Default)]
struct SinceTrailer {
    totals: Totals,
    /// Whether there are any, also if they were skipped.
    has_records: bool,
    /// Whether a trailer was read before them.
    has_trailer: bool,
    /// The file of the last record.
    resource: String,
}

/// The checkpoint of an [`ExpectingItemReader`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExpectingPosition<P> {
    /// With totals.
    Expecting {
        /// The position of the inner reader.
        inner: P,
        /// The condition of trailers.
        trailer: String,
        /// The totals.
        totals: Vec<StoredTotal>,
        /// Whether records were read since the last trailer.
        has_records: bool,
        /// Whether a trailer was read.
        has_trailer: bool,
        /// The file of the last record.
        resource: String,
    },
    /// The position of the inner reader, where nothing is expected.
    Plain(P),
}

/// Records that are not as expected.
#[derive(Debug, BatchException)]
struct ExpectationFailed(String);

impl ExpectationFailed {
    /// Creates an error that no skip rule includes.
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

const FETCH: &str = "fetch it again and restart the job";

const TOTALS_CHANGED: &str = "`expect` has other totals, or `trailer` is another condition, than before the restart; restore it, or run `abandon` for this \
    execution and `start` the job again";

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
                "`expect` has the field `{field}` outside of a total, so it is a field of a trailer; set `trailer` to the condition of that record"
            );
            return Err(ConfigurationError::new(cause).into());
        }
        let (inner, since_trailer) = match checkpoint {
            None => {
                self.since_trailer.resource.clear();
                (None, self.reset(false))
            }
            Some(ExpectingPosition::Plain(_)) if self.expects() => {
                return Err(ConfigurationError::new(TOTALS_CHANGED).into());
            }
            Some(ExpectingPosition::Plain(inner)) => (Some(inner), SinceTrailer::default()),
            Some(ExpectingPosition::Expecting {
                inner,
                trailer,
                totals,
                has_records,
                has_trailer,
                resource,
            }) => {
                let resumed = match &self.expect {
                    Some(expect) => expect.resumed(&totals),
                    None => totals.is_empty().then(Totals::default),
                };
                let resumed = resumed.filter(|_| trailer == self.trailer.text());
                let totals = resumed.ok_or_else(|| ConfigurationError::new(TOTALS_CHANGED))?;
                (
                    Some(inner),
                    SinceTrailer {
                        totals,
                        has_records,
                        has_trailer,
                        resource,
                    },
                )
            }
        };
        self.since_trailer = since_trailer;
        self.failed_at = None;
        self.reader.open(inner)
    }

    /// Reads the next record that is no trailer.
    #[read_item]
    pub fn read(&mut self) -> Result<Option<Record>, BatchError> {
        if !self.expects() {
            return self.reader.read();
        }
        loop {
            let record = match self.reader.read() {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.check_empty_file()?;
                    return self.end().map(|()| None);
                }
                Err(error) => return Err(self.unreadable(error)?),
            };
            self.failed_at = None;
            if !self.trailer.is_empty() {
                self.check_file()?;
            }
            if !self.trailer.is_empty() && self.is_trailer(&record)? {
                self.compare(&record)?;
                self.since_trailer = self.reset(true);
                continue;
            }
            if let Some(expect) = &self.expect {
                let added = expect.add(&mut self.since_trailer.totals, &record);
                added.map_err(|error| self.bad_record(error))?;
            }
            self.since_trailer.has_records = true;
            return Ok(Some(record));
        }
    }

    /// Returns the position of the next record, with the totals.
    #[get_checkpoint_info]
    pub fn checkpoint(&mut self) -> Result<ExpectingPosition<R::Position>, BatchError> {
        let inner = self.reader.position()?;
        if !self.expects() {
            return Ok(ExpectingPosition::Plain(inner));
        }
        let SinceTrailer {
            totals,
            has_records,
            has_trailer,
            resource,
        } = &self.since_trailer;
        let stored = self.expect.as_ref().map(|expect| expect.stored(totals));
        Ok(ExpectingPosition::Expecting {
            inner,
            trailer: self.trailer.text().to_owned(),
            totals: stored.unwrap_or_default(),
            has_records: *has_records,
            has_trailer: *has_trailer,
            resource: resource.clone(),
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
        self.reader.origin().map(|origin| origin.place())
    }

    fn expects(&self) -> bool {
        self.expect.is_some() || !self.trailer.is_empty()
    }

    fn reset(&self, has_trailer: bool) -> SinceTrailer {
        SinceTrailer {
            totals: self.expect.as_ref().map(Expectation::totals).unwrap_or_default(),
            has_records: false,
            has_trailer,
            resource: self.since_trailer.resource.clone(),
        }
    }

    /// Counts a record that cannot be read.
    fn skip(&mut self) {
        self.since_trailer.has_records = true;
        if let Some(expect) = &self.expect {
            expect.skip(&mut self.since_trailer.totals);
        }
    }

    /// Checks that the file before had a trailer at its end, if this record is the first one of another file.
    fn check_file(&mut self) -> Result<(), BatchError> {
        self.check_empty_file()?;
        let Some(origin) = self.reader.origin() else {
            return Ok(());
        };
        if origin.resource == self.since_trailer.resource {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.since_trailer.resource, origin.resource.to_owned());
        match self.since_trailer.has_records && !before.is_empty() {
            true => Err(ExpectationFailed::of(format!(
                "`{before}` ends with records that have no trailer, so it may be incomplete; {FETCH}"
            ))),
            false => Ok(()),
        }
    }

    /// Fails if a file has no records, and so no trailer.
    fn check_empty_file(&self) -> Result<(), BatchError> {
        match self.reader.file_without_records() {
            Some(file) if !self.trailer.is_empty() => Err(ExpectationFailed::of(format!(
                "`{file}` has no records, so it lacks its trailer and may be incomplete; {FETCH}"
            ))),
            _ => Ok(()),
        }
    }

    /// Counts the error of the inner reader. The runtime compares checkpoints to find a reader that repeats an error for ever; totals
    /// change, so the position of the inner reader is compared here.
    ///
    /// # Errors
    /// If the inner reader is still at the position of its last error.
    fn unreadable(&mut self, error: BatchError) -> Result<BatchError, BatchError> {
        if error.is_configuration_error() || error.is_connection_lost() {
            return Ok(error);
        }
        let position = serde_json::to_string(&self.reader.position()?)?;
        if self.failed_at.as_ref() == Some(&position) {
            return Err(ConfigurationError::new(error.chain()).into());
        }
        self.failed_at = Some(position);
        if !self.trailer.is_empty() {
            self.check_file()?;
        }
        self.skip();
        Ok(error)
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
        expect
            .check(&self.since_trailer.totals, trailer)
            .map_err(|cause| {
                let place = self.item_origin();
                ExpectationFailed::of(match place {
                    Some(place) => {
                        format!("the trailer at {place} does not match the records before it: {cause}")
                    }
                    None => format!("the records are not as expected: {cause}"),
                })
            })
    }

    /// Checks the records after the last trailer when the input ends; without trailers, all records.
    fn end(&self) -> Result<(), BatchError> {
        let SinceTrailer {
            has_records,
            has_trailer,
            ..
        } = self.since_trailer;
        let cause = match (self.trailer.is_empty(), has_records, has_trailer) {
            (true, ..) => return self.compare_all(),
            (false, false, true) => return Ok(()),
            (false, false, false) => "the input has no trailer, so it may be incomplete",
            (false, true, _) => "the input ends with records that have no trailer, so it may be incomplete",
        };
        Err(ExpectationFailed::of(format!("{cause}; {FETCH}")))
    }

    fn compare_all(&self) -> Result<(), BatchError> {
        let Some(expect) = &self.expect else { return Ok(()) };
        let checked = expect.check(&self.since_trailer.totals, &Record::default());
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
