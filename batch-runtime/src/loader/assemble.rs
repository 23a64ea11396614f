//! Combines the registered artifacts, the batch.xml files of a program, and the preferred loader.
// Spec: LOADER-03, LOADER-06, LOADER-09 to LOADER-15, PKG-02, D-64

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt, fs};

use batch_xml::{BatchXml, Diagnostic, JobXmlErrors, Limits, Source, Spanned};

use super::artifacts::{AMBIGUOUS, Artifacts, LOADER_FAILED, UNKNOWN_CLASS, class_help, loader_error};
use crate::artifact::{BatchArtifactLoader, LoadedArtifact, linked};
use crate::engine::call;
use crate::error::BatchError;
use crate::job_path::read_source;

/// There are two preferred loaders.
const TWO_LOADERS: &str = "ART0022";

/// The sources of artifacts in addition to the registered ones.
#[derive(Clone, Default)]
pub(crate) struct ArtifactSources {
    /// Embedded batch.xml files: name and text.
    pub(crate) embedded: Vec<(String, String)>,
    /// The preferred loader set by the program.
    pub(crate) loader: Option<Arc<dyn BatchArtifactLoader>>,
    /// Called before the preferred loader.
    pub(crate) replacements: Option<Arc<dyn BatchArtifactLoader>>,
}

impl fmt::Debug for ArtifactSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.embedded.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ArtifactSources")
            .field("batch_xml", &names)
            .field("loader", &self.loader.is_some())
            .finish()
    }
}

impl Artifacts {
    /// Combines the registered artifacts and `sources`. `classpath` lists the directories of batch.xml.
    ///
    /// # Errors
    /// All mistakes of the batch.xml files; an unknown or second loader, or one that cannot be created.
    // Spec: LOADER-02, LOADER-09, PKG-02
    pub(crate) fn assemble(sources: ArtifactSources, classpath: Option<&str>) -> Result<Self, JobXmlErrors> {
        let batch_xml = read(&sources.embedded, &directories(classpath))?;
        let preferred = match (sources.loader, batch_xml.loader) {
            (Some(loader), None) => Some(loader),
            (None, Some(class)) => Some(named_loader(&class)?),
            (Some(_), Some(class)) => return Err(second_loader(&class).into()),
            (None, None) => None,
        };
        let preferred = match sources.replacements {
            Some(replacements) => Some(Arc::new(Replacing(replacements, preferred)) as _),
            None => preferred,
        };
        // The order of the linker is arbitrary.
        let mut all: Vec<_> = linked::artifacts().collect();
        all.sort_by_key(|one| (one.file, one.line, one.class));
        let entries = batch_xml.artifacts.into_iter();
        Ok(Self {
            all,
            preferred,
            warnings: batch_xml.warnings,
            mapped: entries.map(|entry| (entry.id.value.clone(), entry)).collect(),
        })
    }
}

/// Calls the first loader, and then the second one.
struct Replacing(Arc<dyn BatchArtifactLoader>, Option<Arc<dyn BatchArtifactLoader>>);

impl BatchArtifactLoader for Replacing {
    fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
        match (self.0.load(reference)?, &self.1) {
            (None, Some(preferred)) => preferred.load(reference),
            (replacement, _) => Ok(replacement),
        }
    }
}

/// Returns the directories that may contain `META-INF/batch.xml`.
// Spec: PKG-02, D-64
fn directories(classpath: Option<&str>) -> Vec<PathBuf> {
    match classpath {
        Some(list) => {
            let directories: Vec<PathBuf> = env::split_paths(list).collect();
            for missing in directories
                .iter()
                .filter(|path| !path.as_os_str().is_empty() && !path.is_dir())
            {
                tracing::warn!(directory = %missing.display(), "`batch.classpath` lists a directory that does not exist");
            }
            directories
        }
        None => {
            let executable = env::current_exe().ok();
            let beside = executable.as_deref().and_then(Path::parent).map(Path::to_owned);
            [PathBuf::new()].into_iter().chain(beside).collect()
        }
    }
}

/// Reads all files, even if one of them fails.
fn read(embedded: &[(String, String)], directories: &[PathBuf]) -> Result<BatchXml, JobXmlErrors> {
    let limits = Limits::default();
    let mut sources: Vec<_> = embedded
        .iter()
        .map(|(name, text)| Source::new(name, text))
        .collect();
    let mut unreadable = Vec::new();
    let mut seen = BTreeSet::new();
    for directory in directories {
        let path = directory.join("META-INF").join("batch.xml");
        // The file is optional. Spec: LOADER-09
        let absent = [ErrorKind::NotFound, ErrorKind::NotADirectory];
        if fs::metadata(&path).is_err_and(|error| absent.contains(&error.kind())) {
            continue;
        }
        // A file reached by two paths is read once.
        if fs::canonicalize(&path).is_ok_and(|path| !seen.insert(path)) {
            continue;
        }
        match read_source(&path, &limits) {
            Ok(source) => sources.push(source),
            Err(errors) => unreadable.extend(errors.into_inner()),
        }
    }
    match (BatchXml::read(&sources, &limits), unreadable.is_empty()) {
        (result, true) => result,
        (result, false) => {
            let wrong = result.err().map(JobXmlErrors::into_inner).unwrap_or_default();
            Err(unreadable.into_iter().chain(wrong).collect::<Vec<_>>().into())
        }
    }
}

/// Creates the `#[artifact_loader]` of that class.
// Spec: LOADER-06, LOADER-10, LOADER-15
fn named_loader(class: &Spanned<String>) -> Result<Arc<dyn BatchArtifactLoader>, JobXmlErrors> {
    let name = class.value.as_str();
    let of_class: Vec<_> = linked::loaders()
        .filter(|loader| loader.class == name || loader.declared_class == Some(name))
        .collect();
    let wrong = |code, message: String| Diagnostic::error(code, message, class.span.clone());
    let diagnostic = match of_class.as_slice() {
        [loader] => match call(|| Ok((loader.make)())) {
            Ok(loader) => return Ok(loader),
            Err(panic) => wrong(
                LOADER_FAILED,
                format!("cannot create the artifact loader `{name}`"),
            )
            .label(loader_error(&panic))
            .help(format!(
                "its `Default` failed, see {}:{}",
                loader.file, loader.line
            )),
        },
        [] => {
            let known = linked::loaders().map(|loader| (loader.class, loader.declared_class));
            let help = class_help(name, known);
            let stop = if help.ends_with('?') { "" } else { "." };
            wrong(UNKNOWN_CLASS, format!("no artifact loader has the class `{name}`"))
                .label("unknown loader")
                .help(format!(
                    "{help}{stop} `#[artifact_loader]` on `impl BatchArtifactLoader for ..` registers a loader, if \
                     the program names its crate"
                ))
        }
        several => {
            let places: Vec<String> = several
                .iter()
                .map(|one| format!("{}:{}", one.file, one.line))
                .collect();
            wrong(AMBIGUOUS, format!("artifact loader class `{name}` is ambiguous"))
                .label("several artifact loaders match")
                .help(format!(
                    "give one of them another class: {}",
                    places.join(" and ")
                ))
        }
    };
    Err(diagnostic.into())
}

fn second_loader(class: &Spanned<String>) -> Diagnostic {
    let message = format!("`{}` is a second preferred loader", class.value);
    Diagnostic::error(TWO_LOADERS, message, class.span.clone())
        .label("only one is allowed")
        .help("the program sets one by `artifact_loader(..)`; remove one of them")
}
