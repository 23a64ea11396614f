//! The fingerprint of a file, which a restart compares with the file that it finds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::choices;

/// The size, age and beginning of a file: a restart recognises it by them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<u64>,
    /// The CRC-32 of the first 4 KiB.
    pub head: u32,
    /// The entity tag of an object, which identifies its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// The length of the beginning that is compared.
pub(crate) const HEAD: u64 = 4096;

/// What a restart does with a file that has changed since its checkpoint: the property `if.changed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfChanged {
    /// `fail`: the step fails. The default.
    #[default]
    Fail,
    /// `resume`: reading continues at the position of the checkpoint, for a file in which a bad record was corrected after the
    /// position. If the position is after the first 4 KiB of an uncompressed file, these must be unchanged. Earlier files may have
    /// changed, but are not read again.
    Resume,
}

/// Returns the change of one of these files, which were read to their end, with the times of their last change.
pub(crate) fn change_of_finished(files: &[(Option<u64>, impl fmt::Display)]) -> String {
    /// The most files that are named.
    const NAMED: usize = 3;
    const REMEDY: &str =
        "its changes would not be read; to accept that, launch again with `-if.changed=resume`";
    if files.len() == 1 {
        return format!("it was read before the checkpoint and has changed since; {REMEDY}");
    }
    // Several, because an object store knows the time to the second only.
    let last = files.iter().map(|(modified, _)| *modified).max().flatten();
    let latest = files.iter().filter(|(modified, _)| *modified == last);
    let mut names: Vec<_> = latest.map(|(_, file)| format!("`{file}`")).collect();
    if names.len() > NAMED {
        names.truncate(NAMED);
        names.push("another one".into());
    }
    format!(
        "one of the {} files that were read before the checkpoint has changed since, most recently {}; {REMEDY}",
        files.len(),
        names.join(" or ")
    )
}

choices! {
    IfChanged { "fail" => Fail, "resume" => Resume }
}

impl Fingerprint {
    /// Returns `crc`, the CRC-32 of the fingerprints of the earlier files, extended by this fingerprint. An entity tag replaces the
    /// checksum of the beginning, which would need another request.
    pub(crate) fn append_to(&self, crc: u32) -> u32 {
        let mut sum = crc32fast::Hasher::new_with_initial(crc);
        sum.update(&self.size.to_le_bytes());
        sum.update(&self.modified.unwrap_or_default().to_le_bytes());
        match &self.etag {
            Some(etag) => {
                sum.update(etag.as_bytes());
                sum.update(b"\0");
            }
            None => sum.update(&self.head.to_le_bytes()),
        }
        sum.finalize()
    }

    /// Returns how the file has changed, if reading cannot resume, at `byte` if positions count bytes of the file.
    pub(crate) fn change_since(&self, earlier: &Self, rule: IfChanged, byte: Option<u64>) -> Option<String> {
        const REMEDY: &str = "if only what follows the last committed record was corrected, launch again with `-if.changed=resume`";
        let size = || format!("its size was {} and is {}", earlier.size, self.size);
        match rule {
            IfChanged::Resume => match byte {
                Some(byte) if self.size < byte => Some(format!(
                    "it ends before byte {byte}, where reading has to resume: {}",
                    size()
                )),
                Some(byte) if byte >= HEAD && self.head != earlier.head => {
                    Some("its beginning has changed since the checkpoint".to_owned())
                }
                _ => None,
            },
            IfChanged::Fail if self.size != earlier.size => Some(format!(
                "it has changed since the checkpoint: {}; {REMEDY}",
                size()
            )),
            IfChanged::Fail => {
                let changed = [
                    (self.head != earlier.head, "beginning"),
                    (self.modified != earlier.modified, "time of modification"),
                    (self.etag != earlier.etag, "ETag"),
                ];
                let what = changed.into_iter().find(|(is_changed, _)| *is_changed);
                what.map(|(_, what)| {
                    format!("it has changed since the checkpoint: its {what} is another, its size is the same; {REMEDY}")
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::change_of_finished;

    // Spec: INPUT-24
    #[test]
    fn a_few_of_the_latest_files_are_named() {
        let of = |files: &[(Option<u64>, u8)]| change_of_finished(files);
        let named = of(&[(Some(1), 1), (Some(2), 2), (None, 3)]);
        assert!(
            named.starts_with("one of the 3 files that were read before the checkpoint"),
            "{named}"
        );
        assert!(named.contains("most recently `2`; "), "{named}");
        let named = of(&[(None, 1), (None, 2), (None, 3), (None, 4)]);
        assert!(
            named.contains("most recently `1` or `2` or `3` or another one; "),
            "{named}"
        );
    }
}
