//! A loss of power at any moment of a process: what is on the disk then is computed from a trace of its system calls.
//!
//! What a process has written is certain to be there only after `fsync`; before that, each write may be there, torn or missing,
//! independently of the others. As on ext4, XFS and Btrfs, names change in the order of the calls, and `fsync` of a file or folder makes
//! its name durable with all changes before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::random::Random;

/// The calls that are traced. The programs of the tests change files by no others.
const CALLS: &str = "openat,write,writev,pwrite64,pwritev,lseek,ftruncate,fallocate,copy_file_range,fsync,fdatasync,rename,renameat,renameat2,\
     unlink,unlinkat,mkdir,mkdirat";

/// A system call.
#[derive(Debug)]
enum Call {
    /// Opens a file, and creates or truncates it.
    Open {
        fd: i64,
        path: PathBuf,
        flags: String,
    },
    /// Writes, at the position of the descriptor or at another.
    Write {
        fd: i64,
        at: Option<usize>,
        data: Vec<u8>,
    },
    /// Copies between the positions of two descriptors.
    Copy {
        from: i64,
        to: i64,
        length: usize,
    },
    Seek {
        fd: i64,
        to: usize,
    },
    Truncate {
        fd: i64,
        length: usize,
    },
    Sync {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    MakeFolder {
        path: PathBuf,
    },
}

/// The calls of a process that changed files in a folder, in order.
pub struct Trace {
    calls: Vec<Call>,
}

/// A change of a file that is not on the disk yet.
#[derive(Clone)]
enum Change {
    Write { at: usize, data: Vec<u8> },
    Truncate { length: usize },
}

/// A file, under any name.
#[derive(Clone, Default)]
struct Content {
    durable: Vec<u8>,
    changes: Vec<Change>,
    /// The content at the start of the trace, and its time.
    first: Option<(Vec<u8>, SystemTime)>,
}

/// A change of names that is not on the disk yet.
#[derive(Clone)]
enum Naming {
    Create { path: PathBuf, file: usize },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
    Folder { path: PathBuf },
}

#[derive(Clone, Default)]
struct Names {
    files: BTreeMap<PathBuf, usize>,
    folders: BTreeSet<PathBuf>,
}

/// What becomes of the changes that are not on the disk yet.
#[derive(Clone, Copy)]
enum Loss {
    All,
    Most,
    Few,
}

/// The disk at a moment of the trace.
#[derive(Default)]
struct Disk {
    files: Vec<Content>,
    durable: Names,
    changes: Vec<Naming>,
    /// The names for all processes.
    names: Names,
    /// The files of the descriptors, with their positions.
    open: BTreeMap<i64, (usize, usize)>,
    /// The descriptors that write at the end of their file, wherever they are.
    appending: BTreeSet<i64>,
}

impl Trace {
    /// Runs a command to its end, with a trace of the calls that change files in `folder`. Returns the command's standard error.
    ///
    /// # Panics
    /// If the command fails, or the program `strace` is missing.
    pub fn of(command: &Command, folder: &Path) -> Self {
        let log = tempfile::tempdir().unwrap();
        let mut strace = Command::new("strace");
        strace.args([
            "-ff",
            "-y",
            "-xx",
            "-s",
            "100000000",
            "--absolute-timestamps=unix,ns",
        ]);
        strace.args([
            "-e",
            "signal=none",
            "-e",
            "status=successful",
            "-e",
            &format!("trace={CALLS}"),
            "-o",
        ]);
        strace
            .arg(log.path().join("thread"))
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => strace.env(name, value),
                None => strace.env_remove(name),
            };
        }
        strace.current_dir(folder);
        let output = strace.output().expect("install the package strace");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let mut lines = Vec::new();
        for thread in fs::read_dir(log.path()).unwrap() {
            let text = fs::read_to_string(thread.unwrap().path()).unwrap();
            lines.extend(text.lines().map(str::to_owned));
        }
        // A call that another one waits for ended before that one began.
        lines.sort_by(|a, b| time_of(a).total_cmp(&time_of(b)));
        let calls = lines.iter().filter_map(|line| call(line, folder)).collect();
        Self { calls }
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Returns the number of times that it waited for the disk because of a file whose name ends so.
    pub fn waits(&self, suffix: &str) -> usize {
        let waits =
            |call: &&Call| matches!(call, Call::Sync { path } if path.to_string_lossy().ends_with(suffix));
        self.calls.iter().filter(waits).count()
    }

    /// Replaces the content of `folder`, which it had at the start of the trace, by what is left of it if the power fails after `calls`
    /// calls: with one of the possible losses of the cache.
    pub fn lose_power(&self, folder: &Path, calls: usize, random: &mut Random) {
        let way = match random.below(3) {
            0 => Loss::All,
            1 => Loss::Few,
            _ => Loss::Most,
        };
        self.disk(folder, calls).write(folder, way, random);
    }

    /// As `lose_power` after the last call, with nothing left that the process has not waited for.
    pub fn lose_all(&self, folder: &Path) {
        let disk = self.disk(folder, self.calls.len());
        disk.write(folder, Loss::All, &mut Random::new("unused"));
    }

