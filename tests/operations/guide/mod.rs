//! The guide in `docs/guide`: programs print the output that its pages show. (Its Rust blocks are doctests of this
//! package's library, its XML blocks are in a test of batch-xml.)

mod cited;
mod facts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use batch_tests::process::{OF_CARGO, example, text};
use batch_tests::properties::check_chapter;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The pages: name and text.
fn pages() -> Vec<(String, String)> {
    let files = fs::read_dir(root().join("docs/guide")).unwrap();
    let mut pages: Vec<(String, String)> = files
        .map(|file| file.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    pages.sort();
    pages
}

/// A block: its info string, its first line, its text.
fn blocks(page: &str) -> Vec<(String, usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, usize, String)> = None;
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => open = Some((info.to_owned(), index + 2, String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, _, text))) => *text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Returns whether a printed word matches the page: times differ between runs.
fn is_same(shown: &str, printed: &str) -> bool {
    let is_time = |word: &str| word.len() == 24 && word.ends_with('Z') && word[10..].starts_with('T');
    let is_duration = |word: &str| {
        let parts = word.split_once('.');
        parts.is_some_and(|(whole, part)| {
            part.len() == 3 && [whole, part].iter().all(|digits| digits.parse::<u32>().is_ok())
        })
    };
    shown == printed || (is_time(shown) && is_time(printed)) || (is_duration(shown) && is_duration(printed))
}

/// Compares line by line; a line `...` on the page matches any lines.
fn compare(shown: &[&str], printed: &[&str]) -> Result<(), String> {
    let Some((line, rest)) = shown.split_first() else {
        return match printed.first() {
            Some(more) => Err(format!("the page does not show {more:?}")),
            None => Ok(()),
        };
    };
    if *line == "..." {
        return (0..=printed.len())
            .find_map(|from| compare(rest, &printed[from..]).ok())
            .ok_or_else(|| format!("nothing fits what follows `...`: {rest:?}"));
    }
    let Some((found, others)) = printed.split_first() else {
        return Err(format!("nobody printed {line:?}"));
    };
    let (words, of_found): (Vec<&str>, Vec<&str>) = (
        line.split_whitespace().collect(),
        found.split_whitespace().collect(),
    );
    let same = words.len() == of_found.len()
        && words
            .iter()
            .zip(&of_found)
            .all(|(one, other)| is_same(one, other));
    if !same {
        return Err(format!("the page shows {line:?}, printed is {found:?}"));
    }
    compare(rest, others)
}

/// Returns the commands of a block, each with the lines that the page shows below it. A `\` at the end of a line
/// continues the command.
fn commands(block: &str) -> Vec<(String, Vec<&str>)> {
    let mut commands: Vec<(String, Vec<&str>)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
            (None, Some((command, _))) if command.ends_with('\\') => {
                command.pop();
                command.push_str(line.trim_start_matches('>').trim_start());
            }
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("a block begins with a command: {block}"),
        }
    }
    commands
}

/// Runs the blocks of a page one after the other, in a folder for that page, which is `/data` on the page. Progress lines on a standard error that is
/// not a terminal are ignored; the page omits them as a terminal would.
fn run(name: &str, page: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let programs = example("hello").parent().unwrap().to_owned();
    let (mut ran, mut code) = (0, 0);
    for (info, line, block) in blocks(page) {
        if info == "toml" {
            fs::write(folder.path().join("batch.toml"), &block).unwrap();
        }
        if info != "console" {
            continue;
        }
        for (command, shown) in commands(&block) {
            let place = format!("{name}, block at line {line}: {command}");
            let typed = command.replace("cargo run --example ", "").replace(" -- ", " ");
            let output = Command::new("sh")
                .args(["-c", &format!("(exit {code}); {typed}")])
                .current_dir(folder.path())
                .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
                .env(OF_CARGO.0, OF_CARGO.1)
                .output()
                .unwrap();
            let here = folder.path().display().to_string();
            let shown_here = |bytes: &[u8]| text(bytes).replace(&here, "/data");
            let (out, err) = (shown_here(&output.stdout), shown_here(&output.stderr));
            let said = err.lines().filter(|line| !line.starts_with("step "));
            let printed: Vec<&str> = out.lines().chain(said).collect();
            if let Err(difference) = compare(&shown, &printed) {
                panic!("{place}\n{difference}\n{out}{err}");
            }
            assert!(
                code == 0 || command.starts_with("echo $?"),
                "{place}\nthe command before it ended with {code}, and the page does not say so"
            );
            code = output.status.code().unwrap();
            ran += 1;
        }
        assert_eq!(
            code, 0,
            "{name}, block at line {line} ends with a failure: `echo $?` would show it"
        );
    }
    ran
}

