//! `systemCommand`: arguments, exit codes, output, and the end of all processes.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Command;

use batch_runtime::parameters::SecretReference;
use batch_runtime::{BatchStatus, JobParameters};

use super::stage::{Stage, log_with};

fn shell<'a>(line: &'a str, more: &[(&'a str, &'a str)]) -> Stage {
    let mut properties = vec![("command", line), ("shell", "true")];
    properties.extend(more);
    Stage::new("systemCommand", &properties)
}

/// Creates a named pipe: opening it waits for the other side, so a test needs no time.
fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn arguments_and_environment_reach_the_program() {
    let stage = Stage::new(
        "systemCommand",
        &[
            ("command", "./print"),
            ("arguments", "one 'two words' --name=\"it's\" $HOME *"),
            ("environment", "GREETING='good day' EMPTY="),
            ("directory", "${folder}/programs"),
        ],
    );
    stage.write(
        "programs/print",
        "#!/bin/sh\nprintf '%s\\n' \"$@\" \"$GREETING\" \"${EMPTY-unset}\" \"$(basename \"$PWD\")\" >../printed\n",
    );
    let program = stage.path("programs/print");
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    stage.run().completed_as("COMPLETED");
    assert_eq!(
        stage.read("printed"),
        "one\ntwo words\n--name=it's\n$HOME\n*\ngood day\n\nprograms\n"
    );
}

#[test]
fn a_shell_gets_the_arguments_as_they_are() {
    let stage = shell(
        "printf '%s|' \"$1\" \"$2\" >printed; exit 0",
        &[
            ("arguments", "it's; rm -rf x\n\"two\""),
            ("directory", "${folder}"),
        ],
    );
    stage.run().completed_as("COMPLETED");
    assert_eq!(stage.read("printed"), "it's; rm -rf x|\"two\"|");
}

#[test]
fn exit_codes_are_exit_statuses() {
    let codes = ("exit.codes", "1=NOTHING, 2..9=WARNING");
    for (code, status) in [
        ("0", "COMPLETED"),
        ("1", "NOTHING"),
        ("2", "WARNING"),
        ("9", "WARNING"),
    ] {
        let stage = shell(&format!("exit {code}"), &[codes]);
        stage.run().completed_as(status);
    }
    let stage = shell("echo working; echo no space >&2; exit 10", &[codes]);
    let ended = stage.run();
    let message = ended.failed();
    let expected =
        "the shell command ended with exit code 10, which `exit.codes` does not list; its last output:";
    assert!(message.contains(expected), "{message}");
    assert!(message.contains("\nno space"), "{message}");
    assert!(message.contains("\nworking"), "{message}");
    let stage = shell("kill -9 $$", &[]);
    let ended = stage.run();
    assert!(
        ended.failed().contains("was killed: signal: 9"),
        "{}",
        ended.message
    );
}

#[test]
fn a_program_that_cannot_run_is_named() {
    let stage = Stage::new("systemCommand", &[("command", "no-such-program -x")]);
    let ended = stage.run();
    let expected = "cannot run command `no-such-program -x`: No such file or directory (os error 2); set its arguments in \
                    `arguments`, or `shell` to `true`";
    assert!(ended.failed().contains(expected), "{}", ended.message);
    let stage = Stage::new(
        "systemCommand",
        &[("command", "true"), ("directory", "${folder}/none")],
    );
    let ended = stage.run();
    assert!(
        ended.failed().contains("/none does not exist"),
        "{}",
        ended.message
    );
}

#[test]
fn wrong_properties_are_reported_before_the_start() {
    for (property, problem) in [
        (("command", " "), "expected the name or path of a program"),
        (("arguments", "a 'b"), "a quote ' is not closed"),
        (("environment", "A=1 b"), "entry 2 is not `NAME=value`"),
        (("timeout", "soon"), "expected a duration"),
        (("exit.codes", "1"), "expected an entry such as `1=NOTHING`"),
    ] {
        let mut properties = vec![property];
        if property.0 != "command" {
            properties.push(("command", "true"));
        }
        let stage = Stage::new("systemCommand", &properties);
        let error = stage.operator().start("job", ()).unwrap_err();
        assert!(
            format!("{error:?}{error}").contains(problem),
            "{property:?}: {error}"
        );
    }
}

