//! A worker: runs the partitions whose tickets arrive on standard input, and reports on standard output.

use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use batch_runtime::BatchRuntime;
use batch_runtime::partition::{PartitionStop, PartitionTicket};

use crate::protocol::{Reply, Request};

/// The interval of a worker's heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(100);

/// Serves requests until standard input is closed.
///
/// # Errors
/// If standard input cannot be read.
pub fn serve(runtime: &BatchRuntime) -> io::Result<()> {
    thread::spawn(|| {
        loop {
            send(&Reply::Alive);
            thread::sleep(HEARTBEAT);
        }
    });
    let stops: Arc<Mutex<Vec<PartitionStop>>> = Arc::default();
    let mut running = Vec::new();
    for line in io::stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Request::Run(ticket) => {
                let (runtime, stops) = (runtime.clone(), Arc::clone(&stops));
                running.push(thread::spawn(move || run(&runtime, &ticket, &stops)));
            }
            Request::Stop => {
                let stops = stops.lock().unwrap_or_else(PoisonError::into_inner);
                stops.iter().for_each(PartitionStop::request_stop);
            }
        }
    }
    for partition in running {
        // A panic in a partition was reported by the runtime.
        let _ = partition.join();
    }
    Ok(())
}

fn run(runtime: &BatchRuntime, ticket: &PartitionTicket, stops: &Mutex<Vec<PartitionStop>>) {
    let id = ticket.step_execution;
    let claimed = match runtime.claim_partition(ticket) {
        Ok(claimed) => claimed,
        Err(error) => return send(&Reply::Failed(id, error.to_string())),
    };
    let mut running = stops.lock().unwrap_or_else(PoisonError::into_inner);
    running.push(claimed.stop_handle());
    drop(running);
    match claimed.run() {
        Ok(status) => send(&Reply::Ended(id, status.into())),
        Err(error) => send(&Reply::Failed(id, error.to_string())),
    }
}

/// Writes a line at once, so that lines of several threads do not mix.
fn send(reply: &Reply) {
    let mut line = serde_json::to_string(reply).unwrap_or_default();
    line.push('\n');
    // If the coordinator is gone, the reply is not needed.
    let _ = io::stdout().lock().write_all(line.as_bytes());
}
