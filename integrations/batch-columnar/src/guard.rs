//! Calls of libraries that decode a format.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a library that decodes a format. A panic in it is an error: the file is damaged, not the artifact.
pub(crate) fn guard<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|payload| Err(damaged(&*payload)))
}

fn damaged(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    format!(
        "it is damaged: its decoder panicked: {}",
        text.unwrap_or("a value that is not a text")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: INPUT-06
    #[test]
    fn a_panic_of_a_decoder_is_an_error() {
        let lengths = [1_usize, 2];
        let index = std::hint::black_box(lengths.len());
        let error = guard(|| Ok(lengths[index])).unwrap_err();
        assert_eq!(
            error,
            "it is damaged: its decoder panicked: index out of bounds: the len is 2 but the index is 2"
        );
        assert_eq!(guard(|| Ok(1)), Ok(1));
    }
}
