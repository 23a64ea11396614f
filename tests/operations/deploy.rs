//! The files of `examples/deploy` and `examples/cluster/deploy`: their command lines run, their exit codes match the guide, and they leave
//! a job the time to stop.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use batch_tests::deadline;
use batch_tests::process::{ended, example, text};
use tempfile::TempDir;

/// The default of `shutdown-timeout`, in seconds.
const SHUTDOWN_TIMEOUT: u64 = 30;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// The entries of a unit file: section, key, value.
fn unit(file: &str) -> Vec<(String, String, String)> {
    let text = read(file);
    let (mut section, mut entries) = (String::new(), Vec::new());
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match (line.strip_prefix('['), line.split_once('=')) {
            (Some(name), _) => section = name.strip_suffix(']').unwrap().to_owned(),
            (None, Some((key, value))) => entries.push((section.clone(), key.to_owned(), value.to_owned())),
            (None, None) => panic!("{file}: {line}"),
        }
    }
    entries
}

/// Returns the value of a key that occurs once.
fn value(unit: &[(String, String, String)], section: &str, key: &str) -> String {
    let mut values = unit.iter().filter(|(of, name, _)| of == section && name == key);
    let (_, _, value) = values.next().unwrap_or_else(|| panic!("no {key}"));
    assert!(values.next().is_none(), "{key} occurs twice");
    value.clone()
}

/// The values of a manifest that uses the simple part of YAML: paths such as `spec.containers.-.name`, and values as written.
fn yaml(file: &str) -> Vec<(String, String)> {
    let text = read(file);
    let mut parents: Vec<(usize, String)> = Vec::new();
    let mut values = Vec::new();
    for line in text.lines() {
        let mut content = line.trim_start();
        let mut indent = line.len() - content.len();
        if content.is_empty() || content.starts_with('#') || content == "---" {
            continue;
        }
        parents.retain(|(of, _)| *of < indent);
        if let Some(item) = content.strip_prefix("- ") {
            parents.push((indent, "-".into()));
            (content, indent) = (item, indent + 2);
        }
        let (key, value) = content
            .split_once(':')
            .unwrap_or_else(|| panic!("{file}: {line}"));
        if value.is_empty() {
            parents.push((indent, key.to_owned()));
        } else {
            let path = parents.iter().map(|(_, name)| name.as_str()).chain([key]);
            let path: Vec<&str> = path.collect();
            values.push((path.join("."), value.trim().to_owned()));
        }
    }
    values
}

/// A machine that has the program, its input, and a clock that stands.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        let machine = Self { folder };
        machine.install("date", "#!/bin/sh\n[ \"$1\" = +%F ] && echo 2026-11-20\n");
        let program = example("flights").display().to_string();
        machine.install("flights", &format!("#!/bin/sh\nexec {program} \"$@\"\n"));
        machine
    }

    fn install(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = self.folder.path().join("bin").join(name);
        fs::write(&file, script).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns a text with the places of this machine.
    fn here(&self, text: &str) -> String {
        let root = self.folder.path().display();
        let data = root_of_data();
        text.replace("/usr/local/bin", &format!("{root}/bin"))
            .replace("/var/lib/flights", &format!("{root}/state"))
            .replace("/usr/local/share/flights", &data)
    }

    /// Runs a command line of a shell with an environment.
    fn run(&self, command: &str, environment: &BTreeMap<String, String>) -> Output {
        let command = self.here(command);
        let waited_for = command.clone();
        deadline::waits_for(move || waited_for.clone());
        let path = format!("{}/bin:/usr/bin:/bin", self.folder.path().display());
        Command::new("/bin/sh")
            .args(["-c", &command])
            .env_clear()
            .env("PATH", path)
            .envs(environment.iter().map(|(name, value)| (name, self.here(value))))
            .current_dir(self.folder.path().join("state"))
            .output()
            .unwrap()
    }
}

fn root_of_data() -> String {
    root().join("examples/data").display().to_string()
}

/// Returns the exit codes in the table of a document, each with its meaning.
fn documented(text: &str) -> BTreeMap<u8, String> {
    let table = text.split("| exit code | meaning |").nth(1).unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.contains('|'));
    let rows = rows.filter_map(|row| {
        let mut cells = row.split('|').map(str::trim).skip(1);
        let (codes, meaning) = (cells.next()?, cells.next()?);
        let codes = codes.split(", ").filter_map(|code| code.parse().ok());
        Some(codes.map(|code| (code, meaning.to_owned())).collect::<Vec<_>>())
    });
    rows.flatten().collect()
}

/// Returns the exit codes in a value, such as `2 3`.
fn codes(value: &str) -> Vec<u8> {
    value.split(' ').map(|code| code.parse().unwrap()).collect()
}

