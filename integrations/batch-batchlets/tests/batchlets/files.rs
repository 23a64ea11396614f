//! `copyFiles`, `moveFiles`, `deleteFiles`, `compressFiles`, `checksumFiles`.

use std::fs::{self, File};
use std::io::Read;
use std::process::Command;
use std::time::{Duration, SystemTime};

use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use flate2::read::GzDecoder;

use super::stage::{Stage, step};

/// Creates a job that takes `resource`, both below its folder.
fn stage(batchlet: &str, resource: &str, target: &str, more: &[(&str, &str)]) -> Stage {
    let (resource, target) = (format!("${{folder}}/{resource}"), format!("${{folder}}/{target}"));
    let mut properties = vec![("resource", resource.as_str())];
    if !target.ends_with("${folder}/") {
        properties.push(("target", target.as_str()));
    }
    properties.extend(more);
    Stage::new(batchlet, &properties)
}

fn decompressed(stage: &Stage, name: &str) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(stage.path(name)).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

#[test]
fn files_keep_their_path_below_the_pattern() {
    let stage = stage("copyFiles", "in/**/*.csv", "out", &[]);
    for name in ["in/a.csv", "in/a.txt", "in/.hidden.csv", "in/sub/b.csv"] {
        stage.write(name, name);
    }
    assert_eq!(stage.run().completed(), "2 files");
    assert_eq!(stage.list("out"), ["a.csv", "sub"]);
    assert_eq!(stage.read("out/sub/b.csv"), "in/sub/b.csv");
    assert_eq!(stage.list("in"), [".hidden.csv", "a.csv", "a.txt", "sub"]);
}

#[test]
fn a_single_file_gets_the_name_of_the_target() {
    for (target, expected) in [
        ("out/b.csv", "out/b.csv"),
        ("out/", "out/a.csv"),
        ("there", "there/a.csv"),
    ] {
        for batchlet in ["copyFiles", "moveFiles"] {
            let stage = stage(batchlet, "a.csv", target, &[]);
            stage.write("a.csv", "content");
            fs::create_dir(stage.path("there")).unwrap();
            assert_eq!(stage.run().completed(), "1 file", "{batchlet} {target}");
            assert_eq!(stage.read(expected), "content");
            assert_eq!(stage.path("a.csv").exists(), batchlet == "copyFiles");
        }
    }
}

#[test]
#[cfg(unix)]
fn a_copy_keeps_permissions_and_time() {
    use std::os::unix::fs::PermissionsExt;

    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for (batchlet, copy) in [("copyFiles", "out/a.sh"), ("compressFiles", "out/a.sh.gz")] {
        let stage = stage(batchlet, "a.sh", "out/", &[]);
        stage.write("a.sh", "content");
        let file = File::options().write(true).open(stage.path("a.sh")).unwrap();
        file.set_modified(time).unwrap();
        file.set_permissions(fs::Permissions::from_mode(0o540)).unwrap();
        stage.run().completed();
        let metadata = fs::metadata(stage.path(copy)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o540, "{batchlet}");
        assert_eq!(metadata.modified().unwrap(), time, "{batchlet}");
    }
}

#[test]
fn a_target_with_another_content_is_protected() {
    for batchlet in ["copyFiles", "moveFiles", "compressFiles"] {
        let name = if batchlet == "compressFiles" {
            "out/a.csv.gz"
        } else {
            "out/a.csv"
        };
        let run = |rule: &[(&str, &str)]| {
            let stage = stage(batchlet, "in/*.csv", "out", rule);
            stage.write("in/a.csv", "new");
            stage.write("in/b.csv", "b");
            stage.write(name, "old");
            (stage.run(), stage)
        };
        let (ended, stage) = run(&[]);
        let problem =
            "the target exists with another content; remove it, or set `if.exists` to `overwrite` or `skip`";
        assert!(ended.failed().contains(problem), "{}", ended.message);
        assert!(ended.message.contains(&stage.name(name)), "{}", ended.message);
        assert_eq!(
            (stage.read(name), stage.read("in/a.csv")),
            ("old".into(), "new".into())
        );

        let (ended, stage) = run(&[("if.exists", "skip")]);
        assert_eq!(ended.completed(), "1 file", "{batchlet}");
        assert_eq!(
            (stage.read(name), stage.read("in/a.csv")),
            ("old".into(), "new".into())
        );

        let (ended, stage) = run(&[("if.exists", "overwrite")]);
        assert_eq!(ended.completed(), "2 files", "{batchlet}");
        let content = match batchlet {
            "compressFiles" => decompressed(&stage, name),
            _ => stage.read(name),
        };
        assert_eq!(content, "new");
    }
}

