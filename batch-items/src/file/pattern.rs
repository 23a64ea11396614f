//! Files named by a path or a glob pattern, for readers, plans of partitions and batchlets alike.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

#[cfg(feature = "object-store")]
use glob::MatchOptions;
use glob::Pattern;

use super::url;
use crate::error::ResourceError;

/// As shells do: `*` matches no name that begins with a dot.
#[cfg(feature = "object-store")]
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// The suffix of a file that is being written.
const PART: &str = ".part";

/// A path, or a glob pattern with `*`, `**`, `?` or `[..]`. A path that exists is not read as a pattern.
///
/// A pattern matches regular files, and links to them. A wildcard matches no name that begins with a dot. A file that is being
/// written, `.part`, matches if the pattern ends with that. A link to nothing that matches is an error, and so is a link to a directory
/// where `**` looks for files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePattern(String);

impl FromStr for FilePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("expected a path, or a pattern such as `in/*.csv`".into());
        }
        let pattern = Self(text.to_owned());
        if !pattern.is_path() {
            Pattern::new(text).map_err(|error| format!("invalid pattern: {error}"))?;
            if text.contains("[^") {
                return Err("a set of other characters begins with `!`, such as `[!a]`".into());
            }
            if Path::new(text).ends_with("**") {
                return Err(
                    "`**` stands for directories; end the pattern with `**/*` for all files below".into(),
                );
            }
        }
        Ok(pattern)
    }
}

/// A file that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundFile {
    /// The path of the file.
    pub path: PathBuf,
    /// Its path below the directory of the pattern, which is the part before the first wildcard.
    pub relative: PathBuf,
}

/// Returns whether a pattern matches the key of an object, by the same rules.
#[cfg(feature = "object-store")]
pub(crate) fn matches_key(pattern: &Pattern, key: &str) -> bool {
    pattern.matches_with(key, OPTIONS) && !is_unfinished(pattern.as_str(), key)
}

/// Returns the pattern that matches a path alone. A URL stays as it is.
pub(crate) fn literal(path: &str) -> String {
    match url::split(path) {
        None => Pattern::escape(path),
        Some(_) => path.to_owned(),
    }
}

/// Returns whether a name belongs to a file that is being written, which the pattern does not ask for.
fn is_unfinished(pattern: &str, name: &str) -> bool {
    name.ends_with(PART) && !pattern.ends_with(PART)
}

impl FilePattern {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it names one file.
    pub fn is_path(&self) -> bool {
        !self.0.contains(['*', '?', '[']) || fs::symlink_metadata(&self.0).is_ok()
    }

    /// Returns the existing regular files, sorted.
    ///
    /// # Errors
    /// When the path is not a regular file, or a directory cannot be read.
    pub fn files(&self) -> Result<Vec<FoundFile>, ResourceError> {
        if self.is_path() {
            let found = self.file(Path::new(&self.0));
            return found.map_err(|error| ResourceError::new(format!("take {} as a file", self.0), error));
        }
        let found = self.matches();
        found.map_err(|error| ResourceError::new(format!("list {}", self.0), error))
    }

    /// Returns the files that match the pattern, sorted.
    pub fn matches(&self) -> io::Result<Vec<FoundFile>> {
        let (pattern, mut paths) = (Path::new(&self.0), Vec::new());
        let components: Vec<Component<'_>> = pattern.components().filter(is_name).collect();
        walk(Path::new(""), &components, &mut paths)?;
        let base = base_of(pattern);
        let mut found = Vec::new();
        for path in paths {
            if !is_unfinished(&self.0, &path.to_string_lossy()) && kind(&path)? == Some(Kind::File) {
                let relative = path.strip_prefix(&base).unwrap_or(&path).to_owned();
                found.push(FoundFile { path, relative });
            }
        }
        found.sort();
        Ok(found)
    }

    fn file(&self, path: &Path) -> io::Result<Vec<FoundFile>> {
        match kind(path)? {
            None => return Ok(Vec::new()),
            Some(Kind::File) => {}
            Some(Kind::Directory) => {
                return Err(io::Error::other(format!(
                    "it is a directory; name its files, for example `{}`",
                    path.join("*").display()
                )));
            }
            Some(Kind::Special) => return Err(io::Error::other("it is not a regular file")),
        }
        let relative = path.file_name().map_or_else(|| path.to_owned(), PathBuf::from);
        let path = path.to_owned();
        Ok(vec![FoundFile { path, relative }])
    }
}

