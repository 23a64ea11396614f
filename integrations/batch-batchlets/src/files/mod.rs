//! `copyFiles`, `moveFiles`, `deleteFiles`, `compressFiles`, `checksumFiles`: work on files that a path or a pattern names.

mod checksum;
mod format;
mod plan;
mod task;
mod transfer;

use std::fs;
use std::io;

use batch_runtime::prelude::*;

use self::format::Format;
use self::task::{IfExists, IfMissing, Target, Task};
use self::transfer::{Action, Transfer};
use batch_items::ResourceError;
use batch_items::choices;

/// Copies files. In Job XML: `copyFiles`.
///
/// ```xml
/// <step id="publish">
///   <batchlet ref="copyFiles">
///     <properties>
///       <property name="resource" value="reports/**/*.pdf"/>
///       <property name="target" value="/srv/reports/"/>
///       <property name="if.exists" value="overwrite"/>
///     </properties>
///   </batchlet>
/// </step>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `resource` | required | a path, or a pattern with `*`, `?`, `[..]`, and `**` for directories of any depth |
/// | `target` | required | a directory, if it ends with `/`, exists as a directory, or `resource` is a pattern; else the new file |
/// | `if.exists` | `fail` | for a target that exists with another content: `fail`, `overwrite`, or `skip` |
/// | `if.missing` | `fail` | if no file matches: `fail`, or `ignore` |
///
/// Files keep their path below the first directory of the pattern that has a wildcard: `reports/**/*.pdf` copies
/// `reports/2026/may.pdf` to `/srv/reports/2026/may.pdf`. Directories are created. Patterns do not match files that begin with a dot.
///
/// A copy has a temporary name, `.NAME.INSTANCE.part`, until it is complete, and keeps permissions and time of modification. A
/// target with the same content counts as copied. So a step that failed or was killed can be restarted, with the same result.
///
/// The exit description is the number of files, such as `3 files`. After a stop the exit status is `STOPPED`.
#[derive(BatchArtifact)]
pub struct CopyFiles {
    #[batch_artifact]
    task: Task,
    #[batch_property(name = "target")]
    target: Target,
    #[batch_property(name = "if.exists", value = "fail")]
    if_exists: IfExists,
}

#[batchlet("copyFiles")]
impl CopyFiles {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let transfer = Transfer {
            task: &self.task,
            action: Action::Copy,
            target: Some(&self.target),
            if_exists: self.if_exists,
        };
        transfer.run()
    }

    #[cancel]
    fn cancel(&self) {
        self.task.cancel.request();
    }
}

/// Moves files, also between file systems. In Job XML: `moveFiles`.
///
/// ```xml
/// <step id="archive">
///   <batchlet ref="moveFiles">
///     <properties>
///       <property name="resource" value="in/*.csv"/>
///       <property name="target" value="archive/"/>
///     </properties>
///   </batchlet>
/// </step>
/// ```
///
/// It has the properties of [`CopyFiles`].
///
/// Between file systems a file is copied, under a temporary name, and then deleted. Before the first file is moved, the list
/// of files is stored in the target directory, in a hidden file `.moved-..` that the next job instance replaces. By it, a restart after
/// a kill recognises what is moved already, and has the exit status of an undisturbed run.
#[derive(BatchArtifact)]
pub struct MoveFiles {
    #[batch_artifact]
    task: Task,
    /// A directory, if it ends with `/`, exists as a directory, or `resource` is a pattern; else the new file.
    #[batch_property(name = "target")]
    target: Target,
    /// For a target that exists with another content: `fail`, `overwrite`, or `skip`.
    #[batch_property(name = "if.exists", value = "fail")]
    if_exists: IfExists,
}

#[batchlet("moveFiles")]
impl MoveFiles {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let transfer = Transfer {
            task: &self.task,
            action: Action::Move,
            target: Some(&self.target),
            if_exists: self.if_exists,
        };
        transfer.run()
    }

    #[cancel]
    fn cancel(&self) {
        self.task.cancel.request();
    }
}

/// Compresses files, and keeps the originals. In Job XML: `compressFiles`.
///
/// ```xml
/// <step id="compress">
///   <batchlet ref="compressFiles">
///     <properties><property name="resource" value="out/*.csv"/></properties>
///   </batchlet>
/// </step>
/// ```
///
/// It has the properties of [`CopyFiles`], except:
///
/// | property | default | meaning |
/// |---|---|---|
/// | `target` | beside each file | a directory or file, as for [`CopyFiles`] |
/// | `format` | `gzip` | `gzip` (`.gz`), or `zstd` (`.zst`) with the feature `zstd` of this crate |
///
/// If the targets are beside the files, a pattern skips those that end with the suffix of the format. A step with [`DeleteFiles`] deletes the originals.
#[derive(BatchArtifact)]
pub struct CompressFiles {
    #[batch_artifact]
    task: Task,
    #[batch_property(name = "target")]
    target: Option<Target>,
    #[batch_property(name = "format", value = "gzip")]
    format: Format,
    /// For a target that exists with another content: `fail`, `overwrite`, or `skip`.
    #[batch_property(name = "if.exists", value = "fail")]
    if_exists: IfExists,
}

