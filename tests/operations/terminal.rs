//! Progress on a terminal: programs run under a pseudo-terminal, and their screen is compared.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use batch_tests::operated::Operated;
use pty_process::Size;
use pty_process::blocking::{Command as PtyCommand, Pty};

/// The longest wait for a text on the screen.
const PATIENCE: Duration = Duration::from_secs(60);

const JOBS: [(&str, &str); 4] = [
    (
        "one",
        r#"<chunk reader="Gated" processor="Same" writer="Loud" commit-interval="10"/>"#,
    ),
    (
        "two",
        r#"<chunk reader="Gated" processor="Same" writer="Loud" commit-interval="10"/><partition instances="2"/>"#,
    ),
    (
        "forty",
        r#"<chunk reader="Gated" processor="Same" writer="Nowhere" commit-interval="10"/><partition instances="40"/>"#,
    ),
    (
        "stubborn",
        r#"<batchlet ref="Patient"><properties><property name="stubborn" value="true"/></properties></batchlet>"#,
    ),
];

/// A folder with the jobs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (id, body) in JOBS {
        let job = format!(r#"<job id="{id}"><step id="load">{body}</step></job>"#);
        fs::write(folder.path().join(format!("{id}.xml")), job).unwrap();
    }
    folder
}

/// The program `operated` on a terminal.
struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// Everything written so far.
    raw: String,
}

impl Terminal {
    fn run(folder: &Path, (rows, columns): (u16, u16), arguments: &[&str]) -> Self {
        Self::run_with(folder, (rows, columns), arguments, &[])
    }

    fn run_with(
        folder: &Path,
        (rows, columns): (u16, u16),
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let command = PtyCommand::new(env!("CARGO_BIN_EXE_operated"))
            .args(arguments)
            .current_dir(folder)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .envs(environment.iter().copied());
        let child = command.spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let (send, output) = channel();
        let reading = Arc::clone(&pty);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end of a pseudo-terminal is an error.
            while let Ok(read) = (&*reading).read(&mut buffer) {
                if read == 0 || send.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            pty,
            child,
            output,
            screen: vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0),
            raw: String::new(),
        }
    }

    /// Returns the lines on the screen.
    fn lines(&self) -> Vec<String> {
        let columns = self.screen.screen().size().1.into();
        self.screen.screen().rows(0, columns).collect()
    }

    /// Waits until the screen satisfies the condition; returns its lines.
    fn until(&mut self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = self.lines();
            if is_so(&lines) {
                return lines;
            }
            match self
                .output
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(bytes) => self.take(&bytes),
                Err(_) => panic!("not seen: {what}\n{}", lines.join("\n")),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.raw += &String::from_utf8_lossy(bytes);
        self.screen.process(bytes);
    }

    /// Waits for the line that begins with a name and holds a text.
    fn until_line(&mut self, name: &str, text: &str) -> String {
        let is_it = |line: &&String| line.split_whitespace().next() == Some(name) && line.contains(text);
        let lines = self.until(&format!("{name} .. {text}"), |lines| {
            lines.iter().any(|line| is_it(&line))
        });
        lines.into_iter().find(|line| is_it(&line)).unwrap()
    }

    fn resize(&mut self, rows: u16, columns: u16) {
        self.screen
            .screen_mut()
            .set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    fn presses_ctrl_c(&self) {
        (&*self.pty).write_all(b"\x03").unwrap();
    }

    /// Waits for the program's end; returns its exit code and the final screen.
    fn ends(&mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.output.recv_timeout(PATIENCE) {
            self.take(&bytes);
        }
        (status, self.lines())
    }

    /// The whole terminal scrolls again, and no bar is left.
    fn is_left_as_it_was(&self) -> bool {
        self.raw.rfind("\x1b[r") >= self.raw.rfind("\x1b[1;") && !self.lines().concat().contains('█')
    }
}

