//! Checks the exception classes of a chunk against those that the program's error types declare.
//!
//! Spec: CHUNK-EXC-01, CHUNK-EXC-02, D-14

use batch_xml::model::{Chunk, ExceptionClasses, Step};
use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, Spanned};

use super::bind::Binder;
use crate::artifact::{ExceptionClass, class_names, classes_of, is_called};
use crate::engine::Bound;
use crate::role::Factory;

/// No error type declares the class.
const UNKNOWN_EXCEPTION: &str = "ART0023";
/// A reader or processor throws errors of a retryable class, and only writes are retried.
const RETRIED_IN_WRITES_ONLY: &str = "ART0027";

impl Binder<'_> {
    /// Warns about undeclared classes, which are often typos. A class may also be the path of an error type without
    /// declaration, which is known only when it is thrown.
    pub(super) fn check_exception_classes(&mut self, classes: &ExceptionClasses) {
        let named = classes.include.iter().chain(&classes.exclude);
        let unknown = named.filter(|class| !class_names().any(|name| is_called(name, &class.value)));
        self.warnings.extend(unknown.map(unknown_class));
    }

    /// Warns about retryable classes that the reader or processor throws, if only writes are retried and nothing says that this is
    /// intended.
    pub(super) fn check_retried_classes(
        &mut self,
        step: &Step,
        chunk: &Chunk,
        throwers: [Option<&Bound>; 2],
    ) {
        if self.retry_input_is_set(step) || self.dialect().retries_input() {
            return;
        }
        for thrower in throwers.into_iter().flatten() {
            let thrown = classes_of(error_of(thrower));
            let is_thrown = |class: &&Spanned<String>| {
                let mut names = thrown.iter().flat_map(ExceptionClass::names);
                names.any(|name| is_called(name, &class.value))
            };
            let not_retried = chunk.retryable.include.iter().filter(is_thrown);
            self.warnings
                .extend(not_retried.map(|class| retried_in_writes_only(class, thrower)));
        }
    }
}

fn retried_in_writes_only(class: &Spanned<String>, thrower: &Bound) -> Diagnostic {
    let role = thrower.registration.role();
    let message = format!(
        "errors of {role} `{}` have the class `{}`, but they are not retried",
        thrower.name, class.value
    );
    Diagnostic::warning(RETRIED_IN_WRITES_ONLY, message, class.span.clone())
        .label("only retried if the writer throws it")
        .help(
            "set the property `batch.retry.input` of the step to `true` to retry reading and processing, or to `false` if this is \
             intended",
        )
}

/// Returns the path of the type of a reader's or processor's errors.
fn error_of(thrower: &Bound) -> &'static str {
    match thrower.registration.factory {
        Factory::ItemReader(_, info) => info().error,
        Factory::ItemProcessor(_, items) => items().error,
        _ => "",
    }
}

fn unknown_class(class: &Spanned<String>) -> Diagnostic {
    let message = format!("no error type declares the exception class `{}`", class.value);
    let warning = Diagnostic::warning(UNKNOWN_EXCEPTION, message, class.span.clone())
        .label("only matches an error type with this path");
    let last = |name: &'static str| name.rsplit([':', '.']).next().unwrap_or(name);
    let near = class_names()
        .find(|name| ends_with(name, &class.value))
        .or_else(|| nearest(&class.value, class_names()))
        .or_else(|| nearest(&class.value, class_names().map(last)));
    warning.help(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "declare it on an error type: `#[derive(BatchException)] #[batch_exception(class = \"..\")]`"
            .to_owned(),
    })
}

/// Returns whether `end` matches the last segments of a path, such as an enum and its variant.
fn ends_with(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end);
    before.is_some_and(|before| before.ends_with([':', '.']))
}
