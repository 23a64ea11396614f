//! `check_jobs!`: the check of all jobs of a crate, as one line of a test.

/// Checks every Job XML of a directory of the crate against the artifacts in the program, and panics with all problems: one
/// line in a `#[test]` makes wiring mistakes fail the build.
///
/// It checks what a start checks: the XML itself; that every `ref` names an artifact of the right role; that the item
/// types of reader, processor, writer and listeners fit; that properties have values and that these parse; that exception
/// classes are declared (else a warning). Nothing is run, and no repository is opened. It does not check names of databases, which each installation defines.
///
/// The directory is relative to the crate's `Cargo.toml`. Job parameters that the jobs need follow as `name = value`; a
/// name with dots is written in quotes. For jobs that need several directories, system properties or an artifact loader of
/// the program, call [`BatchRuntimeBuilder::check`](crate::BatchRuntimeBuilder::check).
///
/// Warnings are printed to the standard error of the test. With `deny_warnings` in front they fail it, except for
/// `ART0009`, see [`CheckReport::deny_warnings`](crate::operator::CheckReport::deny_warnings).
///
/// The artifacts must be linked into the test: put the test into their crate, or name that crate
/// (`use my_artifacts as _;`).
///
/// ```no_run
/// // In the body of a `#[test]`:
/// batch_runtime::check_jobs!("jobs");
/// batch_runtime::check_jobs!("jobs/monthly", month = "1", "report.file" = "report.csv");
/// batch_runtime::check_jobs!(deny_warnings, "jobs");
/// ```
///
/// # Panics
///
/// When a job cannot be started, or when there is no job; with `deny_warnings` also when there is a warning.
#[macro_export]
macro_rules! check_jobs {
    (deny_warnings, $directory:literal $(, $name:tt = $value:expr)* $(,)?) => {
        $crate::__check!($directory $(, $name = $value)*).deny_warnings().assert_ok()
    };
    ($directory:literal $(, $name:tt = $value:expr)* $(,)?) => {
        $crate::__check!($directory $(, $name = $value)*).assert_ok()
    };
}

/// The report of `check_jobs!`.
#[doc(hidden)]
#[macro_export]
macro_rules! __check {
    ($directory:literal $(, $name:tt = $value:expr)*) => {
        $crate::BatchRuntime::builder()
            .job_path(::std::concat!(::std::env!("CARGO_MANIFEST_DIR"), "/", $directory))
            .check_anywhere($crate::JobParameters::new()$(.with($crate::__parameter_name!($name), $value))*)
    };
}

/// The name of a parameter of `check_jobs!`: an identifier, or text in quotes.
#[doc(hidden)]
#[macro_export]
macro_rules! __parameter_name {
    ($name:ident) => {
        ::std::stringify!($name)
    };
    ($name:literal) => {
        $name
    };
}