#[test]
fn output_is_logged_line_by_line() {
    let stage = shell(
        "echo first-of-7281; echo second-of-7281 >&2; printf third-of-7281",
        &[],
    );
    stage.run();
    for (text, stream) in [("first", "stdout"), ("second", "stderr"), ("third", "stdout")] {
        let lines = log_with(&format!("{text}-of-7281"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].contains("batch.command") && lines[0].contains(stream),
            "{lines:?}"
        );
        assert!(
            !lines[0].contains("echo"),
            "the command line is not logged: {lines:?}"
        );
    }
    shell("echo silent-7282; exit 1", &[("log.output", "false")]).run();
    assert!(
        log_with("silent-7282")
            .iter()
            .all(|line| !line.contains("stdout")),
        "{:?}",
        log_with("silent-7282")
    );
}

#[test]
fn much_output_blocks_nothing_and_errors_show_its_end() {
    let line = "i=0; while [ $i -lt 20000 ]; do echo line $i; echo error $i >&2; i=$((i+1)); done; exit 1";
    let stage = shell(line, &[("log.output", "false")]);
    let ended = stage.run();
    assert!(ended.failed().contains("\nerror 19999"), "{}", ended.message);
    assert!(!ended.message.contains("line 19900"), "{}", ended.message);
}

#[test]
fn secrets_reach_the_program_and_nothing_else() {
    let line = "echo checked-7283; [ \"$PASSWORD\" = \"it's a \\\"s3cret\" ] && [ \"$1\" = \"$PASSWORD\" ] && exit 3; exit 4";
    let stage = shell(
        line,
        &[
            ("environment", "PASSWORD=${password}\n"),
            ("arguments", "${password}\n"),
        ],
    );
    stage.write("password", "it's a \"s3cret\n");
    let reference = SecretReference::File(stage.name("password"));
    let ended = stage.wait(stage.start(JobParameters::new().with_secret("password", reference)));
    assert!(ended.failed().contains("exit code 3,"), "{}", ended.message);
    assert!(!ended.message.contains("s3cret"), "{}", ended.message);
    assert_eq!(log_with("checked-7283").len(), 1);
    assert_eq!(log_with("s3cret"), [""; 0]);
}

/// Stops a job whose command has written a line into the pipe `started`, which it keeps open. Returns when no process has it open.
fn stop(stage: &Stage) -> super::stage::Ended {
    pipe(&stage.path("started"));
    let execution = stage.start(());
    let mut started = BufReader::new(File::open(stage.path("started")).unwrap());
    let mut line = String::new();
    started.read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    let ended = stage.stop(execution);
    started.read_to_end(&mut Vec::new()).unwrap();
    ended
}

#[test]
fn a_stop_terminates_the_whole_group() {
    let line =
        "exec 3>started; sleep 1000 & trap 'echo terminated >signal; exit 0' TERM; echo started >&3; wait";
    let stage = shell(line, &[("directory", "${folder}")]);
    let ended = stop(&stage);
    assert_eq!(
        (ended.status, ended.exit_status.as_str()),
        (BatchStatus::Stopped, "STOPPED")
    );
    assert_eq!(stage.read("signal"), "terminated\n");
    // A restart runs it again.
    stage
        .restart(ended.id, [("command", "exit 0")])
        .completed_as("COMPLETED");
}

#[test]
fn a_group_that_ignores_the_signal_is_killed() {
    let line = "exec 3>started; trap '' TERM; sleep 1000 & echo started >&3; wait; sleep 1000";
    let stage = shell(line, &[("directory", "${folder}"), ("kill.after", "50ms")]);
    let ended = stop(&stage);
    assert_eq!(
        (ended.status, ended.exit_status.as_str()),
        (BatchStatus::Stopped, "STOPPED")
    );
}

#[test]
fn a_timeout_kills_the_group_and_leaves_no_zombie() {
    let line = "echo $$ >pid; echo working; sleep 1000 & wait";
    let stage = shell(line, &[("directory", "${folder}"), ("timeout", "1s")]);
    let ended = stage.run();
    let expected =
        "the shell command ran longer than its `timeout` and was killed; its last output:\nworking";
    assert!(ended.failed().contains(expected), "{}", ended.message);
    // A zombie would still accept signals.
    let pid = stage.read("pid");
    let alive = Command::new("kill").args(["-0", pid.trim()]).output().unwrap();
    assert!(!alive.status.success());
}

/// The process in the background reads a pipe, and so lives until the test has written to it.
#[test]
fn a_process_in_the_background_does_not_hold_the_step() {
    let line = "(cat continue; echo late) & echo early-6651";
    let stage = shell(line, &[("directory", "${folder}")]);
    pipe(&stage.path("continue"));
    stage.run().completed_as("COMPLETED");
    assert_eq!(log_with("early-6651").len(), 1);
    let mut end = File::options().write(true).open(stage.path("continue")).unwrap();
    end.write_all(b"end").unwrap();
}
