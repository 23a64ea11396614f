//! A process that is killed while it compresses files, and the restart.

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use batch_runtime::BatchStatus;

use super::stage::{Stage, runtime, until};

/// The variable that holds the folder of the killed process.
const FOLDER: &str = "BATCH_ITEMS_KILLED_IN";

const NAME: &str = "kill::a_killed_process_leaves_no_half_file";

/// The process runs this test again, in the folder that the variable names. The file that it compresses when it is killed consists of a
/// hole, so it takes hours.
#[test]
fn a_killed_process_leaves_no_half_file() {
    if let Ok(folder) = env::var(FOLDER) {
        return run_until_killed(Path::new(&folder));
    }
    let stage = Stage::new(
        "compressFiles",
        &[("resource", "${folder}/in/*"), ("target", "${folder}/out/")],
    );
    stage.write("in/a", "a");
    stage.write("in/b", "");
    let large = File::options().write(true).open(stage.path("in/b")).unwrap();
    large.set_len(1 << 42).unwrap();
    let mut process = Command::new(env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(FOLDER, stage.path(""))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let temporary = stage.path("out/.b.gz.1.part");
    until(|| {
        assert_eq!(process.try_wait().unwrap(), None, "it ended by itself");
        temporary.exists()
    });
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(stage.list("out"), [".b.gz.1.part", "a.gz"]);

    stage.write("in/b", "b");
    let execution = stage.operator().launch("job", ()).unwrap();
    let ended = stage.wait(execution);
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.message);
    assert_eq!(ended.completed(), "2 files");
    assert_eq!(stage.list("out"), ["a.gz", "b.gz"]);
    assert_eq!(execution.0, 2, "the same instance");
}

fn run_until_killed(folder: &Path) {
    assert!(fs::exists(folder.join("job.xml")).unwrap());
    let runtime = runtime(folder, &format!("sqlite://{}", folder.join("batch.db").display()));
    let operator = runtime.job_operator();
    let execution = operator.launch("job", ()).unwrap();
    operator.wait(execution).unwrap();
}
