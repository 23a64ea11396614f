//! `BatchError`, the error of artifacts.

use std::any::Any;
use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// An error that an artifact returned. It keeps its type for skip and retry rules and for reports.
///
/// Everything that converts into a `Box<dyn std::error::Error + Send + Sync>` converts into it, so artifacts can use `?`: every error that is
/// `Send + Sync`, text, and the errors of anyhow and eyre. With the features `anyhow` and `eyre` the rules for skip and retry see the class
/// of the error in such a report; without them only the classes of its causes, because the report does not show its type.
///
/// `BatchError` itself does not implement `Error`, which makes the conversion possible; see [`BatchError::as_error`].
// Spec: ART-06, ART-14
pub struct BatchError(Box<Inner>);

struct Inner {
    source: Box<dyn Error + Send + Sync>,
    /// True if the source only shows a report of anyhow or eyre, whose error is its source.
    is_report: bool,
    /// Full path of the error's type.
    type_name: &'static str,
    item: Option<usize>,
    about: Option<usize>,
    needs_rollback: bool,
    panic: bool,
    /// What precedes the message.
    context: String,
    details: Option<Box<dyn Any + Send + Sync>>,
}

impl BatchError {
    /// Creates an error from a message.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self::from(Message(message.to_string()))
    }

    /// Wraps a boxed error, as `?` does. The type in the box is unknown, so exception classes of Job XML match it by the declarations of `#[derive(BatchException)]` only.
    pub fn from_boxed(error: Box<dyn Error + Send + Sync>) -> Self {
        Self(Box::new(Inner {
            source: error,
            is_report: false,
            type_name: std::any::type_name::<dyn Error + Send + Sync>(),
            item: None,
            about: None,
            needs_rollback: false,
            panic: false,
            context: String::new(),
            details: None,
        }))
    }

    /// Adds details for listeners, such as the items that the error affects too. They change neither the message nor the class.
    pub fn with_details(mut self, details: impl Any + Send + Sync) -> Self {
        self.0.details = Some(Box::new(details));
        self
    }

    /// Returns the details of this type.
    pub fn details<T: Any>(&self) -> Option<&T> {
        self.0.details.as_ref()?.downcast_ref()
    }

    /// Adds what the error is about, such as one of several writers, before the message. The class stays.
    #[must_use]
    pub fn with_context(mut self, context: impl fmt::Display) -> Self {
        self.0.context.insert_str(0, &format!("{context}: "));
        self
    }

    /// Creates an error for the item at `index` (from 0) of the list passed to the writer.
    ///
    /// The items before it count as written: the retry of a no-rollback exception resumes at this item. A writer that
    /// checks all items before it writes the first, and has no-rollback exceptions, must not use this.
    // Spec: D-10
    pub fn at_item(index: usize, error: impl Into<BatchError>) -> Self {
        let mut error = error.into();
        (error.0.item, error.0.about) = (Some(index), Some(index));
        error
    }

    /// Creates an error about the item at `index` (from 0) of the list passed to the writer. Unlike [`BatchError::at_item`] it says nothing about
    /// the items before it: the message of the failed step names where the item comes from, and nothing else depends on the index.
    // Spec: READ-11
    pub fn about_item(index: usize, error: impl Into<BatchError>) -> Self {
        let mut error = error.into();
        error.0.about = Some(index);
        error
    }

    /// Returns the index of [`BatchError::at_item`] or [`BatchError::about_item`].
    pub(crate) fn about(&self) -> Option<usize> {
        self.0.about
    }

    /// Returns the error without the index of [`BatchError::at_item`] or [`BatchError::about_item`], for a writer whose
    /// parts receive other lists.
    // Spec: D-10
    #[must_use]
    pub fn without_item_index(mut self) -> Self {
        (self.0.item, self.0.about) = (None, None);
        self
    }

    /// Turns the index of [`BatchError::at_item`] into one of [`BatchError::about_item`], for a writer that has not written the items before it.
    // Spec: D-10
    #[must_use]
    pub fn without_written_items(mut self) -> Self {
        self.0.item = None;
        self
    }

    /// Returns the index passed to [`BatchError::at_item`].
    pub fn item_index(&self) -> Option<usize> {
        self.0.item
    }

    /// Creates an error of a writer that has left items in its output, such as in a file that is complete. Before anything else is written,
    /// the runtime rolls the interval back and opens the writer at its last checkpoint: also where it would otherwise skip the item, or
    /// retry, without a rollback.
    // Spec: D-10
    pub fn with_rollback(error: impl Into<BatchError>) -> Self {
        let mut error = error.into();
        error.0.needs_rollback = true;
        error
    }

    /// Returns whether the error was created by [`BatchError::with_rollback`].
    pub fn needs_rollback(&self) -> bool {
        self.0.needs_rollback
    }

    /// Returns the artifact's error as a trait object.
    pub fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.0.source.as_ref()
    }

    /// Returns the artifact's error if it is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        let of_report = || {
            self.0
                .source
                .source()
                .filter(|_| self.0.is_report)?
                .downcast_ref()
        };
        self.0.source.downcast_ref().or_else(of_report)
    }

    /// Returns the full path of the error's Rust type.
    pub fn type_name(&self) -> &'static str {
        self.0.type_name
    }

    /// Returns whether the error, or one of its sources, is a [`ConnectionLost`].
    pub fn is_connection_lost(&self) -> bool {
        self.has::<ConnectionLost>()
    }

    /// Returns whether the error, or one of its sources, is a [`ConfigurationError`].
    pub fn is_configuration_error(&self) -> bool {
        self.has::<ConfigurationError>()
    }

    /// Returns whether no rule includes the error: a panic, and one that is not the fault of an item, fails the step.
    // Spec: CHUNK-EXC-03, D-106
    pub(crate) fn fails_the_step(&self) -> bool {
        self.is_panic() || self.is_configuration_error()
    }

    /// Returns whether the error, or one of its sources, is of this type.
    fn has<E: Error + 'static>(&self) -> bool {
        let mut next: Option<&(dyn Error + 'static)> = Some(self.as_error());
        while let Some(error) = next {
            if error.is::<E>() {
                return true;
            }
            next = error.source();
        }
        false
    }

    /// Returns whether the artifact panicked instead of returning an error.
    // Spec: CHUNK-EXC-03
    pub fn is_panic(&self) -> bool {
        self.0.panic
    }

    /// Creates an error from the payload caught by `catch_unwind`.
    pub(crate) fn from_panic(payload: Box<dyn Any + Send>) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a value that is not a string".into());
        // A payload whose `Drop` panics too is leaked.
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(another);
        }
        let place = PANICKED_AT.take().map(|place| format!(" at {place}"));
        let mut error = Self::msg(format!(
            "the artifact panicked{}: {text}",
            place.unwrap_or_default()
        ));
        error.0.panic = true;
        error
    }

    /// Returns the message and the messages of all sources, joined by `: `. Skips a source whose text is
    /// part of the message.
    pub fn chain(&self) -> String {
        self.0.context.clone() + &error_chain(self.as_error())
    }
}

