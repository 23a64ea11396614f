//! Annotations: listeners of items.

/// Makes a type an item read listener: told of each call of the reader. `&dyn Any` instead of an item type accepts
/// every type. Section 5.2.4 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`before_read`] | no | before each call |
/// | [`after_read`] | no | with the item that was read; not at the end |
/// | [`on_read_error`] | no | when the reader failed |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Largest {
///     largest: u64,
/// }
///
/// #[item_read_listener]
/// impl Largest {
///     #[after_read]
///     fn look(&mut self, number: &u64) {
///         self.largest = self.largest.max(*number);
///     }
///
///     #[on_read_error]
///     fn complain(&mut self, ex: &BatchError) {
///         eprintln!("after {}: {ex}", self.largest);
///     }
/// }
/// ```
///
/// Spec: LISTEN-READ-01 to LISTEN-READ-04, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::item_read_listener;

/// Makes a type an item process listener: told of each call of the processor. `&dyn Any` instead of an item type
/// accepts every type. Section 5.2.5 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`before_process`] | no | with the item |
/// | [`after_process`] | no | with the item and the result, `None` if it was filtered; the draft also calls it `after_processor` |
/// | [`on_process_error`] | no | when the processor failed |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Filtered {
///     count: u64,
/// }
///
/// #[item_process_listener]
/// impl Filtered {
///     #[after_process]
///     fn count(&mut self, _number: &u64, square: Option<&u64>) {
///         self.count += u64::from(square.is_none());
///     }
///
///     #[on_process_error]
///     fn complain(&mut self, ex: &BatchError, number: &u64) {
///         eprintln!("{number}: {ex}");
///     }
/// }
/// ```
///
/// Spec: LISTEN-PROC-01 to LISTEN-PROC-05, D-54, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::item_process_listener;

/// Makes a type an item write listener: told of each call of the writer. `Items<'_>` instead of `&[Out]` accepts
/// lists of every type. Section 5.2.6 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`before_write`] | no | with the list |
/// | [`after_write`] | no | with the list that was written |
/// | [`on_write_error`] | no | when the writer failed |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Sum {
///     sum: u64,
/// }
///
/// #[item_write_listener]
/// impl Sum {
///     #[after_write]
///     fn add(&mut self, squares: &[u64]) {
///         self.sum += squares.iter().sum::<u64>();
///     }
///
///     #[on_write_error]
///     fn complain(&mut self, ex: &BatchError, squares: &[u64]) {
///         eprintln!("{} squares: {ex}", squares.len());
///     }
/// }
/// ```
///
/// Spec: LISTEN-WRITE-01 to LISTEN-WRITE-04, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::item_write_listener;

/// Makes a type a skip listener: told of what is skipped. `&dyn Any` instead of an item type accepts every type.
/// Section 5.2.7 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`on_skip_in_read`] | no | an error of the reader was skipped |
/// | [`on_skip_in_process`] | no | an item was skipped because of the processor |
/// | [`on_skip_in_write`] | no | an item was skipped because of the writer |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Rejects;
///
/// #[skip_listener]
/// impl Rejects {
///     #[on_skip_in_process]
///     fn reject(&mut self, ex: &BatchError, number: &u64) {
///         eprintln!("rejected {number}: {ex}");
///     }
/// }
/// ```
///
/// The methods are called within the chunk's transaction. What is written meanwhile to the same SQLite database through a
/// connection of its own would wait for this transaction: write to a file, or count and write in a later step.
///
/// Spec: LISTEN-SKIP-01 to LISTEN-SKIP-04, D-13, D-54, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::skip_listener;

/// Makes a type a retry listener: told of retries of the writer. `&dyn Any` instead of an item type accepts every
/// type. Section 5.2.8 of the draft.
///
/// On the impl block of a struct with [`BatchArtifact`](derive@crate::BatchArtifact). Arguments: the name that Job XML uses (default: the type's
/// identifier), `class = ".."` for the class name in a ported `batch.xml`.
///
/// | method | required | |
/// |---|---|---|
/// | [`on_retry_exception`] | no | in the transaction that failed; an error forces the rollback and the retry of the whole chunk |
/// | [`on_retry_item`] | no | right before the item is written again |
///
/// ```
/// use batch_runtime::prelude::*;
///
/// #[derive(BatchArtifact)]
/// struct Retries;
///
/// #[retry_listener]
/// impl Retries {
///     #[on_retry_exception]
///     fn log(&mut self, ex: &BatchError, square: &u64) {
///         eprintln!("{square}: {ex}; trying again");
///     }
/// }
/// ```
///
/// Spec: LISTEN-RETRY-01 to LISTEN-RETRY-09, D-15, ART-01, ART-02
#[doc(inline)]
pub use batch_macros::retry_listener;

/// In an item read listener: called before each call of the reader. Section 5.2.4.1 of the draft; see
/// [`item_read_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_read_listener]
/// impl Sample {
///     #[before_read]
///     fn before_read(&mut self) {}
/// }
/// ```
///
/// Spec: LISTEN-READ-02
#[doc(inline)]
pub use batch_macros::before_read;

/// In an item read listener: told of the item that was read; not at the end. Section 5.2.4.2 of the draft; see
/// [`item_read_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_read_listener]
/// impl Sample {
///     #[after_read]
///     fn after_read(&mut self, item: &u64) {}
/// }
/// ```
///
/// Spec: LISTEN-READ-03
#[doc(inline)]
pub use batch_macros::after_read;