    fn disk(&self, folder: &Path, calls: usize) -> Disk {
        let mut disk = Disk::default();
        disk.read(folder);
        for call in &self.calls[..calls] {
            disk.apply(call);
        }
        disk
    }
}

/// Returns the time of a line, which begins with it.
fn time_of(line: &str) -> f64 {
    let time = line.split(' ').next().and_then(|time| time.parse().ok());
    time.unwrap_or(0.0)
}

/// Parses a line such as `1795533292.342 write(6<\x2f\x6f>, "\x68\x65", 2) = 2`. Returns `None` if it is no call on the folder.
fn call(line: &str, folder: &Path) -> Option<Call> {
    let (_, call) = line.split_once(' ')?;
    let (name, rest) = call.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(") = ")?;
    let arguments: Vec<&str> = arguments.split(", ").collect();
    let argument = |at: usize| arguments.get(at).copied().unwrap_or("");
    let number = |at: usize| argument(at).parse::<usize>().unwrap();
    let within = |path: PathBuf| path.starts_with(folder).then_some(path);
    let named = |at: usize| within(folder.join(text(argument(at))));
    let opened = || within(descriptor(argument(0)).1);
    let fd = descriptor(argument(0)).0;
    Some(match name {
        "openat" => {
            let (fd, path) = descriptor(result);
            let path = within(path)?;
            Call::Open {
                fd,
                path,
                flags: argument(2).to_owned(),
            }
        }
        "write" => Call::Write {
            fd,
            at: opened().and(None),
            data: data(opened(), argument(1))?,
        },
        "pwrite64" => Call::Write {
            fd,
            at: Some(number(3)),
            data: data(opened(), argument(1))?,
        },
        "copy_file_range" if argument(1) == "NULL" && argument(3) == "NULL" => {
            within(descriptor(argument(2)).1)?;
            Call::Copy {
                from: fd,
                to: descriptor(argument(2)).0,
                length: result.trim().parse().unwrap(),
            }
        }
        "lseek" => opened().map(|_| Call::Seek {
            fd,
            to: result.trim().parse().unwrap(),
        })?,
        "ftruncate" => opened().map(|_| Call::Truncate {
            fd,
            length: number(1),
        })?,
        "fsync" | "fdatasync" => Call::Sync { path: opened()? },
        "rename" => Call::Rename {
            from: named(0)?,
            to: named(1)?,
        },
        "unlink" => Call::Remove { path: named(0)? },
        "mkdir" => Call::MakeFolder { path: named(0)? },
        other => {
            assert!(
                opened().is_none() && !line.contains(&hex(folder)),
                "unexpected call {other}: {line}"
            );
            return None;
        }
    })
}

/// Returns the data of a write if it is on the folder.
fn data(on: Option<PathBuf>, argument: &str) -> Option<Vec<u8>> {
    on.map(|_| bytes(argument))
}

/// Parses a descriptor with its path: `6<\x2f\x6f>`.
fn descriptor(text: &str) -> (i64, PathBuf) {
    let (number, path) = text.split_once('<').unwrap_or((text, ""));
    let path = path.split_once('>').map_or(path, |(path, _)| path);
    (
        number.trim().parse().unwrap_or(-1),
        PathBuf::from(String::from_utf8(bytes(path)).unwrap()),
    )
}

fn text(argument: &str) -> PathBuf {
    PathBuf::from(String::from_utf8(bytes(argument)).unwrap())
}

/// Decodes `\x68\x65`, which may be in quotes.
fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.trim_matches('"').split("\\x").skip(1);
    digits
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}

fn hex(folder: &Path) -> String {
    folder
        .to_str()
        .unwrap()
        .bytes()
        .map(|byte| format!("\\x{byte:02x}"))
        .collect()
}