/// Adds the paths in a folder that match the components of a pattern.
///
/// The `glob` crate does not, because it passes over every name that begins with a dot, or none, and panics at a name that is not Unicode.
fn walk(folder: &Path, components: &[Component<'_>], found: &mut Vec<PathBuf>) -> io::Result<()> {
    let Some((first, rest)) = components.split_first() else {
        found.push(folder.to_owned());
        return Ok(());
    };
    let text = first.as_os_str().to_string_lossy();
    if !text.contains(['*', '?', '[']) {
        return walk(&folder.join(first), rest, found);
    }
    let is_deep = text == "**";
    if is_deep {
        walk(folder, rest, found)?;
    }
    let pattern = Pattern::new(&text).map_err(io::Error::other)?;
    for name in names_in(folder)? {
        let (path, shown) = (folder.join(&name), name.to_string_lossy());
        if shown.starts_with('.') && !text.starts_with('.') {
            continue;
        }
        if is_deep {
            if kind(&path)? == Some(Kind::Directory) {
                check_no_link(&path)?;
                walk(&path, components, found)?;
            }
            continue;
        }
        if pattern.matches(&shown) && (rest.is_empty() || kind(&path)? == Some(Kind::Directory)) {
            if name.to_str().is_none() {
                let cause = format!(
                    "the name {name:?} in `{}` is not Unicode; rename the file",
                    folder.display()
                );
                return Err(io::Error::other(cause));
            }
            walk(&path, rest, found)?;
        }
    }
    Ok(())
}

/// Fails for a link to a directory: its files would be found twice, or never, if it leads to a directory that `**` visits.
fn check_no_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_symlink() {
        false => Ok(()),
        true => Err(io::Error::other(format!(
            "`**` does not follow `{}`, a link to a directory; name its files by a pattern without `**`, or move it away",
            path.display()
        ))),
    }
}

/// Returns the names in a folder; none if there is no such folder.
fn names_in(folder: &Path) -> io::Result<Vec<OsString>> {
    let is_current = folder.as_os_str().is_empty();
    let names = fs::read_dir(if is_current { Path::new(".") } else { folder })
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    match names {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(Vec::new())
        }
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!("`{}`: {error}", folder.display()),
        )),
        names => names,
    }
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    /// A pipe or a device. Reading a pipe could wait forever.
    Special,
}

/// Returns what a path leads to, if it exists.
///
/// # Errors
/// If it is a link to nothing: the file that should be there is missing.
pub(crate) fn kind(path: &Path) -> io::Result<Option<Kind>> {
    match fs::metadata(path) {
        Ok(data) if data.is_file() => Ok(Some(Kind::File)),
        Ok(data) if data.is_dir() => Ok(Some(Kind::Directory)),
        Ok(_) => Ok(Some(Kind::Special)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("`{}` is a link to a file that does not exist", path.display()),
            )),
            Err(_) => Ok(None),
        },
        Err(error) => Err(error),
    }
}

/// Returns the part of a pattern before its first component with a wildcard.
fn base_of(pattern: &Path) -> PathBuf {
    let has_wildcard = |component: &Component<'_>| {
        let text = component.as_os_str().to_string_lossy();
        text.contains(['*', '?', '['])
    };
    pattern
        .components()
        .filter(is_name)
        .take_while(|component| !has_wildcard(component))
        .collect()
}

