//! Records that serde deserializes, with the fields that a reader adds.

use serde::{Deserialize, Deserializer};

use super::input::Source;
use crate::added::{from_record, from_record_with_path};

impl Source {
    /// Deserializes a record as an item, which also has the fields that the properties of [`FileInput`](super::FileInput) add. `line` and
    /// `number` are as in [`add_fields`](Self::add_fields), and `raw` is the text of the record.
    ///
    /// # Errors
    /// The error of the record or of the item.
    pub fn deserialize<'de, T, D>(&self, record: D, line: u64, number: u64, raw: &str) -> Result<T, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        from_record(record, &self.added(line, number, raw))
    }

    /// Returns the path of the bad field and the error for a record that [`deserialize`](Self::deserialize) has rejected. The path is `.` if the
    /// error is not about one field. The record is deserialized again, more slowly; `None` if it is an item now.
    pub fn bad_field<'de, T, D>(
        &self,
        record: D,
        line: u64,
        number: u64,
        raw: &str,
    ) -> Option<(String, D::Error)>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let item: Result<T, _> = from_record_with_path(record, &self.added(line, number, raw));
        let error = item.err()?;
        Some((error.path().to_string(), error.into_inner()))
    }
}
