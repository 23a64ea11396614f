//! The files of rejects, which a restart cuts back to the committed ones.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::reject::{Line, Owner, Reject, RejectFormat, numbered};
use crate::file::{LockError, LockedFile, Whole, read_whole, sync_folder};

/// The report, and the file of raw records.
pub(super) struct Report {
    format: RejectFormat,
    owner: Owner,
    lines: Appended,
    raw: Option<Appended>,
}

/// A file that contains what is committed, and what the next commit adds.
struct Appended {
    path: PathBuf,
    file: LockedFile,
    /// The first line, written with the first reject.
    header: String,
    committed: u64,
    end: u64,
}

/// How a report is opened.
pub(super) struct Opening<'a> {
    pub(super) path: &'a Path,
    pub(super) format: RejectFormat,
    /// The file of raw records, and its header.
    pub(super) raw: Option<(&'a Path, String)>,
    pub(super) owner: Owner,
    /// The number of committed rejects.
    pub(super) committed: u64,
    /// True if there are rejects to write.
    pub(super) create: bool,
    pub(super) overwrite: bool,
}

impl Opening<'_> {
    /// Opens the files and removes what is not among the committed rejects. Returns `None` if there is nothing to write or remove.
    pub(super) fn open(self) -> io::Result<Option<Report>> {
        let Some(mut lines) = Appended::open(self.path, self.format.header(), self.create)? else {
            self.check_found(0)?;
            return self.remove_other_raw().map(|()| None);
        };
        let content = lines.read()?;
        let mut numbers = self.format.numbers(&content);
        let is_own = numbers.first().is_some_and(|number| number.is_of(&self.owner));
        // A crash may have left the beginning of a first line.
        let is_empty = numbers.is_empty() && self.format.is_begun(&content);
        if !is_own && !is_empty {
            // Also without a reject: the file would be taken for the rejects of this execution.
            self.check_overwrite(self.path)?;
            numbers.clear();
        }
        numbers.retain(|number| number.skip <= self.committed);
        // The records of a dropped group share a skip.
        let skips = numbers.chunk_by(|one, next| one.skip == next.skip);
        self.check_found(skips.count() as u64)?;
        let mut raw = match &self.raw {
            Some((path, header)) => Appended::open(path, header, true).map_err(|error| {
                // The caller names the other file.
                io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
            })?,
            None => None,
        };
        if let Some(raw) = &mut raw {
            if !is_own && !raw.is_empty()? {
                self.check_overwrite(&raw.path)?;
            }
            let kept = numbers.iter().filter_map(|number| number.raw_end).next_back();
            raw.cut(kept.unwrap_or(0), self.overwrite)?;
        }
        lines.cut(numbers.last().map_or(0, |kept| kept.end), self.overwrite)?;
        Ok(Some(Report {
            format: self.format,
            owner: self.owner,
            lines,
            raw,
        }))
    }

    /// Removes raw records of another step, whose report does not exist any more.
    fn remove_other_raw(&self) -> io::Result<()> {
        let Some((path, header)) = self.raw.as_ref().filter(|_| self.committed == 0) else {
            return Ok(());
        };
        let Some(mut raw) = Appended::open(path, header, false)? else {
            return Ok(());
        };
        if !raw.is_empty()? {
            self.check_overwrite(path)?;
        }
        // An empty file is removed with its lock.
        raw.cut(0, self.overwrite)
    }

    /// Fails if the file has fewer rejects than are committed.
    fn check_found(&self, found: u64) -> io::Result<()> {
        if found == self.committed || self.overwrite {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "`{}` has {found} of the {} rejects that this job instance has committed; restore it, or set `rejects.if.exists` to \
             `overwrite` to continue without them",
            self.path.display(),
            self.committed
        )))
    }

    /// Fails if a file that is not of this step must not be replaced.
    fn check_overwrite(&self, path: &Path) -> io::Result<()> {
        let path = path.display();
        if self.committed > 0 {
            return Err(io::Error::other(format!(
                "`{path}` does not belong to the {} rejects that this job instance has committed; restore the file, or move it \
                 and the other one away",
                self.committed
            )));
        }
        if self.overwrite {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "`{path}` exists and does not belong to step `{}` of this job instance; give the file another name, move it away, \
             or set `rejects.if.exists` to `overwrite`",
            self.owner.step
        )))
    }
}

/// Returns the file of the rejects that were rolled back: `rejects.csv.uncommitted`.
fn uncommitted(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".uncommitted");
    name.into()
}

/// Writes rejects that were rolled back, and returns their file.
pub(super) fn write_uncommitted(
    path: &Path,
    format: RejectFormat,
    owner: &Owner,
    rejects: &[Reject],
    first: u64,
) -> io::Result<PathBuf> {
    let path = uncommitted(path);
    let mut text = format.header().as_bytes().to_vec();
    for (skip, reject) in numbered(rejects, first) {
        let line = Line {
            skip,
            owner,
            reject,
            raw_end: None,
        };
        format.encode(&line, &mut text)?;
    }
    if is_of_another(&path, format, owner)? {
        return Err(io::Error::other(format!(
            "`{}` belongs to another job instance or step; move it away",
            path.display()
        )));
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&path, text)?;
    Ok(path)
}

