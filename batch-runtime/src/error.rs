//! `BatchError`: what an artifact throws. Errors of the phases live beside their phase.

use std::any::Any;
use std::cell::Cell;
use std::error::Error;
use std::fmt;

/// An error that an artifact returned, kept whole: skip and retry rules and reports see the artifact's own type.
///
/// Every `std::error::Error` that is `Send + Sync` converts into it, so artifacts use `?` on whatever they call.
/// `BatchError` itself does not implement `Error` (that is what makes the conversion possible); see [`BatchError::as_error`].
///
/// Spec: ART-06
pub struct BatchError(Box<Inner>);

struct Inner {
    source: Box<dyn Error + Send + Sync>,
    /// Full path of the error's type.
    type_name: &'static str,
    item: Option<usize>,
    panic: bool,
}

impl BatchError {
    /// An error that is only a message.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::from(Message(message.to_string()))
    }

    /// An error that is already in a box, such as an `anyhow::Error` made into one. (`?` converts every error that is not.)
    /// Of the type inside nothing is known: exception classes of Job XML match it by what `#[derive(BatchException)]`
    /// declares.
    pub fn from_boxed(error: Box<dyn Error + Send + Sync>) -> Self {
        Self(Box::new(Inner {
            source: error,
            type_name: std::any::type_name::<dyn Error + Send + Sync>(),
            item: None,
            panic: false,
        }))
    }

    /// `error`, thrown for the item at `index` (from 0) of the list given to the writer.
    ///
    /// The items before it count as written: a retry of a no-rollback exception goes on with the item itself. A writer that
    /// looks at all items before it writes the first one, and has no-rollback exceptions, does not use this.
    ///
    /// Spec: D-10
    pub fn at_item(index: usize, error: impl Into<BatchError>) -> Self {
        let mut error = error.into();
        error.0.item = Some(index);
        error
    }

    /// The index given to [`BatchError::at_item`].
    pub fn item_index(&self) -> Option<usize> {
        self.0.item
    }

    /// The artifact's error as a trait object.
    pub fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.0.source.as_ref()
    }

    /// The artifact's error if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.source.downcast_ref()
    }

    /// Full path of the error's Rust type.
    pub fn type_name(&self) -> &'static str {
        self.0.type_name
    }

    /// Whether the artifact panicked instead of returning an error.
    ///
    /// Spec: CHUNK-EXC-03
    pub fn is_panic(&self) -> bool {
        self.0.panic
    }

    /// The error made of the payload that `catch_unwind` caught.
    pub(crate) fn from_panic(payload: Box<dyn Any + Send>) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a value that is no text".into());
        let place = PANICKED_AT.take().map(|place| format!(" at {place}"));
        let mut error = Self::msg(format!(
            "the artifact panicked{}: {text}",
            place.unwrap_or_default()
        ));
        error.0.panic = true;
        error
    }

    /// The message and the messages of all its sources, joined by `: `. A source whose text the message already ends
    /// with is not repeated.
    pub fn chain(&self) -> String {
        error_chain(self.as_error())
    }
}

/// Implements `Debug` as `Display`, because `Debug` is what `main` prints of an error that it returns.
macro_rules! debug_as_display {
    ($($error:ty),+) => {
        $(impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        })+
    };
}
pub(crate) use debug_as_display;

thread_local! {
    /// Where the thread panicked last, if that is recorded.
    static PANICKED_AT: Cell<Option<String>> = const { Cell::new(None) };
}

/// Records the source line of every panic from now on, so that the messages of failed artifacts show it.
///
/// Installs a panic hook for the whole process, which calls the hook that was installed before. For programs, not for libraries.
pub fn record_panic_locations() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        // The thread may be exiting, without thread-local storage.
        let _ = PANICKED_AT.try_with(|last| last.set(place));
        before(panic);
    }));
}

/// The messages of an error and of its sources, the outermost first.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let message = source.to_string();
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        next = source.source();
    }
    text
}

impl<E: Error + Send + Sync + 'static> From<E> for BatchError {
    fn from(error: E) -> Self {
        Self(Box::new(Inner {
            source: Box::new(error),
            type_name: std::any::type_name::<E>(),
            item: None,
            panic: false,
        }))
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.source.fmt(f)
    }
}

impl fmt::Debug for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain())
    }
}

#[derive(Debug)]
struct Message(String);

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Message {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_artifacts_own_type_and_its_causes() {
        let io = std::io::Error::new(std::io::ErrorKind::NotFound, "no such file");
        let error = BatchError::at_item(3, io);
        assert_eq!(error.item_index(), Some(3));
        assert_eq!(
            error.downcast_ref::<std::io::Error>().map(|e| e.kind()),
            Some(std::io::ErrorKind::NotFound)
        );
        assert_eq!(error.chain(), "no such file");
        assert!(!error.is_panic());
    }

    #[test]
    fn a_boxed_error_is_taken_as_it_is() {
        let boxed: Box<dyn Error + Send + Sync> = Box::new(std::fmt::Error);
        let error = BatchError::from_boxed(boxed);
        assert!(error.downcast_ref::<std::fmt::Error>().is_some());
    }
}
