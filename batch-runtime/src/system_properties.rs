//! The system properties.
// Spec: OVR-15, D-37

use std::collections::BTreeMap;
use std::env;

/// Returns the properties of every runtime; no others are imported from the environment.
pub(crate) fn platform() -> BTreeMap<String, String> {
    let path =
        |path: Option<std::path::PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
    let user = env::var("USER")
        .or_else(|_| env::var("LOGNAME"))
        .or_else(|_| env::var("USERNAME"));
    let path_separator = if cfg!(windows) { ";" } else { ":" };
    let line_separator = if cfg!(windows) { "\r\n" } else { "\n" };
    [
        ("file.separator", std::path::MAIN_SEPARATOR.to_string()),
        ("path.separator", path_separator.to_owned()),
        ("line.separator", line_separator.to_owned()),
        ("user.dir", path(env::current_dir().ok())),
        ("user.home", path(env::home_dir())),
        ("user.name", user.unwrap_or_default()),
        ("java.io.tmpdir", path(Some(env::temp_dir()))),
        ("os.name", env::consts::OS.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
