//! The type of properties that name an output.

use std::fmt;
use std::path::{Component, Path, PathBuf, absolute};
use std::str::FromStr;

/// The path or URL of a file that an artifact writes, as the type of its `#[batch_property]`.
///
/// A relative path becomes absolute when the field is filled, so that a later change of the working directory does not move the output.
/// Two partitions whose artifacts have the same output are rejected before any partition runs.
///
/// ```
/// use batch_runtime::OutputPath;
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Report {
///     #[batch_property]
///     output: OutputPath,
/// }
///
/// let output: OutputPath = "out/report.csv".parse()?;
/// assert_eq!(output.to_string(), "out/report.csv");
/// assert!(output.path().is_absolute());
/// # Ok::<(), String>(())
/// ```
// Spec: LOSS-01, LOSS-03
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPath {
    text: String,
    path: PathBuf,
}

impl OutputPath {
    /// Returns the text of the property.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the absolute path; the text as it is if it is a URL, except `file://`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the output is at a URL, except `file://`.
    pub fn is_url(&self) -> bool {
        is_url(&self.text)
    }

    /// Returns what two outputs have in common if they are the same file, as far as its directories exist.
    pub(crate) fn identity(&self) -> PathBuf {
        if self.is_url() {
            return self.path.clone();
        }
        let mut real = PathBuf::new();
        for component in self.path.components() {
            match component {
                Component::CurDir => {}
                // Of a link, it is the parent of the directory that the link leads to.
                Component::ParentDir => {
                    real.pop();
                }
                other => real.push(other),
            }
            if let Ok(found) = real.canonicalize() {
                real = found;
            }
        }
        real
    }
}

/// The end of the name of a file that is being written.
const PART: &str = ".part";

fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme != "file" && scheme.len() > 1)
}

impl FromStr for OutputPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected a path".to_owned());
        }
        if text.ends_with(PART) {
            return Err(format!(
                "expected a path that does not end with `{PART}`: a file has such a name while it is written"
            ));
        }
        let path = match is_url(text) {
            true => PathBuf::from(text),
            false => absolute(text.strip_prefix("file://").unwrap_or(text))
                .map_err(|error| format!("expected a path: {error}"))?,
        };
        Ok(Self {
            text: text.to_owned(),
            path,
        })
    }
}

impl fmt::Display for OutputPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: LOSS-03
    #[test]
    fn names_of_one_file_are_equal() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let identity = |path: &str| {
            let path: OutputPath = format!("{}/{path}", root.display()).parse().unwrap();
            path.identity()
        };
        assert_eq!(identity("a/../b.csv"), identity("./b.csv"));
        assert_eq!(identity("new/a/b.csv"), identity("new/./a//b.csv"));
        #[cfg(unix)]
        {
            std::fs::create_dir_all(root.join("real/in")).unwrap();
            std::os::unix::fs::symlink(root.join("real/in"), root.join("deep")).unwrap();
            std::fs::write(root.join("real/c.csv"), "").unwrap();
            std::os::unix::fs::symlink(root.join("real/c.csv"), root.join("d.csv")).unwrap();
            assert_eq!(identity("link/b.csv"), identity("real/b.csv"));
            assert_eq!(identity("deep/../b.csv"), identity("real/b.csv"));
            assert_eq!(identity("d.csv"), identity("real/c.csv"));
        }
        assert_ne!(identity("a.csv"), identity("b.csv"));
    }

    // Spec: LOSS-03
    #[test]
    fn an_output_is_no_file_that_another_one_writes() {
        let rejected = "out/a.part".parse::<OutputPath>().unwrap_err();
        assert!(rejected.contains("does not end with `.part`"), "{rejected}");
        assert!("out/a.part.csv".parse::<OutputPath>().is_ok());
    }
}
