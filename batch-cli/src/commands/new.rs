//! `new`: starts a crate with a job.

use std::fs;
use std::path::{self, Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use crate::error::CliError;
use crate::print::outln;
use crate::session::{Outcome, Session};

/// Creates a crate with a job, its artifacts and its tests
#[derive(Args, Debug)]
pub(crate) struct New {
    /// Folder of the crate, which must not exist; its last part is the name of the crate and of the job
    folder: PathBuf,
    /// Folder with the crates of batch-runtime, to use instead of the published ones
    #[arg(long, value_name = "DIR")]
    crates: Option<PathBuf>,
}

/// The files of the crate, and their texts; `NAME` is replaced.
const FILES: [(&str, &str); 9] = [
    ("Cargo.toml", include_str!("../../template/manifest.toml")),
    (".gitignore", include_str!("../../template/gitignore")),
    ("build.rs", include_str!("../../template/build.rs")),
    ("README.md", include_str!("../../template/README.md")),
    ("jobs/NAME.xml", include_str!("../../template/job.xml")),
    ("data/orders.csv", include_str!("../../template/orders.csv")),
    ("src/main.rs", include_str!("../../template/main.rs")),
    ("src/orders.rs", include_str!("../../template/orders.rs")),
    ("src/tests.rs", include_str!("../../template/tests.rs")),
];

impl New {
    pub(crate) fn run(self, _session: &Session) -> Outcome {
        let folder = self.folder.as_path();
        let name = crate_name(folder)?;
        let crates = match &self.crates {
            Some(crates) => {
                let folder = path::absolute(crates).map_err(CliError::file("read", crates))?;
                // With a folder without the crates the first build would fail.
                let manifest = folder.join("batch-runtime/Cargo.toml");
                manifest.metadata().map_err(CliError::file("read", &manifest))?;
                Some(folder)
            }
            None => None,
        };
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).map_err(CliError::file("create", parent))?;
        }
        // Fails if it exists.
        fs::create_dir(folder).map_err(CliError::file("create", folder))?;
        for (file, text) in FILES {
            let path = folder.join(file.replace("NAME", &name));
            let mut text = text.replace("NAME", &name);
            if file == "Cargo.toml" {
                text = manifest(&text, crates.as_deref());
                if is_within_workspace(folder) {
                    text += OWN_WORKSPACE;
                }
            }
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(CliError::file("create", parent))?;
            }
            fs::write(&path, text).map_err(CliError::file("write", &path))?;
        }
        outln!("created the crate `{name}`; now:");
        outln!("  cd {}", folder.display());
        outln!("  cargo run -- launch {name}");
        outln!("  cargo test");
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the manifest with the places of the crates: a folder, or the registry.
fn manifest(text: &str, crates: Option<&Path>) -> String {
    let lines = text
        .lines()
        .map(|line| match (line.split_once(" = CRATE"), crates) {
            (Some((name, _)), Some(crates)) => {
                let mut path = crates.join(name);
                if !path.exists() {
                    path = crates.join("integrations").join(name);
                }
                let path = path.display().to_string();
                let path = path.replace('\\', r"\\").replace('"', r#"\""#);
                format!("{name} = {{ path = \"{path}\" }}\n")
            }
            (Some((name, _)), None) => format!("{name} = \"{}\"\n", env!("CARGO_PKG_VERSION")),
            (None, _) => format!("{line}\n"),
        });
    lines.collect()
}

/// Without it, cargo would reject a crate within a workspace that does not list it.
const OWN_WORKSPACE: &str = "\n# The workspace around this crate does not list it.\n[workspace]\n";

/// Returns whether a folder above is a workspace of cargo.
fn is_within_workspace(folder: &Path) -> bool {
    let absolute = path::absolute(folder).unwrap_or_default();
    let manifests = absolute.ancestors().skip(1).map(|above| above.join("Cargo.toml"));
    let mut texts = manifests.filter_map(|manifest| fs::read_to_string(manifest).ok());
    texts.any(|text| {
        text.lines()
            .any(|line| line.trim_start().starts_with("[workspace"))
    })
}

/// Returns the name of the crate, which is also the id of the job.
fn crate_name(folder: &Path) -> Result<String, CliError> {
    let name = folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_inner);
    // Cargo rejects these, or the crate would depend on itself.
    const TAKEN: [&str; 9] = [
        "serde",
        "test",
        "core",
        "std",
        "alloc",
        "deps",
        "build",
        "examples",
        "incremental",
    ];
    let is_taken = TAKEN.contains(&name.as_str()) || name.starts_with("batch-");
    if is_valid && !is_taken {
        return Ok(name);
    }
    Err(CliError::CrateName(name))
}