/// The first execution fails at its second file. The restart takes the first one as done and ends as an undisturbed run.
#[test]
fn a_restart_ends_as_an_undisturbed_run() {
    for batchlet in ["copyFiles", "moveFiles", "compressFiles"] {
        let suffix = if batchlet == "compressFiles" { ".gz" } else { "" };
        let stage = stage(batchlet, "in/*.csv", "out", &[]);
        for name in ["a", "b", "c"] {
            stage.write(&format!("in/{name}.csv"), name);
        }
        let in_the_way = format!("out/b.csv{suffix}");
        stage.write(&in_the_way, "old");
        let ended = stage.run();
        ended.failed();
        assert!(stage.path(&format!("out/a.csv{suffix}")).exists());
        fs::remove_file(stage.path(&in_the_way)).unwrap();
        assert_eq!(stage.restart(ended.id, ()).completed(), "3 files", "{batchlet}");
        assert_eq!(
            stage.list("out"),
            ["a", "b", "c"].map(|name| format!("{name}.csv{suffix}")),
            "{batchlet}"
        );
    }
}

/// Fails a step whose batchlet has ended.
#[derive(BatchArtifact)]
struct FailAtTheEnd {
    #[batch_property(name = "fail", value = "true")]
    fail: bool,
}

#[step_listener("FailAtTheEnd")]
impl FailAtTheEnd {
    #[after_step]
    fn fail(&mut self) -> Result<(), BatchError> {
        match self.fail {
            true => Err(BatchError::msg("not yet")),
            false => Ok(()),
        }
    }
}

/// A file in the form of a result is a source like the others, unless the results are beside it.
///
/// Spec: INPUT-05
#[test]
fn compressed_files_are_compressed_into_another_folder() {
    for (target, expected) in [
        ("", ["a", "a.gz", "b.gz"].as_slice()),
        ("out/", &["a.gz", "b.gz.gz"]),
    ] {
        let stage = stage("compressFiles", "in/*", target, &[]);
        stage.write("in/a", "a");
        stage.write("in/b.gz", "b");
        stage.run().completed();
        assert_eq!(stage.list(if target.is_empty() { "in" } else { "out" }), expected);
    }
}

/// All files are done, but the end of the step is not recorded, as after a kill at the last moment.
#[test]
fn a_restart_recognises_that_everything_is_done() {
    for (batchlet, expected) in [
        ("copyFiles", "2 files"),
        ("moveFiles", "2 files"),
        ("compressFiles", "2 files"),
        ("checksumFiles", "2 files"),
        ("deleteFiles", "0 files"),
    ] {
        let mut properties = vec![("resource", "${folder}/in/*")];
        if batchlet != "deleteFiles" {
            let target = if batchlet == "checksumFiles" {
                "${folder}/sums"
            } else {
                "${folder}/out/"
            };
            properties.push(("target", target));
        }
        let listeners = "<listeners><listener ref=\"FailAtTheEnd\"/></listeners><batchlet";
        let stage = Stage::of(&step("step", batchlet, &properties).replace("<batchlet", listeners));
        stage.write("in/a", "a");
        stage.write("in/b", "b");
        let ended = stage.run();
        assert!(ended.failed().contains("not yet"), "{}", ended.message);
        let ended = stage.restart(ended.id, [("fail", "false")]);
        assert_eq!(ended.completed(), expected, "{batchlet}");
    }
}

