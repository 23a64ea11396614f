//! The rules of a chunk for errors. Their exception classes are checked against those that the program's error types declare.
// Spec: CHUNK-EXC-01, CHUNK-EXC-02, D-14

use batch_xml::model::{Chunk, ExceptionClasses, Step};
use batch_xml::suggest::nearest;
use batch_xml::{Diagnostic, Spanned};

use super::binder::Binder;
use super::runtime_names::FaultProperties;
use crate::artifact::{ExceptionFilter, class_names, class_names_of, is_called};
use crate::engine::{Bound, BoundChunk, FaultRules};
use crate::role::Factory;

/// No error type declares the class.
const UNKNOWN_EXCEPTION: &str = "ART0023";
/// The error type of a reader or processor includes a retryable class, and only writes are retried.
const RETRIED_IN_WRITES_ONLY: &str = "ART0027";

impl Binder<'_> {
    /// Returns the rules of a chunk for errors.
    pub(super) fn fault_rules(
        &mut self,
        step: &Step,
        chunk: &Chunk,
        properties: FaultProperties,
    ) -> FaultRules {
        let retry_input = self.retry_input(step);
        let mut filter = |classes: &ExceptionClasses| {
            self.check_exception_classes(classes);
            let names = |list: &[Spanned<String>]| list.iter().map(|class| class.value.clone()).collect();
            ExceptionFilter::new(names(&classes.include), names(&classes.exclude))
        };
        FaultRules {
            skippable: filter(&chunk.skippable),
            skip_limit: chunk.skip_limit,
            retryable: filter(&chunk.retryable),
            retry_limit: chunk.retry_limit,
            no_rollback: filter(&chunk.no_rollback),
            retry_input,
            repeats_processor: self.dialect().retries_one_by_one(),
            repeats_reader: false,
            retry_one_by_one: self.dialect().retries_one_by_one(),
            failed_write_skips_its_list: self.dialect().failed_write_skips_its_list(),
            back_off: properties.back_off(),
            max_attempts: properties.max_attempts,
            has_policy: false,
            retry_limits: properties.retry_limits.unwrap_or_default(),
            skip_limits: properties.skip_limits.unwrap_or_default(),
        }
    }

    /// Warns about undeclared classes, which are often typos. A class may also be the path of an error type without
    /// declaration, which is known only when it is thrown.
    pub(super) fn check_exception_classes(&mut self, classes: &ExceptionClasses) {
        let named = classes.include.iter().chain(&classes.exclude);
        let unknown = named.filter(|class| !class_names().any(|name| is_called(name, &class.value)));
        self.warnings.extend(unknown.map(unknown_class));
    }

    /// Warns about retryable classes in the error type of the reader or processor if only writes are retried and `batch.retry.input` is not
    /// set.
    pub(super) fn check_retried_classes(&mut self, step: &Step, chunk: &Chunk, bound: &BoundChunk) {
        let is_decided = self.sets_retry_input(step) || self.dialect().retries_input();
        if is_decided || chunk.retry_limit == Some(0) {
            return;
        }
        for artifact in [Some(&bound.reader), bound.processor.as_ref()]
            .into_iter()
            .flatten()
        {
            let names = class_names_of(error_type(artifact));
            let declares = |class: &&Spanned<String>| names.iter().any(|name| is_called(name, &class.value));
            let excludes = chunk.retryable.exclude.iter();
            let is_excluded =
                |class: &&Spanned<String>| excludes.clone().any(|other| other.value == class.value);
            let not_retried = chunk.retryable.include.iter().filter(declares);
            let not_retried = not_retried.filter(|class| !is_excluded(class));
            self.warnings
                .extend(not_retried.map(|class| retried_in_writes_only(class, artifact)));
        }
    }
}

fn retried_in_writes_only(class: &Spanned<String>, artifact: &Bound) -> Diagnostic {
    let role = artifact.registration.role();
    let message = format!(
        "the error type of {role} `{}` includes the class `{}`, but only errors of the writer are retried",
        artifact.name, class.value
    );
    Diagnostic::warning(RETRIED_IN_WRITES_ONLY, message, class.span.clone())
        .label("only retried if the writer returns it")
        .help(
            "set the property `batch.retry.input` of the step to `true` to retry reading and processing as well, or to `false` if \
             only the writer returns this error",
        )
}

/// Returns the path of the type of a reader's or processor's errors.
fn error_type(artifact: &Bound) -> &'static str {
    match artifact.registration.factory {
        Factory::ItemReader(_, info) => info().error_type,
        Factory::ItemProcessor(_, info) => info().error_type,
        _ => "",
    }
}

fn unknown_class(class: &Spanned<String>) -> Diagnostic {
    let message = format!("no error type declares the exception class `{}`", class.value);
    let warning = Diagnostic::warning(UNKNOWN_EXCEPTION, message, class.span.clone())
        .label("only matches an error type with this path");
    let last = |name: &'static str| name.rsplit([':', '.']).next().unwrap_or(name);
    let near =
        nearest(&class.value, class_names()).or_else(|| nearest(&class.value, class_names().map(last)));
    warning.help(match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "declare it on an error type: `#[derive(BatchException)] #[batch_exception(class = \"..\")]`"
            .to_owned(),
    })
}
