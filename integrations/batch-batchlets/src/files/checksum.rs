//! SHA-256 checksums in the format of `sha256sum`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use batch_runtime::prelude::*;
use sha2::{Digest, Sha256};

use super::task::{Decision, IfExists, IfMissing, Target, Task};
use crate::publish::{directory_of, publish};
use batch_items::ResourceError;
use batch_items::file::{FoundFile, Whole, read_text};

/// The suffix of a checksum file for one file.
const SUFFIX: &str = ".sha256";
/// The number of files that an error lists.
const LISTED: usize = 5;

/// Writes the checksums of all files: into `target`, or each into a file beside its own. Returns the number of files.
pub(super) fn write(task: &Task, target: Option<&Target>, if_exists: IfExists) -> Result<usize, BatchError> {
    let mut files = task.files(IfMissing::Fail)?;
    let Some(Target(list)) = target else {
        // A pattern may match the checksum files too.
        files.retain(|file| !file.path.to_string_lossy().ends_with(SUFFIX));
        task.reads(files.iter().map(|file| file.path.as_path()));
        let mut written = 0;
        for file in files {
            let mut list = file.path.clone().into_os_string();
            list.push(SUFFIX);
            written += write_list(task, &[file], Path::new(&list), if_exists)?;
        }
        return Ok(written);
    };
    let is_list = |file: &FoundFile| std::path::absolute(&file.path).ok() == std::path::absolute(list).ok();
    files.retain(|file| !is_list(file));
    task.reads(files.iter().map(|file| file.path.as_path()));
    match files.is_empty() {
        true => Ok(0),
        false => write_list(task, &files, list, if_exists),
    }
}

fn write_list(
    task: &Task,
    files: &[FoundFile],
    list: &Path,
    if_exists: IfExists,
) -> Result<usize, BatchError> {
    let mut text = String::new();
    for file in files {
        let failed =
            |error| ResourceError::new(format!("compute the checksum of {}", file.path.display()), error);
        let sum = checksum(task, &file.path).map_err(failed)?;
        let name = name_in(list, &file.path).map_err(failed)?;
        text.push_str(&line(&sum, &name));
    }
    task.writes(task.resource.as_str(), [list].into_iter());
    let written = if_exists
        .decide(list, || Ok(fs::read(list)? == text.as_bytes()))
        .and_then(|decision| match decision {
            Decision::Write => {
                publish(list, task.instance(), |file| file.write_all(text.as_bytes())).map(|()| true)
            }
            Decision::Done => Ok(true),
            Decision::Skip => Ok(false),
        })
        .map_err(|error| ResourceError::new(format!("write the checksums {}", list.display()), error))?;
    Ok(if written { files.len() } else { 0 })
}

/// Verifies the files of checksum files. Returns their number.
pub(super) fn verify(task: &Task) -> Result<usize, BatchError> {
    let mut verified = 0;
    for list in task.files(IfMissing::Fail)? {
        let list = list.path;
        let text = read_text(&list)
            .map_err(|error| ResourceError::new(format!("read the checksums {}", list.display()), error))?;
        let (mut wrong, mut files) = (Vec::new(), vec![list.clone()]);
        for (index, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let number = index + 1;
            let (expected, name) = parse(line).ok_or_else(|| {
                BatchError::msg(format!(
                    "{}:{number} is not a line of `sha256sum`",
                    list.display()
                ))
            })?;
            verified += 1;
            let file = directory_of(&list).join(&name);
            let found = checksum(task, &file);
            files.push(file);
            match found {
                Ok(sum) if sum == expected => {}
                Ok(_) => wrong.push(format!("`{name}` has another checksum (line {number})")),
                Err(error) => {
                    task.proceed()?;
                    wrong.push(format!("`{name}`: {error} (line {number})"));
                }
            }
        }
        task.reads(files.iter().map(PathBuf::as_path));
        if !wrong.is_empty() {
            return Err(BatchError::msg(not_verified(&list, &wrong)));
        }
        if files.len() == 1 {
            return Err(BatchError::msg(format!("{} has no checksums", list.display())));
        }
    }
    Ok(verified)
}

fn not_verified(list: &Path, wrong: &[String]) -> String {
    let more = match wrong.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let listed = wrong[..wrong.len().min(LISTED)].join(", ");
    format!("files do not match {}: {listed}{more}", list.display())
}

/// Returns the checksum in hexadecimal digits.
fn checksum(task: &Task, path: &Path) -> io::Result<String> {
    let mut hasher = Hasher(Sha256::new());
    task.copy(&mut Whole::open(path)?, &mut hasher)?;
    let digest = hasher.0.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

struct Hasher(Sha256);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the name of a file in a checksum file: relative to the directory of the latter if it is below it.
fn name_in(list: &Path, file: &Path) -> io::Result<String> {
    let (directory, file) = (
        std::path::absolute(directory_of(list))?,
        std::path::absolute(file)?,
    );
    let name: PathBuf = file
        .strip_prefix(directory)
        .map_or_else(|_| file.clone(), Path::to_owned);
    let name = name.into_os_string().into_string();
    name.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "its name is not UTF-8"))
}

/// Returns a line as `sha256sum` writes it: a backslash at its beginning says that the name has escapes.
fn line(sum: &str, name: &str) -> String {
    if !name.contains(['\\', '\n', '\r']) {
        return format!("{sum}  {name}\n");
    }
    let name = name
        .replace('\\', r"\\")
        .replace('\n', r"\n")
        .replace('\r', r"\r");
    format!("\\{sum}  {name}\n")
}

/// Returns the checksum and the name in a line.
fn parse(line: &str) -> Option<(String, String)> {
    let (escaped, line) = line.strip_prefix('\\').map_or((false, line), |line| (true, line));
    let (sum, name) = line.split_once(' ')?;
    // The second character is `*` for a file that was read in binary mode.
    let name = name.strip_prefix([' ', '*'])?;
    if sum.len() != 64 || !sum.bytes().all(|digit| digit.is_ascii_hexdigit()) || name.is_empty() {
        return None;
    }
    let name = match escaped {
        true => unescaped(name)?,
        false => name.to_owned(),
    };
    Some((sum.to_ascii_lowercase(), name))
}

fn unescaped(name: &str) -> Option<String> {
    let mut characters = name.chars();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                'r' => '\r',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_sha256sum() {
        let sum = "a".repeat(64);
        for (name, expected) in [
            ("a b.csv", format!("{sum}  a b.csv\n")),
            ("a\\b\nc", format!("\\{sum}  a\\\\b\\nc\n")),
        ] {
            assert_eq!(line(&sum, name), expected);
            assert_eq!(parse(expected.trim_end()), Some((sum.clone(), name.to_owned())));
        }
        let upper = format!("{} *a.csv", sum.to_uppercase());
        assert_eq!(parse(&upper), Some((sum.clone(), "a.csv".into())));
        for wrong in [
            "",
            "a.csv",
            &sum,
            &format!("{sum} a"),
            &format!("{sum}  "),
            "abc  a.csv",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
