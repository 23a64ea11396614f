//! A private NATS server with JetStream, from the package `nats-server`.

use std::sync::OnceLock;

use crate::supervisor::Supervisor;

/// A running server on a port of the loopback interface.
#[derive(Debug)]
pub struct NatsServer {
    url: String,
    supervisor: Supervisor,
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
        let (supervisor, url) = Supervisor::start(NATS, MISSING, |command| {
            command.env("CONFIGURATION", configuration);
        });
        Self { url, supervisor }
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Kills the server as `kill -9` does.
    pub fn crash(&mut self) {
        assert_eq!(self.supervisor.order("crash"), "crashed");
    }

    /// Starts it again at the same address, with what it has stored.
    pub fn restart(&mut self) {
        assert_eq!(self.supervisor.restart(MISSING), self.url);
    }
}

const MISSING: &str = "apt-get install nats-server";
