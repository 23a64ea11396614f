//! A private Kafka broker, from the libraries of Kafka, which Maven fetches, and Kafka's own client beside it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::supervisor::Supervisor;

/// A running broker of one node on ports of the loopback interface.
#[derive(Debug)]
pub struct KafkaServer {
    folder: PathBuf,
    ports: [u16; 6],
    proxy: TcpListener,
    supervisor: Supervisor,
    client: Mutex<Client>,
}

/// Kafka's own client, in a process that waits for commands.
#[derive(Debug)]
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// The password of the only user, `ann`.
pub const KAFKA_PASSWORD: &str = "ann's-s3cret";

const KAFKA: &str = r#"
    trap '' PIPE
    folder=$(mktemp -d "${TMPDIR:-/tmp}"/batch-kafka-XXXXXX) || exit 1
    process=
    end() {
        [ -z "$process" ] || kill -KILL $process
        wait 2>/dev/null
        rm -rf "$folder"
    }
    trap end EXIT
    {
        keytool -genkeypair -alias broker -keyalg EC -dname CN=localhost -ext san=ip:127.0.0.1,dns:localhost -validity 2 \
            -storetype PKCS12 -keystore "$folder/keys" -storepass password &&
        keytool -exportcert -rfc -alias broker -keystore "$folder/keys" -storepass password >"$folder/ca.pem"
    } >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    login=org.apache.kafka.common.security
    cat >"$folder/configuration" <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$CONTROLLER
listeners=PLAIN://127.0.0.1:$PLAIN,SASL://127.0.0.1:$SASL,TLS://127.0.0.1:$TLS,PROXY://127.0.0.1:$BEHIND,CONTROLLER://127.0.0.1:$CONTROLLER
advertised.listeners=PLAIN://127.0.0.1:$PLAIN,SASL://127.0.0.1:$SASL,TLS://127.0.0.1:$TLS,PROXY://127.0.0.1:$PROXY
listener.security.protocol.map=PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,PROXY:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAIN
controller.listener.names=CONTROLLER
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl.plain.sasl.jaas.config=$login.plain.PlainLoginModule required user_ann="$PASSWORD";
listener.name.sasl.scram-sha-256.sasl.jaas.config=$login.scram.ScramLoginModule required;
listener.name.sasl.scram-sha-512.sasl.jaas.config=$login.scram.ScramLoginModule required;
listener.name.tls.ssl.keystore.type=PKCS12
listener.name.tls.ssl.keystore.location=$folder/keys
listener.name.tls.ssl.keystore.password=password
log.dirs=$folder/data
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
num.network.threads=1
num.io.threads=2
CONF
    export CLASSPATH="$LIBRARIES/*"
    java="java -Xmx384m -XX:TieredStopAtLevel=1"
    $java kafka.tools.StorageTool format --cluster-id AAAAAAAAAAAAAAAAAAAAAA --config "$folder/configuration" \
        --add-scram "SCRAM-SHA-256=[name=ann,password=$PASSWORD]" --add-scram "SCRAM-SHA-512=[name=ann,password=$PASSWORD]" \
        >>"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    start() {
        $java kafka.Kafka "$folder/configuration" </dev/null >>"$folder/log" 2>&1 &
        process=$!
        until bash -c "exec 3<>/dev/tcp/127.0.0.1/$PLAIN" 2>/dev/null; do
            kill -0 $process 2>/dev/null || { cat "$folder/log"; exit 1; }
            sleep 0.05
        done
        echo "ready $folder"
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