/// The error of a reader whose connection was lost: no item is bad. The step opens its reader and writer at the last checkpoint again,
/// like after the loss of the connection to its repository, at most three times in a row without a commit. No skip or retry counts it.
/// It may be the source of another error.
// Spec: OP-36, D-104
#[derive(Debug)]
pub struct ConnectionLost(Box<dyn Error + Send + Sync>);

impl ConnectionLost {
    /// Creates it from the error of the connection.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}

impl fmt::Display for ConnectionLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the connection was lost: {}", self.0)
    }
}

impl Error for ConnectionLost {}

/// The error of an artifact whose properties, or table or file, do not fit its items: no item is bad. It fails the step: no skip or retry
/// rule includes it, even if it lists the error's class. It may be the source of another error.
// Spec: D-106
#[derive(Debug)]
pub struct ConfigurationError(Box<dyn Error + Send + Sync>);

impl ConfigurationError {
    /// Creates it from the error that describes what is wrong.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(source.into())
    }
}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for ConfigurationError {}

thread_local! {
    /// The place of the thread's last panic, if recorded.
    static PANICKED_AT: Cell<Option<String>> = const { Cell::new(None) };
}

/// A panic that is caught on one thread and resumed on another, with its source line.
pub(crate) struct Panic {
    payload: Box<dyn Any + Send>,
    place: Option<String>,
}

impl Panic {
    /// Calls a function, and catches its panic.
    pub(crate) fn catch<T>(function: impl FnOnce() -> T) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(function)).map_err(|payload| Self {
            payload,
            place: PANICKED_AT.take(),
        })
    }

    /// Creates the panic of a thread that has left none.
    pub(crate) fn of(text: &'static str) -> Self {
        Self {
            payload: Box::new(text),
            place: None,
        }
    }

    /// Continues the panic on this thread.
    pub(crate) fn resume(self) -> ! {
        PANICKED_AT.set(self.place);
        resume_unwind(self.payload)
    }
}

/// Records the source line of every panic, for the messages of failed artifacts.
///
/// Installs a process-wide panic hook, which calls the previous hook. For programs, not for libraries.
pub fn record_panic_locations() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        // The thread may be exiting, without thread-local storage.
        let _ = PANICKED_AT.try_with(|last| last.set(place));
        before(panic);
    }));
}

