//! Whose turn it is to write: of the threads of this process one after the other, in the order in which they asked.
//!
//! SQLite has one writer. One that finds it busy sleeps and tries again, so that a busy partition would keep the others from
//! ever coming to write. Other processes are still waited for as SQLite does it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam::channel::{Sender, bounded};

/// The turns of one database.
#[derive(Default)]
pub(in crate::repository::diesel) struct Turns {
    line: Mutex<Line>,
}

#[derive(Default)]
struct Line {
    taken: bool,
    waiting: VecDeque<Sender<()>>,
    /// How often it was handed over.
    moves: u64,
}

/// The right to write, until it is dropped.
pub(in crate::repository::diesel) struct Turn {
    turns: Arc<Turns>,
}

impl Turns {
    /// Waits for the turn, as long as the line moves within `limit`: a thread that waits for itself must not do so for ever.
    /// `None` when it did not. Who is `hurried` comes before all that wait.
    pub(super) fn take(self: &Arc<Self>, limit: Duration, hurried: bool) -> Option<Turn> {
        let turn = || Turn {
            turns: Arc::clone(self),
        };
        let (hand_over, handed, mut moves) = {
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            if !line.taken {
                line.taken = true;
                return Some(turn());
            }
            let (hand_over, handed) = bounded(1);
            if hurried {
                line.waiting.push_front(hand_over.clone());
            } else {
                line.waiting.push_back(hand_over.clone());
            }
            (hand_over, handed, line.moves)
        };
        loop {
            if handed.recv_timeout(limit).is_ok() {
                return Some(turn());
            }
            let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
            if line.moves == moves {
                line.waiting.retain(|other| !other.same_channel(&hand_over));
                // It may have come at the last moment.
                return handed.try_recv().is_ok().then(turn);
            }
            moves = line.moves;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut line = self.turns.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.moves += 1;
        match line.waiting.pop_front() {
            // There is room for one, and only one is ever sent.
            Some(next) => drop(next.try_send(())),
            None => line.taken = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    impl Turns {
        fn waiting(&self) -> usize {
            self.line.lock().unwrap().waiting.len()
        }
    }

    /// Whoever has written and wants to write again comes after those that wait; and one writes at a time.
    ///
    /// Spec: PART-34
    #[test]
    fn turns_come_in_the_order_of_asking() {
        let turns = Arc::new(Turns::default());
        let first = turns.take(LONG, false).unwrap();
        let (writes, writing) = bounded(0);
        std::thread::scope(|scope| {
            for number in 1..=3 {
                let (turns, writes) = (&turns, writes.clone());
                scope.spawn(move || {
                    let _turn = turns.take(LONG, false).unwrap();
                    // Twice: what comes between the two, comes while this thread writes.
                    writes.send(number).unwrap();
                    writes.send(number).unwrap();
                });
                while turns.waiting() < number {
                    std::thread::yield_now();
                }
            }
            drop(first);
            for number in 1..=3 {
                assert_eq!(writing.recv(), Ok(number));
                assert!(
                    turns.take(Duration::ZERO, false).is_none(),
                    "one writes at a time"
                );
                assert_eq!(writing.recv(), Ok(number));
            }
        });
        assert!(turns.take(Duration::ZERO, false).is_some(), "nobody holds it");
    }

    /// A lease must not expire because many wait to write.
    #[test]
    fn who_is_hurried_comes_first() {
        let turns = Arc::new(Turns::default());
        let held = turns.take(LONG, false).unwrap();
        let (writes, writing) = bounded(0);
        std::thread::scope(|scope| {
            for (number, hurried) in [(1, false), (2, true)] {
                let (turns, writes) = (&turns, writes.clone());
                scope.spawn(move || {
                    let _turn = turns.take(LONG, hurried).unwrap();
                    writes.send(number).unwrap();
                });
                while turns.waiting() < number {
                    std::thread::yield_now();
                }
            }
            drop(held);
            assert_eq!((writing.recv(), writing.recv()), (Ok(2), Ok(1)));
        });
    }

    #[test]
    fn who_has_waited_in_vain_leaves_the_line() {
        let turns = Arc::new(Turns::default());
        let held = turns.take(LONG, false).unwrap();
        assert!(turns.take(Duration::ZERO, false).is_none());
        assert_eq!(turns.waiting(), 0);
        drop(held);
        assert!(turns.take(Duration::ZERO, false).is_some());
    }
}
