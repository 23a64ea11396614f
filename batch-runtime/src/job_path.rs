//! The job path: directories of Job XML files, read when the runtime starts and looked through for new files at each
//! start of a job.
//!
//! Spec: PATH-01 to PATH-13, D-63

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use batch_xml::{Diagnostic, Document, JobXmlErrors, Limits, RootKind, Source, Span, sniff_root};

/// A file of the job path that the operating system does not give.
const UNREADABLE: &str = "PATH0001";

/// The directories, and what has been read from them.
pub(crate) struct JobPath {
    directories: Vec<PathBuf>,
    limits: Limits,
    files: Mutex<BTreeMap<PathBuf, JobFile>>,
}

/// A file of the job path.
#[derive(Clone)]
enum JobFile {
    /// A document whose root has an id.
    Document(Arc<Document>),
    /// A file that cannot be read as Job XML; it takes only its own jobs with it.
    Broken(Arc<JobXmlErrors>),
    /// An XML file for something else.
    Foreign,
}

/// What the job path says of a job id.
pub(crate) enum Lookup {
    /// The job.
    Found(Arc<Document>),
    /// Several files define the id.
    Duplicate(Vec<String>),
    /// No file does. One of `broken` may be the one that was meant.
    Unknown {
        known: BTreeSet<String>,
        broken: Vec<Arc<JobXmlErrors>>,
    },
}

impl JobPath {
    pub(crate) fn new(directories: Vec<PathBuf>) -> Self {
        let path = Self {
            directories,
            limits: Limits::default(),
            files: Mutex::new(BTreeMap::new()),
        };
        path.look_for_new_files();
        path
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads the files that were not there before. Spec: PATH-05, PATH-07
    pub(crate) fn look_for_new_files(&self) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        for directory in &self.directories {
            let entries = match fs::read_dir(directory) {
                Ok(entries) => entries,
                Err(error) => {
                    tracing::warn!(directory = %directory.display(), %error, "directory of the job path passed over");
                    continue;
                }
            };
            let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
            paths.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
            paths.sort();
            for path in paths {
                // One file found by two ways is one file. Spec: PATH-08
                let Ok(key) = fs::canonicalize(&path) else {
                    continue;
                };
                // A FIFO or device would block the reader for ever.
                if files.contains_key(&key) || !fs::metadata(&key).is_ok_and(|metadata| metadata.is_file()) {
                    continue;
                }
                let file = read_file(&path, &self.limits);
                if let JobFile::Broken(errors) = &file {
                    let mistakes = errors.iter().count();
                    tracing::warn!(file = %path.display(), mistakes, "no valid Job XML; `check` shows why");
                }
                files.insert(key, file);
            }
        }
    }

    /// Finds a job by its id. Spec: PATH-09, PATH-12, PATH-13
    pub(crate) fn find(&self, job: &str) -> Lookup {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<&Arc<Document>> = files
            .values()
            .filter_map(|file| match file {
                JobFile::Document(document) if document.id().value == job => Some(document),
                _ => None,
            })
            .collect();
        if found.len() > 1 {
            return Lookup::Duplicate(
                found
                    .iter()
                    .map(|document| document.source().name().to_owned())
                    .collect(),
            );
        }
        match found.pop() {
            Some(document) if document.root_kind() == RootKind::Job => Lookup::Found(Arc::clone(document)),
            _ => Lookup::Unknown {
                known: jobs_of(&files),
                broken: broken_of(&files),
            },
        }
    }

    /// The ids of all jobs that can be started. Spec: OP-21
    pub(crate) fn jobs(&self) -> BTreeSet<String> {
        jobs_of(&self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The reports of the files that could not be read.
    pub(crate) fn broken(&self) -> Vec<Arc<JobXmlErrors>> {
        broken_of(&self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn jobs_of(files: &BTreeMap<PathBuf, JobFile>) -> BTreeSet<String> {
    files
        .values()
        .filter_map(|file| match file {
            JobFile::Document(document)
                if document.root_kind() == RootKind::Job && !document.is_abstract() =>
            {
                Some(document.id().value.clone())
            }
            _ => None,
        })
        .collect()
}

fn broken_of(files: &BTreeMap<PathBuf, JobFile>) -> Vec<Arc<JobXmlErrors>> {
    files
        .values()
        .filter_map(|file| match file {
            JobFile::Broken(errors) => Some(Arc::clone(errors)),
            _ => None,
        })
        .collect()
}

fn read_file(path: &Path, limits: &Limits) -> JobFile {
    let name = path.display().to_string();
    let broken = |errors| JobFile::Broken(Arc::new(errors));
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to see that the file is too large.
    let limit = u64::try_from(limits.file_bytes)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    if let Err(error) = File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)) {
        let place = Span::new(&Source::new(name, ""), 0..0);
        return broken(
            vec![Diagnostic::error(
                UNREADABLE,
                format!("the file cannot be read: {error}"),
                place,
            )]
            .into(),
        );
    }
    let source = match Source::from_bytes(name, &bytes, limits) {
        Ok(source) => source,
        Err(errors) => return broken(errors),
    };
    let job_xml_root =
        sniff_root(&source).is_none_or(|root| ["job", "step", "flow", "split"].contains(&root.as_str()));
    if !job_xml_root {
        tracing::debug!(file = source.name(), "no Job XML: another root element");
        return JobFile::Foreign;
    }
    match batch_xml::parse(&source, limits) {
        Ok(document) => JobFile::Document(Arc::new(document)),
        Err(errors) => broken(errors),
    }
}