/// Joins the lines of a message: database libraries use line breaks and tabs.
pub(crate) fn one_line(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    words.join(" ")
}

/// Returns the messages of an error and of its sources, the outermost first, without sources that are part of a message.
pub(crate) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let message = source.to_string();
        let is_part = text.ends_with(&message) || text.contains(&format!(": {}", one_line(&message)));
        if !is_part {
            text.push_str(": ");
            text.push_str(&message);
        }
        next = source.source();
    }
    text
}

impl<E: Into<Box<dyn Error + Send + Sync>> + 'static> From<E> for BatchError {
    fn from(error: E) -> Self {
        let (source, is_report) = boxed(error);
        Self(Box::new(Inner {
            source,
            is_report,
            type_name: std::any::type_name::<E>(),
            item: None,
            about: None,
            needs_rollback: false,
            panic: false,
            context: String::new(),
            details: None,
        }))
    }
}

/// Boxes an error, and returns whether it is a report, whose own box would hide the type of the error in it.
fn boxed<E: Into<Box<dyn Error + Send + Sync>> + 'static>(error: E) -> (Box<dyn Error + Send + Sync>, bool) {
    #[cfg(feature = "anyhow")]
    let error = match cast::<E, anyhow::Error>(error) {
        Ok(report) => return (Box::new(Report(report)), true),
        Err(error) => error,
    };
    #[cfg(feature = "eyre")]
    let error = match cast::<E, eyre::Report>(error) {
        Ok(report) => return (Box::new(Report(report)), true),
        Err(error) => error,
    };
    (error.into(), false)
}

/// Returns the value as an `R` if it is one.
#[cfg(any(feature = "anyhow", feature = "eyre"))]
fn cast<E: 'static, R: 'static>(value: E) -> Result<R, E> {
    let mut value = Some(value);
    let any: &mut dyn Any = &mut value;
    match any.downcast_mut::<Option<R>>().and_then(Option::take) {
        Some(report) => Ok(report),
        None => Err(value.unwrap_or_else(|| unreachable!("a value can be cast to its type"))),
    }
}

/// A report of anyhow or eyre, with its error as the source.
#[cfg(any(feature = "anyhow", feature = "eyre"))]
struct Report<R>(R);

#[cfg(any(feature = "anyhow", feature = "eyre"))]
impl<R: fmt::Debug> fmt::Debug for Report<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(any(feature = "anyhow", feature = "eyre"))]
impl<R: fmt::Display> fmt::Display for Report<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(any(feature = "anyhow", feature = "eyre"))]
impl<R> Error for Report<R>
where
    R: fmt::Debug + fmt::Display + AsRef<dyn Error + Send + Sync>,
{
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.context)?;
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

    // Spec: ART-14
    #[test]
    fn text_is_an_error() {
        let error = BatchError::from("no such account");
        assert_eq!(
            (error.chain().as_str(), error.type_name()),
            ("no such account", "&str")
        );
        assert_eq!(BatchError::from("closed".to_owned()).to_string(), "closed");
    }

    /// A report keeps the type of its error, and the messages of its contexts.
    // Spec: ART-14
    #[cfg(all(feature = "anyhow", feature = "eyre"))]
    #[test]
    fn reports_keep_their_error() {
        fn io() -> std::io::Error {
            std::io::Error::new(std::io::ErrorKind::NotFound, "no such file")
        }
        let plain = BatchError::from(anyhow::Error::from(io()));
        assert_eq!(
            (plain.chain().as_str(), plain.type_name()),
            ("no such file", "anyhow::Error")
        );
        assert!(plain.downcast_ref::<std::io::Error>().is_some());
        let with_context = BatchError::from(anyhow::Error::from(io()).context("cannot load"));
        assert_eq!(with_context.chain(), "cannot load: no such file");
        let plain = BatchError::from(eyre::Report::from(io()));
        assert_eq!(
            (plain.chain().as_str(), plain.type_name()),
            ("no such file", "eyre::Report")
        );
        assert!(plain.downcast_ref::<std::io::Error>().is_some());
        let with_context = BatchError::from(eyre::Report::from(io()).wrap_err("cannot load"));
        assert_eq!(with_context.chain(), "cannot load: no such file");
    }

    #[test]
    fn a_boxed_error_is_taken_as_it_is() {
        let boxed: Box<dyn Error + Send + Sync> = Box::new(std::fmt::Error);
        let error = BatchError::from_boxed(boxed);
        assert!(error.downcast_ref::<std::fmt::Error>().is_some());
    }
}
