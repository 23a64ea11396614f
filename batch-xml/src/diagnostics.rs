//! Diagnostics, their collection, and the error type made of them.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use crate::origins::Origins;
use crate::span::Span;

/// Maximum number of diagnostics kept in one report; the rest is counted.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// The severity of a [`Diagnostic`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The job cannot be started.
    Error,
    /// The job runs, but perhaps not as intended.
    Warning,
}

/// A mistake or warning: what is wrong, where, and how to fix it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Stable code such as `JSL0012`; see [`explain`](crate::explain).
    pub code: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// One sentence without a final period; user text is in backticks.
    pub message: String,
    /// Printed beside the underlined text; may be empty.
    pub label: String,
    /// The smallest piece of text that has to change.
    pub span: Span,
    /// Related places, each with an explanation.
    pub related: Vec<(Span, String)>,
    /// The remedy.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error without label, help and related places.
    pub fn error(code: &'static str, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            label: String::new(),
            span,
            related: Vec::new(),
            help: None,
        }
    }

    /// Creates a warning without label, help and related places.
    pub fn warning(code: &'static str, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message, span)
        }
    }

    /// Replaces the message.
    pub(crate) fn message(mut self, message: impl Into<String>) -> Diagnostic {
        self.message = message.into();
        self
    }

    /// Sets the text beside the underlined place.
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Sets the remedy.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds a related place.
    pub fn related(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.related.push((span, message.into()));
        self
    }

    /// Adds `did you mean ..?` as help, if there is a candidate.
    pub(crate) fn suggestion(self, name: Option<&str>) -> Diagnostic {
        match name {
            Some(name) => self.help(format!("did you mean {}?", quoted(name))),
            None => self,
        }
    }
}

/// Quotes user text for a message: in backticks, cut to a readable length.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((cut, _)) => format!("`{}…`", &text[..cut]),
        None => format!("`{text}`"),
    }
}

/// The mistakes and warnings of a document, in the order of the text. Displays as the plain rendering of all.
///
/// At most 100 diagnostics are kept; a closing line reports the number of the others.
#[derive(Clone, Debug)]
pub struct JobXmlErrors {
    diagnostics: Vec<Diagnostic>,
    omitted: usize,
}

impl JobXmlErrors {
    /// Returns the diagnostics, in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.diagnostics.iter()
    }

    /// Returns the diagnostics by value.
    pub fn into_inner(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// Returns the number of diagnostics that were found but not kept.
    pub fn omitted(&self) -> usize {
        self.omitted
    }

    /// Renders all diagnostics, optionally in ANSI colors.
    pub fn render(&self, color: bool) -> String {
        let rendered: Vec<String> = self.iter().map(|one| one.render(color)).collect();
        let mut text = rendered.join("\n");
        if self.omitted > 0 {
            text.push_str(&format!("\n… and {} more\n", self.omitted));
        }
        text
    }
}

impl From<Vec<Diagnostic>> for JobXmlErrors {
    fn from(mut diagnostics: Vec<Diagnostic>) -> JobXmlErrors {
        let omitted = diagnostics.len().saturating_sub(MAX_DIAGNOSTICS);
        diagnostics.truncate(MAX_DIAGNOSTICS);
        JobXmlErrors { diagnostics, omitted }
    }
}

/// Appends, without sorting.
impl Extend<Diagnostic> for JobXmlErrors {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, more: I) {
        for diagnostic in more {
            if self.diagnostics.len() < MAX_DIAGNOSTICS {
                self.diagnostics.push(diagnostic);
            } else {
                self.omitted += 1;
            }
        }
    }
}

impl From<Diagnostic> for JobXmlErrors {
    fn from(diagnostic: Diagnostic) -> JobXmlErrors {
        JobXmlErrors {
            diagnostics: vec![diagnostic],
            omitted: 0,
        }
    }
}

impl<'a> IntoIterator for &'a JobXmlErrors {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for JobXmlErrors {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.diagnostics.into_iter()
    }
}

impl fmt::Display for JobXmlErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for JobXmlErrors {}

/// Collects diagnostics: each mistake once, and a limited number of them.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    diagnostics: Vec<Diagnostic>,
    // A property of the job is substituted for every artifact that it reaches; its mistake is reported once.
    seen: HashSet<(&'static str, usize, usize, usize, String)>,
    omitted: usize,
    failed: bool,
    origins: Origins,
}

impl Sink {
    /// Makes every further diagnostic explain the `parent` that made its place part of the job.
    pub(crate) fn set_origins(&mut self, origins: Origins) {
        for diagnostic in &mut self.diagnostics {
            explain_origin(diagnostic, &origins);
        }
        self.origins = origins;
    }

    /// Adds an error. `build` is called only if the error is kept, so suggestions cost nothing beyond that.
    pub(crate) fn error(
        &mut self,
        code: &'static str,
        span: &Span,
        build: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.failed = true;
        self.add(code, span, || build(Diagnostic::error(code, "", span.clone())));
    }

