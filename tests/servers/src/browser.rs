//! A private WebDriver for Chromium, from the packages `chromium` and `chromium-driver`.

use std::sync::OnceLock;

use crate::supervisor::Supervisor;

/// A running `chromedriver` on a port of the loopback interface. Each of its sessions starts a separate browser.
#[derive(Debug)]
pub struct BrowserDriver {
    url: String,
    _supervisor: Supervisor,
}

const CHROMEDRIVER: &str = r#"
    trap '' PIPE
    folder=$(mktemp -d "${TMPDIR:-/tmp}"/batch-browser-XXXXXX) || exit 1
    process=
    end() {
        [ -z "$process" ] || { pkill -KILL -P $process; kill -KILL $process; }
        wait 2>/dev/null
        pkill -KILL -f "user-data-dir=$folder/" 2>/dev/null
        rm -rf "$folder"
    }
    trap end EXIT
    command -v chromium >/dev/null || { echo "chromium is not there"; exit 1; }
    TMPDIR="$folder" HOME="$folder" chromedriver --port=0 </dev/null >"$folder/output" 2>&1 &
    process=$!
    until port=$(grep -o 'successfully on port [0-9]*' "$folder/output" | grep -o '[0-9]*$'); do
        kill -0 $process 2>/dev/null || { cat "$folder/output"; exit 1; }
        sleep 0.02
    done
    echo "ready http://127.0.0.1:$port"
    read -r order
    end
    trap - EXIT
    echo ended 2>/dev/null
"#;

const MISSING: &str = "apt-get install chromium chromium-driver";

impl BrowserDriver {
    /// Returns the driver that all tests of this process share.
    ///
    /// # Panics
    /// If it cannot be started; the message has the reason and the missing packages.
    pub fn shared() -> &'static Self {
        static DRIVER: OnceLock<BrowserDriver> = OnceLock::new();
        DRIVER.get_or_init(|| {
            let (supervisor, url) = Supervisor::start(CHROMEDRIVER, MISSING, |_| {});
            Self {
                url,
                _supervisor: supervisor,
            }
        })
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }
}
