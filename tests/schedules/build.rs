//! Takes the state types of the engine as they are, and once more with each of some faults.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// A fault: its name, the file, what stands there, and what stands there instead.
const FAULTS: [(&str, &str, &str, &str); 6] = [
    (
        "batchlet_after_stop",
        "worker.rs",
        "        if self.stop_requested() {\n            return false;\n        }\n        *slot",
        "        *slot",
    ),
    (
        "cancel_without_lock",
        "worker.rs",
        "let running = lock(&self.batchlet);\n        let Some(batchlet) = running\n            .as_ref()",
        "let running = lock(&self.batchlet).clone();\n        let Some(batchlet) = running\n            .as_ref()",
    ),
    (
        "cancelled_twice",
        "worker.rs",
        "!self.cancelled.swap(true, Ordering::Relaxed)",
        "true",
    ),
    (
        "child_missed",
        "worker.rs",
        "        if self.stop_requested() {\n            child.request_stop();\n        }\n",
        "",
    ),
    ("nobody_woken", "worker.rs", "self.stopped.notify_all();", ""),
    (
        "thread_missed",
        "workers.rs",
        "        if self.stop_requested() {\n            worker.request_stop();\n        }\n",
        "",
    ),
];

fn main() {
    let engine = Path::new("../../batch-runtime/src/engine");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let names = FAULTS.iter().map(|(name, ..)| *name);
    for variant in ["real"].into_iter().chain(names) {
        fs::create_dir_all(out.join(variant)).expect("a folder");
        for file in ["worker.rs", "workers.rs"] {
            let path = engine.join(file);
            println!("cargo::rerun-if-changed={}", path.display());
            let text =
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            // Included text has no documentation of its module.
            let lines = text.lines().filter(|line| !line.starts_with("//!"));
            let mut text: String = lines.flat_map(|line| [line, "\n"]).collect();
            for (name, of_file, right, wrong) in FAULTS {
                if name == variant && of_file == file {
                    assert!(
                        text.contains(right),
                        "`{name}`: what it changes is not in {file} any more"
                    );
                    text = text.replace(right, wrong);
                }
            }
            fs::write(out.join(variant).join(file), text).expect("written");
        }
    }
}
