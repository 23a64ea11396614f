//! The properties of the state types, each under many schedules.

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;

use crate::context_gate::ContextGate;
use crate::engine::threads::{Worker, Workers};
use crate::group_sync::GroupSync;
use crate::role::Batchlet;

/// A batchlet that checks when it is cancelled.
#[derive(Default)]
struct Probe {
    processing: AtomicBool,
    cancels: AtomicUsize,
}

impl Batchlet for Probe {
    fn cancel(&self) -> Result<(), crate::Nothing> {
        assert!(
            self.processing.load(Ordering::SeqCst),
            "cancelled while it did not run"
        );
        assert_eq!(self.cancels.fetch_add(1, Ordering::SeqCst), 0, "cancelled twice");
        // Other threads run while `#[cancel]` does its work.
        thread::yield_now();
        assert!(
            self.processing.load(Ordering::SeqCst),
            "`#[process]` returned during the cancel"
        );
        Ok(())
    }
}

/// Runs the batchlet of a step on `worker`, until it returns or is cancelled. Returns whether it ran.
fn step(worker: &Worker, probe: &Arc<Probe>, until_cancelled: bool) -> bool {
    let batchlet: Arc<dyn crate::role::Batchlet> = probe.clone();
    probe.processing.store(true, Ordering::SeqCst);
    let runs = worker.enter_batchlet(&batchlet);
    if runs {
        while until_cancelled && probe.cancels.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        worker.leave_batchlet();
    }
    probe.processing.store(false, Ordering::SeqCst);
    runs
}

/// Two threads request a stop while a batchlet starts and ends, or waits to be cancelled.
pub(crate) fn cancel() {
    for until_cancelled in [false, true] {
        shuttle::check_random(
            move || {
                let worker = Arc::new(Worker::default());
                let probe = Arc::new(Probe::default());
                let stoppers: Vec<_> = (0..2)
                    .map(|_| {
                        let worker = Arc::clone(&worker);
                        thread::spawn(move || worker.request_stop())
                    })
                    .collect();
                let ran = step(&worker, &probe, until_cancelled);
                for stopper in stoppers {
                    stopper.join().unwrap();
                }
                let cancels = probe.cancels.load(Ordering::SeqCst);
                assert!(worker.stop_requested());
                assert!(ran || cancels == 0);
                assert!(!until_cancelled || !ran || cancels == 1);
                // A batchlet after the stop does not run.
                assert!(!step(&worker, &Arc::new(Probe::default()), false));
            },
            crate::ORDERS,
        );
    }
}

/// The whole execution is stopped while threads start and adopt subjobs.
pub(crate) fn reach() {
    shuttle::check_random(
        || {
            let workers = Arc::new(Workers::default());
            let stopper = {
                let workers = Arc::clone(&workers);
                thread::spawn(move || workers.request_stop())
            };
            let main = workers.begin();
            let subjobs: Vec<_> = (0..2)
                .map(|_| {
                    let child = workers.begin();
                    main.adopt(&child);
                    thread::spawn(move || step(&child, &Arc::new(Probe::default()), true))
                })
                .collect();
            stopper.join().unwrap();
            // Each waits to be cancelled, or has not started.
            for subjob in subjobs {
                subjob.join().unwrap();
            }
            assert!(main.stop_requested());
        },
        crate::ORDERS,
    );
    // A stop of one thread reaches its subjobs.
    shuttle::check_random(
        || {
            let parent = Arc::new(Worker::default());
            let child = Arc::new(Worker::default());
            let stopper = {
                let parent = Arc::clone(&parent);
                thread::spawn(move || parent.request_stop())
            };
            parent.adopt(&child);
            step(&child, &Arc::new(Probe::default()), true);
            parent.release(&child);
            stopper.join().unwrap();
        },
        crate::ORDERS,
    );
}

/// A pause between two retries ends with a stop.
pub(crate) fn pause() {
    shuttle::check_random(
        || {
            let worker = Arc::new(Worker::default());
            let sleeper = {
                let worker = Arc::clone(&worker);
                // Under shuttle no time passes: only the stop ends the pause.
                thread::spawn(move || worker.pause(std::time::Duration::from_secs(3_600)))
            };
            worker.request_stop();
            sleeper.join().unwrap();
        },
        crate::ORDERS,
    );
}

/// One partition fails while another ends and a third waits to be cancelled, and the job is stopped.
pub(crate) fn siblings() {
    shuttle::check_random(
        || {
            let workers = Arc::new(Workers::default());
            let parent = workers.begin();
            let probes: Vec<_> = (0..3).map(|_| Arc::new(Probe::default())).collect();
            let children: Vec<_> = probes
                .iter()
                .map(|_| {
                    let child = workers.begin();
                    parent.adopt(&child);
                    child
                })
                .collect();
            let threads: Vec<_> = children
                .iter()
                .zip(&probes)
                .enumerate()
                .map(|(number, (child, probe))| {
                    let (child, probe) = (Arc::clone(child), Arc::clone(probe));
                    thread::spawn(move || step(&child, &probe, number == 2))
                })
                .collect();
            let stopper = {
                let workers = Arc::clone(&workers);
                thread::spawn(move || workers.request_stop())
            };
            let mut threads = threads.into_iter();
            // The first fails, so the others are asked to stop.
            threads.next().unwrap().join().unwrap();
            children[1..].iter().for_each(|child| child.request_stop());
            for thread in threads {
                thread.join().unwrap();
            }
            stopper.join().unwrap();
            for child in &children {
                parent.release(child);
                workers.end(child);
            }
        },
        crate::ORDERS / 4,
    );
}

/// A thread reads two chunks, and uses a context for each, while another commits the chunk before.
pub(crate) fn gate() {
    shuttle::check_random(
        || {
            let gate = Arc::new(ContextGate::new());
            let context = Arc::new(AtomicUsize::new(0));
            for chunk in 0..2 {
                gate.close();
                let reader = {
                    let (gate, context) = (Arc::clone(&gate), Arc::clone(&context));
                    thread::spawn(move || {
                        gate.wait();
                        context.fetch_add(1, Ordering::SeqCst);
                    })
                };
                thread::yield_now();
                let committed = context.load(Ordering::SeqCst);
                assert_eq!(committed, chunk, "the next chunk is in the context");
                gate.open();
                reader.join().unwrap();
            }
        },
        crate::ORDERS,
    );
}

/// Threads write and wait for the disk; each returns only when what it has written is there.
pub(crate) fn synced() {
    shuttle::check_random(
        || {
            let written = Arc::new(AtomicUsize::new(0));
            let on_disk = Arc::new(AtomicUsize::new(0));
            let sync = {
                let (written, on_disk) = (Arc::clone(&written), Arc::clone(&on_disk));
                move || {
                    let seen = written.load(Ordering::SeqCst);
                    thread::yield_now();
                    on_disk.fetch_max(seen, Ordering::SeqCst);
                    Ok(())
                }
            };
            let group = Arc::new(GroupSync::new(sync));
            let writers: Vec<_> = (0..3)
                .map(|_| {
                    let (group, written, on_disk) = (group.clone(), written.clone(), on_disk.clone());
                    thread::spawn(move || {
                        let mine = written.fetch_add(1, Ordering::SeqCst) + 1;
                        group.wait().unwrap();
                        assert!(
                            on_disk.load(Ordering::SeqCst) >= mine,
                            "it was reported too early"
                        );
                    })
                })
                .collect();
            for writer in writers {
                writer.join().unwrap();
            }
        },
        crate::ORDERS,
    );
}