/// The process ends even if the test fails.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each partition has a bar below the output of the job. No line of the output is lost or torn.
///
/// Spec: PART-04
#[test]
fn every_partition_has_its_bar() {
    let folder = folder();
    let mut terminal = Terminal::run(
        folder.path(),
        (70, 100),
        &["--log", "info", "launch", "two", "hold=61"],
    );
    terminal.until_line("load:1", "60 of 100 read, 60 written");
    terminal.until_line("load:2", "60 of 100 read, 60 written");
    terminal.until_line("load:1", " left ");
    let lines = terminal.until("both have a time", |lines| {
        lines.iter().filter(|line| line.contains(" left ")).count() == 2
    });
    eprintln!("{}", lines.join("\n"));
    // The last lines of the terminal, by start time: the step, and its partitions.
    let [step, one, other] = &lines[67..] else {
        panic!("{lines:#?}")
    };
    assert!(step.starts_with("load ") && step.contains("60%"), "{step}");
    assert!(
        step.contains("0 of 2 partitions, 120 read, 120 written"),
        "{step}"
    );
    for (name, line) in [("load:1", one), ("load:2", other)] {
        let (_, rest) = line.split_once(' ').unwrap();
        let (bar, rest) = rest.trim_start().split_once(' ').unwrap();
        let (full, empty) = (bar.matches('█').count(), bar.matches('░').count());
        assert!(line.starts_with(name), "{line}");
        assert_eq!((full, full + empty), (24 * 60 / 100, 24), "{line}");
        assert!(rest.trim_start().starts_with("60%  0:0"), "{line}");
        assert!(line.ends_with("/s"), "{line}");
    }
    fs::write(folder.path().join("go"), "").unwrap();
    let (status, lines) = terminal.ends();
    assert_eq!(status.code(), Some(0));
    assert!(terminal.is_left_as_it_was(), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line.starts_with("two:1:1 COMPLETED")),
        "{lines:#?}"
    );
    for number in (1..=91).step_by(10) {
        for line in [
            format!("wrote 10 numbers, the first one is {number}"),
            format!("said on the other output, {number}"),
        ] {
            let printed = lines.iter().filter(|printed| **printed == line).count();
            assert_eq!(printed, 2, "{line}: {lines:#?}");
        }
    }
    assert!(
        !terminal.raw.contains("step load"),
        "a terminal needs no lines for a file"
    );
}

/// With more partitions than lines, only the first are shown, and the number of the others.
#[test]
fn bars_that_do_not_fit_the_terminal_are_counted() {
    let folder = folder();
    let arguments = ["launch", "forty", "hold=61", "batch.partition.threads=40"];
    let mut terminal = Terminal::run(folder.path(), (24, 80), &arguments);
    let lines = terminal.until("29 of 40 are hidden, and one line is that of the step", |lines| {
        lines[23] == "… and 30 more" && lines[13..23].iter().all(|line| line.contains("60 of 100 read"))
    });
    eprintln!("{}", lines.join("\n"));
    let names: Vec<&str> = lines[12..23]
        .iter()
        .map(|line| line.split_once(' ').unwrap().0)
        .collect();
    let partitions: Vec<String> = (1..=10).map(|number| format!("load:{number}")).collect();
    assert_eq!(
        (names[0], &names[1..]),
        (
            "load",
            partitions
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .as_slice()
        )
    );
    assert!(lines[..12].iter().all(String::is_empty), "{lines:#?}");
    fs::write(folder.path().join("go"), "").unwrap();
    let (status, lines) = terminal.ends();
    assert!(status.success(), "{status}: {lines:#?}");
    assert!(terminal.is_left_as_it_was(), "{lines:#?}");
}

/// After the window is resized the bars are at its bottom again.
#[test]
fn the_lines_follow_the_size_of_the_window() {
    let folder = folder();
    let mut terminal = Terminal::run(folder.path(), (24, 80), &["launch", "one", "hold=61"]);
    terminal.until_line("load", "60 of 100 read");
    for (rows, columns) in [(12, 60), (30, 100)] {
        terminal.resize(rows, columns);
        terminal.until("one line at the bottom", |lines| {
            let bars: Vec<usize> = (0..lines.len())
                .filter(|line| lines[*line].contains('█'))
                .collect();
            bars == [usize::from(rows) - 1]
        });
    }
    fs::write(folder.path().join("go"), "").unwrap();
    let (status, lines) = terminal.ends();
    assert!(status.success(), "{status}: {lines:#?}");
    assert!(terminal.is_left_as_it_was(), "{lines:#?}");
}

