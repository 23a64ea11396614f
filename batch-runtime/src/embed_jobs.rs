//! `embed_jobs!`: the Job XML files of a crate inside its program.

/// Compiles the Job XML files of a directory into the program: the value for [`BatchRuntimeBuilder::jobs`] and `batch_cli::Cli::jobs`.
///
/// The directory is relative to the crate's `Cargo.toml`. All its files whose names end with `.xml` are embedded, but no files of
/// subdirectories. Messages and recorded executions use their names, such as `jobs/daily.xml`. XML that is not valid is reported when the
/// program starts, by `check`, and by [`check_jobs!`](crate::check_jobs) in a test.
///
/// A change of a file compiles the crate again. A file that is added is embedded when the crate is compiled the next time; at once if
/// the crate has a `build.rs` that prints `cargo::rerun-if-changed=jobs`.
///
/// ```
/// use batch_runtime::{BatchRuntime, embed_jobs};
///
/// # macro_rules! embed_jobs {
/// #     ($directory:literal) => { &[("jobs/daily.xml", r#"<job id="daily"><step id="one"><batchlet ref="A"/></step></job>"#)] };
/// # }
/// let runtime = BatchRuntime::builder().repository("memory:").jobs(embed_jobs!("jobs")).build()?;
/// assert_eq!(runtime.job_operator().job_names()?.into_iter().collect::<Vec<_>>(), ["daily"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`BatchRuntimeBuilder::jobs`]: crate::BatchRuntimeBuilder::jobs
// Spec: EMBED-01
pub use batch_macros::embed_jobs;