impl KafkaServer {
    /// Starts a broker for the caller alone.
    ///
    /// # Panics
    /// If it cannot be started; the message has the reason.
    pub fn start() -> Self {
        let libraries = libraries();
        // All are taken at once, so they differ.
        let free = [(); 6].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        // Kept, because another connection could take the port before a test listens there.
        let proxy = free[5].try_clone().expect("a second handle");
        let ports = free.map(|listener| listener.local_addr().expect("an address").port());
        let (supervisor, folder) = Supervisor::start(KAFKA, MISSING, |command| {
            command
                .env("LIBRARIES", libraries)
                .env("PASSWORD", KAFKA_PASSWORD);
            let names = ["PLAIN", "SASL", "TLS", "CONTROLLER", "BEHIND", "PROXY"];
            command.envs(names.into_iter().zip(ports.map(|port| port.to_string())));
        });
        let client = Mutex::new(Client::start(libraries, ports[0]));
        Self {
            folder: folder.into(),
            ports,
            proxy,
            supervisor,
            client,
        }
    }

    /// Returns the address where anybody may connect.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[0])
    }

    /// Returns the address where the user `ann` may connect, with [`KAFKA_PASSWORD`].
    pub fn sasl_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[1])
    }

    /// Returns the address of encrypted connections.
    pub fn tls_address(&self) -> String {
        format!("127.0.0.1:{}", self.ports[2])
    }

    /// Returns a listener for a proxy, because the broker sends the clients of the address beside it there.
    ///
    /// # Panics
    /// If the system has no file descriptor left.
    pub fn proxy(&self) -> (TcpListener, String) {
        let listener = self.proxy.try_clone().expect("a second handle");
        (listener, format!("127.0.0.1:{}", self.ports[4]))
    }

    /// Returns the file with the certificate that signs for the broker.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// Executes a command of `Client.java`: its words. Returns the lines of the answer.
    ///
    /// # Panics
    /// If the client reports an error.
    pub fn client(&self, words: &[&str]) -> Vec<String> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.execute(&words.join("\t"))
    }

    /// Kills the broker as `kill -9` does.
    pub fn crash(&mut self) {
        assert_eq!(self.supervisor.order("crash"), "crashed");
    }

    /// Starts it again at the same addresses, with what it has stored.
    pub fn restart(&mut self) {
        self.supervisor.restart(MISSING);
    }
}

const MISSING: &str = "the tests of Kafka want Java and Maven: apt-get install default-jdk-headless maven";

/// Returns the folder of the libraries, fetched by Maven into the folder of the build.
fn libraries() -> &'static Path {
    static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let test = std::env::current_exe().expect("the test's own path");
        let target = test.ancestors().nth(3).expect("it lies in the build folder");
        let libraries = target.join("kafka");
        let maven = Command::new("mvn")
            .args(["-q", "-B", "dependency:copy-dependencies"])
            .arg(format!("-DoutputDirectory={}", libraries.display()))
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/kafka"))
            .output()
            .unwrap_or_else(|error| panic!("mvn: {error}; {MISSING}"));
        let said = String::from_utf8_lossy(&maven.stdout);
        assert!(
            maven.status.success(),
            "Maven cannot fetch Kafka: {said}\n{MISSING}"
        );
        libraries
    })
}

impl Client {
    fn start(libraries: &Path, port: u16) -> Self {
        let mut process = Command::new("java")
            .args(["-XX:TieredStopAtLevel=1", "-Xmx128m", "-cp"])
            .arg(format!("{}/*", libraries.display()))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/kafka/Client.java"))
            .arg(format!("127.0.0.1:{port}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("java: {error}; {MISSING}"));
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let mut client = Self {
            input: process.stdin.take(),
            process,
            output,
        };
        assert_eq!(client.line(), "ready", "{MISSING}");
        client
    }

    fn execute(&mut self, command: &str) -> Vec<String> {
        let input = self.input.as_mut().expect("piped");
        writeln!(input, "{command}").expect("the client lives");
        let mut answer = Vec::new();
        loop {
            let line = self.line();
            match line.strip_prefix('!') {
                Some(problem) => panic!("{command}: {problem}"),
                None if line == "=" => return answer,
                None => answer.push(line),
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("readable");
        line.trim_end_matches('\n').to_owned()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