fn is_name(component: &Component<'_>) -> bool {
    *component != Component::CurDir
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(folder: &Path, pattern: &str, expected: &[&str]) {
        let pattern: FilePattern = folder.join(pattern).display().to_string().parse().unwrap();
        let found = pattern.files().unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|file| file.relative.display().to_string())
            .collect();
        assert_eq!(found, expected, "{}", pattern.as_str());
    }

    // Spec: INPUT-05
    #[test]
    fn files_keep_their_path_below_the_wildcard() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "b.csv",
            "a.csv",
            "a.txt",
            ".hidden.csv",
            ".git/f.csv",
            "sub/.git/g.csv",
            "a.csv.part",
            "sub/c.csv",
            "sub/sub/d.csv",
            "e[1].csv",
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        check(folder.path(), "a.csv", &["a.csv"]);
        check(folder.path(), "missing.csv", &[]);
        check(folder.path(), "sub/c.csv", &["c.csv"]);
        check(folder.path(), "[ab].csv", &["a.csv", "b.csv"]);
        check(folder.path(), "*", &["a.csv", "a.txt", "b.csv", "e[1].csv"]);
        check(folder.path(), "*.part", &["a.csv.part"]);
        check(folder.path(), ".*.csv", &[".hidden.csv"]);
        check(folder.path(), ".*/*.csv", &[".git/f.csv"]);
        check(folder.path(), "*/*.csv", &["sub/c.csv"]);
        check(
            folder.path(),
            "**/*.csv",
            &["a.csv", "b.csv", "e[1].csv", "sub/c.csv", "sub/sub/d.csv"],
        );
        // The name of a file that exists, not a pattern.
        check(folder.path(), "e[1].csv", &["e[1].csv"]);
    }

    #[test]
    #[cfg(unix)]
    fn only_regular_files_are_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let pattern: FilePattern = path.parse().unwrap();
        let error = pattern.files().unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "cannot take {path} as a file: it is a directory; name its files, for example `{path}/*`"
            )
        );
    }

    // Spec: INPUT-05
    #[test]
    fn the_pattern_of_a_path_matches_it_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("x1"), "").unwrap();
        let pattern: FilePattern = literal(&path("x[1]")).parse().unwrap();
        assert_eq!(pattern.files().unwrap(), []);
        fs::write(path("x[1]"), "").unwrap();
        assert_eq!(pattern.files().unwrap()[0].path, folder.path().join("x[1]"));
    }

    // Spec: INPUT-05
    #[test]
    #[cfg(unix)]
    fn a_link_to_nothing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("a.csv");
        std::os::unix::fs::symlink("absent", &link).unwrap();
        for name in ["a.csv", "*.csv"] {
            let pattern: FilePattern = folder.path().join(name).display().to_string().parse().unwrap();
            let error = pattern.files().unwrap_err().to_string();
            let expected = format!("`{}` is a link to a file that does not exist", link.display());
            assert!(error.ends_with(&expected), "{error}");
        }
        fs::write(folder.path().join("absent"), "").unwrap();
        check(folder.path(), "*.csv", &["a.csv"]);
    }

    // Spec: INPUT-05
    #[test]
    #[cfg(unix)]
    fn links_to_directories_are_not_followed_by_two_stars() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("real")).unwrap();
        fs::write(folder.path().join("real/a.csv"), "").unwrap();
        symlink("real", folder.path().join("link")).unwrap();
        check(folder.path(), "link/*.csv", &["a.csv"]);
        check(folder.path(), "*/*.csv", &["link/a.csv", "real/a.csv"]);
        let error_of = |name: &str| {
            let pattern: FilePattern = folder.path().join(name).display().to_string().parse().unwrap();
            pattern.files().unwrap_err().to_string()
        };
        let error = error_of("**/*.csv");
        assert!(error.contains("a link to a directory"), "{error}");
        symlink("absent", folder.path().join("none")).unwrap();
        let error = error_of("*/*.csv");
        assert!(
            error.contains("is a link to a file that does not exist"),
            "{error}"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_name_that_is_not_unicode_is_an_error() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"\xFF.csv")), "").unwrap();
        let pattern: FilePattern = folder.path().join("*.csv").display().to_string().parse().unwrap();
        let error = pattern.files().unwrap_err().to_string();
        assert!(
            error.contains("the name \"\\xFF.csv\" in `")
                && error.ends_with("is not Unicode; rename the file"),
            "{error}"
        );
        check(folder.path(), "*.txt", &[]);
    }

    #[test]
    fn mistakes_are_reported() {
        for text in ["", " ", "in/[a", "in/***", "in/[^a].csv", "in/**"] {
            assert!(text.parse::<FilePattern>().is_err(), "{text}");
        }
    }
}
