//! Runs a command in a new process group. Ends the group, closes its pipes and reaps the process.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::limits::{Ending, Limits};
use super::output::{Output, Stream};
use crate::cancel::Cancel;

/// Bytes per read.
const BUFFER: usize = 64 * 1024;
/// The maximum number of reads after the end of the command: more than the pipes hold, but bounded if another process fills them.
const LAST_READS: usize = 64;
/// Leaves the process a zombie, so that no other process or group can get its id before the last signal.
const UNREAPED: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOWAIT);

/// Runs a command whose output is piped, until it ends, exceeds its time, or is cancelled.
///
/// # Errors
/// When it cannot be started or observed; it does not run then.
pub(super) fn run(
    command: &mut Command,
    limits: Limits,
    cancel: &Cancel,
    output: &mut Output<'_>,
) -> io::Result<Ending> {
    let (cancelled, cancel_end) = io::pipe()?;
    let (exited, exit_end) = io::pipe()?;
    let child = command.process_group(0).spawn()?;
    thread::scope(|scope| {
        // Dropped before the scope waits for the thread.
        let mut group = ProcessGroup::new(child);
        let id = WaitId::Pid(group.id);
        thread::Builder::new().spawn_scoped(scope, move || {
            while matches!(waitid(id.clone(), UNREAPED), Err(Errno::INTR)) {}
            drop(exit_end);
        })?;
        let interrupt = move || drop(cancel_end);
        cancel.interruptible(interrupt, || group.supervise(&exited, &cancelled, limits, output))
    })
}

/// The process group of a command. Dropping it kills the group.
struct ProcessGroup {
    child: Child,
    id: Pid,
    is_reaped: bool,
    pipes: [Option<File>; 2],
}

/// An event that [`wait`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Output(Stream),
    Exited,
    Cancelled,
}

impl ProcessGroup {
    fn new(mut child: Child) -> Self {
        let stdout = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let stderr = child.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        Self {
            id: Pid::from_child(&child),
            child,
            is_reaped: false,
            pipes: [stdout, stderr],
        }
    }

    /// Reads the output until the process has exited. `exited` and `cancelled` are closed when that happens.
    fn supervise(
        &mut self,
        exited: &PipeReader,
        cancelled: &PipeReader,
        limits: Limits,
        output: &mut Output<'_>,
    ) -> io::Result<Ending> {
        let mut deadline = limits.timeout.and_then(|time| Instant::now().checked_add(time));
        let (mut has_exited, mut killed_by) = (false, None);
        while !has_exited || (killed_by.is_some() && self.has_pipes()) {
            let mut sources = self.pipes();
            if !has_exited {
                sources.push((Event::Exited, exited.as_fd()));
            }
            if killed_by.is_none() {
                sources.push((Event::Cancelled, cancelled.as_fd()));
            }
            let events = wait(&sources, deadline)?;
            for event in &events {
                match event {
                    Event::Output(stream) => self.read(*stream, output)?,
                    Event::Exited => has_exited = true,
                    Event::Cancelled => {}
                }
            }
            let is_late = events.is_empty();
            if is_late && killed_by.is_some() {
                break;
            }
            if !has_exited && (is_late || events.contains(&Event::Cancelled)) {
                killed_by = Some(if is_late {
                    Ending::TimedOut
                } else {
                    Ending::Cancelled
                });
                self.signal(Signal::TERM);
                deadline = Instant::now().checked_add(limits.kill_after);
            }
        }
        if killed_by.is_some() {
            self.signal(Signal::KILL);
        }
        self.read_rest(output)?;
        let status = self.reap()?;
        Ok(killed_by.unwrap_or(Ending::Exited(status)))
    }

    fn has_pipes(&self) -> bool {
        self.pipes.iter().any(Option::is_some)
    }

    /// Returns the open pipes.
    fn pipes(&self) -> Vec<(Event, BorrowedFd<'_>)> {
        let streams = [Stream::Stdout, Stream::Stderr].into_iter();
        let open = streams.filter_map(|stream| {
            let pipe = self.pipes[stream as usize].as_ref()?;
            Some((Event::Output(stream), pipe.as_fd()))
        });
        open.collect()
    }

    /// Reads once from a pipe that has data or is at its end, where it is closed.
    fn read(&mut self, stream: Stream, output: &mut Output<'_>) -> io::Result<()> {
        let slot = &mut self.pipes[stream as usize];
        let Some(pipe) = slot else { return Ok(()) };
        let mut buffer = vec![0; BUFFER];
        let length = pipe.read(&mut buffer)?;
        output.push(stream, &buffer[..length]);
        if length == 0 {
            *slot = None;
        }
        Ok(())
    }

    /// Reads what the pipes hold and closes them: a process that the command has left behind may keep them open.
    fn read_rest(&mut self, output: &mut Output<'_>) -> io::Result<()> {
        for _ in 0..LAST_READS {
            let ready = wait(&self.pipes(), Some(Instant::now()))?;
            if ready.is_empty() {
                break;
            }
            for event in ready {
                if let Event::Output(stream) = event {
                    self.read(stream, output)?;
                }
            }
        }
        self.pipes = [None, None];
        output.finish();
        Ok(())
    }

    /// Sends a signal to all processes of the group. The process is not reaped yet, so the group exists.
    fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process_group(self.id, signal) {
            tracing::warn!(target: "batch.command", ?signal, %error, "cannot signal the process group of the command");
        }
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait()?;
        self.is_reaped = true;
        Ok(status)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.signal(Signal::KILL);
            let _ = self.reap();
        }
    }
}

/// Waits until a source is readable or closed. Returns no event at the deadline.
fn wait(sources: &[(Event, BorrowedFd<'_>)], deadline: Option<Instant>) -> io::Result<Vec<Event>> {
    loop {
        let mut polled: Vec<PollFd<'_>> = sources
            .iter()
            .map(|(_, source)| PollFd::from_borrowed_fd(*source, PollFlags::IN))
            .collect();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                let ready = polled
                    .iter()
                    .zip(sources)
                    .filter(|(polled, _)| !polled.revents().is_empty());
                return Ok(ready.map(|(_, (event, _))| *event).collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::process::Stdio;

    use super::*;

    /// A command may end between two reads.
    #[test]
    fn the_output_of_a_command_that_has_exited_is_read() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo last; echo error >&2"]).process_group(0);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut group = ProcessGroup::new(child);
        waitid(WaitId::Pid(group.id), UNREAPED).unwrap();
        let lines = RefCell::new(Vec::new());
        let on_line = |_, line: &str| lines.borrow_mut().push(line.to_owned());
        group.read_rest(&mut Output::new(&on_line)).unwrap();
        assert_eq!(lines.into_inner(), ["last", "error"]);
    }
}
