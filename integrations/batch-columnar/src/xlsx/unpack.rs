//! The archive of a workbook, before it is loaded.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use zip::ZipArchive;

use super::numbers::Numbers;

/// The limit of a workbook, and the stop of the step that loads it, if one does.
#[derive(BatchArtifact)]
pub(super) struct Unpack {
    /// In bytes; a workbook that unpacks to more is a `ResourceError`.
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
        if let Some(cell) = numbers.unreadable() {
            return Err(format!(
                "the value of a cell {cell} is not plain text; open the workbook in a program for sheets, and save it"
            ));
        }
        let mut opened = file().map_err(fail)?;
        opened.seek(SeekFrom::Start(0)).map_err(fail)?;
        Ok((opened, numbers))
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
