//! A folder with a job, and processes that launch it, with a system call that fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use batch_runtime::BatchRuntime;
use batch_tests::database::{Database, Place};

use super::Injection;
use super::jobs::Kind;
use crate::world::CHILD;

/// The system calls on files. `close` is not among them: what strace lets fail is not executed, and Linux closes a file in any case.
const CALLS: &str = "?open,openat,read,pread64,?readv,?preadv,write,pwrite64,?writev,?pwritev,fsync,fdatasync,?sync_file_range,\
     ftruncate,?truncate,?fallocate,?rename,renameat,renameat2,?link,linkat,?symlink,symlinkat,?unlink,unlinkat,?stat,?lstat,fstat,statx,\
     newfstatat,lseek,fcntl,flock,?mkdir,mkdirat,?rmdir,fchmod,?chmod,fchmodat,utimensat,copy_file_range,sendfile,getdents64,?readlink,\
     readlinkat,?access,faccessat,faccessat2,mmap";

/// The name of the file that strace writes to.
const TRACE: &str = "trace";

pub(super) struct Stage {
    folder: tempfile::TempDir,
    place: Place,
    kind: &'static Kind,
    /// Seconds until a process counts as hanging.
    patience: u32,
}

/// How a process ended.
pub(super) struct Ended {
    /// `None` if a signal ended it, as after the time for it.
    pub(super) code: Option<i32>,
    pub(super) output: String,
    pub(super) trace: String,
}

/// What a job leaves: its files, rows and counts.
pub(super) type Result = BTreeMap<String, String>;

impl Stage {
    pub(super) fn new(kind: &'static Kind, patience: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| fs::write(folder.path().join(name), content).unwrap();
        let rows = |ids: std::ops::RangeInclusive<u64>| -> String {
            let row = |id: u64| format!("{id},name {id}\n");
            "id,name\n".to_owned() + &ids.map(row).collect::<String>()
        };
        fs::create_dir(folder.path().join("out")).unwrap();
        write("job.xml", kind.xml().as_bytes());
        write("in.csv", rows(1..=11).as_bytes());
        write("in2.csv", rows(12..=17).as_bytes());
        write(
            "bad.csv",
            (rows(1..=5) + "6,too,many\n7,name 7\n8,more,fields\n9,name 9\n10,\"x\n").as_bytes(),
        );
        write(
            "script.sql",
            b"INSERT INTO entry VALUES (1, 'one');\nINSERT INTO entry VALUES (2, 'two');\n",
        );
        // Files of other programs. The first byte of a fuzz input chooses the properties of the target.
        write(
            "in.xlsx",
            &include_bytes!("../../../../fuzz/corpus/xlsx/number-formats")[1..],
        );
        write(
            "in.arrow",
            &include_bytes!("../../../../fuzz/corpus/arrow/batches")[1..],
        );
        if kind.name == "append" {
            write("out/existing.csv", b"id,name\n0,name 0\n");
        }
        let url = format!("sqlite://{}", folder.path().join("batch.db").display());
        let place = Place::existing(Database::Sqlite, url);
        let stage = Self {
            folder,
            place,
            kind,
            patience,
        };
        let built = BatchRuntime::builder().repository(stage.place.url()).build();
        drop(built.unwrap_or_else(|error| panic!("{error}")));
        let table = "CREATE TABLE entry (id INTEGER, name TEXT)";
        stage.place.connect().execute(table).unwrap();
        stage
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Launches the job. Without an injection, all calls are traced.
    pub(super) fn launch(&self, injection: Option<&Injection>) -> Ended {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", &self.patience.to_string()]);
        command.args([
            "strace",
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-s",
            "0",
            "-e",
            "signal=none",
            "-o",
        ]);
        command.arg(self.path().join(TRACE));
        match injection {
            None => command.args(["-y", "-e", &format!("trace={CALLS}")]),
            Some(injection) => {
                let Injection {
                    call,
                    error,
                    path,
                    number,
                    ..
                } = injection;
                let from_then_on = if injection.persists { "+" } else { "" };
                let end = match *error {
                    "EOF" => "retval=0".to_owned(),
                    error => format!("error={error}"),
                };
                command
                    .args(["-P", path, "-P"])
                    .arg(self.path().join(path))
                    .args(["-e", &format!("trace={call}")])
                    .args(["-e", &format!("inject={call}:{end}:when={number}{from_then_on}")])
            }
        };
        let output = command
            .arg(std::env::current_exe().unwrap())
            .args([
                "--repository",
                self.place.url(),
                "--job-path",
                ".",
                "launch",
                "job",
            ])
            .current_dir(self.path())
            .env(CHILD, self.kind.name)
            .env("BATCH_LEASE_TIME", "1")
            .env("BATCH_CRASH_LIMIT", "0")
            .env("RUST_BACKTRACE", "0")
            .env_remove("BATCH_FAILPOINTS")
            .output()
            .expect("timeout and strace are installed");
        let trace = self.path().join(TRACE);
        let ended = Ended {
            // `timeout` ends as the program that it had to end.
            code: output.status.code().filter(|code| *code != 137),
            output: String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
            trace: fs::read_to_string(&trace).unwrap_or_default(),
        };
        let _ = fs::remove_file(trace);
        ended
    }

    /// Returns the status of the newest job execution.
    pub(super) fn status(&self) -> String {
        let query = "SELECT STATUS AS text FROM BATCH_JOB_EXECUTION ORDER BY JOB_EXECUTION_ID DESC LIMIT 1";
        self.place.connect().rows(query).pop().unwrap_or_default()
    }

    /// Returns what the job has left.
    pub(super) fn result(&self) -> Result {
        let mut result = BTreeMap::new();
        self.add_files(self.path(), &mut result);
        let queries = [
            ("rows", "SELECT id || ' ' || name AS text FROM entry ORDER BY ROWID"),
            (
                "counts",
                "SELECT STEP_NAME || ': read ' || SUM(READ_COUNT) || ', written ' || SUM(WRITE_COUNT) || ', skipped ' || SUM(READ_SKIP_COUNT)
                 AS text FROM BATCH_STEP_EXECUTION GROUP BY STEP_NAME ORDER BY STEP_NAME",
            ),
        ];
        for (name, query) in queries {
            result.insert(name.to_owned(), self.place.connect().rows(query).join("\n"));
        }
        result
    }

    /// Adds all files except the files of the repository.
    fn add_files(&self, folder: &Path, result: &mut Result) {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.strip_prefix(self.path()).unwrap().display().to_string();
            if name.starts_with("batch.db") {
                continue;
            }
            if path.is_dir() {
                self.add_files(&path, result);
                continue;
            }
            let content = fs::read(&path).unwrap();
            let text = match String::from_utf8(content) {
                Ok(text) => text.replace(&self.path().display().to_string(), "."),
                Err(error) => format!("{:?}", error.into_bytes()),
            };
            result.insert(name, text);
        }
    }
}
