//! The messages of tests that fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the message of a function that fails its test. A sweep's own processes end in it.
#[track_caller]
pub(crate) fn panic_of(test: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).expect_err("the test fails");
    match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(other) => (*other.downcast::<&str>().unwrap()).to_owned(),
    }
}