#[batchlet("compressFiles")]
impl CompressFiles {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let transfer = Transfer {
            task: &self.task,
            action: Action::Compress(self.format),
            target: self.target.as_ref(),
            if_exists: self.if_exists,
        };
        transfer.run()
    }

    #[cancel]
    fn cancel(&self) {
        self.task.cancel.request();
    }
}

/// Deletes files. In Job XML: `deleteFiles`.
///
/// ```xml
/// <step id="clean">
///   <batchlet ref="deleteFiles">
///     <properties><property name="resource" value="work/*.tmp"/></properties>
///   </batchlet>
/// </step>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `resource` | required | a path or pattern, as for [`CopyFiles`] |
/// | `if.missing` | `ignore` | if no file matches: `fail`, or `ignore`, with which the step can be repeated |
///
/// Directories are not deleted; of a symbolic link the link is. The exit description is the number of deleted files, such as `3 files`.
#[derive(BatchArtifact)]
pub struct DeleteFiles {
    #[batch_artifact]
    task: Task,
}

#[batchlet("deleteFiles")]
impl DeleteFiles {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.task.exit_status(delete(&self.task))
    }

    #[cancel]
    fn cancel(&self) {
        self.task.cancel.request();
    }
}

/// Returns the number of deleted files.
fn delete(task: &Task) -> Result<usize, BatchError> {
    let mut deleted = 0;
    for file in task.files(IfMissing::Ignore)? {
        task.proceed()?;
        match fs::remove_file(&file.path) {
            Ok(()) => deleted += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(ResourceError::new(format!("delete {}", file.path.display()), error).into());
            }
        }
    }
    Ok(deleted)
}

/// Writes or verifies SHA-256 checksums, in the format of `sha256sum`. In Job XML: `checksumFiles`.
///
/// ```xml
/// <job id="exchange">
///   <step id="verify" next="sign">
///     <batchlet ref="checksumFiles">
///       <properties>
///         <property name="mode" value="verify"/>
///         <property name="resource" value="in/SHA256SUMS"/>
///       </properties>
///     </batchlet>
///   </step>
///   <step id="sign">
///     <batchlet ref="checksumFiles">
///       <properties>
///         <property name="resource" value="out/*.csv"/>
///         <property name="target" value="out/SHA256SUMS"/>
///       </properties>
///     </batchlet>
///   </step>
/// </job>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `mode` | `write` | `write`: computes checksums; `verify`: compares files with them |
/// | `resource` | required | the files; with `verify`, the checksum files. A path or pattern, as for [`CopyFiles`] |
/// | `target` | `NAME.sha256` beside each file | the checksum file to write, for all files |
/// | `if.exists` | `fail` | for a checksum file that exists with another content: `fail`, `overwrite`, or `skip` |
/// | `if.missing` | `fail` | if no file matches `resource`: `fail`, or `ignore` |
///
/// Names in a checksum file are relative to its directory, so `cd out && sha256sum -c SHA256SUMS` verifies it. A file that is listed but
/// missing, or has another checksum, fails the step. The exit description is the number of files, such as `3 files`.
#[derive(BatchArtifact)]
pub struct ChecksumFiles {
    #[batch_property(name = "mode", value = "write")]
    mode: Mode,
    #[batch_artifact]
    task: Task,
    #[batch_property(name = "target")]
    target: Option<Target>,
    #[batch_property(name = "if.exists", value = "fail")]
    if_exists: IfExists,
}

/// The direction of [`ChecksumFiles`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Write,
    Verify,
}

choices! {
    Mode { "write" => Write, "verify" => Verify }
}

#[batchlet("checksumFiles")]
impl ChecksumFiles {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        self.task.exit_status(match self.mode {
            Mode::Write => checksum::write(&self.task, self.target.as_ref(), self.if_exists),
            Mode::Verify => checksum::verify(&self.task),
        })
    }

    #[cancel]
    fn cancel(&self) {
        self.task.cancel.request();
    }
}

#[cfg(test)]
mod tests {
    use batch_testing::JobTest;

    use super::*;
    use crate::exit::STOPPED;

    /// Is stopped before its first file: a test would be too late for the time between two files.
    #[derive(BatchArtifact)]
    struct StoppedDeletion {
        #[batch_artifact]
        files: DeleteFiles,
    }

    #[batchlet("StoppedDeletion")]
    impl StoppedDeletion {
        #[process]
        fn process(&self) -> Result<String, BatchError> {
            self.files.cancel();
            self.files.process()
        }

        #[cancel]
        fn cancel(&self) {}
    }

    #[test]
    fn a_stop_ends_a_deletion() {
        let folder = tempfile::tempdir().unwrap();
        let (job, file) = (folder.path().join("job.xml"), folder.path().join("file"));
        let xml = format!(
            r#"<job id="job"><step id="delete"><batchlet ref="StoppedDeletion"><properties>
            <property name="resource" value="{}"/></properties></batchlet></step></job>"#,
            file.display()
        );
        fs::write(&job, xml).unwrap();
        fs::write(&file, "").unwrap();
        let run = JobTest::new(job).in_memory().launch();
        run.assert_completed().step("delete").assert_exit_status(STOPPED);
        assert!(file.exists());
    }
}