/// Removes the file of rejects that were rolled back, if this step has written one.
pub(super) fn remove_uncommitted(path: &Path, format: RejectFormat, owner: &Owner) -> io::Result<()> {
    let path = uncommitted(path);
    if !path.try_exists()? || is_of_another(&path, format, owner)? {
        return Ok(());
    }
    fs::remove_file(path)
}

/// Returns whether there is a file that another job instance or step has written.
fn is_of_another(path: &Path, format: RejectFormat, owner: &Owner) -> io::Result<bool> {
    match read_whole(path) {
        Ok(content) => {
            let first = format.numbers(&content).into_iter().next();
            Ok(first.map_or(!format.is_begun(&content), |number| !number.is_of(owner)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Report {
    /// Adds rejects to what is committed, and forces them to the disk. `first` is the number of the first.
    pub(super) fn append(&mut self, rejects: &[Reject], first: u64) -> io::Result<()> {
        self.lines.prove()?;
        self.raw.as_ref().map_or(Ok(()), Appended::prove)?;
        if rejects.is_empty() && self.lines.end == self.lines.committed {
            return Ok(());
        }
        let (mut lines, mut raws) = (Vec::new(), Vec::new());
        for (skip, reject) in numbered(rejects, first) {
            let raw = self.raw.as_ref().filter(|_| reject.raw.is_some());
            let raw_end = raw.map(|raw| {
                raws.extend_from_slice(&reject.bytes);
                raws.push(b'\n');
                raw.start() + raws.len() as u64
            });
            let line = Line {
                skip,
                owner: &self.owner,
                reject,
                raw_end,
            };
            self.format.encode(&line, &mut lines)?;
        }
        // First, because its lines show to whom both files belong.
        self.lines.append(&lines)?;
        self.raw.as_mut().map_or(Ok(()), |raw| raw.append(&raws))
    }

    /// Keeps what was appended, because it is committed.
    pub(super) fn committed(&mut self) {
        self.lines.committed = self.lines.end;
        if let Some(raw) = &mut self.raw {
            raw.committed = raw.end;
        }
    }
}

impl Appended {
    fn open(path: &Path, header: &str, create: bool) -> io::Result<Option<Self>> {
        if create && let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let is_new = !path.try_exists()?;
        let file = match LockedFile::open(path, create) {
            Ok(file) => file,
            Err(LockError::Taken) => {
                return Err(io::Error::other(
                    "another step or partition writes its rejects to it; give each a different file",
                ));
            }
            Err(LockError::Failed(error)) if error.kind() == io::ErrorKind::NotFound && !create => {
                return Ok(None);
            }
            Err(LockError::Failed(error)) => return Err(error),
        };
        if is_new {
            sync_folder(path)?;
        }
        let end = file.metadata()?.len();
        Ok(Some(Self {
            path: path.to_owned(),
            file,
            header: header.to_owned(),
            committed: 0,
            end,
        }))
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        Whole::new(self.file.try_clone()?, 0)?.read_to_end(&mut content)?;
        Ok(content)
    }

    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.file.metadata()?.len() == 0)
    }

    /// Removes what follows `kept`. The file may only be shorter if it may be incomplete.
    fn cut(&mut self, kept: u64, may_be_incomplete: bool) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length < kept && !may_be_incomplete {
            return Err(io::Error::other(format!(
                "`{}` has {length} bytes, and had {kept} at the last checkpoint; restore it, or set `rejects.if.exists` to `overwrite` \
                 to continue without the rest",
                self.path.display()
            )));
        }
        let kept = kept.min(length);
        self.file.set_len(kept)?;
        (self.committed, self.end) = (kept, kept);
        Ok(())
    }

    /// Fails unless the file is still at its path, with what was written to it.
    fn prove(&self) -> io::Result<()> {
        let proven = self.file.prove(self.end);
        proven.map_err(|error| io::Error::other(format!("`{}`: {error}", self.path.display())))
    }

    /// Returns the position of the next reject.
    fn start(&self) -> u64 {
        if self.committed == 0 {
            self.header.len() as u64
        } else {
            self.committed
        }
    }

    /// Writes after what is committed. This replaces what an interval has written that was rolled back.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Of a file that was truncated meanwhile, this would fill the hole with zeros.
        self.prove()?;
        self.file.set_len(self.committed)?;
        self.end = self.committed;
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(self.committed))?;
        let header = if self.committed == 0 {
            self.header.as_bytes()
        } else {
            &[]
        };
        self.file.write_all(&[header, bytes].concat())?;
        self.file.sync_data()?;
        self.end = self.start() + bytes.len() as u64;
        Ok(())
    }
}

impl Drop for Appended {
    /// Removes a file without rejects.
    fn drop(&mut self) {
        if self.end == 0 && self.file.prove(0).is_ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}
