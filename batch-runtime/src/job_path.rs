//! The job path: directories of Job XML files, read when the runtime starts and searched for new files at each start
//! of a job; and the files that the program embeds.
// Spec: PATH-01 to PATH-13, EMBED-01 to EMBED-03, D-63

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::env;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{self, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batch_xml::{
    Diagnostic, Dialect, Document, JobXmlErrors, Library, Limits, RootKind, Source, Span, sniff_root,
};

/// The code of a file of the job path that cannot be read.
const UNREADABLE: &str = "PATH0001";

/// The root elements of Job XML.
// Spec: JSL-DOC-03
pub(crate) const ROOTS: [&str; 4] = ["job", "step", "flow", "split"];

/// The Job XML files of a runtime, as its builder collects them.
#[derive(Clone, Default)]
pub(crate) struct JobFiles {
    /// The directories of the job path, separated as in `PATH`.
    pub(crate) directories: Option<String>,
    /// Embedded files: name and text.
    pub(crate) embedded: Vec<(String, String)>,
    /// The dialect of all documents; `None` takes it from each document.
    pub(crate) dialect: Option<Dialect>,
}

impl JobFiles {
    /// Returns the directories set in the builder, or else in the system property. The default is the current directory, unless the program
    /// embeds files: such a program runs the same jobs wherever it is started.
    // Spec: PATH-02, PATH-03, EMBED-02
    fn directories(&self, property: Option<&str>) -> Vec<PathBuf> {
        match self.directories.as_deref().or(property) {
            Some(list) => env::split_paths(list).collect(),
            None if self.embedded.is_empty() => vec![PathBuf::from(".")],
            None => Vec::new(),
        }
    }
}

/// The contents of the job path, and of the files that the program embeds.
#[derive(Clone, Debug, Default)]
pub struct JobPathReport {
    /// The ids of the jobs that can be started.
    pub jobs: BTreeSet<String>,
    /// The mistakes of each file that is not valid Job XML.
    pub broken: Vec<JobXmlErrors>,
    /// XML files with another root element, which are ignored: file and root.
    // Spec: JSL-DOC-04
    pub other_roots: Vec<(String, String)>,
    /// Directories that could not be read, each with the reason.
    // Spec: PATH-06
    pub unreadable: Vec<String>,
    /// The searched directories.
    pub directories: Vec<PathBuf>,
    /// The ids of the embedded jobs, steps, flows and splits that files of the job path replace.
    // Spec: EMBED-02
    pub replaced: BTreeSet<String>,
}

impl JobPathReport {
    /// Returns a message that there are no jobs, with the searched directories.
    pub(crate) fn no_job(&self) -> String {
        let name = |directory: &PathBuf| {
            let absolute = path::absolute(directory);
            format!("`{}`", absolute.as_ref().unwrap_or(directory).display())
        };
        let names: Vec<String> = self.directories.iter().map(name).collect();
        match names.is_empty() {
            true => "the embedded files contain no job".to_owned(),
            false => format!("the job path contains no job: searched {}", names.join(", ")),
        }
    }
}

/// The ways to set the job path.
pub(crate) const JOB_PATH_HELP: &str = "set the job path by `--job-path DIRS`, by `job_path(..)` in a program, or by the system property `javax.jobpath`";

/// The directories and their files, and the embedded ones.
pub(crate) struct JobPath {
    directories: Vec<PathBuf>,
    /// The dialect of all documents; `None` takes it from each document.
    dialect: Option<Dialect>,
    limits: Limits,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    files: BTreeMap<PathBuf, JobFile>,
    /// Embedded files. A file of the job path replaces an embedded file with the same id.
    embedded: Vec<JobFile>,
    unreadable: BTreeMap<PathBuf, String>,
    /// True if unreadable files and directories are logged.
    logs_problems: bool,
}

/// A file of the job path.
#[derive(Clone)]
enum JobFile {
    /// A document whose root has an id.
    Document(Arc<Document>),
    /// An invalid Job XML file. Jobs of other files are not affected.
    Broken(Arc<JobXmlErrors>),
    /// An XML file with another root element: its name and its root.
    OtherRoot(String, String),
}

impl JobFile {
    fn document(&self) -> Option<&Arc<Document>> {
        match self {
            Self::Document(document) => Some(document),
            _ => None,
        }
    }

    fn errors(&self) -> Option<&Arc<JobXmlErrors>> {
        match self {
            Self::Broken(errors) => Some(errors),
            _ => None,
        }
    }

    /// Returns the name that messages use.
    fn name(&self) -> String {
        match self {
            Self::Document(document) => document.source().name().to_owned(),
            Self::Broken(errors) => {
                place_of(errors).map_or_else(String::new, |place| place.source().name().to_owned())
            }
            Self::OtherRoot(name, _) => name.clone(),
        }
    }
}

/// The result of looking up a job id.
pub(crate) enum Lookup {
    /// The job.
    Found(Arc<Document>),
    /// Several files define the id, or have the name.
    Duplicate(Vec<String>),
    /// The file is not valid.
    Broken(Arc<JobXmlErrors>),
    /// No file defines the id. One of `broken` may be the intended file.
    Unknown {
        known: BTreeSet<String>,
        broken: Vec<Arc<JobXmlErrors>>,
    },
}

impl JobPath {
    /// Reads all files. `property` is the system property that lists directories.
    pub(crate) fn new(files: JobFiles, property: Option<&str>) -> Self {
        let limits = Limits::default();
        let directories = files.directories(property);
        let dialect = files.dialect;
        let embedded = files.embedded.into_iter();
        let embedded = embedded.map(|(name, text)| parse(&Source::new(name, text), &limits, dialect));
        let found = Found {
            embedded: embedded.collect(),
            ..Found::default()
        };
        let path = Self {
            directories,
            dialect,
            limits,
            found: Mutex::new(found),
        };
        path.look_for_new_files();
        path
    }

    /// Returns what precedes a list of the jobs in a message.
    pub(crate) fn list_intro(&self) -> &'static str {
        match (self.directories.is_empty(), self.found().embedded.is_empty()) {
            (true, _) => "the program contains",
            (false, true) => "the job path contains",
            (false, false) => "the job path and the program contain",
        }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads new and changed files.
    // Spec: PATH-05, PATH-07
    pub(crate) fn look_for_new_files(&self) {
        let mut found = self.found();
        for directory in &self.directories {
            match xml_files(directory) {
                Ok(paths) => {
                    found.unreadable.remove(directory);
                    let directory = fs::canonicalize(directory).unwrap_or_else(|_| directory.clone());
                    for path in &paths {
                        found.read(path, &directory, &self.limits, self.dialect);
                    }
                }
                Err(error) => {
                    let error = error.to_string();
                    let earlier = found.unreadable.insert(directory.clone(), error.clone());
                    // Logged once, not at each start.
                    if found.logs_problems && earlier.is_none() {
                        log_unreadable(directory, &error);
                    }
                }
            }
        }
    }

    /// Logs the files and directories that cannot be read, now and whenever a new one appears. A check reports them
    /// instead.
    pub(crate) fn log_problems(&self) {
        let mut found = self.found();
        found.logs_problems = true;
        for (directory, error) in &found.unreadable {
            log_unreadable(directory, error);
        }
        for (path, file) in &found.files {
            log_broken(&path.display(), file);
        }
        for file in &found.embedded {
            log_broken(&file.name(), file);
        }
    }

    /// Logs which embedded jobs are not used, because files of the job path replace them.
    // Spec: EMBED-02
    pub(crate) fn log_replaced(&self) {
        let replaced = self.found().replaced();
        if !replaced.is_empty() {
            let replaced: Vec<String> = replaced.iter().map(|id| format!("`{id}`")).collect();
            tracing::warn!(
                "the job path replaces what the program embeds: {}",
                replaced.join(", ")
            );
        }
    }

    /// Finds a job by its id. Of several, that in the file `recorded` is taken.
    // Spec: PATH-09, PATH-12, PATH-13
    pub(crate) fn find(&self, job: &str, recorded: Option<&str>) -> Lookup {
        let found = self.found();
        let mut of_id: Vec<&Arc<Document>> = found
            .documents()
            .filter(|document| document.id().value == job)
            .collect();
        if of_id.len() > 1
            && let Some(file) = recorded
            && of_id.iter().any(|document| document.source().name() == file)
        {
            of_id.retain(|document| document.source().name() == file);
        }
        if of_id.len() > 1 {
            return Lookup::Duplicate(
                of_id
                    .iter()
                    .map(|document| document.source().name().to_owned())
                    .collect(),
            );
        }
        match of_id.pop() {
            Some(document) if document.root_kind() == RootKind::Job => {
                match found.broken_replacement(document) {
                    Some(errors) => Lookup::Broken(errors),
                    None => Lookup::Found(Arc::clone(document)),
                }
            }
            _ => Lookup::Unknown {
                known: found.jobs(),
                broken: found.broken(),
            },
        }
    }

    /// Finds a job by the name of its file, with or without `.xml`.
    // Spec: JAK-36
    pub(crate) fn find_file(&self, name: &str) -> Lookup {
        let found = self.found();
        let is_named = |path: &Path| {
            let file = path
                .file_name()
                .and_then(|file| file.to_str())
                .unwrap_or_default();
            file == name || file.strip_suffix(".xml") == Some(name)
        };
        let lookup = |file: &JobFile| match file {
            JobFile::Document(document) if document.root_kind() == RootKind::Job => {
                Some(Lookup::Found(Arc::clone(document)))
            }
            JobFile::Broken(errors) => Some(Lookup::Broken(Arc::clone(errors))),
            _ => None,
        };
        let of_path = found.files.iter().filter_map(|(path, file)| {
            let written = file.name();
            // `path` is the target of a symbolic link, so its name may differ.
            let is_it = is_named(Path::new(&written)) || is_named(path);
            Some((written, is_it.then(|| lookup(file))??))
        });
        let mut of_name: Vec<(String, Lookup)> = of_path.collect();
        if of_name.is_empty() {
            let embedded = found
                .unreplaced()
                .filter(|file| is_named(Path::new(&file.name())));
            of_name.extend(embedded.filter_map(|file| Some((file.name(), lookup(file)?))));
        }
        match of_name.pop() {
            Some((_, lookup)) if of_name.is_empty() => lookup,
            Some((last, _)) => {
                let others = of_name.into_iter().map(|(file, _)| file);
                Lookup::Duplicate(others.chain([last]).collect())
            }
            None => Lookup::Unknown {
                known: found.job_files(),
                broken: Vec::new(),
            },
        }
    }

    /// Returns the ids of all jobs that can be started.
    // Spec: OP-21
    pub(crate) fn jobs(&self) -> BTreeSet<String> {
        self.found().jobs()
    }

    /// Returns a report of the contents.
    pub(crate) fn report(&self) -> JobPathReport {
        let found = self.found();
        let unreadable = found
            .unreadable
            .iter()
            .map(|(path, error)| format!("{}: {error}", path.display()));
        let other_roots = found.all().filter_map(|file| match file {
            JobFile::OtherRoot(name, root) => Some((name.clone(), root.clone())),
            _ => None,
        });
        JobPathReport {
            jobs: found.jobs(),
            broken: found
                .broken()
                .iter()
                .map(|errors| JobXmlErrors::clone(errors))
                .collect(),
            other_roots: other_roots.collect(),
            unreadable: unreadable.collect(),
            directories: self.directories.clone(),
            replaced: found.replaced(),
        }
    }
}

// Spec: PATH-10, INH-15, INH-27
impl Library for JobPath {
    fn find(&self, id: &str) -> Vec<Arc<Document>> {
        let found = self.found();
        let same = found.documents().filter(|document| document.id().value == id);
        same.cloned().collect()
    }

    fn ids(&self, kind: RootKind) -> Vec<String> {
        let found = self.found();
        let same = found.documents().filter(|document| document.root_kind() == kind);
        same.map(|document| document.id().value.clone()).collect()
    }

    fn broken(&self, id: &str) -> Vec<Span> {
        let broken = self.found().broken();
        let likely = broken.iter().filter(|errors| may_be_of(errors, id));
        likely.filter_map(|errors| place_of(errors)).collect()
    }
}

/// Returns the place of the first mistake of a file.
fn place_of(errors: &JobXmlErrors) -> Option<Span> {
    errors.iter().next().map(|first| first.span.clone())
}

/// Returns whether the file with these mistakes may define an id. One that is not text, or only in part, may define any.
pub(crate) fn may_be_of(errors: &JobXmlErrors, id: &str) -> bool {
    let Some(place) = place_of(errors) else {
        return false;
    };
    let text = place.source().text();
    text.is_empty() || text.contains(char::REPLACEMENT_CHARACTER) || names(text, id)
}

/// Returns whether the text of the file with these mistakes contains an id.
pub(crate) fn contains_id(errors: &JobXmlErrors, id: &str) -> bool {
    place_of(errors).is_some_and(|place| names(place.source().text(), id))
}

/// Returns whether the id occurs in the text, other than as a part of a longer id.
fn names(text: &str, id: &str) -> bool {
    let is_of_id = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    text.match_indices(id).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + id.len()..]);
        !before.ends_with(is_of_id) && !after.starts_with(is_of_id)
    })
}

