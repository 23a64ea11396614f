//! What happens to the files of a job while it runs, or between two launches: they are removed, moved, replaced, truncated, extended or made
//! read-only, or get a new directory. The sweep over system calls of `tests/torture` has full disks and devices that fail.

use std::fs;
use std::path::{Path, PathBuf};

use batch_items::LineItemReader;
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use serde::{Deserialize, Serialize};

use super::disturbance::{ACTIONS, happen, read_only, undo};
use super::stage::{Ended, Stage};

#[item_reader("happeningReader")]
type Numbers = LineItemReader<u64>;

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    id: u64,
}

/// At the number `at`, something happens to a file.
#[derive(BatchArtifact)]
struct Happening {
    #[batch_property(name = "at", value = "0")]
    at: u64,
    #[batch_property(name = "do", value = "")]
    action: String,
    #[batch_property(name = "file", value = "")]
    file: PathBuf,
}

#[item_processor("happening")]
impl Happening {
    #[process_item]
    fn process(&mut self, number: &u64) -> Result<Option<Entry>, BatchError> {
        if *number == self.at {
            happen(&self.action, &self.file)?;
        }
        Ok(Some(Entry { id: *number }))
    }
}

/// The content of the files that a job replaces, or appends to.
const YESTERDAY: &str = "id\n99\n";

/// The numbers 1 to 20, of which one in five is none.
fn stage((writer, properties, name): &(&str, &str, &str)) -> Stage {
    let listeners = "<listeners><listener ref=\"happeningRejects\"><properties>\
         <property name=\"rejects.output\" value=\"${dir}/out/rejects.csv\"/>\
         <property name=\"rejects.raw\" value=\"${dir}/out/raw.txt\"/></properties></listener></listeners>";
    let listeners = if name.ends_with(".part") { "" } else { listeners };
    let chunk = format!(
        "reader=\"happeningReader\" processor=\"happening\" writer=\"{writer}\" commit-interval=\"3\" chunk-size=\"3\" skip-limit=\"9\""
    );
    // Waiting for the disk after each chunk takes most of the time.
    let properties = match properties.contains("sync=") {
        true => format!("resource@reader=${{dir}}/in\n{properties}"),
        false => format!("resource@reader=${{dir}}/in\nsync=finish\n{properties}"),
    };
    let skips = "<skippable-exception-classes><include class=\"RecordError\"/></skippable-exception-classes>";
    let stage = Stage::with_listeners(listeners, &chunk, &properties, skips);
    let line = |number: u64| match number % 5 {
        0 => format!("no number {number}\n"),
        _ => format!("{number}\n"),
    };
    stage.write("in", (1..=20).map(line).collect::<String>());
    fs::create_dir(stage.path().join("out")).unwrap();
    stage.write("out/old.csv", YESTERDAY);
    stage
}

/// Returns the files of the output with their content.
fn output(stage: &Stage) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(stage.path().join("out")).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // The text of a reject has the name of the input.
            let content = String::from_utf8(fs::read(&path).unwrap_or_default());
            let content = content.map(|text| text.replace(&stage.path().display().to_string(), ""));
            (
                name,
                content.map_or_else(|error| error.into_bytes(), String::into_bytes),
            )
        })
        .collect();
    files.sort();
    files
}

/// Checks that the step fails and names the file, whatever happens to it, and that the same launch ends exact when the file is back; or that it
/// ends exact. `writers` are artifacts with their properties, and a file that they have written when something happens to it.
pub(crate) fn check(writers: &[(&str, &str, &str)]) {
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let halves = writers.chunks(writers.len().div_ceil(2));
        let threads: Vec<_> = halves
            .map(|half| scope.spawn(|| half.iter().flat_map(wrong).collect::<String>()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(wrong.concat().is_empty(), "{}", wrong.concat());
}

/// Returns a line for each wrong end of the jobs with a writer.
fn wrong(row: &(&str, &str, &str)) -> Vec<String> {
    let (writer, properties, name) = row;
    let undisturbed = stage(row);
    undisturbed.completes();
    let expected = output(&undisturbed);
    let cases = ACTIONS
        .iter()
        .flat_map(|action| [(*action, true), (*action, false)]);
    cases
        .filter_map(|(action, runs)| {
            let stage = stage(row);
            let file = stage.path().join("out").join(name);
            let end = end(&stage, action, &file, runs).and_then(|()| match output(&stage) == expected {
                true => Ok(()),
                false => Err(format!("{:?}", output(&stage))),
            });
            let moment = if runs {
                "while it runs"
            } else {
                "between two launches"
            };
            let case = format!("{writer} {properties}: {action} {name} {moment}");
            end.err().map(|end| format!("{case}: {end}\n"))
        })
        .collect()
}

/// Launches a job until it is complete, with something that happens to a file during the first launch, or after it.
fn end(stage: &Stage, action: &str, file: &Path, runs: bool) -> Result<(), String> {
    let published = file.with_extension("");
    let is_part = file.extension().is_some_and(|extension| extension == "part");
    if is_part {
        fs::write(&published, YESTERDAY).unwrap();
    }
    let mut ended = stage.start([
        ("at", "14"),
        ("do", if runs { action } else { "fail" }),
        ("file", &file.display().to_string()),
    ]);
    let again = |ended: &Ended| stage.restart(ended, [("at", "0")]);
    if !runs {
        happen(action, file).unwrap();
        ended = again(&ended);
    }
    // It fails again while the file is not back.
    for _ in 0..2 {
        if ended.status == BatchStatus::Failed {
            check_message(&ended.message, action, file)?;
            ended = again(&ended);
        }
    }
    if ended.status == BatchStatus::Failed {
        undo(action, file);
        if is_part && fs::read(published).unwrap() != YESTERDAY.as_bytes() {
            return Err("the file of yesterday has changed".to_owned());
        }
        ended = again(&ended);
    } else if action == "make read-only" {
        read_only(file.parent().unwrap(), false).unwrap();
    }
    match ended.status {
        BatchStatus::Completed => Ok(()),
        _ => Err(ended.message),
    }
}

fn check_message(message: &str, action: &str, file: &Path) -> Result<(), String> {
    let name = file.file_name().unwrap().to_string_lossy();
    let stem = match action {
        "new directory" => "",
        _ => name.split(['.', '-']).next().unwrap(),
    };
    match message.contains(&format!("out/{stem}")) {
        true => Ok(()),
        false => Err(format!("the file is not named: {message}")),
    }
}