/// Something happens to a target between two launches: the second one fails and names it, and the next one completes when the target is back;
/// or it completes. Targets that are moved on are not missed.
///
/// Spec: LOSS-01
#[test]
fn a_target_that_changes_between_two_launches_is_not_taken_for_done() {
    let listeners = "<listeners><listener ref=\"FailAtTheEnd\"/></listeners><batchlet";
    for (batchlet, to, target) in [
        ("copyFiles", "out/", "out/a"),
        ("compressFiles", "out/", "out/a.gz"),
        ("checksumFiles", "sums", "sums"),
        ("moveFiles", "out/", "out/a"),
    ] {
        for action in [
            "remove",
            "replace",
            "truncate",
            "extend",
            "replace by a directory",
        ] {
            let to = format!("${{folder}}/{to}");
            let properties = [("resource", "${folder}/in/*"), ("target", to.as_str())];
            let stage = Stage::of(&step("step", batchlet, &properties).replace("<batchlet", listeners));
            stage.write("in/a", "content of a");
            stage.write("in/b", "content of b");
            let failed = stage.run();
            assert!(failed.failed().contains("not yet"), "{}", failed.message);
            let target = stage.path(target);
            let expected = fs::read(&target).unwrap();
            fs::remove_file(&target).unwrap();
            match action {
                "remove" => {}
                "replace" => fs::write(&target, "other").unwrap(),
                "truncate" => fs::write(&target, &expected[..4]).unwrap(),
                "extend" => fs::write(&target, [expected.as_slice(), b"more"].concat()).unwrap(),
                _ => fs::create_dir(&target).unwrap(),
            }
            let mut ended = stage.restart(failed.id, [("fail", "false")]);
            let case = format!("{batchlet} {action}: {}", ended.message);
            if ended.status == BatchStatus::Failed {
                assert!(ended.message.contains(&target.display().to_string()), "{case}");
                let _ = fs::remove_dir(&target);
                fs::write(&target, &expected).unwrap();
                ended = stage.restart(ended.id, [("fail", "false")]);
            }
            assert_eq!(ended.status, BatchStatus::Completed, "{case}: {}", ended.message);
            match batchlet {
                "moveFiles" => assert_eq!(stage.read("out/b"), "content of b"),
                _ => assert!(fs::read(&target).unwrap() == expected, "{case}"),
            }
        }
    }
}

/// Another instance does not take the files that an earlier one has moved for its own.
#[test]
fn a_missing_file_is_an_error_in_each_instance() {
    let stage = stage("moveFiles", "in/*.csv", "out", &[]);
    stage.write("in/a.csv", "a");
    assert_eq!(stage.run().completed(), "1 file");
    let ended = stage.run();
    assert!(ended.failed().contains("no file matches "), "{}", ended.message);
    assert!(
        ended.message.contains("set `if.missing` to `ignore`"),
        "{}",
        ended.message
    );
    let ended = stage.wait(stage.start([("if.missing", "ignore")]));
    assert_eq!(ended.completed(), "0 files");
}