fn log_unreadable(directory: &Path, error: &str) {
    let directory = directory.display();
    tracing::warn!(%directory, error, "cannot read directory of the job path");
}

fn log_broken(name: &dyn Display, file: &JobFile) {
    if let JobFile::Broken(errors) = file {
        let mistakes = errors.iter().count();
        tracing::warn!(file = %name, mistakes, "invalid Job XML; `check` shows the mistakes");
    }
}

impl Found {
    /// Reads a file of a directory. A symbolic link may lead to another name in the directory, as in a Kubernetes volume, but not out of
    /// it: otherwise a message could show a line of any file.
    fn read(&mut self, path: &Path, directory: &Path, limits: &Limits, dialect: Option<Dialect>) {
        // A file reached by two paths is read once. Spec: PATH-08
        let target = fs::canonicalize(path);
        let key = target.as_ref().map_or_else(|_| path.to_owned(), Clone::clone);
        let earlier = self.files.get(&key);
        // A broken file may have been incomplete, and is read again.
        if earlier.is_some_and(|file| !matches!(file, JobFile::Broken(_))) {
            return;
        }
        let file = match target {
            Err(error) => unreadable(path, &format!("cannot read the file: {error}")),
            // Opening a FIFO or device could block forever.
            Ok(target) if !fs::metadata(&target).is_ok_and(|metadata| metadata.is_file()) => return,
            Ok(target) if !target.starts_with(directory) => {
                unreadable(path, "ignored: the symbolic link leads out of the directory")
            }
            Ok(_) => read_file(path, limits, dialect),
        };
        if self.logs_problems && earlier.is_none() {
            log_broken(&path.display(), &file);
        }
        self.files.insert(key, file);
    }