fn shell(command: &str, folder: &Path, programs: &Path) -> Output {
    Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
        .env(OF_CARGO.0, OF_CARGO.1)
        .output()
        .unwrap()
}

/// Returns whether the step that takes long runs.
fn in_the_middle(shown: &str) -> bool {
    shown.contains("load-flights") && shown.contains("STARTED")
}

/// Runs a command that is killed after a time, the first one in its folder. Where the job ends before, it is killed sooner, and where it
/// has not started, later: machines differ, and so does what runs beside the tests.
fn is_killed(command: &str, folder: &Path, programs: &Path) {
    let (timeout, rest) = command.split_once("KILL ").unwrap();
    let (seconds, rest) = rest.split_once(' ').unwrap();
    let (program, _) = rest.split_once(" launch ").unwrap();
    let mut seconds: f64 = seconds.parse().unwrap();
    for _ in 0..40 {
        let ended = shell(&format!("{timeout}KILL {seconds:.3} {rest}"), folder, programs);
        let shown = shell(&format!("{program} show 1"), folder, programs);
        if ended.status.success() {
            seconds *= 0.6;
        } else if shown.status.success() && in_the_middle(&text(&shown.stdout)) {
            return;
        } else {
            seconds *= 1.5;
        }
        fs::remove_dir_all(folder).unwrap();
        fs::create_dir(folder).unwrap();
    }
    panic!("at {seconds} s, it has ended or not started: {command}");
}

/// The page whose job is killed, like the README's.
const TOUR: &str = "tour.md";

/// Each command in the README and on the first page of the guide has the effect that it describes.
#[test]
#[cfg(unix)]
fn the_readme_shows_the_output() {
    assert_eq!(run_blocks("README.md"), 2, "the README has other commands");
    assert_eq!(
        run_blocks(&format!("docs/guide/{TOUR}")),
        4,
        "the page has other commands"
    );
}

/// Runs the blocks of a page, each in its own folder, and returns the number of commands. The commands that build are the commands that
/// build the tests; the job that is killed is killed in the middle.
#[cfg(unix)]
fn run_blocks(page: &str) -> usize {
    let readme = fs::read_to_string(root().join(page)).unwrap();
    let programs = example("hello").parent().unwrap().to_owned();
    let (mut aliases, mut ran): (Vec<(String, String)>, _) = (Vec::new(), 0);
    let blocks = blocks(&readme).into_iter().filter(|(info, ..)| info == "console");
    for (_, line, block) in blocks {
        let folder = tempfile::tempdir().unwrap();
        for (command, shown) in commands(&block) {
            let place = format!("{page}, block at line {line}: {command}");
            if command == "cargo test" || command.starts_with("cargo build --example") {
                continue;
            }
            if let Some((name, value)) = command
                .strip_prefix("alias ")
                .and_then(|alias| alias.split_once('='))
            {
                aliases.push((format!("{name} "), format!("{} ", value.trim_matches('"'))));
                continue;
            }
            let alias = aliases.iter().find(|(name, _)| command.starts_with(name));
            let command = alias.map_or(command.clone(), |(name, value)| command.replacen(name, value, 1));
            let typed = command
                .replace("cargo run --example ", "")
                .replace(" -- ", " ")
                .replace("target/debug/examples/", "");
            ran += 1;
            if shown == ["Killed"] {
                is_killed(&typed, folder.path(), &programs);
                continue;
            }
            let output = shell(&typed, folder.path(), &programs);
            let (out, err) = (text(&output.stdout), text(&output.stderr));
            assert_eq!(output.status.code(), Some(0), "{place}\n{out}{err}");
            let printed: Vec<&str> = out.lines().collect();
            if !shown.is_empty()
                && let Err(difference) = compare(&shown, &printed)
            {
                panic!("{place}\n{difference}\n{out}{err}");
            }
        }
    }
    ran
}

