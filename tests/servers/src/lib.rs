//! Private servers for the tests, databases, an object store and queues: started in a temporary folder, from the Debian packages or, Kafka,
//! from what Maven fetches; and ended with the process that started them, however that ends.
//!
//! A database is reached by a socket in its folder, which avoids conflicts over ports.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod browser;
mod kafka;
mod nats;
mod objects;
mod supervisor;

pub use browser::BrowserDriver;
pub use kafka::{KAFKA_PASSWORD, KafkaServer};
pub use nats::NatsServer;
pub use objects::{ACCESS_KEY, ObjectServer, SECRET_KEY};

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use supervisor::Supervisor;

/// The kinds of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL, from the package `postgresql`.
    Postgres,
    /// MariaDB, from the package `mariadb-server`.
    Mariadb,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    folder: PathBuf,
    programs: PathBuf,
    supervisor: Supervisor,
}

/// Returns the server of a kind that all tests of this process share.
pub fn shared(kind: Kind) -> &'static Server {
    static POSTGRES: OnceLock<Server> = OnceLock::new();
    static MARIADB: OnceLock<Server> = OnceLock::new();
    let server = match kind {
        Kind::Postgres => &POSTGRES,
        Kind::Mariadb => &MARIADB,
    };
    server.get_or_init(|| Server::start(kind))
}

const POSTGRES: &str = r#"
    # The tests may be gone when it ends; the folder goes all the same.
    trap '' PIPE
    folder=$(mktemp -d "${TMPDIR:-/tmp}"/batch-postgres-XXXXXX) && trap 'rm -rf "$folder"' EXIT
    "$PROGRAMS/initdb" --pgdata="$folder/data" --username=postgres --auth=trust --encoding=UTF8 --no-sync >"$folder/log" 2>&1 &&
    "$PROGRAMS/pg_ctl" --pgdata="$folder/data" --log="$folder/log" --wait start >>"$folder/log" 2>&1 --options="-k $folder -h '' \
        -c fsync=off -c max_connections=500 -c shared_buffers=64MB -c unix_socket_permissions=0777" ||
        { cat "$folder/log"; exit 1; }
    chmod 755 "$folder"
    echo "ready $folder"
    while read -r _; do
        "$PROGRAMS/pg_ctl" --pgdata="$folder/data" --log="$folder/log" --wait --mode=immediate restart </dev/null >>"$folder/log" 2>&1 &&
            echo restarted || cat "$folder/log"
    done
    "$PROGRAMS/pg_ctl" --pgdata="$folder/data" --mode=immediate --silent stop
    echo ended 2>/dev/null
"#;

const MARIADB: &str = r#"
    trap '' PIPE
    folder=$(mktemp -d "${TMPDIR:-/tmp}"/batch-mariadb-XXXXXX) && trap 'rm -rf "$folder"' EXIT
    chmod 755 "$folder" && mkdir "$folder/tmp"
    # Without a separate folder for that, each server deletes what the others have put there.
    export TMPDIR="$folder/tmp"
    mariadb-install-db --no-defaults --datadir="$folder/data" --tmpdir="$folder/tmp" --auth-root-authentication-method=normal --skip-test-db \
        >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    start() {
        "$PROGRAMS/mariadbd" --no-defaults --datadir="$folder/data" --tmpdir="$folder/tmp" --socket="$folder/socket" --pid-file="$folder/pid" \
            --skip-networking --max-connections=500 --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=2 \
            >>"$folder/log" 2>&1 &
        server=$!
        until mariadb-admin --no-defaults --socket="$folder/socket" --user=root ping >/dev/null 2>&1; do
            kill -0 $server 2>/dev/null || { cat "$folder/log"; exit 1; }
            sleep 0.1
        done
    }
    start
    echo "ready $folder"
    while read -r _; do
        kill -KILL $server
        wait $server 2>/dev/null
        start
        echo restarted
    done
    kill -KILL $server
    wait $server 2>/dev/null
    echo ended 2>/dev/null
