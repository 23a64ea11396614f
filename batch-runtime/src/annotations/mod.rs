//! The annotations of the draft as users see them. Each is a macro of `batch-macros`; what it means stands here, where its
//! example compiles. A method may be called anything; it returns its value, or a `Result` of it with any error.

mod chunk;
mod item_listeners;
mod listeners;
mod parallel;
mod task;

#[doc(inline)]
pub use chunk::*;
#[doc(inline)]
pub use item_listeners::*;
#[doc(inline)]
pub use listeners::*;
#[doc(inline)]
pub use parallel::*;
#[doc(inline)]
pub use task::*;

/// Lets the runtime make a struct, and fills its fields. Sections 5.3 and 5.4 of the draft.
///
/// | field | is filled with |
/// |---|---|
/// | `#[batch_property(name = "..", value = "..")]` | the property of that name, else the default `value`; the name is that of the field if it is left out |
/// | `#[batch_context]` | the context that its type says: `JobContext`, `StepContext`, `FlowContext`, `SplitContext`, or an `Option` of one, `None` out of scope |
/// | any other | its own `Default` |
///
/// A property is text in Job XML. The field is a `String` (empty if nothing gives a value), any type with `FromStr`, a `Vec`
/// of them (values between commas, or between the character of `separator = ".."`), or an `Option`, `None` if nothing gives a
/// value. A value that does not parse is found before the job starts.
///
/// ```
/// use std::path::PathBuf;
///
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct FlightReader {
///     #[batch_property(name = "fileName", value = "flights.csv")]
///     file: PathBuf,
///     #[batch_property]
///     limit: Option<u64>,
///     #[batch_property(value = "MUC; FRA", separator = ";")]
///     airports: Vec<String>,
///     #[batch_context]
///     step: StepContext,
///     next: u64,
/// }
/// ```
///
/// Spec: ART-10, BPROP-01 to BPROP-12, CTX-02, CTX-03, CTX-05
#[doc(inline)]
pub use batch_macros::BatchArtifact;

/// Gives an error type, and each variant of an enum, a class name that the include and exclude elements of Job XML can name:
/// its path in Rust, or its last part, and what `#[batch_exception(class = "..", extends = "..")]` declares. Section 4.2.1.2
/// of the draft.
///
/// An error without it is known by its type's path; the errors that caused it only if they have it, or are of the standard
/// library.
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(Debug, BatchException)]
/// #[batch_exception(extends = "java.io.IOException")]
/// enum LoadError {
///     #[batch_exception(class = "com.example.BadRow")]
///     BadRow(u64),
///     Truncated,
/// }
///
/// impl std::fmt::Display for LoadError {
///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
///         match self {
///             Self::BadRow(line) => write!(f, "line {line} is no flight"),
///             Self::Truncated => f.write_str("the file ends in the middle of a line"),
///         }
///     }
/// }
///
/// impl std::error::Error for LoadError {}
/// ```
///
/// Spec: CHUNK-EXC-01, CHUNK-EXC-02, D-14
#[doc(inline)]
pub use batch_macros::BatchException;

/// Registers a preferred artifact loader, so that batch.xml can name it: `<loader classname="my_crate::Clients"/>`, or by
/// the class that `class = ".."` declares. It stands on the impl of
/// [`BatchArtifactLoader`](crate::BatchArtifactLoader); the loader is made by its `Default`. Section 5.7.1 of the draft.
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(Default)]
/// struct Clients;
///
/// #[artifact_loader(class = "com.example.Clients")]
/// impl BatchArtifactLoader for Clients {
///     fn load(&self, reference: &str) -> Result<Option<LoadedArtifact>, BatchError> {
///         Ok(None) // not known here: the built-in loader is asked
///     }
/// }
/// ```
///
/// Spec: LOADER-03, LOADER-06, LOADER-10, LOADER-13
#[doc(inline)]
pub use batch_macros::artifact_loader;