/// All tables of exit codes name the same codes.
///
/// Spec: CLI-02
#[test]
fn the_tables_of_exit_codes_agree() {
    let guide: Vec<u8> = documented(&read("docs/guide/operating.md")).into_keys().collect();
    assert_eq!(guide, [0, 1, 2, 3, 10, 11, 75, 130, 143]);
    for file in ["docs/guide/command-line.md", "batch-cli/src/lib.rs"] {
        let codes: Vec<u8> = documented(&read(file)).into_keys().collect();
        assert_eq!(codes, guide, "{file}");
    }
}

/// The service runs its command line, twice, and the codes of both runs are successes for systemd.
///
/// Spec: CLI-08
#[test]
fn the_unit_of_systemd_runs_the_job_once_a_day() {
    let machine = Machine::new();
    let service = unit("examples/deploy/flights.service");
    let environment = value(&service, "Service", "Environment");
    let (name, repository) = environment.split_once('=').unwrap();
    let environment = BTreeMap::from([(name.to_owned(), repository.to_owned())]);
    let command = value(&service, "Service", "ExecStart")
        .replace("$$", "$")
        .replace("%%", "%");
    ended(0, &machine.run(&command, &environment));
    let successes = codes(&value(&service, "Service", "SuccessExitStatus"));
    assert_eq!(successes, [10]);
    ended(10, &machine.run(&command, &environment));
    let listed = machine.run("/usr/local/bin/flights params 1", &environment);
    assert_eq!(text(&listed.stdout), "day(date)=2026-11-20T00:00:00.000Z\n");
}

/// Spec: CLI-08
#[test]
fn the_units_name_documented_codes_and_leave_time_to_stop() {
    let documented = documented(&read("docs/guide/operating.md"));
    for file in [
        "examples/deploy/flights.service",
        "examples/cluster/deploy/batch-interest.service",
    ] {
        let service = unit(file);
        let prevents = codes(&value(&service, "Service", "RestartPreventExitStatus"));
        let successes = codes(&value(&service, "Service", "SuccessExitStatus"));
        assert_eq!(
            (prevents.as_slice(), successes.as_slice()),
            (&[2, 3][..], &[10][..]),
            "{file}"
        );
        assert!(
            prevents
                .iter()
                .chain(&successes)
                .all(|code| documented.contains_key(code))
        );
        assert!(documented[&10].contains("complete") && documented[&3].contains("STOPPED"));
        let stops: u64 = value(&service, "Service", "TimeoutStopSec").parse().unwrap();
        assert!(stops > SHUTDOWN_TIMEOUT, "{file}");
    }
    let stops = value(
        &unit("examples/cluster/deploy/batch-worker.service"),
        "Service",
        "TimeoutStopSec",
    );
    assert!(stops.parse::<u64>().unwrap() > SHUTDOWN_TIMEOUT);
}

/// systemd itself accepts the units.
///
/// Spec: CLI-08
#[test]
fn systemd_accepts_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!(
            "\nNOT TESTED: systemd-analyze is missing, so systemd has not checked the units in examples/deploy\n"
        );
        return;
    }
    let machine = Machine::new();
    machine.install("cluster", "#!/bin/sh\n");
    let units = machine.folder.path().join("units");
    fs::create_dir(&units).unwrap();
    let mut files = Vec::new();
    for folder in ["examples/deploy", "examples/cluster/deploy"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".service") || name.ends_with(".timer") {
                fs::write(
                    units.join(name),
                    machine.here(&fs::read_to_string(&path).unwrap()),
                )
                .unwrap();
                files.push(units.join(name));
            }
        }
    }
    assert_eq!(files.len(), 5);
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no"])
        .args(files)
        .output()
        .unwrap();
    let (out, err) = ended(0, &output);
    // What it ignores is a warning.
    let complaints: Vec<&str> = err
        .lines()
        .filter(|line| line.contains(".service") || line.contains(".timer"))
        .collect();
    assert!(complaints.is_empty(), "{out}{err}");
}

/// The pod runs its command line; a second pod of the day has nothing to do, which is a success.
///
/// Spec: CLI-08
#[test]
fn the_cron_job_runs_the_job_once_a_day() {
    let machine = Machine::new();
    let manifest = yaml("examples/deploy/kubernetes.yaml");
    let one = |path: &str| {
        let mut values = manifest.iter().filter(|(of, _)| of == path);
        let (_, value) = values.next().unwrap_or_else(|| panic!("no {path}: {manifest:?}"));
        assert!(values.next().is_none(), "{path}");
        value.as_str()
    };
    let pod = "spec.jobTemplate.spec.template.spec";
    let command = one(&format!("{pod}.containers.-.command"));
    let command: Vec<String> = serde_json::from_str(command).unwrap();
    assert_eq!(command[..2], ["/bin/sh", "-c"]);
    let variable = one(&format!("{pod}.containers.-.env.-.name")).to_owned();
    let environment = BTreeMap::from([(
        variable,
        one(&format!("{pod}.containers.-.env.-.value")).to_owned(),
    )]);
    ended(0, &machine.run(&command[2], &environment));
    let (_, err) = ended(0, &machine.run(&command[2], &environment));
    assert!(err.starts_with("nothing to do: "), "{err}");

    let codes = one("spec.jobTemplate.spec.podFailurePolicy.rules.-.onExitCodes.values");
    let codes: Vec<u8> = serde_json::from_str(codes).unwrap();
    assert_eq!(codes, [2]);
    assert_eq!(
        one(&format!("{pod}.restartPolicy")),
        "Never",
        "podFailurePolicy requires it"
    );
    assert_eq!(
        one("spec.jobTemplate.spec.podFailurePolicy.rules.-.onExitCodes.containerName"),
        one(&format!("{pod}.containers.-.name"))
    );
    assert_eq!(one("spec.concurrencyPolicy"), "Forbid");
    let grace: u64 = one(&format!("{pod}.terminationGracePeriodSeconds"))
        .parse()
        .unwrap();
    assert!(grace > SHUTDOWN_TIMEOUT);
}

