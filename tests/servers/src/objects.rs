//! A private object store: Ceph with its S3 gateway, from the packages `ceph-mon`, `ceph-osd` and `radosgw`.
//!
//! The objects are in the memory of the server.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::supervisor::Supervisor;

/// A running object store, with S3 on a port of the loopback interface.
#[derive(Debug)]
pub struct ObjectServer {
    endpoint: String,
    _supervisor: Supervisor,
}

/// The access key and the secret key of the server's only user.
pub const ACCESS_KEY: &str = "test-access-key";
/// See [`ACCESS_KEY`].
pub const SECRET_KEY: &str = "test-secret-key";

const CEPH: &str = r#"
    trap '' PIPE
    folder=$(mktemp -d "${TMPDIR:-/tmp}"/batch-ceph-XXXXXX) || exit 1
    processes=
    end() {
        [ -z "$processes" ] || kill -KILL $processes
        wait 2>/dev/null
        rm -rf "$folder"
    }
    trap end EXIT
    mkdir "$folder/mon" "$folder/osd"
    export CEPH_CONF="$folder/ceph.conf"
    id=6c6b1d52-4f5d-4f3a-9d3e-0a4f3a6f8c11
    # Monitors name their addresses before they bind them, so a free port is looked for. Another process may take it meanwhile.
    for try in 1 2 3 4 5; do
        port=$(shuf -i 20000-32000 -n 1)
        cat >"$CEPH_CONF" <<CONF