"#;

impl Server {
    /// Starts a server for the caller alone.
    ///
    /// # Panics
    /// If it cannot be started; the message has the reason and the missing package.
    pub fn start(kind: Kind) -> Self {
        let (programs, script, user) = match kind {
            Kind::Postgres => (newest_postgres(), POSTGRES, "postgres"),
            Kind::Mariadb => (mariadb(), MARIADB, "mysql"),
        };
        let missing = format!("{kind:?} is not there, or cannot run");
        let (supervisor, folder) = Supervisor::start(script, &missing, |command| {
            command.env("PROGRAMS", &programs);
            // Neither server runs as root.
            if number("id -u") == 0 {
                command.gid(number(&format!("id -g {user}")));
                command.uid(number(&format!("id -u {user}")));
            }
        });
        Self {
            kind,
            folder: folder.into(),
            programs,
            supervisor,
        }
    }

    /// Kills the server as a crash of its machine would, and starts it again.
    ///
    /// # Panics
    /// If it does not start.
    pub fn crash(&mut self) {
        let answer = self.supervisor.order("crash");
        assert_eq!(answer, "restarted", "the server did not start again");
    }

    /// Returns the folder of its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(match self.kind {
            Kind::Postgres => ".s.PGSQL.5432",
            Kind::Mariadb => "socket",
        })
    }

    /// Returns the URL of a new, empty database.
    pub fn new_database(&self) -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.execute("", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Returns the URL of a database.
    pub fn url(&self, database: &str) -> String {
        let folder = self.folder.display();
        match self.kind {
            Kind::Postgres => format!("postgres:///{database}?host={folder}&user=postgres"),
            Kind::Mariadb => format!("mysql://root@localhost/{database}?unix_socket={folder}/socket"),
        }
    }

    /// Runs a statement with the database's own client; `""` is the database that always exists.
    pub fn execute(&self, database: &str, statement: &str) {
        let mut command = match self.kind {
            Kind::Postgres => {
                let mut command = Command::new(self.programs.join("psql"));
                let database = if database.is_empty() { "postgres" } else { database };
                command.args([
                    "--no-psqlrc",
                    "--quiet",
                    "--username=postgres",
                    "--set=ON_ERROR_STOP=1",
                ]);
                command
                    .arg("--host")
                    .arg(&self.folder)
                    .args(["--dbname", database, "--command", statement]);
                command
            }
            Kind::Mariadb => {
                let mut command = Command::new("mariadb");
                let socket = format!("--socket={}/socket", self.folder.display());
                command.args([
                    "--no-defaults",
                    &socket,
                    "--user=root",
                    "--execute",
                    statement,
                    database,
                ]);
                command
            }
        };
        let output = command.output().expect("the client runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{statement}: {error}");
    }
}

fn newest_postgres() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(version);
    newest
        .expect("PostgreSQL is not there: apt-get install postgresql")
        .join("bin")
}

fn mariadb() -> PathBuf {
    let folder = Path::new("/usr/sbin");
    assert!(
        folder.join("mariadbd").exists(),
        "MariaDB is not there: apt-get install mariadb-server"
    );
    folder.to_owned()
}

fn number(command: &str) -> u32 {
    let output = Command::new("sh")
        .args(["-c", command])
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("`{command}` says {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing is left of a dropped server, even in a panic.
    #[test]
    fn a_server_ends_with_its_owner() {
        for kind in [Kind::Postgres, Kind::Mariadb] {
            let server = Server::start(kind);
            let folder = server.folder.clone();
            server.new_database();
            let owner = std::thread::spawn(move || {
                let _server = server;
                std::panic::resume_unwind(Box::new("the test fails"));
            });
            owner.join().unwrap_err();
            assert!(!folder.exists(), "{}", folder.display());
        }
    }
}
