//! Checks the exception classes of a chunk against those that the program's error types declare.
//!
//! Spec: CHUNK-EXC-01, CHUNK-EXC-02, D-14

use batch_xml::model::ExceptionClasses;
use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, Spanned};

use super::bind::Binder;
use crate::artifact::{class_names, is_called};

/// No error type declares the class.
const UNKNOWN_EXCEPTION: &str = "ART0023";

impl Binder<'_> {
    /// Warns about undeclared classes, which are often typos. A class may also be the path of an error type without
    /// declaration, which is known only when it is thrown.
    pub(super) fn check_exception_classes(&mut self, classes: &ExceptionClasses) {
        let named = classes.include.iter().chain(&classes.exclude);
        let unknown = named.filter(|class| !class_names().any(|name| is_called(name, &class.value)));
        self.warnings.extend(unknown.map(unknown_class));
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
