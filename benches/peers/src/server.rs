//! A private PostgreSQL server in a temporary folder, with a database for each run.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, NoTls};
use tempfile::TempDir;

/// A server that waits for its disk at each commit, as one in production does.
pub struct Server {
    folder: TempDir,
    programs: PathBuf,
    user: Option<(u32, u32)>,
    pub port: u16,
}

impl Server {
    pub fn start() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("batch-peers-")
            .tempdir()
            .expect("a folder");
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|free| free.local_addr())
            .expect("a port")
            .port();
        // PostgreSQL does not run as root.
        let user = (id("-u", "") == 0).then(|| (id("-u", "postgres"), id("-g", "postgres")));
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(folder.path(), Some(uid), Some(gid)).expect("root may");
        }
        let server = Self {
            folder,
            programs: programs(),
            user,
            port,
        };
        server.run(
            "initdb",
            &[
                "--username=postgres",
                "--auth=trust",
                "--encoding=UTF8",
                "--no-sync",
            ],
        );
        let options = format!(
            "-p {port} -h 127.0.0.1 -k '' -c fsync=on -c synchronous_commit=on -c shared_buffers=512MB \
             -c max_wal_size=8GB -c checkpoint_timeout=1h -c autovacuum=off"
        );
        let log = server.folder.path().join("log").display().to_string();
        server.run(
            "pg_ctl",
            &[
                "--wait",
                "--silent",
                "--log",
                &log,
                "start",
                "--options",
                &options,
            ],
        );
        server
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.programs.join(program));
        command
            .arg("--pgdata")
            .arg(self.folder.path().join("data"))
            .args(arguments)
            .current_dir("/");
        command.stdout(std::process::Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        let status = command
            .status()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(status.success(), "{program} {arguments:?}");
    }

    pub fn connect(&self, database: &str) -> Client {
        let url = format!("postgres://postgres@127.0.0.1:{}/{database}", self.port);
        Client::connect(&url, NoTls).expect("the server accepts connections")
    }

    /// Replaces a database by a copy of another, and writes what the server still has to write.
    pub fn copy(&self, database: &str, template: &str) {
        let mut client = self.connect("postgres");
        for statement in [
            format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"),
            format!("CREATE DATABASE {database} TEMPLATE {template}"),
            "CHECKPOINT".to_owned(),
        ] {
            client
                .batch_execute(&statement)
                .unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.run("pg_ctl", &["--silent", "--mode=immediate", "stop"]);
    }
}

fn id(what: &str, user: &str) -> u32 {
    let output = Command::new("id")
        .args([what, user].iter().filter(|word| !word.is_empty()))
        .output()
        .expect("id");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("no user `{user}`: apt-get install postgresql"))
}

fn programs() -> PathBuf {
    let versions = fs::read_dir(Path::new("/usr/lib/postgresql"))
        .into_iter()
        .flatten()
        .flatten();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| {
        path.file_name()
            .and_then(|name| name.to_str()?.parse::<u32>().ok())
    });
    newest
        .expect("PostgreSQL is missing: apt-get install postgresql")
        .join("bin")
}