[global]
fsid = $id
mon host = [v2:127.0.0.1:$port]
public addr = 127.0.0.1
ms bind msgr1 = false
ms bind msgr2 = true
keyring = $folder/keyring
run dir = $folder
admin socket =
pid file =
log file =
log to stderr = true
mon cluster log file =
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
paxos propose interval = 0.05
paxos min wait = 0.01
mon allow pool size one = true
mon max pg per osd = 1000
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 1073741824
[mon.a]
mon data = $folder/mon
[osd.0]
osd data = $folder/osd
[client.rgw]
rgw data = $folder
rgw frontends = beast endpoint=127.0.0.1:$((port + 1))
rgw run sync thread = false
rgw enable gc threads = false
rgw enable lc threads = false
CONF
        rm -rf "$folder"/mon/* "$folder/keyring" "$folder/map"
        ceph-authtool --create-keyring "$folder/keyring" --gen-key -n mon. --cap mon 'allow *'
        for name in client.admin client.rgw osd.0; do
            ceph-authtool "$folder/keyring" --gen-key -n $name --cap mon 'allow *' --cap osd 'allow *'
        done
        monmaptool --create --fsid $id --addv a "[v2:127.0.0.1:$port]" "$folder/map"
        ceph-mon --mkfs -i a --monmap "$folder/map" --keyring "$folder/keyring"
        ceph-mon -f -i a </dev/null &
        processes=$!
        timeout 20 ceph osd new 11111111-1111-4111-8111-111111111111 && break
        kill -KILL $processes
    done >"$folder/log" 2>&1
    {
        ceph-osd -i 0 --mkfs --osd-uuid 11111111-1111-4111-8111-111111111111
        ceph-osd -f -i 0 </dev/null &
        processes="$processes $!"
        radosgw -f -n client.rgw </dev/null &
        gateway=$!
        processes="$processes $gateway"
        timeout 60 radosgw-admin -n client.rgw user create --uid=test --display-name=test \
            --access-key="$ACCESS_KEY" --secret-key="$SECRET_KEY"
    } >>"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    until bash -c "exec 3<>/dev/tcp/127.0.0.1/$((port + 1))" 2>/dev/null; do
        kill -0 $gateway 2>/dev/null || { cat "$folder/log"; exit 1; }
        sleep 0.1
    done
    echo "ready http://127.0.0.1:$((port + 1))"
    while read -r _; do :; done
    end
    trap - EXIT
    echo ended 2>/dev/null
"#;

impl ObjectServer {
    /// Returns the server that all tests of this process share.
    ///
    /// # Panics
    /// If it cannot be started; the message has the reason.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<ObjectServer> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    /// Starts a server for the caller alone.
    ///
    /// # Panics
    /// If it cannot be started; the message has the reason.
    pub fn start() -> Self {
        let missing = "apt-get install ceph-mon ceph-osd radosgw";
        let (supervisor, endpoint) = Supervisor::start(CEPH, missing, |command| {
            command
                .env("ACCESS_KEY", ACCESS_KEY)
                .env("SECRET_KEY", SECRET_KEY);
        });
        Self {
            endpoint,
            _supervisor: supervisor,
        }
    }

    /// Returns the URL of the S3 service.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Creates a bucket, and returns its name.
    pub fn new_bucket(&self) -> String {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("bucket-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        assert_eq!(self.request("PUT", &name, b"").0, 200);
        name
    }

    /// Creates or replaces an object; `path` is `bucket/key`.
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        assert_eq!(self.request("PUT", path, content.as_ref()).0, 200, "{path}");
    }

    /// Returns the content of an object, if it exists.
    pub fn get(&self, path: &str) -> Option<Vec<u8>> {
        let (status, body) = self.request("GET", path, b"");
        (status == 200).then_some(body)
    }

    /// Deletes an object.
    pub fn delete(&self, path: &str) {
        assert_eq!(self.request("DELETE", path, b"").0, 204, "{path}");
    }

    /// Returns the keys of a bucket.
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        self.texts(bucket, "Key")
    }

    /// Returns the ids of the multipart uploads that are not complete.
    pub fn uploads(&self, bucket: &str) -> Vec<String> {
        self.texts(&format!("{bucket}?uploads"), "UploadId")
    }

    /// Returns the texts of an element in an answer.
    fn texts(&self, path: &str, element: &str) -> Vec<String> {
        let (status, body) = self.request("GET", path, b"");
        let body = String::from_utf8_lossy(&body);
        assert_eq!(status, 200, "{body}");
        let start = format!("<{element}>");
        let after = body.split(&start).skip(1);
        after
            .map(|text| text.split('<').next().unwrap_or_default().to_owned())
            .collect()
    }

    /// Sends a request by `curl`, and returns the status and the body of the answer.
    fn request(&self, method: &str, path: &str, content: &[u8]) -> (u16, Vec<u8>) {
        const REQUEST: &str = r#"
            date=$(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S GMT')
            signature=$(printf '%s\n\n\n%s\n/%s' "$METHOD" "$date" "$REQUEST_PATH" |
                openssl dgst -sha1 -hmac "$SECRET_KEY" -binary | base64)
            [ "$METHOD" = PUT ] && set -- --data-binary @-
            exec curl --silent --max-time 30 --write-out '%{http_code}' --request "$METHOD" "$@" \
                --header "Date: $date" --header "Authorization: AWS $ACCESS_KEY:$signature" \
                --header Content-Type: --header Expect: "$ENDPOINT/$REQUEST_PATH"
        "#;
        let mut command = Command::new("sh");
        command.args(["-c", REQUEST]).envs([
            ("METHOD", method),
            ("REQUEST_PATH", path),
            ("ENDPOINT", &self.endpoint),
            ("ACCESS_KEY", ACCESS_KEY),
            ("SECRET_KEY", SECRET_KEY),
        ]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        let mut input = child.stdin.take().expect("piped");
        let output = std::thread::scope(|scope| {
            scope.spawn(move || input.write_all(content));
            child.wait_with_output().expect("curl runs")
        });
        let mut body = output.stdout;
        assert!(body.len() >= 3, "no answer; apt-get install curl openssl");
        let status = body.split_off(body.len() - 3);
        let status = String::from_utf8_lossy(&status).parse();
        (status.expect("a status"), body)
    }
}