/// A test covers every block of every page, and every console block shows the output of its commands.
#[test]
#[cfg(unix)]
fn console_blocks_show_the_output() {
    let mut ran = 0;
    for (name, page) in pages() {
        for (info, line, _) in blocks(&page) {
            let kind = info.split([',', ' ']).next().unwrap();
            // Java is what a reader brings, for comparison.
            let known = ["rust", "xml", "text", "console", "toml", "java"].contains(&kind);
            let compiled = !info.contains("ignore");
            assert!(
                known && compiled,
                "{name}, line {line}: nobody checks a block of `{info}`"
            );
        }
        if name != TOUR {
            ran += run(&name, &page);
        }
    }
    assert!(ran > 20, "{ran}");
}

/// The contents of the guide link every page, the README every example. Doctests include every
/// page: the doctests of this package, of the packages for OTLP, lineage, notifications and the
/// console, of the queues, or of the asynchronous example.
#[test]
fn every_page_is_linked_and_compiled() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let contents = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let doctests = [
        "tests/support/lib.rs",
        "examples/async-jobs/src/lib.rs",
        "tests/otel/src/lib.rs",
        "tests/lineage/src/lib.rs",
        "tests/notify/src/lib.rs",
        "tests/console/src/lib.rs",
        "tests/queues/lib.rs",
    ];
    let doctests = doctests
        .map(|file| fs::read_to_string(root().join(file)).unwrap())
        .concat();
    for (name, _) in pages() {
        assert!(contents.contains(&format!("(guide/{name})")), "{name}");
        assert!(doctests.contains(&format!("/../docs/guide/{name}\")]")), "{name}");
    }
    let examples = fs::read_to_string(root().join("examples/Cargo.toml")).unwrap();
    for line in examples.lines() {
        if let Some(path) = line
            .strip_prefix("path = \"")
            .and_then(|rest| rest.strip_suffix("/main.rs\""))
        {
            assert!(readme.contains(&format!("(examples/{path}")), "{path}");
        }
    }
}

/// Links of the guide and of the documents beside it point to existing files.
#[test]
fn links_lead_somewhere() {
    let in_root = [
        "README.md",
        "CONTRIBUTING.md",
        "RELEASING.md",
        "SECURITY.md",
        "ARCHITECTURE.md",
        "docs/SUMMARY.md",
        "docs/comparison.md",
        "docs/job-xml.md",
        "docs/performance.md",
    ];
    let others = in_root.map(|name| (name.to_owned(), fs::read_to_string(root().join(name)).unwrap()));
    let of_guide = pages()
        .into_iter()
        .map(|(name, page)| (format!("docs/guide/{name}"), page));
    for (name, page) in of_guide.chain(others) {
        let folder = root().join(&name);
        for (_, rest) in page.match_indices("](").map(|(at, _)| page.split_at(at + 2)) {
            let target = rest.split([')', '#']).next().unwrap();
            let is_file = !target.is_empty() && !target.starts_with("http");
            assert!(
                !is_file || folder.parent().unwrap().join(target).exists(),
                "{name} links to {target}"
            );
        }
    }
}

/// The block that a doctest cannot run, because a sweep starts its test program again, comes from an example.
#[test]
fn the_crash_sweep_of_the_guide_is_that_of_an_example() {
    let read = |file: &str| fs::read_to_string(root().join(file)).unwrap();
    let guide = read("docs/guide/testing.md");
    let block = guide.split("```rust,no_run\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let example = read("examples/skip-retry/tests.rs");
    let lines = block
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.starts_with("use "));
    let missing: Vec<&str> = lines.filter(|line| !example.contains(*line)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The page of properties is that of the code.
#[test]
fn properties_are_listed() {
    use {batch_batchlets as _, batch_items as _};

    check_chapter("batch-items", &[]);
    check_chapter("batch-batchlets", &["httpCall"]);
}