impl Disk {
    /// Reads a folder whose content is on the disk.
    fn read(&mut self, folder: &Path) {
        self.durable.folders.insert(folder.to_owned());
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.read(&path);
            } else {
                let durable = fs::read(&path).unwrap();
                let modified = fs::metadata(&path).unwrap().modified().unwrap();
                self.durable.files.insert(path, self.files.len());
                self.files.push(Content {
                    first: Some((durable.clone(), modified)),
                    durable,
                    changes: Vec::new(),
                });
            }
        }
        self.names = self.durable.clone();
    }

    fn apply(&mut self, call: &Call) {
        match call {
            Call::Open { fd, path, flags } => self.opens(*fd, path, flags),
            Call::Write {
                fd,
                at: Some(at),
                data,
            } => {
                let (file, _) = self.open[fd];
                self.files[file].changes.push(Change::Write {
                    at: *at,
                    data: data.clone(),
                });
            }
            Call::Write { fd, at: None, data } => self.writes(*fd, data.clone()),
            Call::Copy { from, to, length } => {
                let (file, position) = self.open[from];
                let mut content = self.files[file].cached();
                self.writes(*to, content.drain(position..position + length).collect());
                self.open.insert(*from, (file, position + length));
            }
            Call::Seek { fd, to } => {
                if let Some((_, position)) = self.open.get_mut(fd) {
                    *position = *to;
                }
            }
            Call::Truncate { fd, length } => {
                let (file, _) = self.open[fd];
                self.files[file]
                    .changes
                    .push(Change::Truncate { length: *length });
            }
            Call::Sync { path } => self.syncs(path),
            Call::Rename { from, to } => self.renames(Naming::Rename {
                from: from.clone(),
                to: to.clone(),
            }),
            Call::Remove { path } => self.renames(Naming::Remove { path: path.clone() }),
            Call::MakeFolder { path } => self.renames(Naming::Folder { path: path.clone() }),
        }
    }

    /// Writes at the position of a descriptor.
    fn writes(&mut self, fd: i64, data: Vec<u8>) {
        let (file, position) = self.open[&fd];
        let at = match self.appending.contains(&fd) {
            true => self.files[file].cached().len(),
            false => position,
        };
        self.open.insert(fd, (file, at + data.len()));
        self.files[file].changes.push(Change::Write { at, data });
    }

    fn opens(&mut self, fd: i64, path: &Path, flags: &str) {
        // A folder.
        if self.names.folders.contains(path) {
            return;
        }
        if !self.names.files.contains_key(path) {
            let file = self.files.len();
            self.files.push(Content::default());
            self.renames(Naming::Create {
                path: path.to_owned(),
                file,
            });
        }
        let file = self.names.files[path];
        if flags.contains("O_TRUNC") {
            self.files[file].changes.push(Change::Truncate { length: 0 });
        }
        match flags.contains("O_APPEND") {
            true => self.appending.insert(fd),
            false => self.appending.remove(&fd),
        };
        self.open.insert(fd, (file, 0));
    }

    fn renames(&mut self, naming: Naming) {
        self.names.apply(&naming);
        self.changes.push(naming);
    }

    fn syncs(&mut self, path: &Path) {
        for naming in self.changes.drain(..) {
            self.durable.apply(&naming);
        }
        if let Some(file) = self.names.files.get(path) {
            let content = &mut self.files[*file];
            for change in std::mem::take(&mut content.changes) {
                change.apply(&mut content.durable);
            }
        }
    }

    /// Writes what is left.
    fn write(mut self, folder: &Path, loss: Loss, random: &mut Random) {
        let kept = match loss {
            Loss::All => 0,
            Loss::Few | Loss::Most => random.below(self.changes.len() as u64 + 1),
        };
        for naming in &self.changes[..usize::try_from(kept).unwrap()] {
            self.durable.apply(naming);
        }
        fs::remove_dir_all(folder).unwrap();
        for folder in &self.durable.folders {
            fs::create_dir_all(folder).unwrap();
        }
        for (path, file) in &self.durable.files {
            // The index of the log is memory that processes share, and is made again.
            if path.to_string_lossy().ends_with("-shm") {
                continue;
            }
            let content = &mut self.files[*file];
            for change in std::mem::take(&mut content.changes) {
                let torn = random.below(4) == 0;
                let left = match loss {
                    Loss::All => false,
                    Loss::Few => random.below(8) > 0,
                    Loss::Most => random.below(8) == 0,
                };
                match (left, torn) {
                    (false, _) => {}
                    (true, true) => change.torn(random).apply(&mut content.durable),
                    (true, false) => change.apply(&mut content.durable),
                }
            }
            fs::write(path, &content.durable).unwrap();
            if let Some((_, modified)) = content
                .first
                .as_ref()
                .filter(|(first, _)| *first == content.durable)
            {
                set_modified(path, *modified);
            }
        }
    }
}

/// Sets the time of a file's last change.
///
/// # Panics
/// If that is not possible.
pub fn set_modified(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

impl Content {
    /// Returns what processes read.
    fn cached(&self) -> Vec<u8> {
        let mut content = self.durable.clone();
        self.changes.iter().for_each(|change| change.apply(&mut content));
        content
    }
}

impl Names {
    fn apply(&mut self, naming: &Naming) {
        match naming {
            Naming::Create { path, file } => {
                self.files.insert(path.clone(), *file);
            }
            Naming::Rename { from, to } => {
                let file = self.files.remove(from).expect("a file is renamed");
                self.files.insert(to.clone(), file);
            }
            Naming::Remove { path } => {
                self.files.remove(path);
            }
            Naming::Folder { path } => {
                self.folders.insert(path.clone());
            }
        }
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, data } => {
                let end = at + data.len();
                content.resize(content.len().max(end), 0);
                content[*at..end].copy_from_slice(data);
            }
            Self::Truncate { length } => content.resize(*length, 0),
        }
    }

    /// Returns a change with only its beginning done.
    fn torn(&self, random: &mut Random) -> Self {
        match self {
            Self::Write { at, data } => {
                let length = random.below(data.len() as u64 + 1);
                let data = data[..usize::try_from(length).unwrap()].to_vec();
                Self::Write { at: *at, data }
            }
            Self::Truncate { length } => Self::Truncate { length: *length },
        }
    }
}