#[test]
fn a_missing_file_is_an_error_unless_ignored() {
    for batchlet in ["copyFiles", "compressFiles", "checksumFiles"] {
        let stage = stage(batchlet, "none.csv", "out", &[]);
        let ended = stage.run();
        assert!(
            ended.failed().contains("/none.csv; set `if.missing`"),
            "{}",
            ended.message
        );
        let ended = stage.wait(stage.start([("if.missing", "ignore")]));
        assert_eq!(ended.completed(), "0 files", "{batchlet}");
        assert!(!stage.path("out").exists(), "{batchlet}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn files_move_between_file_systems() {
    use std::os::unix::fs::MetadataExt;

    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    let target = other.path().display().to_string();
    let stage = Stage::new(
        "moveFiles",
        &[("resource", "${folder}/in/*"), ("target", &target)],
    );
    stage.write("in/a.csv", "content");
    let device = |path: &std::path::Path| fs::metadata(path).unwrap().dev();
    if device(other.path()) == device(&stage.path("in")) {
        // Temporary files are in memory too; the copy is tested where they are not.
        return;
    }
    assert_eq!(stage.run().completed(), "1 file");
    assert_eq!(fs::read_to_string(other.path().join("a.csv")).unwrap(), "content");
    assert_eq!(stage.list("in"), [""; 0]);
}

/// A file with two hard links is moved. A symbolic link becomes a copy of its file, because it may be broken in another folder.
#[cfg(unix)]
#[test]
fn links_move() {
    let stage = stage("moveFiles", "in/*.csv", "out/deep", &[("if.exists", "overwrite")]);
    stage.write("in/hard.csv", "hard");
    stage.write("data/soft.csv", "soft");
    fs::create_dir_all(stage.path("out/deep")).unwrap();
    fs::hard_link(stage.path("in/hard.csv"), stage.path("out/deep/hard.csv")).unwrap();
    std::os::unix::fs::symlink("../data/soft.csv", stage.path("in/soft.csv")).unwrap();
    assert_eq!(stage.run().completed(), "2 files");
    assert_eq!(stage.list("in"), [""; 0]);
    assert_eq!(stage.read("out/deep/hard.csv"), "hard");
    assert_eq!(stage.read("out/deep/soft.csv"), "soft");
    assert_eq!(stage.read("data/soft.csv"), "soft");
}

#[test]
fn a_file_is_never_its_own_target() {
    for batchlet in ["copyFiles", "moveFiles"] {
        let stage = stage(batchlet, "in/*", "in", &[("if.exists", "overwrite")]);
        stage.write("in/a.csv", "content");
        let ended = stage.run();
        assert!(
            ended.failed().contains("both are the same file"),
            "{}",
            ended.message
        );
        assert_eq!(stage.read("in/a.csv"), "content");
    }
}

#[test]
fn compressed_files_are_beside_their_originals_and_not_compressed_again() {
    let stage = stage("compressFiles", "in/*", "", &[]);
    stage.write("in/a.csv", "content");
    assert_eq!(stage.run().completed(), "1 file");
    assert_eq!(stage.list("in"), ["a.csv", "a.csv.gz"]);
    assert_eq!(decompressed(&stage, "in/a.csv.gz"), "content");
    assert_eq!(stage.run().completed(), "1 file", "the same content");
    assert_eq!(stage.list("in"), ["a.csv", "a.csv.gz"]);
}

#[test]
fn zstd_depends_on_a_feature() {
    let stage = stage("compressFiles", "a.csv", "", &[("format", "zstd")]);
    stage.write("a.csv", "content");
    let started = stage.operator().start("job", ());
    if cfg!(feature = "zstd") {
        assert_eq!(stage.wait(started.unwrap()).completed(), "1 file");
        assert!(stage.path("a.csv.zst").exists());
        assert_eq!(stage.run().completed(), "1 file", "the same content");
    } else {
        let error = started.unwrap_err().to_string();
        assert!(error.contains("compiled without the feature `zstd`"), "{error}");
    }
}

#[test]
fn only_files_are_deleted_and_a_repetition_is_right() {
    let stage = stage("deleteFiles", "work/*", "", &[]);
    for name in ["work/a", "work/b", "work/.hidden", "work/sub/c"] {
        stage.write(name, name);
    }
    assert_eq!(stage.run().completed(), "2 files");
    assert_eq!(stage.list("work"), [".hidden", "sub"]);
    assert_eq!(stage.run().completed(), "0 files");
    let ended = stage.wait(stage.start([("if.missing", "fail")]));
    assert!(ended.failed().contains("no file matches "), "{}", ended.message);
}

#[test]
fn checksums_are_those_of_sha256sum() {
    let stage = stage("checksumFiles", "out/*", "out/SHA256SUMS", &[]);
    stage.write("out/abc.txt", "abc");
    stage.write("out/empty.txt", "");
    assert_eq!(stage.run().completed(), "2 files");
    assert_eq!(
        stage.read("out/SHA256SUMS"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  abc.txt\n\
         e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty.txt\n"
    );
    assert_eq!(
        stage.run().completed(),
        "2 files",
        "the list itself does not count"
    );
    if cfg!(target_os = "linux") {
        let verified = Command::new("sha256sum")
            .args(["--check", "--strict", "SHA256SUMS"])
            .current_dir(stage.path("out"))
            .output()
            .unwrap();
        assert!(verified.status.success(), "{verified:?}");
    }
    stage.write("out/abc.txt", "abd");
    assert!(
        stage
            .run()
            .failed()
            .contains("the target exists with another content")
    );
}

#[test]
fn each_file_may_have_its_own_checksum() {
    let stage = Stage::of(&format!(
        "{}{}",
        step("write", "checksumFiles", &[("resource", "${folder}/in/*")])
            .replace("<step id=\"write\">", "<step id=\"write\" next=\"verify\">"),
        step(
            "verify",
            "checksumFiles",
            &[("resource", "${folder}/in/*.sha256"), ("mode", "verify")]
        )
    ));
    stage.write("in/a", "a");
    stage.write("in/b", "b");
    assert_eq!(stage.run().completed(), "2 files");
    assert_eq!(stage.list("in"), ["a", "a.sha256", "b", "b.sha256"]);
}

#[test]
fn wrong_and_missing_files_are_named() {
    let stage = stage("checksumFiles", "in/SHA256SUMS", "", &[("mode", "verify")]);
    for name in ["a", "b"] {
        stage.write(&format!("in/{name}"), "abc");
    }
    let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    stage.write("in/SHA256SUMS", format!("{sum}  a\n{sum} *b\n"));
    assert_eq!(stage.run().completed(), "2 files");
    stage.write("in/SHA256SUMS", format!("\u{feff}{sum}  a\n"));
    assert_eq!(stage.run().completed(), "1 file");
    stage.write("in/SHA256SUMS", "\n");
    let ended = stage.run();
    assert!(
        ended.failed().contains("SHA256SUMS has no checksums"),
        "{}",
        ended.message
    );
    stage.write("in/a", "abd");
    stage.write("in/SHA256SUMS", format!("{sum}  a\n{sum}  b\n\n{sum}  c\n"));
    let ended = stage.run();
    let message = ended.failed();
    assert!(message.contains("`a` has another checksum (line 1)"), "{message}");
    assert!(
        message.contains("`c`: No such file or directory (os error 2) (line 4)"),
        "{message}"
    );
    assert!(!message.contains("`b`"), "{message}");
    stage.write("in/SHA256SUMS", format!("{sum}  a\nMD5 (a) = 0\n"));
    let ended = stage.run();
    assert!(
        ended
            .failed()
            .contains("/in/SHA256SUMS:2 is not a line of `sha256sum`"),
        "{}",
        ended.message
    );
}

/// The file consists of a hole, so it has a content that takes hours to read but no space.
#[test]
fn a_stop_ends_the_work_on_a_large_file() {
    let stage = stage("compressFiles", "in/*", "out", &[]);
    stage.write("in/large", "");
    let large = File::options().write(true).open(stage.path("in/large")).unwrap();
    large.set_len(1 << 42).unwrap();
    let ended = stage.start_and_stop(|| stage.path("out/.large.gz.1.part").exists());
    assert_eq!(
        (ended.status, ended.exit_status.as_str()),
        (BatchStatus::Stopped, "STOPPED")
    );
    assert_eq!(stage.list("out"), [""; 0]);
}

/// The same while a target that may be done already is compared, or the checksum is computed.
#[cfg(target_os = "linux")]
#[test]
fn a_stop_ends_the_reading_of_a_large_file() {
    for (batchlet, target) in [
        ("copyFiles", "out/"),
        ("moveFiles", "out/"),
        ("checksumFiles", "sums"),
    ] {
        let stage = stage(batchlet, "in/*", target, &[]);
        for name in ["in/large", "out/large"] {
            stage.write(name, "");
            let large = File::options().write(true).open(stage.path(name)).unwrap();
            large.set_len(1 << 36).unwrap();
        }
        let source = stage.path("in/large");
        let is_open = || {
            let mut open = fs::read_dir("/proc/self/fd").unwrap();
            open.any(|file| fs::read_link(file.unwrap().path()).is_ok_and(|path| path == source))
        };
        let ended = stage.start_and_stop(is_open);
        assert_eq!(
            (ended.status, ended.exit_status.as_str()),
            (BatchStatus::Stopped, "STOPPED"),
            "{batchlet}"
        );
    }
}

#[test]
fn wrong_properties_are_reported_before_the_start() {
    for (batchlet, property, problem) in [
        ("copyFiles", ("resource", ""), "expected a path, or a pattern"),
        ("copyFiles", ("resource", "in/[a"), "invalid pattern"),
        (
            "copyFiles",
            ("target", ""),
            "expected the path of a file or directory",
        ),
        (
            "moveFiles",
            ("if.exists", "ask"),
            "expected `fail`, `overwrite` or `skip`",
        ),
        ("deleteFiles", ("if.missing", "no"), "expected `fail` or `ignore`"),
        ("compressFiles", ("format", "zip"), "expected `gzip` or `zstd`"),
        ("checksumFiles", ("mode", "check"), "expected `write` or `verify`"),
    ] {
        let mut properties = vec![("resource", "in/*"), ("target", "out/")];
        if batchlet == "deleteFiles" {
            properties.pop();
        }
        properties.retain(|(name, _)| *name != property.0);
        properties.push(property);
        let stage = Stage::new(batchlet, &properties);
        let error = stage.operator().start("job", ()).unwrap_err().to_string();
        assert!(error.contains(problem), "{property:?}: {error}");
    }
}

/// A pattern means the same for a reader, a plan of partitions and a batchlet: no names that begin with a dot, no files that are being
/// written, no directories.
///
/// Spec: INPUT-05
#[test]
fn a_pattern_means_the_same_everywhere() {
    let xml = |work: &str| {
        format!(
            "<job id=\"job\"><step id=\"load\" next=\"move\">{work}</step>\
             <step id=\"move\"><batchlet ref=\"moveFiles\"><properties>\
             <property name=\"resource\" value=\"${{dir}}/in/*\"/><property name=\"target\" value=\"${{dir}}/done/\"/>\
             </properties></batchlet></step></job>"
        )
    };
    let chunk = |resource: &str, output: &str| {
        format!(
            "<chunk reader=\"csvRecordReader\" writer=\"recordCsvWriter\"><properties>\
             <property name=\"resource\" value=\"{resource}\"/><property name=\"output\" value=\"{output}\"/>\
             </properties></chunk>"
        )
    };
    let partitioned = format!(
        "<partition><algorithm ref=\"filePartitions\"><properties>\
         <property name=\"resource\" value=\"${{dir}}/in/*\"/></properties></algorithm></partition>{}",
        chunk("${resource}", "${dir}/out-${file.name}.csv")
    );
    for (work, output) in [
        (chunk("${dir}/in/*", "${dir}/out.csv"), "out.csv"),
        (partitioned, "out-a.csv"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("in/sub.csv")).unwrap();
        fs::create_dir(path("jobs")).unwrap();
        fs::write(path("jobs/job.xml"), xml(&work)).unwrap();
        for name in ["a.csv", ".b.csv", "c.csv.part", "sub.csv/d.csv"] {
            fs::write(path("in").join(name), format!("origin,delay,note\n{name},1,x\n")).unwrap();
        }
        let runtime = batch_runtime::BatchRuntime::builder()
            .job_path(path("jobs").display().to_string())
            .repository("memory:")
            .system_property("dir", folder.path().display().to_string())
            .build()
            .unwrap();
        let operator = runtime.job_operator();
        let ended = operator.wait(operator.start("job", ()).unwrap()).unwrap();
        assert_eq!(
            ended.status,
            batch_runtime::BatchStatus::Completed,
            "{}",
            ended.exit_message
        );
        assert_eq!(
            fs::read_to_string(path(output)).unwrap(),
            "origin,delay,note\na.csv,1,x\n"
        );
        let moved: Vec<_> = fs::read_dir(path("done"))
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        // Besides the list of what was moved, which is hidden.
        let is_hidden = |name: &std::ffi::OsString| name.to_string_lossy().starts_with('.');
        let moved: Vec<_> = moved.into_iter().filter(|name| !is_hidden(name)).collect();
        assert_eq!(moved, ["a.csv"]);
    }
}
