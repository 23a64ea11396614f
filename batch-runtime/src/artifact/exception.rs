//! Exception classes: the names of Rust errors in the include and exclude lists of Job XML.
// Spec: CHUNK-EXC-01, CHUNK-EXC-02, D-14

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::OnceLock;

use super::linked;
use super::registry::{ExceptionClass, ExceptionRegistration};
use crate::error::BatchError;

/// The classes that every exception has.
pub(crate) const ROOTS: [&str; 3] = ["Exception", "java.lang.Exception", "java.lang.Throwable"];

/// Gives an error type, and each variant of an enum, a class name for the include and exclude elements of Job XML: its path
/// in Rust or the last parts of it, and what `#[batch_exception(class = "..", extends = "..")]` declares.
///
/// An error without it is known by its type's path; its sources only if they have the derive, or are errors of the standard
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
///             Self::BadRow(line) => write!(f, "line {line} is not a flight"),
///             Self::Truncated => f.write_str("the file ends in the middle of a line"),
///         }
///     }
/// }
///
/// impl std::error::Error for LoadError {}
/// ```
// Spec: CHUNK-EXC-01, CHUNK-EXC-02, D-14
#[doc(inline)]
pub use batch_macros::BatchException;

macro_rules! foreign {
    ($($ty:ty => $path:literal;)*) => {
        /// The classes of error types of other libraries, which occur as sources of errors.
        static FOREIGN: &[ExceptionRegistration] = &[$(
            ExceptionRegistration::new::<$ty>(
                &[ExceptionClass { path: $path, declared: None, extends: None }],
                |error| error.is::<$ty>().then_some(0),
            ),
        )*];
    };
}

foreign! {
    std::io::Error => "std::io::Error";
    std::fmt::Error => "std::fmt::Error";
    std::num::ParseIntError => "std::num::ParseIntError";
    std::num::ParseFloatError => "std::num::ParseFloatError";
    std::num::TryFromIntError => "std::num::TryFromIntError";
    std::str::Utf8Error => "std::str::Utf8Error";
    std::string::FromUtf8Error => "std::string::FromUtf8Error";
    serde_json::Error => "serde_json::Error";
}

/// The classes of all linked crates.
struct Known {
    registrations: Vec<&'static ExceptionRegistration>,
    /// The classes by their one or two names.
    classes: BTreeMap<&'static str, &'static ExceptionClass>,
    names: BTreeSet<&'static str>,
}

fn known() -> &'static Known {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let registrations: Vec<_> = FOREIGN.iter().chain(linked::exceptions()).collect();
        let mut known = Known {
            registrations,
            classes: BTreeMap::new(),
            names: BTreeSet::from(ROOTS),
        };
        for class in known.registrations.iter().flat_map(|one| one.classes) {
            known.classes.extend(class.names().map(|name| (name, class)));
            known.names.extend(class.names().chain(class.extends));
        }
        known
    })
}

impl ExceptionClass {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.path), self.declared].into_iter().flatten()
    }
}

/// Returns the names of the classes that the error types of the program declare, and the roots.
pub(crate) fn class_names() -> impl Iterator<Item = &'static str> {
    known().names.iter().copied()
}

/// Returns the names of the classes of an error type, its variants and their ancestors; none if it has no derive.
pub(crate) fn class_names_of(error_type: &str) -> Vec<&'static str> {
    let known = known();
    let mut registrations = known.registrations.iter();
    let registration = registrations.find(|one| (one.type_name)() == error_type);
    let mut names = Vec::new();
    for class in registration.iter().flat_map(|one| one.classes) {
        known.with_ancestors(class, &mut names);
    }
    names.concat()
}

/// Returns the classes of an error, the nearest first; classes of one group are equally near.
fn lineage(error: &BatchError) -> Vec<Vec<&'static str>> {
    let known = known();
    let mut lineage = Vec::new();
    let mut next: Option<&(dyn Error + 'static)> = Some(error.as_error());
    // Of the outermost error alone the type's name is known without a registration.
    let mut type_name = Some(error.type_name());
    while let Some(error) = next {
        let found = known
            .registrations
            .iter()
            .find_map(|one| Some((one.classes, (one.classify)(error)?)));
        if let Some((classes, index)) = found {
            let own = classes.get(index).filter(|_| index > 0);
            own.into_iter()
                .chain(classes.first())
                .for_each(|class| known.with_ancestors(class, &mut lineage));
        }
        lineage.extend(type_name.take().map(|name| vec![name]));
        next = error.source();
    }
    lineage.push(ROOTS.to_vec());
    lineage
}

/// Returns the nearest class of an error that a job can name; `None` for a panic, and for an error without a declared class.
pub(crate) fn class_of(error: &BatchError) -> Option<&'static str> {
    let declared = |name: &&'static str| known().names.contains(name) && !ROOTS.contains(name);
    let names = lineage(error).concat();
    names.into_iter().find(declared).filter(|_| !error.is_panic())
}

impl Known {
    /// Adds the class and its ancestors.
    fn with_ancestors(&self, class: &ExceptionClass, lineage: &mut Vec<Vec<&'static str>>) {
        lineage.push(class.names().collect());
        let mut seen = BTreeSet::new();
        let mut next = class.extends;
        while let Some(name) = next.filter(|name| seen.insert(*name)) {
            let parent = self.classes.get(name);
            lineage.push(parent.map_or_else(|| vec![name], |parent| parent.names().collect()));
            next = parent.and_then(|parent| parent.extends);
        }
    }
}