    /// Adds a warning.
    pub(crate) fn warning(
        &mut self,
        code: &'static str,
        span: &Span,
        build: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.add(code, span, || build(Diagnostic::warning(code, "", span.clone())));
    }

    /// Adds the diagnostics of an earlier report.
    pub(crate) fn adopt(&mut self, errors: &JobXmlErrors) {
        self.extend(&errors.diagnostics);
        self.omitted += errors.omitted;
    }

    /// Adds earlier diagnostics.
    pub(crate) fn extend(&mut self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            self.failed |= diagnostic.severity == Severity::Error;
            self.add(diagnostic.code, &diagnostic.span, || diagnostic.clone());
        }
    }

    fn add(&mut self, code: &'static str, span: &Span, build: impl FnOnce() -> Diagnostic) {
        if self.diagnostics.len() >= MAX_DIAGNOSTICS {
            self.omitted += 1;
            return;
        }
        let mut diagnostic = build();
        let (source, range) = (Arc::as_ptr(span.source()).addr(), span.range());
        if self
            .seen
            .insert((code, source, range.start, range.end, diagnostic.message.clone()))
        {
            explain_origin(&mut diagnostic, &self.origins);
            self.diagnostics.push(diagnostic);
        }
    }

    /// Returns whether an error was reported, kept or not.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// Returns all diagnostics, in the order of the text, with the job's own text first.
    pub(crate) fn into_errors(mut self) -> JobXmlErrors {
        let origins = &self.origins;
        self.diagnostics.sort_by_key(|Diagnostic { span, .. }| {
            let rank = origins.rank(span.source());
            (rank, span.range().start)
        });
        JobXmlErrors {
            diagnostics: self.diagnostics,
            omitted: self.omitted,
        }
    }
}

/// The note at a `parent` that contributed a place.
pub(crate) const INHERITED: &str = "inherited through this `parent`";

/// Adds the `parent` attributes that the place was inherited through, unless they are there already.
fn explain_origin(diagnostic: &mut Diagnostic, origins: &Origins) {
    if diagnostic.related.iter().any(|(_, what)| what == INHERITED) {
        return;
    }
    let trail = origins.trail(&diagnostic.span);
    diagnostic
        .related
        .extend(trail.into_iter().map(|span| (span, INHERITED.to_owned())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Source;

    #[test]
    fn a_report_is_sorted_and_holds_each_mistake_once() {
        let source = Source::new("t.xml", "abcdef");
        let mut sink = Sink::default();
        for at in [4, 1, 4] {
            sink.error("JSL0003", &Span::new(&source, at..at + 1), |d| d.message("wrong"));
        }
        let errors = sink.into_errors();
        assert_eq!(
            errors.iter().map(|d| d.span.range().start).collect::<Vec<_>>(),
            [1, 4]
        );
    }

    #[test]
    fn a_long_report_is_closed_by_a_count() {
        let source = Source::new("t.xml", "x\n".repeat(200));
        for (count, expect) in [
            (99, None),
            (100, None),
            (101, Some("\n… and 1 more")),
            (150, Some("\n… and 50 more")),
        ] {
            let mut sink = Sink::default();
            for at in 0..count {
                sink.error("JSL0003", &Span::new(&source, at..at + 1), |d| d.message("wrong"));
            }
            let text = sink.into_errors().to_string();
            assert_eq!(text.matches("error[").count(), count.min(100));
            match expect {
                Some(end) => assert!(text.ends_with(end)),
                None => assert!(!text.contains('…')),
            }
        }
    }

    #[test]
    fn a_report_of_any_diagnostics_is_limited() {
        let source = Source::new("t.xml", "x");
        let mut sink = Sink::default();
        sink.error("JSL0003", &Span::new(&source, 0..1), |d| d.message("wrong"));
        let one = sink.into_errors().iter().next().cloned().expect("there is one");
        let errors = JobXmlErrors::from(vec![one; 150]);
        assert_eq!(errors.iter().count(), 100);
        assert!(errors.to_string().ends_with("\n… and 50 more"));
    }

    #[test]
    fn warnings_are_no_failure() {
        let source = Source::new("t.xml", "x");
        let mut sink = Sink::default();
        sink.warning("JSL0050", &Span::new(&source, 0..1), |d| d.message("old"));
        assert!(!sink.failed());
        sink.error("JSL0003", &Span::new(&source, 0..1), |d| d.message("wrong"));
        assert!(sink.failed());
    }

    #[test]
    fn long_user_text_is_cut_in_messages() {
        assert_eq!(quoted("short"), "`short`");
        assert_eq!(quoted(&"ä".repeat(61)), format!("`{}…`", "ä".repeat(60)));
    }
}