/// Ctrl-C stops at the next commit. The bar is removed, and after a restart continues at its old value.
///
/// Spec: OP-17, RESTART-13
#[test]
fn ctrl_c_stops_and_a_launch_resumes() {
    let folder = folder();
    let mut terminal = Terminal::run(folder.path(), (24, 80), &["launch", "one", "-hold=61"]);
    terminal.until_line("load", "60 of 100 read");
    terminal.presses_ctrl_c();
    let (status, lines) = terminal.ends();
    eprintln!("{}", lines.join("\n"));
    assert_eq!(status.code(), Some(3));
    assert!(terminal.is_left_as_it_was(), "{lines:#?}");
    let all = lines.join("\n");
    assert!(
        all.contains("stopping execution 1, which has 30 s to stop"),
        "{all}"
    );
    assert!(all.contains("one:1:1 STOPPED"), "{all}");
    let mut again = Terminal::run(folder.path(), (24, 80), &["launch", "one", "-hold=81"]);
    // 61 before, and an interval of 10 now.
    let line = again.until_line("load", "71 of 100 read, 71 written");
    assert!(line.contains(" 71% "), "{line}");
    fs::write(folder.path().join("go"), "").unwrap();
    let (status, lines) = again.ends();
    assert_eq!(status.code(), Some(0), "{lines:#?}");
}

/// The second Ctrl-C ends the process at once, and leaves the terminal as it was; the next launch takes over.
#[test]
fn the_second_ctrl_c_ends_the_process() {
    let folder = folder();
    let mut terminal = Terminal::run(folder.path(), (24, 80), &["launch", "stubborn"]);
    terminal.until_line("load", "0:0");
    terminal.presses_ctrl_c();
    terminal.until("it stops", |lines| {
        lines.concat().contains("a second signal ends the process")
    });
    terminal.presses_ctrl_c();
    let (status, lines) = terminal.ends();
    assert_eq!(status.code(), Some(128 + 2), "{lines:#?}");
    assert!(terminal.is_left_as_it_was(), "{lines:#?}");
    let mut again = Terminal::run(folder.path(), (24, 80), &["launch", "stubborn"]);
    again.until("it resumes", |lines| {
        lines
            .concat()
            .contains("took over an execution whose owner is dead")
    });
    again.until_line("load", "0:0");
}

/// `NO_COLOR` turns colours off.
#[test]
fn no_color_turns_colours_off() {
    for (no_color, has_colours) in [("", true), ("1", false)] {
        let folder = folder();
        let arguments = ["--log", "info", "launch", "one", "hold=61"];
        let mut terminal = Terminal::run_with(folder.path(), (24, 80), &arguments, &[("NO_COLOR", no_color)]);
        terminal.until_line("load", "60 of 100 read");
        fs::write(folder.path().join("go"), "").unwrap();
        assert!(terminal.ends().0.success());
        let colours = terminal.raw.matches("\x1b[3").count();
        assert_eq!(colours > 0, has_colours, "{:?}", terminal.raw);
    }
}

/// A terminal without control sequences, and a file, get lines: when a step starts and every few seconds.
#[test]
fn without_a_terminal_there_are_lines() {
    let folder = folder();
    let arguments = ["--progress-interval", "1", "launch", "two", "hold=61"];
    let mut dumb = Terminal::run_with(folder.path(), (40, 100), &arguments, &[("TERM", "dumb")]);
    dumb.until_line("step", "load  60%, 0 of 2 partitions, 120 read, 120 written");
    let mut piped = Operated::run(
        env!("CARGO_BIN_EXE_operated"),
        folder.path(),
        &["--progress-interval", "1", "launch", "one", "hold=61"],
    );
    piped.until("step load\n");
    let line = piped.until("60 of 100 read");
    assert!(
        line.starts_with("step load  60%, 60 of 100 read, 60 written, ") && line.ends_with(" left\n"),
        "{line}"
    );
    fs::write(folder.path().join("go"), "").unwrap();
    assert!(
        dumb.ends().0.success() && !dumb.raw.contains('\x1b'),
        "{:?}",
        dumb.raw
    );
    assert!(!line.contains('\x1b') && piped.ends().success());
}

/// If the reader cannot report its size, only the bar is missing.
#[test]
fn a_size_that_is_not_known_costs_the_bar_only() {
    let folder = folder();
    let mut terminal = Terminal::run(folder.path(), (24, 200), &["launch", "one", "count=0"]);
    let (status, lines) = terminal.ends();
    assert!(status.success(), "{lines:#?}");
    let warned = lines
        .iter()
        .filter(|line| line.contains("#[get_item_count] failed") && line.contains("no count"));
    assert_eq!(warned.count(), 1, "{lines:#?}");
}
