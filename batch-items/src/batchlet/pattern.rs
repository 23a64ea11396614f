//! Files named by a path or a glob pattern.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use glob::{MatchOptions, glob_with};

use crate::error::ResourceError;

/// As shells do: `*` matches no file that begins with a dot.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// A path, or a glob pattern with `*`, `**`, `?` or `[..]`. A path that exists is not read as a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePattern(String);

impl FromStr for FilePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("expected a path, or a pattern such as `in/*.csv`".into());
        }
        glob::Pattern::new(text).map_err(|error| format!("invalid pattern: {error}"))?;
        Ok(Self(text.to_owned()))
    }
}

/// A file that a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FoundFile {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// Its path below the directory of the pattern, which is the part before the first wildcard.
    pub(crate) relative: PathBuf,
}

impl FilePattern {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it names one file.
    pub(crate) fn is_path(&self) -> bool {
        !self.0.contains(['*', '?', '[']) || fs::symlink_metadata(&self.0).is_ok()
    }

    /// Returns the existing regular files, sorted.
    ///
    /// # Errors
    /// When the path is not a regular file, or a directory cannot be read.
    pub(crate) fn files(&self) -> Result<Vec<FoundFile>, ResourceError> {
        let path = Path::new(&self.0);
        if self.is_path() {
            return self.file(path);
        }
        let failed = |error: io::Error| ResourceError::new(format!("list {}", self.0), error);
        let paths = glob_with(&self.0, OPTIONS).map_err(|error| failed(io::Error::other(error)))?;
        let base = base_of(path);
        let mut found = Vec::new();
        for path in paths {
            let path = path.map_err(|error| failed(error.into()))?;
            if !is_special(&path) {
                // A pattern that begins with `./` has matches that do not.
                let plain: PathBuf = path.components().filter(is_name).collect();
                let relative = plain.strip_prefix(&base).unwrap_or(&plain).to_owned();
                found.push(FoundFile { path, relative });
            }
        }
        found.sort();
        Ok(found)
    }

    fn file(&self, path: &Path) -> Result<Vec<FoundFile>, ResourceError> {
        let found = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => Err(error),
            Ok(_) if path.is_dir() => Err(io::Error::other(format!(
                "it is a directory; name its files, for example `{}`",
                path.join("*").display()
            ))),
            Ok(_) if is_special(path) => Err(io::Error::other("it is not a regular file")),
            Ok(_) => Ok(()),
        };
        found.map_err(|error| ResourceError::new(format!("take {} as a file", self.0), error))?;
        let relative = path.file_name().map_or_else(|| path.to_owned(), PathBuf::from);
        let path = path.to_owned();
        Ok(vec![FoundFile { path, relative }])
    }
}

/// Returns whether a path is a directory, a pipe or a device. Reading a pipe could wait forever.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file())
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

    #[test]
    fn files_keep_their_path_below_the_wildcard() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "b.csv",
            "a.csv",
            "a.txt",
            ".hidden.csv",
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

    #[test]
    fn mistakes_are_reported() {
        for text in ["", " ", "in/[a", "in/***"] {
            assert!(text.parse::<FilePattern>().is_err(), "{text}");
        }
    }
}
