//! The archive of a workbook, before it is loaded.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use zip::ZipArchive;

use crate::record::decimal;

/// The limit of a workbook, and the stop of the step that loads it, if one does.
#[derive(BatchArtifact)]
pub(super) struct Unpack {
    #[batch_property(name = "max.unpacked.size", value = "536870912")]
    limit: u64,
    #[batch_context]
    job: Option<JobContext>,
    #[batch_context]
    step: Option<StepContext>,
}

impl Unpack {
    /// Returns whether the step is being stopped.
    pub(super) fn is_stopping(&self) -> bool {
        let job = self.job.as_ref().map(JobContext::batch_status);
        let step = self.step.as_ref().map(StepContext::batch_status);
        [job, step].contains(&Some(BatchStatus::Stopping))
    }

    /// Returns the archive and its inexact numbers, after everything in it was unpacked: its directory of sizes is not trusted.
    pub(super) fn open(&self, file: File) -> Result<(BufReader<Stoppable<'_>>, Numbers), String> {
        let file = || -> io::Result<_> {
            Ok(BufReader::new(Stoppable {
                file: file.try_clone()?,
                unpack: self,
            }))
        };
        let fail = |error: io::Error| error.to_string();
        let mut numbers = Numbers::default();
        // What is not a valid archive is reported when it is loaded.
        if let Ok(mut archive) = ZipArchive::new(file().map_err(fail)?) {
            let mut size = 0;
            for index in 0..archive.len() {
                let entry = archive.by_index(index).map_err(|error| error.to_string())?;
                let has_texts = entry.name().is_ok_and(|name| name.ends_with("sharedStrings.xml"));
                let mut entry = entry.take((self.limit - size).saturating_add(1));
                let unpacked = match has_texts {
                    true => io::copy(&mut entry, &mut io::sink()),
                    false => io::copy(&mut entry, &mut numbers),
                };
                size += unpacked.map_err(fail)?;
                if size > self.limit {
                    return Err(format!(
                        "it unpacks to more than {} bytes, the `max.unpacked.size`; a workbook is kept in memory: if that is \
                         intended, set the property to a larger number",
                        self.limit
                    ));
                }
            }
        }
        if let Some(cell) = numbers.unreadable {
            return Err(format!(
                "the value of a cell {cell} is not plain text; open the workbook in a program for sheets, and save it"
            ));
        }
        let mut opened = file().map_err(fail)?;
        opened.seek(SeekFrom::Start(0)).map_err(fail)?;
        Ok((opened, numbers))
    }
}

/// The numbers of a workbook that a float does not hold, as the parts of its archive are written to it. The library that reads the cells
/// gives floats, without the digits, and leaves out what is not plain text in a value.
#[derive(Default)]
pub(super) struct Numbers {
    /// The texts, by the name of the cell and the bits of the float. The sheet is not known.
    inexact: HashMap<(String, u64), String>,
    /// The first cell whose value is not plain text.
    unreadable: Option<String>,
    /// The beginning of the current markup, after its `<`.
    markup: Option<Vec<u8>>,
    /// The name of the current cell.
    cell: String,
    /// Whether the current cell has a number.
    is_number: bool,
    /// The value of the current cell, until its end.
    value: Option<String>,
}

impl Numbers {
    /// Returns the text of a number, if the float is another number.
    pub(super) fn text_if_inexact(&self, cell: String, float: f64) -> Option<String> {
        let of = |cell| self.inexact.get(&(cell, float.to_bits())).cloned();
        // A cell may have no name.
        of(cell).or_else(|| of(String::new()))
    }

    fn check(&mut self, text: &str) {
        /// From here on, a float does not hold every integer, and is not shown with all of its digits.
        const INTEGERS: f64 = 9_007_199_254_740_992.0;
        let Ok(float) = text.parse::<f64>() else { return };
        let is_large = float.abs() >= INTEGERS && !text.contains(['.', 'e', 'E']);
        let is_same = match is_large {
            true => float.to_string() == text,
            false => decimal::is_exactly(text, float),
        };
        if !is_same {
            let key = (self.cell.clone(), float.to_bits());
            self.inexact.insert(key, text.to_owned());
        }
    }

    fn end_markup(&mut self, markup: &[u8]) {
        let name = markup
            .split(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
            .next()
            .unwrap_or_default();
        let (end, name) = match name.strip_prefix(b"/") {
            Some(name) => (true, name),
            None => (false, name),
        };
        match name.rsplit(|byte| *byte == b':').next() {
            Some(b"c") if !end => {
                self.cell = attribute(markup, b"r").unwrap_or_default();
                self.is_number = attribute(markup, b"t").is_none_or(|kind| kind == "n");
            }
            Some(b"v") if !end => self.value = Some(String::new()),
            Some(b"v") => {
                let value = self.value.take().unwrap_or_default();
                if self.is_number {
                    self.check(value.trim_ascii());
                }
            }
            _ if self.value.is_some() => self.reject(),
            _ => {}
        }
    }

    fn reject(&mut self) {
        self.unreadable.get_or_insert_with(|| self.cell.clone());
    }
}

/// Returns an attribute of a start tag.
fn attribute(markup: &[u8], name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(markup).ok()?;
    let start = format!(" {}=", std::str::from_utf8(name).ok()?);
    let (_, value) = text.split_once(&start)?;
    let quote = value.chars().next()?;
    value[1..].split(quote).next().map(str::to_owned)
}

impl Write for Numbers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// More than a number, and than the name and the attributes of a cell have.
        const LONGEST: usize = 400;
        for byte in bytes {
            match (byte, &mut self.markup, &mut self.value) {
                (b'<', markup @ None, _) => *markup = Some(Vec::new()),
                (b'>', Some(_), _) => {
                    let markup = self.markup.take().unwrap_or_default();
                    self.end_markup(&markup);
                }
                (byte, Some(markup), _) if markup.len() < LONGEST => markup.push(*byte),
                (byte, None, Some(value)) if self.is_number => {
                    value.push(char::from(*byte));
                    if *byte == b'&' || value.len() > LONGEST {
                        self.reject();
                    }
                }
                _ => {}
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that cannot be read any more when the step is being stopped.
pub(super) struct Stoppable<'u> {
    file: File,
    unpack: &'u Unpack,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unpack.is_stopping() {
            return Err(io::Error::other("the step is being stopped"));
        }
        self.file.read(buffer)
    }
}

impl Seek for Stoppable<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
