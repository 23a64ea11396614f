//! The order of the calls of a logical transaction over the executions of one job instance, whose processes may have
//! died anywhere: an automaton that accepts exactly the orders of section 5.5.2 of the draft and D-46, D-48.
//!
//! Each state is recorded before the call that it announces, so a pending call may occur twice, or without the
//! preceding call being observed; but only in another execution, after the death of a process.

use State::*;

/// The last observed call, and its execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Nothing,
    Begun(i64),
    Completing(i64),
    Committed(i64),
    RollingBack(i64),
    RolledBack(i64),
}

/// The result of the calls of a complete instance.
#[derive(Debug, PartialEq, Eq)]
pub struct Story {
    /// The execution whose work was committed.
    pub loaded_by: i64,
    /// Calls of the rollback.
    pub rollbacks: usize,
}

/// Checks the calls of one instance, each with its execution, in order.
///
/// # Errors
/// If they are in a wrong order, or do not end with a commit.
pub fn read(calls: &[(i64, String)]) -> Result<Story, String> {
    let (mut state, mut loaded_by, mut rollbacks) = (Nothing, None, 0);
    for (position, (execution, call)) in calls.iter().enumerate() {
        state = after(state, *execution, call)
            .ok_or_else(|| format!("call {position}, `{call}`, after {state:?} in {calls:?}"))?;
        match state {
            Begun(execution) => loaded_by = Some(execution),
            RollingBack(_) => {
                rollbacks += 1;
                loaded_by = None;
            }
            _ => {}
        }
    }
    match (state, loaded_by) {
        (Committed(_), Some(loaded_by)) => Ok(Story { loaded_by, rollbacks }),
        _ => Err(format!("ends with {state:?}: {calls:?}")),
    }
}

fn after(state: State, now: i64, call: &str) -> Option<State> {
    let allowed = match (call, state) {
        ("begin", Nothing) => true,
        ("begin", RolledBack(then)) => now >= then,

        // The process died between the record of the begin and its call.
        ("rollback", Nothing) => true,
        ("rollback", Begun(then) | Completing(then) | RollingBack(then) | RolledBack(then)) => now > then,

        ("ROLLBACK", RollingBack(then)) => now == then,
        ("before completion", Begun(then)) => now == then,
        ("COMMIT", Completing(then)) => now >= then,
        // The process died between the call and its record.
        ("COMMIT", Committed(then)) => now > then,
        _ => false,
    };
    let next = match call {
        "begin" => Begun,
        "rollback" => RollingBack,
        "ROLLBACK" => RolledBack,
        "before completion" => Completing,
        _ => Committed,
    };
    allowed.then(|| next(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `calls` are the execution, and letters: b begin, c before completion, C COMMIT, r rollback, R ROLLBACK.
    fn check(calls: &str, expected: Option<(i64, usize)>) {
        let words = |letter| match letter {
            'b' => "begin",
            'c' => "before completion",
            'C' => "COMMIT",
            'r' => "rollback",
            'R' => "ROLLBACK",
            other => panic!("{other}"),
        };
        let calls: Vec<(i64, String)> = calls
            .split_whitespace()
            .flat_map(|of_execution| {
                let (execution, letters) = of_execution.split_at(1);
                let execution: i64 = execution.parse().unwrap();
                letters
                    .chars()
                    .map(move |letter| (execution, words(letter).to_owned()))
            })
            .collect();
        let story = read(&calls).ok();
        let expected = expected.map(|(loaded_by, rollbacks)| Story { loaded_by, rollbacks });
        assert_eq!(story, expected, "{calls:?}");
    }

    #[test]
    fn right_orders_are_accepted() {
        check("1bcC", Some((1, 0)));
        // Died while loading; before any observed call; in the rollback; between rollback and its end; after its end.
        check("1b 2rRbcC", Some((2, 1)));
        check("2rRbcC", Some((2, 1)));
        check("1b 2r 3rRbcC", Some((3, 2)));
        check("1b 2rR 3rRbcC", Some((3, 2)));
        check("1b 2rR 3bcC", Some((3, 1)));
        // Died before the commit was recorded; when it was; in the call after it; when that was recorded.
        check("1bc 2rRbcC", Some((2, 1)));
        check("1bc 2C", Some((1, 0)));
        check("1bcC 2C", Some((1, 0)));
        check("1bc 2C 3C", Some((1, 0)));
    }

    #[test]
    fn wrong_orders_are_found() {
        for calls in [
            "",
            "1b",
            "1bc",
            "1bC",
            "1bbcC",
            "1bccC",
            "1bcCC",
            "1bcCbcC",
            "1bcC 2bcC",
            "1bc 2CbcC",
            "1bcC 3rRbcC",
            "1cC",
            // The pending rollback was not called.
            "1b 2bcC",
            "1bc 2bcC",
            "1b 2r 3bcC",
            // No call after the end; the call after the other end; undone after the commit, or twice; resumed after a
            // death.
            "1b 2rbcC",
            "1b 2rCbcC",
            "1bcC 2rRbcC",
            "1bcCrR",
            "1b 2rRrRbcC",
            "1b 2cC",
            "1b 2rR",
        ] {
            check(calls, None);
        }
    }
}