/// In an item read listener: told that the reader failed. Section 5.2.4.3 of the draft; see [`item_read_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_read_listener]
/// impl Sample {
///     #[on_read_error]
///     fn on_read_error(&mut self, ex: &BatchError) {}
/// }
/// ```
///
/// Spec: LISTEN-READ-04
#[doc(inline)]
pub use batch_macros::on_read_error;

/// In an item process listener: told of the item before each call of the processor. Section 5.2.5.1 of the draft;
/// see [`item_process_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_process_listener]
/// impl Sample {
///     #[before_process]
///     fn before_process(&mut self, item: &u64) {}
/// }
/// ```
///
/// Spec: LISTEN-PROC-02
#[doc(inline)]
pub use batch_macros::before_process;

/// In an item process listener: told of the item and of the result, `None` if it was filtered. Section 5.2.5.2 of
/// the draft; see [`item_process_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_process_listener]
/// impl Sample {
///     #[after_process]
///     fn after_process(&mut self, item: &u64, result: Option<&String>) {}
/// }
/// ```
///
/// Spec: LISTEN-PROC-03, D-54
#[doc(inline)]
pub use batch_macros::after_process;

/// The other name that the draft has for [`after_process`]. Section 5.2.5.2 of the draft; see
/// [`item_process_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_process_listener]
/// impl Sample {
///     #[after_processor]
///     fn after_processor(&mut self, item: &u64, result: Option<&String>) {}
/// }
/// ```
///
/// Spec: LISTEN-PROC-03
#[doc(inline)]
pub use batch_macros::after_processor;

/// In an item process listener: told that the processor failed, and of the item. Section 5.2.5.3 of the draft; see
/// [`item_process_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_process_listener]
/// impl Sample {
///     #[on_process_error]
///     fn on_process_error(&mut self, ex: &BatchError, item: &u64) {}
/// }
/// ```
///
/// Spec: LISTEN-PROC-05
#[doc(inline)]
pub use batch_macros::on_process_error;

/// In an item write listener: told of the list before each call of the writer. Section 5.2.6.1 of the draft; see
/// [`item_write_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_write_listener]
/// impl Sample {
///     #[before_write]
///     fn before_write(&mut self, items: &[String]) {}
/// }
/// ```
///
/// Spec: LISTEN-WRITE-02
#[doc(inline)]
pub use batch_macros::before_write;

/// In an item write listener: told of the list that was written. Section 5.2.6.2 of the draft; see
/// [`item_write_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_write_listener]
/// impl Sample {
///     #[after_write]
///     fn after_write(&mut self, items: &[String]) {}
/// }
/// ```
///
/// Spec: LISTEN-WRITE-03
#[doc(inline)]
pub use batch_macros::after_write;

/// In an item write listener: told that the writer failed, and of the list. Section 5.2.6.3 of the draft; see
/// [`item_write_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[item_write_listener]
/// impl Sample {
///     #[on_write_error]
///     fn on_write_error(&mut self, ex: &BatchError, items: &[String]) {}
/// }
/// ```
///
/// Spec: LISTEN-WRITE-04
#[doc(inline)]
pub use batch_macros::on_write_error;

/// In a skip listener: told of an error of the reader that is skipped. Section 5.2.7.1 of the draft; see
/// [`skip_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[skip_listener]
/// impl Sample {
///     #[on_skip_in_read]
///     fn on_skip_in_read(&mut self, ex: &BatchError) {}
/// }
/// ```
///
/// Spec: LISTEN-SKIP-02
#[doc(inline)]
pub use batch_macros::on_skip_in_read;

/// In a skip listener: told of the item that is skipped because of an error of the processor. Section 5.2.7.2 of
/// the draft; see [`skip_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[skip_listener]
/// impl Sample {
///     #[on_skip_in_process]
///     fn on_skip_in_process(&mut self, ex: &BatchError, item: &u64) {}
/// }
/// ```
///
/// Spec: LISTEN-SKIP-03
#[doc(inline)]
pub use batch_macros::on_skip_in_process;

/// In a skip listener: told of the item that is skipped because of an error of the writer. Section 5.2.7.3 of the
/// draft; see [`skip_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[skip_listener]
/// impl Sample {
///     #[on_skip_in_write]
///     fn on_skip_in_write(&mut self, ex: &BatchError, item: &String) {}
/// }
/// ```
///
/// Spec: LISTEN-SKIP-04, D-13, D-54
#[doc(inline)]
pub use batch_macros::on_skip_in_write;

/// In a retry listener: told of an error of the writer that will be retried, in the transaction that failed. An
/// error of its own forces the rollback and the retry of the whole chunk. Section 5.2.8.1 of the draft; see
/// [`retry_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[retry_listener]
/// impl Sample {
///     #[on_retry_exception]
///     fn on_retry_exception(&mut self, ex: &BatchError, item: &String) {}
/// }
/// ```
///
/// Spec: LISTEN-RETRY-02 to LISTEN-RETRY-05
#[doc(inline)]
pub use batch_macros::on_retry_exception;

/// In a retry listener: called right before the item is written again. Section 5.2.8.2 of the draft; see
/// [`retry_listener`].
///
/// ```
/// # use batch_runtime::prelude::*;
/// # #[derive(BatchArtifact)]
/// # struct Sample;
/// #[retry_listener]
/// impl Sample {
///     #[on_retry_item]
///     fn on_retry_item(&mut self, ex: &BatchError, item: &String) {}
/// }
/// ```
///
/// Spec: LISTEN-RETRY-06 to LISTEN-RETRY-09
#[doc(inline)]
pub use batch_macros::on_retry_item;
