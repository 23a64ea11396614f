//! The rules of the project: which file may use which, the length of files and functions, forbidden text.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod tidy {
    pub(crate) mod functions;
    pub(crate) mod imports;
}

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidy::functions::functions;
use tidy::imports::Crate;

/// The maximum length of a source file, in lines.
const MAX_LINES: usize = 900;

/// The maximum length of a function of library code, in lines.
const MAX_FUNCTION_LINES: usize = 60;

/// The sources of the library crates.
const LIBRARIES: [&str; 7] = [
    "batch-macros/src",
    "batch-xml/src",
    "batch-runtime/src",
    "batch-cli/src",
    "batch-items/src",
    "batch-testing/src",
    "integrations",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// Returns every file under these folders of the root with this extension: its path from the root, and its text.
fn files(folders: &[&str], extensions: &[&str]) -> Vec<(String, String)> {
    let mut pending: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    let mut found = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.is_symlink() {
            // The text of another file.
        } else if extensions
            .iter()
            .any(|one| path.extension().is_some_and(|it| it == *one))
        {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(!found.is_empty(), "{folders:?}");
    found.sort();
    found
}

/// Returns every Rust file under these folders of the root.
fn sources(folders: &[&str]) -> Vec<(String, String)> {
    files(folders, &["rs"])
}

/// Returns the folder with the sources of each library crate.
fn source_folders() -> Vec<String> {
    let mut folders = Vec::new();
    for folder in LIBRARIES {
        match folder {
            "integrations" => {
                let crates = fs::read_dir(root().join(folder)).unwrap();
                let names = crates.map(|entry| entry.unwrap().file_name().into_string().unwrap());
                folders.extend(names.map(|name| format!("{folder}/{name}/src")));
            }
            _ => folders.push(folder.to_owned()),
        }
    }
    folders
}

/// Returns the sources of the library crates.
fn library_sources() -> Vec<(String, String)> {
    let folders = source_folders();
    sources(&folders.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the code of a file without comments and unit tests.
fn code(text: &str) -> String {
    let text = text.split("\nmod tests {").next().unwrap();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn check_absent(folder: &str, allowed: &[&str], words: &[&str]) {
    for (name, text) in sources(&[folder]) {
        if allowed.iter().any(|allowed| name.starts_with(allowed)) {
            continue;
        }
        for word in words {
            assert!(
                !code(&text).contains(word),
                "{name} names `{word}`, which belongs to {allowed:?}"
            );
        }
    }
}

/// Threads start in `thread.rs`, so that each has a name.
#[test]
fn threads_of_the_runtime_start_in_one_place() {
    let allowed = [
        "batch-runtime/src/thread.rs",
        // Tests.
        "batch-runtime/src/repository/diesel/per_backend/races.rs",
        "batch-runtime/src/repository/diesel/per_backend/launch_tests.rs",
        "batch-runtime/src/repository/diesel/per_backend/notification_tests.rs",
        "batch-runtime/src/repository/diesel/per_server/tests.rs",
        "batch-runtime/src/repository/memory/tests.rs",
        "batch-runtime/src/repository/diesel/sqlite/tests.rs",
    ];
    let words = [
        "thread::Builder",
        "thread::spawn",
        "thread::scope(",
        "crossbeam::thread",
        "crossbeam::scope",
    ];
    check_absent("batch-runtime/src", &allowed, &words);
}

#[test]
fn each_library_is_named_in_one_place() {
    check_absent(
        "batch-xml/src",
        &["batch-xml/src/reader.rs", "batch-xml/src/xml.rs"],
        &["quick_xml"],
    );
    let runtime = "batch-runtime/src";
    let registry = ["batch-runtime/src/artifact/linked.rs", "batch-runtime/src/lib.rs"];
    check_absent(runtime, &registry, &["inventory"]);
    check_absent(
        runtime,
        &["batch-runtime/src/clock.rs", "batch-runtime/src/time_zone.rs"],
        &["jiff"],
    );
    check_absent(
        runtime,
        &["batch-runtime/src/repository"],
        &["diesel::", "diesel_migrations"],
    );
    check_absent(runtime, &[], &["clap", "println!"]);
    let cli = "batch-cli/src";
    check_absent(
        cli,
        &["batch-cli/src/prometheus.rs"],
        &["metrics_exporter_prometheus"],
    );
    // batch-otel knows OpenTelemetry, and the command line knows batch-otel.
    for folder in [
        runtime,
        cli,
        "batch-items/src",
        "batch-testing/src",
        "integrations/batch-nats/src",
    ] {
        check_absent(folder, &[], &["opentelemetry"]);
    }
    check_absent(
        cli,
        &["batch-cli/src/telemetry.rs"],
        &["batch_otel", "batch_lineage"],
    );
    check_absent(cli, &["batch-cli/src/notify.rs"], &["batch_notify"]);
    check_absent(
        "integrations/batch-console/src",
        &["integrations/batch-console/src/digest.rs"],
        &["hmac::", "sha2"],
    );
    check_absent(
        "integrations/batch-notify/src",
        &["integrations/batch-notify/src/webhook.rs"],
        &["ureq"],
    );
    check_absent(
        "integrations/batch-notify/src",
        &["integrations/batch-notify/src/signature.rs"],
        &["hmac::", "sha2"],
    );
    check_absent(
        "integrations/batch-otel/src",
        &[
            "integrations/batch-otel/src/transport.rs",
            "integrations/batch-otel/src/telemetry.rs",
        ],
        &["ureq"],
    );
    check_absent(
        "integrations/batch-lineage/src",
        &[
            "integrations/batch-lineage/src/transport.rs",
            "integrations/batch-lineage/src/config.rs",
        ],
        &["ureq"],
    );
    check_absent(
        cli,
        &["batch-cli/src/progress/screen.rs", "batch-cli/src/print.rs"],
        &["rustix"],
    );
    check_absent(cli, &["batch-cli/src/settings"], &["toml::"]);
    check_absent(cli, &["batch-cli/src/signals.rs"], &["signal_hook"]);
    check_absent(cli, &["batch-cli/src/tables.rs"], &["comfy_table"]);
    // Output goes through `print`, which survives a closed pipe.
    check_absent(cli, &[], &["println!"]);
}

/// A crate's `__private` is for generated code, which `batch-macros` writes, for the tests of that code, and for
/// fuzzing.
#[test]
fn no_crate_names_the_private_module_of_another() {
    let allowed = [
        "batch-runtime/src/lib.rs",
        "batch-xml/src/lib.rs",
        "tests/annotations",
        "tests/tidy.rs",
        "tests/ui",
    ];
    for folder in [
        "batch-xml",
        "batch-runtime",
        "batch-cli",
        "batch-items",
        "batch-testing",
        "integrations",
        "examples",
        "benches",
        "tests",
    ] {
        check_absent(folder, &allowed, &["__private"]);
    }
}

/// The command line uses only the public API of the runtime, as a web console would.
#[test]
fn the_command_line_depends_on_the_runtime_only() {
    check_absent(
        "batch-cli/src",
        &[],
        &["batch_xml::", "batch_macros", "diesel", "inventory"],
    );
    let manifest = fs::read_to_string(root().join("batch-cli/Cargo.toml")).unwrap();
    for private in ["batch-xml", "batch-macros", "diesel"] {
        assert!(!manifest.contains(private), "batch-cli depends on {private}");
    }
}

/// The items and the test kit use the annotations and the public API, as any library would.
#[test]
fn the_libraries_depend_on_the_public_runtime_only() {
    for folder in ["batch-items/src", "batch-testing/src", "integrations"] {
        check_absent(folder, &[], &["batch_xml::", "batch_macros", "inventory"]);
    }
}

/// The edges of ARCHITECTURE.md: no module uses a later one.
#[test]
fn the_dependencies_point_one_way() {
    // Each module of the runtime may use those before it in this list, and none after it.
    let order = ["artifact", "context", "engine", "loader", "runtime", "operator"];
    let above = |place: &str| -> Vec<String> {
        let rest = order.iter().skip_while(|other| **other != place).skip(1);
        rest.map(|other| format!("crate::{other}")).collect()
    };
    let check = |path: &str, absent: &[String]| {
        let absent: Vec<&str> = absent.iter().map(String::as_str).collect();
        check_absent(&format!("batch-runtime/src/{path}"), &[], &absent);
    };
    for leaf in [
        "status.rs",
        "ids.rs",
        "clock.rs",
        "time_zone.rs",
        "error.rs",
        "parameters",
        "layout.rs",
        "secret.rs",
        "checkpoint.rs",
        "execution.rs",
    ] {
        let mut absent = above("");
        absent.extend(order.iter().map(|place| format!("crate::{place}")));
        absent.push("crate::repository".into());
        check(leaf, &absent);
    }
    let mut above_repository = above("artifact");
    above_repository.push("crate::artifact".into());
    check("repository", &above_repository);
    // A context is a handle for artifacts; it does not depend on them.
    check("artifact", &above("context"));
    check("role", &above("context"));
    check("context", &above("context"));
    check("engine", &above("engine"));
    check(
        "engine",
        &["batch_xml", "registry", "SystemTime"].map(String::from),
    );
    check(
        "loader",
        &[above("loader"), vec!["crate::repository".into()]].concat(),
    );
    check("operator", &above("operator"));
    for crates in ["batch-macros/src", "batch-xml/src"] {
        check_absent(crates, &[], &["use batch_runtime", "diesel::", "std::thread"]);
    }
}

/// Functions fit a screen. Their parameters have names: no tuple is made only to have fewer.
#[test]
fn functions_are_short() {
    let (mut long, mut with_tuples) = (Vec::new(), Vec::new());
    for (name, text) in library_sources() {
        for function in functions(&code(&text)) {
            let place = format!("{name} {}", function.name);
            // `From` of a tuple takes one.
            if function.takes_tuples && function.name != "from" {
                with_tuples.push(place.clone());
            }
            if function.length > MAX_FUNCTION_LINES {
                long.push((place, function.length));
            }
        }
    }
    assert!(with_tuples.is_empty(), "these take tuples: {with_tuples:#?}");
    assert!(
        long.is_empty(),
        "{MAX_FUNCTION_LINES} lines are allowed: {long:#?}"
    );
}

/// No file uses an item of another file that uses, directly or indirectly, an item of the first.
#[test]
fn imports_have_no_cycle() {
    let mut found = BTreeSet::new();
    for folder_of_crate in &source_folders() {
        let files = sources(&[folder_of_crate]).into_iter().map(|(name, text)| {
            let name = name
                .strip_prefix(folder_of_crate)
                .unwrap()
                .trim_start_matches('/');
            (name.to_owned(), code(&text))
        });
        let sources = Crate::new(files);
        let cycles = sources.cycles();
        found.extend(
            cycles
                .iter()
                .map(|cycle| format!("{folder_of_crate}: {}", cycle.join(" > "))),
        );
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn files_are_short_and_have_a_header() {
    for (name, text) in sources(&[
        "batch-macros/src",
        "batch-xml/src",
        "batch-runtime/src",
        "batch-cli/src",
        "batch-items/src",
        "batch-items/tests",
        "batch-testing/src",
        "batch-testing/tests",
        "integrations",
        "examples",
        "fuzz/src",
        "fuzz/fuzz_targets",
        "tests/support",
    ]) {
        let lines = text.lines().count();
        assert!(
            lines <= MAX_LINES,
            "{name} has {lines} lines; {MAX_LINES} are allowed"
        );
        assert!(text.starts_with("//!"), "{name} does not begin with what it owns");
    }
}

/// Requirements are for those who read the code, not for users of rustdoc.
#[test]
fn documentation_has_no_requirement_tags() {
    for (name, text) in library_sources() {
        let tagged = text
            .lines()
            .map(str::trim_start)
            .find(|line| (line.starts_with("///") || line.starts_with("//!")) && line.contains("Spec:"));
        assert!(tagged.is_none(), "{name}: use `//` for {tagged:?}");
    }
}

/// Phrases that make readers stop are rare: repeat the noun, or make two sentences. The catalogue of requirements may have them.
#[test]
fn sentences_have_few_detours() {
    let folders = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "docs/guide",
        "docs/performance.md",
        "examples",
        "integrations",
        "tests",
    ];
    let crates = LIBRARIES.iter().filter_map(|folder| folder.strip_suffix("/src"));
    let folders: Vec<&str> = folders.into_iter().chain(crates).collect();
    let mut text = String::new();
    for (_, file) in files(&folders, &["rs", "md"]) {
        let words = file.split_whitespace().filter(|word| !word.starts_with("//"));
        words.for_each(|word| text.extend([word, " "]));
    }
    let count = |phrases: &str| {
        phrases
            .split(", ")
            .map(|phrase| text.matches(&format!(" {phrase} ")).count())
            .sum::<usize>()
    };
    for (most, phrases) in [
        (110, "that of, those of"),
        (
            70,
            "of which, in which, to which, by which, from which, at which, on which, with which, for which, after which, before which",
        ),
        (41, "of its own, of their own"),
    ] {
        let found = count(phrases);
        assert!(found <= most, "{found} of `{phrases}`; {most} are allowed");
    }
}

#[test]
fn no_marker_of_unfinished_work() {
    let words = [
        "todo!(",
        "unimplemented!(",
        "dbg!(",
        "#[ignore",
        "#[should_panic",
        "TODO ",
    ];
    let crates = [
        "batch-macros/src",
        "batch-xml",
        "batch-runtime/src",
        "batch-cli/src",
        "batch-items",
        "batch-testing",
        "integrations",
    ];
    for folder in crates.iter().chain(&["examples"]) {
        check_absent(folder, &[], &words);
    }
    for (name, text) in sources(&crates) {
        assert!(!code(&text).contains("unsafe {"), "{name} has unsafe code");
    }
}

/// No diagnostic can lose its test unnoticed: every code is in a test or in a snapshot of one.
#[test]
fn every_code_of_a_diagnostic_is_tested() {
    let is_code = |word: &str| {
        let (letters, digits) = word.split_at(word.len().saturating_sub(4));
        matches!(letters, "JSL" | "ART" | "PATH") && digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    let mut codes: Vec<String> = Vec::new();
    for (_, text) in sources(&["batch-xml/src", "batch-runtime/src"]) {
        let words = code(&text);
        let words = words.split('"').filter(|word| word.is_ascii() && is_code(word));
        codes.extend(words.map(str::to_owned));
    }
    codes.sort();
    codes.dedup();
    assert!(codes.len() > 50, "{codes:?}");
    let this = "tests/tidy.rs";
    let tests: Vec<String> = files(&["batch-xml/tests", "tests"], &["rs", "snap"])
        .into_iter()
        .filter(|(name, _)| name != this)
        .map(|(_, text)| text)
        .collect();
    let untested: Vec<&String> = codes
        .iter()
        .filter(|code| !tests.iter().any(|text| text.contains(code.as_str())))
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
}

/// A published crate can be used without this repository: it has licences, a page of its own whose links work anywhere, and documentation of all features.
#[test]
fn published_crates_are_complete() {
    let root = root();
    let published = published();
    for (folder, manifest) in &published {
        let path = folder.display();
        let read = |name: &str| {
            let file = folder.join(name);
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert_eq!(
                read(licence),
                fs::read_to_string(root.join(licence)).unwrap(),
                "{path}"
            );
        }
        let name = manifest.split('"').nth(1).unwrap();
        let page = read("README.md");
        assert!(page.starts_with(&format!("# {name}\n")), "{path}: {page}");
        for (at, _) in page.match_indices("](") {
            let target = &page[at + 2..];
            assert!(target.starts_with("https://docs.rs/"), "{path} links to {target}");
        }
        for part in [
            "\ndescription = ",
            "\nkeywords = ",
            "\ncategories = ",
            "\n[package.metadata.docs.rs]\n",
        ] {
            assert!(manifest.contains(part), "{path} lacks {part}");
        }
    }
    assert_eq!(published.len(), 18);
}

/// Returns the folders of the published crates, and their manifests.
fn published() -> Vec<(PathBuf, String)> {
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = workspace.lines().find(|line| line.starts_with("members"));
    let folders = members.unwrap().split('"').skip(1).step_by(2);
    let manifests = folders.map(|path| {
        let folder = root().join(path);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        (folder, manifest)
    });
    manifests
        .filter(|(_, manifest)| !manifest.contains("\npublish = false"))
        .collect()
}

/// The table of features of each published crate has all its features, and marks the default ones.
#[test]
fn features_are_documented() {
    for (folder, manifest) in published() {
        let Some((_, features)) = manifest.split_once("\n[features]\n") else {
            continue;
        };
        let features: Vec<&str> = features
            .lines()
            .take_while(|line| !line.starts_with('['))
            .collect();
        let default = features
            .iter()
            .find_map(|line| line.strip_prefix("default = "))
            .unwrap_or_default();
        // The table of the command line is in the guide.
        let page = match folder.file_name().and_then(|name| name.to_str()) {
            Some("batch-cli") => root().join("docs/guide/command-line.md"),
            Some("batch") => folder.join("src/main.rs"),
            _ => folder.join("src/lib.rs"),
        };
        let page = fs::read_to_string(page).unwrap();
        let rows: String = page
            .lines()
            .filter_map(|line| line.trim_start_matches("//! ").strip_prefix("| "))
            .filter_map(|row| row.split('|').next())
            .collect();
        for name in features
            .iter()
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, _)| name)
        {
            if name == "default" || name.starts_with('#') {
                continue;
            }
            let mark = match default.contains(&format!("\"{name}\"")) {
                true => format!("`{name}` (default)"),
                false => format!("`{name}`"),
            };
            let is_marked = rows.contains(&format!("`{name}` (default)"));
            assert!(rows.contains(&mark), "{}: no row for {mark}", folder.display());
            assert_eq!(is_marked, mark.ends_with(')'), "{}: {mark}", folder.display());
        }
    }
}

/// The notes of the version that is released next are read in five minutes.
#[test]
fn the_changelog_has_notes_of_this_version() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let manifest = read("Cargo.toml");
    let (_, version) = manifest.split_once("[workspace.package]\nversion = \"").unwrap();
    let heading = format!("\n## {}", version.split('"').next().unwrap());
    let changelog = read("CHANGELOG.md");
    let notes = changelog.split("\n## ").nth(1).unwrap();
    assert!(changelog.contains(&heading), "no section {heading}");
    let words = notes.split_whitespace().count();
    assert!(words <= 1_200, "{words} words take longer than five minutes");
}

/// No file contains an address of the sources, so that a fork can publish them.
#[test]
fn no_file_links_to_the_sources() {
    let own = ["github.com/batch-", "runtime"].concat();
    let folders = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Cargo.toml",
        "README.md",
        "RELEASING.md",
        "batch",
        "batch-cli",
        "batch-items",
        "batch-macros",
        "batch-runtime",
        "batch-testing",
        "batch-xml",
        "docs",
        "examples",
        "integrations",
        "migrations",
        "tests",
    ];
    for (name, text) in files(&folders, &["rs", "md", "toml", "html"]) {
        assert!(!text.contains(&own), "{name}");
    }
}

/// Each page that names the oldest compiler names the one of `rust-version`.
#[test]
fn the_oldest_compiler_is_named_alike() {
    let read = |name: &str| fs::read_to_string(root().join(name)).unwrap();
    let manifest = read("Cargo.toml");
    let (_, rest) = manifest.split_once("rust-version = \"").unwrap();
    let oldest = rest.split('"').next().unwrap();
    for (name, before) in [
        ("README.md", "Rust "),
        ("docs/guide/platforms.md", "Rust "),
        ("docs/guide/stability.md", "Rust "),
        (".github/workflows/ci.yml", "install "),
        (".github/workflows/ci.yml", "cargo +"),
    ] {
        assert!(
            read(name).contains(&format!("{before}{oldest} ")),
            "{name}: {before}{oldest}"
        );
    }
}

/// The README is one screen and one page.
#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.split_whitespace().count() <= 700);
}