/// The image runs its command, and the commands in its comment. It builds this repository.
///
/// Spec: CLI-08
#[test]
fn the_image_runs_its_commands() {
    let machine = Machine::new();
    let file = read("examples/deploy/Dockerfile");
    let lines = |instruction: &str| -> Vec<String> {
        let prefix = format!("{instruction} ");
        let lines = file.lines().filter_map(|line| line.strip_prefix(&prefix));
        lines.map(str::to_owned).collect()
    };
    let words = |instruction: &str| -> Vec<String> { serde_json::from_str(&lines(instruction)[0]).unwrap() };
    let quoted = |words: &[String]| -> String { words.iter().map(|word| format!("'{word}' ")).collect() };
    let environment: BTreeMap<String, String> = lines("ENV")
        .iter()
        .map(|line| {
            line.split_once('=')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .unwrap()
        })
        .collect();
    let entrypoint = quoted(&words("ENTRYPOINT"));
    ended(
        0,
        &machine.run(&format!("{entrypoint}{}", quoted(&words("CMD"))), &environment),
    );

    let mut typed = 0;
    for line in file
        .lines()
        .filter_map(|line| line.strip_prefix("#   docker run "))
    {
        // After the options comes the name of the image.
        let (options, arguments) = line.split_once(" flights ").unwrap();
        assert!(options.contains("-v flights:/var/lib/flights"), "{line}");
        ended(0, &machine.run(&format!("{entrypoint}{arguments}"), &environment));
        typed += 1;
    }
    assert_eq!(typed, 2);

    let build = &lines("RUN")[0];
    assert_eq!(
        build,
        "cargo build --release --locked -p batch-examples --example flights"
    );
    assert!(read("examples/Cargo.toml").contains("name = \"flights\""));
    let version = read("rust-toolchain.toml");
    let channel = version
        .lines()
        .find_map(|line| line.strip_prefix("channel = \""))
        .unwrap();
    assert!(
        lines("FROM")[0].starts_with(&format!("rust:{}", &channel[..4])),
        "{channel}"
    );
    assert!(root().join("examples/data/flights.csv").exists());
    eprintln!("\nNOT TESTED: the image of examples/deploy/Dockerfile is not built\n");
}

/// The command lines of the workers' deployment are valid. Its jobs need servers, and run in the tests of workers.
///
/// Spec: CLI-08
#[test]
fn the_command_lines_of_the_cluster_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let mut commands = Vec::new();
    for service in ["batch-worker", "batch-interest"] {
        let service = unit(&format!("examples/cluster/deploy/{service}.service"));
        commands.push(
            value(&service, "Service", "ExecStart")
                .replace("$$", "$")
                .replace("%%", "%"),
        );
    }
    // These use more of YAML than the other manifest.
    for file in ["compose.yaml", "kubernetes.yaml"] {
        let text = read(&format!("examples/cluster/deploy/{file}"));
        for line in text.lines().map(str::trim) {
            let list = ["command: ", "args: "]
                .iter()
                .find_map(|key| line.strip_prefix(key));
            let Some(words) = list.map(|list| serde_json::from_str::<Vec<String>>(list).unwrap()) else {
                continue;
            };
            match words.as_slice() {
                // NATS, with its own options.
                [first, ..] if first == "-js" => {}
                [shell, _, command] if shell == "/bin/sh" => commands.push(command.clone()),
                words => commands.push(format!("cluster {}", words.join(" "))),
            }
        }
    }
    assert_eq!(commands.len(), 6, "{commands:?}");
    for command in commands {
        // The help of a command is printed when what precedes it is valid.
        let inner = command
            .split_once("exec ")
            .map_or(command.as_str(), |(_, inner)| inner);
        let arguments = inner.trim_end_matches('\'').split_once("cluster ").unwrap().1;
        let typed = format!("'{}' {arguments} --help", example("hello").display());
        let output = Command::new("/bin/sh")
            .args(["-c", &typed])
            .current_dir(folder.path())
            .output()
            .unwrap();
        ended(0, &output);
    }
}
