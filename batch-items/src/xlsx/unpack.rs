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
        let mut opened = file().map_err(fail)?;
        opened.seek(SeekFrom::Start(0)).map_err(fail)?;
        Ok((opened, numbers))
    }
}

/// The numbers of a workbook that a float does not hold. The library that reads the cells gives floats, without the digits.
#[derive(Default)]
pub(super) struct Numbers {
    /// The texts, by the bits of their floats.
    inexact: HashMap<u64, String>,
    /// The text after a tag, while it may be a number.
    text: Option<String>,
}

impl Numbers {
    /// Returns the text of a number, if the float is another number.
    pub(super) fn text_if_inexact(&self, float: f64) -> Option<String> {
        let is_infinite = || (!float.is_finite()).then(|| float.to_string());
        self.inexact.get(&float.to_bits()).cloned().or_else(is_infinite)
    }

    fn check(&mut self, text: &str) {
        /// From here on, a float does not hold every integer.
        const INTEGERS: f64 = 9_007_199_254_740_992.0;
        let is_integer = !text.contains(['.', 'e', 'E']);
        let is_same = |float: f64| match is_integer {
            true => float.to_string() == text,
            false => decimal::is_exactly(text, float),
        };
        if let Ok(float) = text.parse::<f64>()
            && float.abs() >= INTEGERS
            && !is_same(float)
        {
            self.inexact
                .entry(float.to_bits())
                .or_insert_with(|| text.to_owned());
        }
    }
}

impl Write for Numbers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// A float has no more digits before its point.
        const LONGEST: usize = 400;
        for byte in bytes {
            match byte {
                b'>' => self.text = Some(String::new()),
                b'<' => {
                    if let Some(text) = self.text.take() {
                        self.check(&text);
                    }
                }
                b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' => {
                    if let Some(text) = self.text.as_mut() {
                        text.push(char::from(*byte));
                    }
                    self.text.take_if(|text| text.len() > LONGEST);
                }
                _ => self.text = None,
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