/// Returns whether `written`, of an include or exclude element, matches the class `name`: its full name; or, if no declared class has that name,
/// its last parts, or its crate and its last parts, because a crate may export it at another place.
pub(crate) fn is_called(name: &str, written: &str) -> bool {
    match known().names.contains(written) {
        true => name == written,
        false => ends_as(name, written),
    }
}

/// Returns whether the name ends with `written`, or with what follows the crate there.
fn ends_as(name: &str, written: &str) -> bool {
    let ends_with = |name: &str, end: &str| {
        let before = name.strip_suffix(end);
        before.is_some_and(|before| before.is_empty() || before.ends_with([':', '.', '$']))
    };
    let exported = |(krate, end): (&str, &str)| {
        let within = name.strip_prefix(krate).and_then(|rest| rest.strip_prefix("::"));
        within.is_some_and(|rest| ends_with(rest, end))
    };
    !written.is_empty() && (ends_with(name, written) || written.split_once("::").is_some_and(exported))
}

/// The include and exclude lists of one rule.
// Spec: CHUNK-EXC-02
#[derive(Clone, Debug, Default)]
pub(crate) struct ExceptionFilter {
    include: Vec<String>,
    exclude: Vec<String>,
}

impl ExceptionFilter {
    pub(crate) fn new(include: Vec<String>, exclude: Vec<String>) -> Self {
        Self { include, exclude }
    }

    /// Returns whether nothing can be included.
    pub(crate) fn is_empty(&self) -> bool {
        self.include.is_empty()
    }

    /// Returns whether the error is included: the nearest class that a list names decides; if both name it, exclude. No list
    /// includes an error that fails the step.
    // Spec: CHUNK-EXC-02
    pub(crate) fn includes(&self, error: &BatchError) -> bool {
        if self.is_empty() || error.fails_the_step() {
            return false;
        }
        let names = |list: &[String], group: &[&str]| {
            list.iter()
                .any(|written| group.iter().any(|name| is_called(name, written)))
        };
        for group in lineage(error) {
            if names(&self.exclude, &group) {
                return false;
            }
            if names(&self.include, &group) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("outer")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    // Spec: CHUNK-EXC-02, D-14
    #[test]
    fn a_class_is_called_by_its_last_parts() {
        let name = "bank::errors::RateError::Offline";
        for written in [
            name,
            "Offline",
            "RateError::Offline",
            "errors::RateError::Offline",
            "bank::RateError::Offline",
            "bank::Offline",
        ] {
            assert!(is_called(name, written), "{written}");
        }
        for written in [
            "",
            "line",
            "Error::Offline",
            "RateError",
            "ban::Offline",
            "bank::",
            "shop::Offline",
            "::",
        ] {
            assert!(!is_called(name, written), "{written}");
        }
        // A declared class of that name is meant, and no other one that ends as it does.
        assert!(is_called("java.lang.Exception", "java.lang.Exception"));
        assert!(!is_called("other.java.lang.Exception", "java.lang.Exception"));
        assert!(is_called("org.example.Bad$Row", "Row") && is_called("org.example.BadRow", "example.BadRow"));
    }

    fn filter(include: &[&str], exclude: &[&str]) -> ExceptionFilter {
        let owned = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        ExceptionFilter::new(owned(include), owned(exclude))
    }

    // Spec: ART-14, CHUNK-EXC-02
    #[cfg(all(feature = "anyhow", feature = "eyre"))]
    #[test]
    fn reports_have_the_class_of_their_error() {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        for error in [
            BatchError::from(anyhow::Error::from(not_found())),
            BatchError::from(anyhow::Error::from(not_found()).context("cannot load")),
            BatchError::from(eyre::Report::from(not_found())),
        ] {
            assert!(filter(&["std::io::Error"], &[]).includes(&error), "{error:?}");
            assert!(!filter(&["std::fmt::Error"], &[]).includes(&error), "{error:?}");
        }
    }

    fn outer() -> BatchError {
        Outer(io::ErrorKind::NotFound.into()).into()
    }

    /// An error belongs to its class, the classes of its causes, and the root; the nearest decides, exclude wins a tie.
    // Spec: CHUNK-EXC-01, CHUNK-EXC-02
    #[test]
    fn the_nearest_class_decides() {
        for (include, exclude, expected) in [
            (&["Outer"][..], &[][..], true),
            (&["batch_runtime::artifact::exception::tests::Outer"], &[], true),
            (&["tests::Outer"], &[], true),
            (&["ter"], &[], false),
            (&["std::io::Error"], &[], true),
            (&["Error"], &[], true),
            (&["std::fmt::Error"], &[], false),
            (&["java.lang.Exception"], &[], true),
            (&["Exception"], &["Outer"], false),
            (&["Outer"], &["Exception"], true),
            (&["Outer"], &["std::io::Error"], true),
            (&["std::io::Error"], &["Outer"], false),
            (&["Outer"], &["Outer"], false),
            (&[], &[], false),
        ] {
            assert_eq!(
                filter(include, exclude).includes(&outer()),
                expected,
                "{include:?} {exclude:?}"
            );
        }
    }

    // Spec: CHUNK-EXC-03
    #[test]
    fn a_panic_is_of_no_class() {
        assert!(!filter(&["Exception"], &[]).includes(&BatchError::from_panic(Box::new("oops"))));
    }
}
