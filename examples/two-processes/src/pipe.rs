//! The dispatcher: child processes as workers, tickets and replies through their pipes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use batch_runtime::partition::{
    DispatchError, PartitionChannel, PartitionDispatcher, PartitionEvent, PartitionTicket,
};
use batch_runtime::{JobExecutionId, StepExecutionId};

use crate::protocol::{Reply, Request};

/// The started worker processes, for tests that observe or kill them.
pub type Workers = Arc<Mutex<Vec<Child>>>;

/// Starts worker processes for each partitioned element.
#[derive(Debug)]
pub struct PipeDispatcher {
    program: PathBuf,
    arguments: Vec<String>,
    count: usize,
    silence: Duration,
    workers: Workers,
    remarks: Arc<Mutex<Vec<String>>>,
}

impl PipeDispatcher {
    /// Creates a dispatcher that starts `count` workers by `program` with `arguments`.
    pub fn new(program: impl Into<PathBuf>, arguments: &[&str], count: usize) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            count,
            silence: Duration::from_secs(2),
            workers: Workers::default(),
            remarks: Arc::default(),
        }
    }

    /// Returns the list of the workers that this dispatcher has started and will start.
    pub fn workers(&self) -> Workers {
        Arc::clone(&self.workers)
    }

    /// Returns the list of what workers reported as failed.
    pub fn remarks(&self) -> Arc<Mutex<Vec<String>>> {
        Arc::clone(&self.remarks)
    }
}

impl PartitionDispatcher for PipeDispatcher {
    fn open(
        &self,
        _job_execution: JobExecutionId,
        _queue: &str,
    ) -> Result<Box<dyn PartitionChannel>, DispatchError> {
        let (sender, replies) = channel();
        let mut lines = Vec::new();
        for number in 0..self.count {
            let worker = Line::start(self, number, sender.clone())
                .map_err(|error| DispatchError::new("cannot start a worker").caused_by(error))?;
            lines.push(worker);
        }
        Ok(Box::new(PipeChannel {
            lines,
            replies,
            out: HashMap::new(),
            silence: self.silence,
            remarks: Arc::clone(&self.remarks),
        }))
    }
}

/// The line to one worker.
struct Line {
    input: ChildStdin,
    heard: Instant,
    is_lost: bool,
}

impl Line {
    fn start(
        of: &PipeDispatcher,
        number: usize,
        replies: Sender<(usize, Option<Reply>)>,
    ) -> std::io::Result<Self> {
        let mut child = Command::new(&of.program)
            .args(&of.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing = || std::io::Error::other("the worker has no pipe");
        let input = child.stdin.take().ok_or_else(missing)?;
        let output = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // Lines that artifacts print on standard output are not replies.
                if let Ok(reply) = serde_json::from_str(&line) {
                    let _ = replies.send((number, Some(reply)));
                }
            }
            let _ = replies.send((number, None));
        });
        of.workers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(child);
        Ok(Self {
            input,
            heard: Instant::now(),
            is_lost: false,
        })
    }

    fn send(&mut self, request: &Request) -> std::io::Result<()> {
        let line = serde_json::to_string(request)? + "\n";
        self.input.write_all(line.as_bytes())
    }
}

struct PipeChannel {
    lines: Vec<Line>,
    replies: Receiver<(usize, Option<Reply>)>,
    /// The worker of each submitted partition.
    out: HashMap<StepExecutionId, usize>,
    silence: Duration,
    remarks: Arc<Mutex<Vec<String>>>,
}

impl PartitionChannel for PipeChannel {
    fn submit(&mut self, tickets: &[PartitionTicket]) -> Result<(), DispatchError> {
        tickets.iter().try_for_each(|ticket| self.send(ticket))
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<PartitionEvent>, DispatchError> {
        let until = Instant::now() + wait;
        loop {
            if let Some(lost) = self.lost() {
                return Ok(Some(PartitionEvent::Lost(lost)));
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.replies.recv_timeout(left) {
                Ok((worker, None)) => self.lines[worker].is_lost = true,
                Ok((worker, Some(reply))) => {
                    self.lines[worker].heard = Instant::now();
                    if let Some(event) = self.event_of(worker, reply) {
                        return Ok(Some(event));
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    fn stop(&mut self) {
        for line in self.lines.iter_mut().filter(|line| !line.is_lost) {
            line.is_lost |= line.send(&Request::Stop).is_err();
        }
    }
}

impl PipeChannel {
    fn send(&mut self, ticket: &PartitionTicket) -> Result<(), DispatchError> {
        let load = |number: &usize| self.out.values().filter(|worker| *worker == number).count();
        let alive = (0..self.lines.len()).filter(|number| !self.lines[*number].is_lost);
        let worker = alive.min_by_key(load);
        let worker = worker.ok_or_else(|| DispatchError::new("every worker is gone"))?;
        self.out.insert(ticket.step_execution, worker);
        if self.lines[worker].send(&Request::Run(ticket.clone())).is_err() {
            // The next `receive` reports its partitions as lost.
            self.lines[worker].is_lost = true;
        }
        Ok(())
    }

    /// Returns a partition whose worker is gone or silent.
    fn lost(&mut self) -> Option<StepExecutionId> {
        for line in &mut self.lines {
            line.is_lost |= line.heard.elapsed() > self.silence;
        }
        let lost = self.out.iter().find(|(_, worker)| self.lines[**worker].is_lost);
        let lost = lost.map(|(id, _)| *id)?;
        self.out.remove(&lost);
        Some(lost)
    }

    fn event_of(&mut self, worker: usize, reply: Reply) -> Option<PartitionEvent> {
        match reply {
            Reply::Alive => None,
            Reply::Ended(id, _) => {
                (self.out.get(&id) == Some(&worker)).then(|| self.out.remove(&id))?;
                Some(PartitionEvent::Ended(id))
            }
            Reply::Failed(id, problem) => {
                self.remarks
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(problem);
                (self.out.get(&id) == Some(&worker)).then(|| self.out.remove(&id))?;
                Some(PartitionEvent::Lost(id))
            }
        }
    }
}
