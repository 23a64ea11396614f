//! The records of a group that is dropped because one of them is bad.

use std::borrow::Cow;

use crate::error::{DroppedRecord, DroppedRecords, Origin};

/// The origins of the records of a group. Their texts share a buffer, which is used again for the next group.
#[derive(Default)]
pub(super) struct Origins {
    records: Vec<Kept>,
    texts: Vec<u8>,
    /// The files of the records, or the place of a record whose file is not known.
    resources: Vec<String>,
    /// The number of records before the one that is an error by itself.
    before: usize,
}

/// The origin of a record: the numbers of its file and its line, and the end of its text.
struct Kept {
    resource: usize,
    line: Option<u64>,
    end: usize,
    encoding: &'static encoding_rs::Encoding,
}

impl Origins {
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.texts.clear();
        self.resources.truncate(1);
        self.before = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds a record. `place` is the place of a record without an origin.
    pub(super) fn push(&mut self, origin: Option<Origin<'_>>, place: impl FnOnce() -> Option<String>) {
        let (line, encoding) = match &origin {
            Some(origin) => (Some(origin.line), origin.encoding),
            None => (None, encoding_rs::UTF_8),
        };
        match origin {
            Some(origin) => {
                self.texts.extend_from_slice(&origin.raw);
                if self.resources.last().is_none_or(|last| last != origin.resource) {
                    self.resources.push(origin.resource.to_owned());
                }
            }
            None => self.resources.push(place().unwrap_or_default()),
        }
        self.records.push(Kept {
            resource: self.resources.len() - 1,
            line,
            end: self.texts.len(),
            encoding,
        });
    }

    /// Adds a record without its text.
    pub(super) fn push_place(&mut self, origin: Option<Origin<'_>>) {
        if let Some(origin) = origin {
            let raw = Cow::Borrowed([].as_slice());
            self.push(Some(Origin { raw, ..origin }), || None);
        }
    }

    /// Returns the files and lines of the first and the last record, if they are known.
    pub(super) fn ends(&self) -> Option<String> {
        let place = |record: &Kept| Some((&*self.resources[record.resource], record.line?));
        let (file, first) = place(self.records.first()?)?;
        Some(match place(self.records.last()?)? {
            (other, last) if other != file => format!("{file}:{first} through {other}:{last}"),
            (_, last) if last == first => format!("{file}:{first}"),
            (_, last) => format!("{file}:{first}-{last}"),
        })
    }

    /// The next record is an error by itself, or none is.
    pub(super) fn split(&mut self) {
        self.before = self.records.len();
    }

    /// Returns the records.
    pub(super) fn take(&self) -> DroppedRecords {
        let mut start = 0;
        let records = self.records.iter().map(|record| {
            let raw = self.texts[start..record.end].to_vec();
            start = record.end;
            DroppedRecord {
                resource: self.resources[record.resource].clone(),
                line: record.line,
                raw,
                encoding: record.encoding,
            }
        });
        let mut before: Vec<DroppedRecord> = records.collect();
        let after = before.split_off(self.before);
        DroppedRecords { before, after }
    }
}