    /// Returns all files, also embedded ones that are not used.
    fn all(&self) -> impl Iterator<Item = &JobFile> {
        self.files.values().chain(&self.embedded)
    }

    fn ids_of_path(&self) -> HashSet<&str> {
        let documents = self.files.values().filter_map(JobFile::document);
        documents.map(|document| document.id().value.as_str()).collect()
    }

    /// Returns the embedded files, without those whose id a file of the job path has.
    // Spec: EMBED-02
    fn unreplaced(&self) -> impl Iterator<Item = &JobFile> {
        let ids = match self.embedded.is_empty() {
            true => HashSet::new(),
            false => self.ids_of_path(),
        };
        let is_replaced = move |document: &Arc<Document>| ids.contains(document.id().value.as_str());
        self.embedded
            .iter()
            .filter(move |file| !file.document().is_some_and(&is_replaced))
    }

    fn replaced(&self) -> BTreeSet<String> {
        let ids = self.ids_of_path();
        let embedded = self.embedded.iter().filter_map(JobFile::document);
        let embedded = embedded.map(|document| document.id().value.clone());
        embedded.filter(|id| ids.contains(id.as_str())).collect()
    }

    /// Returns the mistakes of a file of the job path that may be meant to replace an embedded document.
    // Spec: EMBED-02
    fn broken_replacement(&self, document: &Arc<Document>) -> Option<Arc<JobXmlErrors>> {
        let mut embedded = self.embedded.iter().filter_map(JobFile::document);
        if !embedded.any(|one| Arc::ptr_eq(one, document)) {
            return None;
        }
        let id = &document.id().value;
        let mut broken = self.files.values().filter_map(JobFile::errors);
        broken.find(|errors| may_be_of(errors, id)).cloned()
    }

