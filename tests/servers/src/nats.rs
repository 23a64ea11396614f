//! A private NATS server with JetStream, from the package `nats-server`.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// A running server on a port of the loopback interface.
#[derive(Debug)]
pub struct NatsServer {
    url: String,
    /// As of [`Server`](crate::Server).
    supervisor: Child,
    output: BufReader<ChildStdout>,
}

const NATS: &str = r#"
    trap '' PIPE
    folder=$(mktemp -d "${TMPDIR:-/tmp}"/batch-nats-XXXXXX) || exit 1
    port=-1
    process=
    end() {
        [ -z "$process" ] || kill -KILL $process
        wait 2>/dev/null
        rm -rf "$folder"
    }
    trap end EXIT
    printf '%s' "$CONFIGURATION" >"$folder/configuration"
    start() {
        rm -f "$folder"/*.ports
        nats-server -c "$folder/configuration" -a 127.0.0.1 -p "$port" -js -sd "$folder/store" --ports_file_dir "$folder" \
            -l "$folder/log" </dev/null >"$folder/output" 2>&1 &
        process=$!
        until [ -s "$folder/nats-server_$process.ports" ]; do
            kill -0 $process 2>/dev/null || { cat "$folder/output" "$folder/log"; exit 1; }
            sleep 0.02
        done
        port=$(grep -o '127\.0\.0\.1:[0-9]*' "$folder/nats-server_$process.ports" | head -n 1 | cut -d : -f 2)
        echo "ready nats://127.0.0.1:$port"
    }
    start
    while read -r order; do
        case $order in
            crash) kill -KILL $process; wait $process 2>/dev/null; process=; echo crashed ;;
            restart) start ;;
        esac
    done
    end
    trap - EXIT
    echo ended 2>/dev/null
"#;

impl NatsServer {
    /// Returns the server that all tests of this process share.
    ///
    /// # Panics
    /// If it cannot be started; the message has the reason.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<NatsServer> = OnceLock::new();
        SERVER.get_or_init(|| Self::start(""))
    }

    /// Starts a server for the caller alone, with additional lines of its configuration.
    ///
    /// # Panics
    /// If it cannot be started; the message has the reason.
    pub fn start(configuration: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", NATS]);
        command.env("CONFIGURATION", configuration).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.process_group(0);
        let mut supervisor = command.spawn().expect("a shell");
        let output = BufReader::new(supervisor.stdout.take().expect("piped"));
        let mut server = Self {
            url: String::new(),
            supervisor,
            output,
        };
        server.url = server.started();
        server
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Kills the server as `kill -9` does.
    pub fn crash(&mut self) {
        self.order("crash");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        assert_eq!(line, "crashed\n");
    }

    /// Starts it again at the same address, with what it has stored.
    pub fn restart(&mut self) {
        self.order("restart");
        assert_eq!(self.started(), self.url);
    }

    fn order(&mut self, order: &str) {
        let input = self.supervisor.stdin.as_mut().expect("piped");
        writeln!(input, "{order}").expect("the supervisor lives");
    }

    /// Waits until it accepts connections, and returns its URL.
    fn started(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        match line.trim_end().strip_prefix("ready ") {
            Some(url) => url.to_owned(),
            None => {
                self.output.read_to_string(&mut line).expect("readable");
                panic!("the NATS server did not start; apt-get install nats-server:\n{line}");
            }
        }
    }
}

/// The supervisor ends the server when its input is closed.
impl Drop for NatsServer {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let mut rest = String::new();
        let _ = self.output.read_to_string(&mut rest);
        let _ = self.supervisor.wait();
    }
}