    fn documents(&self) -> impl Iterator<Item = &Arc<Document>> {
        let files = self.files.values().chain(self.unreplaced());
        files.filter_map(JobFile::document)
    }

    fn jobs(&self) -> BTreeSet<String> {
        let startable =
            |document: &&Arc<Document>| document.root_kind() == RootKind::Job && !document.is_abstract();
        self.documents()
            .filter(startable)
            .map(|document| document.id().value.clone())
            .collect()
    }

    /// Returns the names of the files with a job, without `.xml`.
    fn job_files(&self) -> BTreeSet<String> {
        let jobs = self
            .documents()
            .filter(|document| document.root_kind() == RootKind::Job);
        let stem = |document: &Arc<Document>| {
            Some(
                Path::new(document.source().name())
                    .file_stem()?
                    .to_str()?
                    .to_owned(),
            )
        };
        jobs.filter_map(stem).collect()
    }

    fn broken(&self) -> Vec<Arc<JobXmlErrors>> {
        self.all().filter_map(JobFile::errors).cloned().collect()
    }
}

/// Returns the files of a directory with the extension `.xml`, sorted by name.
fn xml_files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "xml"));
    paths.sort();
    Ok(paths)
}

/// Reads the text of an XML file.
///
/// # Errors
/// When the file cannot be read, is too large, or cannot be decoded.
pub(crate) fn read_source(path: &Path, limits: &Limits) -> Result<Arc<Source>, JobXmlErrors> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    // One byte beyond the limit shows that the file is too large.
    let limit = u64::try_from(limits.file_bytes)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    // Opening a FIFO or device could block forever.
    let is_file = fs::metadata(path).and_then(|metadata| match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("not a regular file")),
    });
    let read = is_file.and_then(|()| File::open(path)?.take(limit).read_to_end(&mut bytes));
    if let Err(error) = read {
        let place = Span::new(&Source::new(name, ""), 0..0);
        let message = format!("cannot read the file: {error}");
        return Err(Diagnostic::error(UNREADABLE, message, place).into());
    }
    Source::from_bytes(name, &bytes, limits)
}

/// Returns the file with a message that it cannot be read.
fn unreadable(path: &Path, message: &str) -> JobFile {
    let place = Span::new(&Source::new(path.display().to_string(), ""), 0..0);
    JobFile::Broken(Arc::new(Diagnostic::error(UNREADABLE, message, place).into()))
}

fn read_file(path: &Path, limits: &Limits, dialect: Option<Dialect>) -> JobFile {
    match read_source(path, limits) {
        Ok(source) => parse(&source, limits, dialect),
        Err(errors) => JobFile::Broken(Arc::new(errors)),
    }
}

fn parse(source: &Arc<Source>, limits: &Limits, dialect: Option<Dialect>) -> JobFile {
    if let Some(root) = sniff_root(source).filter(|root| !ROOTS.contains(&root.as_str())) {
        tracing::debug!(
            file = source.name(),
            root,
            "ignored: not a root element of Job XML"
        );
        return JobFile::OtherRoot(source.name().to_owned(), root);
    }
    match batch_xml::parse_as(source, limits, dialect) {
        Ok(document) => JobFile::Document(Arc::new(document)),
        Err(errors) => JobFile::Broken(Arc::new(errors)),
    }
}
