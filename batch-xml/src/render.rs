//! Diagnostics as text for people, in the layout of rustc.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Range;

use crate::diagnostics::{Diagnostic, Severity};
use crate::span::Span;

/// A source line of at most this number of characters is shown whole.
const SHOWN_WHOLE: usize = 140;

/// Characters of a longer line shown before and after the start of a span; the rest is cut off.
const SHOWN_BEFORE: usize = 80;
const SHOWN_AFTER: usize = 60;

const TAB: &str = "    ";

/// The ANSI sequences of one rendering; all empty without color.
#[derive(Clone, Copy, Default)]
struct Style {
    error: &'static str,
    warning: &'static str,
    note: &'static str,
    frame: &'static str,
    bold: &'static str,
    reset: &'static str,
}

const ANSI: Style = Style {
    error: "\x1b[1;31m",
    warning: "\x1b[1;33m",
    note: "\x1b[1;32m",
    frame: "\x1b[1;34m",
    bold: "\x1b[1m",
    reset: "\x1b[0m",
};

impl Diagnostic {
    /// Renders the diagnostic with the source line underlined, optionally in ANSI colors. Ends with a line break.
    /// Control characters of the document are escaped.
    pub fn render(&self, color: bool) -> String {
        let style = if color { ANSI } else { Style::default() };
        let (word, paint) = match self.severity {
            Severity::Error => ("error", style.error),
            Severity::Warning => ("warning", style.warning),
        };
        let gutter = gutter_width(self);
        let mut out = Rendering {
            text: String::new(),
            style,
            gutter,
        };
        let Style {
            bold,
            reset,
            frame,
            note,
            ..
        } = style;
        let (code, message) = (self.code, visible(&self.message));
        writeln!(out, "{paint}{word}[{code}]{reset}{bold}: {message}{reset}");
        out.snippet(&self.span, '^', paint, &visible(&self.label));
        for (span, message) in &self.related {
            writeln!(out, "{note}note{reset}: {}", visible(message));
            out.snippet(span, '-', note, "");
        }
        if let Some(help) = self.help.as_deref().map(visible) {
            writeln!(out, "{:gutter$} {frame}={reset} {bold}help{reset}: {help}", "");
        }
        out.text
    }
}

impl fmt::Display for Diagnostic {
    /// Writes the plain rendering, without the final line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

/// Columns for the line numbers, the same for all snippets of one diagnostic.
fn gutter_width(diagnostic: &Diagnostic) -> usize {
    let spans = diagnostic
        .related
        .iter()
        .map(|(span, _)| span)
        .chain([&diagnostic.span]);
    let last = spans
        .map(|span| span.source().line_column(span.range().start).0)
        .max();
    last.unwrap_or(1).to_string().len()
}

/// The text of a rendering.
struct Rendering {
    text: String,
    style: Style,
    /// Columns for the line numbers.
    gutter: usize,
}

impl Rendering {
    /// Lets `writeln!` append a line.
    fn write_fmt(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = self.text.write_fmt(line);
    }

    /// Appends the line that a span starts on, with the span underlined.
    fn snippet(&mut self, span: &Span, mark: char, paint: &str, label: &str) {
        let (Style { frame, reset, .. }, gutter) = (self.style, self.gutter);
        let (line, column) = span.source().line_column(span.range().start);
        let name = visible(span.source().name());
        let excerpt = Excerpt::new(span);
        let blank = " ".repeat(excerpt.indent);
        let marks = String::from(mark).repeat(excerpt.underlined.max(1));
        let text = format!(" {}", excerpt.text);
        let label = if label.is_empty() {
            String::new()
        } else {
            format!(" {label}")
        };
        writeln!(self, "{:gutter$}{frame}-->{reset} {name}:{line}:{column}", "");
        writeln!(self, "{:gutter$} {frame}|{reset}", "");
        writeln!(self, "{frame}{line:>gutter$} |{reset}{}", text.trim_end());
        writeln!(
            self,
            "{:gutter$} {frame}|{reset} {blank}{paint}{marks}{label}{reset}",
            ""
        );
    }
}

/// Returns the text with `*` in place of the passwords in a line: of URLs, and of connection strings. It has as many bytes.
fn masked(text: &str, line: Range<usize>) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    let shown = &text[line.clone()];
    // Up to the end of the attribute: a password may contain any other character.
    let rest =
        |start: usize| &shown[start..start + shown[start..].find(['"', '<']).unwrap_or(shown.len() - start)];
    let urls = shown.match_indices("://").filter_map(|(at, _)| {
        let start = at + 3;
        let host = rest(start).rfind('@')?;
        let colon = rest(start)[..host].find(':')?;
        Some(start + colon + 1..start + host)
    });
    let lower = shown.to_ascii_lowercase();
    let mut attributes = Vec::new();
    for name in ["pwd", "password", "passwd"] {
        for (at, _) in lower.match_indices(name) {
            let after = &lower[at + name.len()..];
            let blanks = after.len() - after.trim_start().len();
            if after.trim_start().starts_with('=') {
                let start = at + name.len() + blanks + 1;
                attributes.push(start..start + rest(start).len());
            }
        }
    }
    for secret in urls.chain(attributes).collect::<Vec<_>>() {
        let range = line.start + secret.start..line.start + secret.end;
        let stars = "*".repeat(range.len());
        masked.to_mut().replace_range(range, &stars);
    }
    masked
}

/// The shown part of a source line and where to underline it, in columns of the terminal.
struct Excerpt {
    text: String,
    indent: usize,
    underlined: usize,
}

impl Excerpt {
    fn new(span: &Span) -> Excerpt {
        let source = span.source().text();
        let range = span.range();
        let line = span.source().line_range(range.start);
        let source = &masked(source, line.clone());
        // A span may start on the line break itself, which is not part of the line.
        let start = range.start.min(line.end);
        // Of a span over several lines the first is underlined to its end.
        let end = range.end.clamp(start, line.end);
        let (mut from, mut to) = (line.start, line.end);
        if source[line.clone()].chars().nth(SHOWN_WHOLE).is_some() {
            from += nth_back(&source[from..start], SHOWN_BEFORE);
            to = start + nth(&source[start..to], SHOWN_AFTER);
        }

        let mut text = String::new();
        if from > line.start {
            text.push('…');
        }
        text.push_str(&printable(&source[from..start]));
        let indent = width(&text);
        let marked = printable(&source[start..end.min(to)]);
        text.push_str(&marked);
        text.push_str(&printable(&source[end.min(to)..to]));
        if to < line.end {
            text.push('…');
        }
        Excerpt {
            text,
            indent,
            underlined: width(&marked),
        }
    }
}

/// Byte offset of the `n`th character, or the end.
fn nth(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// Byte offset of the `n`th character from the end, or the start.
fn nth_back(text: &str, n: usize) -> usize {
    text.char_indices()
        .rev()
        .take(n)
        .last()
        .map_or(text.len(), |(at, _)| at)
}

/// Source text for the terminal: tabs as blanks, everything invisible escaped.
fn printable(text: &str) -> String {
    visible(&text.replace('\t', TAB))
}

/// Text with control and direction-changing characters escaped: a document must not be able to steer the
/// terminal.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unprintable(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns whether a terminal or a page would interpret a character instead of showing it: control characters, direction marks,
/// overrides and isolates, zero-width characters, line and paragraph separators.
pub fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Terminal columns of a character: none for combining marks, two for the wide scripts of East Asia and
/// emoji.
fn char_width(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Source;

    fn check(text: &str, range: std::ops::Range<usize>, expect: &str) {
        let source = Source::new("payroll.xml", text);
        let diagnostic = Diagnostic::error("JSL0012", "wrong", Span::new(&source, range)).label("here");
        assert_eq!(
            diagnostic.render(false),
            format!("error[JSL0012]: wrong\n{expect}")
        );
    }

    #[test]
    fn underlines_like_rustc() {
        let source = Source::new(
            "payroll.xml",
            "<job id=\"p\">\n  <step id=\"load\" next=\"lod2\">\n",
        );
        let diagnostic = Diagnostic::error(
            "JSL0012",
            "`next` refers to an unknown element `lod2`",
            Span::new(&source, 37..41),
        )
        .label("no step, flow, split or decision has this id")
        .help("did you mean `load2`?");
        assert_eq!(
            diagnostic.render(false),
            "\
error[JSL0012]: `next` refers to an unknown element `lod2`
 --> payroll.xml:2:25
  |
2 |   <step id=\"load\" next=\"lod2\">
  |                         ^^^^ no step, flow, split or decision has this id
  = help: did you mean `load2`?
"
        );
    }

    #[test]
    fn tabs_and_wide_characters_keep_the_alignment() {
        check(
            "\t<a é=\"x\"",
            8..9,
            " --> payroll.xml:1:8\n  |\n1 |     <a é=\"x\"\n  |           ^ here\n",
        );
        check(
            "\"日本\" x",
            9..10,
            " --> payroll.xml:1:6\n  |\n1 | \"日本\" x\n  |        ^ here\n",
        );
        check(
            "\"日本\"",
            1..7,
            " --> payroll.xml:1:2\n  |\n1 | \"日本\"\n  |  ^^^^ here\n",
        );
    }

    #[test]
    fn spans_at_the_end_and_over_lines_have_a_mark() {
        check("", 0..0, " --> payroll.xml:1:1\n  |\n1 |\n  | ^ here\n");
        check("<a>\n", 4..4, " --> payroll.xml:2:1\n  |\n2 |\n  | ^ here\n");
        check(
            "<a>\r\n<b>",
            1..8,
            " --> payroll.xml:1:2\n  |\n1 | <a>\n  |  ^^ here\n",
        );
        check(
            "<a>\n<b>",
            3..4,
            " --> payroll.xml:1:4\n  |\n1 | <a>\n  |    ^ here\n",
        );
    }

    #[test]
    fn long_lines_are_cut_to_a_window() {
        let text = format!("{}WRONG{}", "a".repeat(500), "b".repeat(500));
        let before = "a".repeat(80);
        let after = "b".repeat(55);
        let expect = format!(
            " --> payroll.xml:1:501\n  |\n1 | …{before}WRONG{after}…\n  | {}^^^^^ here\n",
            " ".repeat(81)
        );
        check(&text, 500..505, &expect);
    }

    #[test]
    fn the_document_cannot_steer_the_terminal() {
        let source = Source::new("evil\u{1b}[2J.xml", "a\u{1b}[31m\u{202e}");
        let diagnostic = Diagnostic::error("JSL0003", "bad \u{7}\n", Span::new(&source, 0..1)).help("\u{9b}");
        let text = diagnostic.render(false);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(
            text.contains("bad \\u{7}\\u{a}") && text.contains("\\u{202e}"),
            "{text}"
        );
    }

    // Spec: MARK-13
    #[test]
    fn passwords_are_masked() {
        for (text, shown) in [
            (
                r#"<p value="postgres://me:p/w:@host/db"/>"#,
                r#"<p value="postgres://me:****@host/db"/>"#,
            ),
            (
                r#"<p value="odbc:DSN=e;PWD=sécret;A=1"/>"#,
                r#"<p value="odbc:DSN=e;PWD=***********"/>"#,
            ),
            (
                r#"<p value="odbc:Pwd = {a;b};A=1"/>"#,
                r#"<p value="odbc:Pwd =**********"/>"#,
            ),
            (
                r#"<p value="pg://me:p w'>@host/db"/>"#,
                r#"<p value="pg://me:*****@host/db"/>"#,
            ),
            (r#"<p value="Password=a"/>"#, r#"<p value="Password=*"/>"#),
            (
                r#"<p value="https://host:80/a@b"/>"#,
                r#"<p value="https://host:****@b"/>"#,
            ),
            (
                r#"<p value="https://host/a:b"/>"#,
                r#"<p value="https://host/a:b"/>"#,
            ),
        ] {
            let source = Source::new("a.xml", text);
            let rendered = Diagnostic::error("JSL0001", "wrong", Span::new(&source, 3..8)).render(false);
            assert!(rendered.contains(shown), "{rendered}");
        }
    }

    #[test]
    fn colours_only_add_sequences() {
        let source = Source::new("t.xml", "<a>\n<b>");
        let diagnostic = Diagnostic::warning("JSL0050", "old", Span::new(&source, 1..2))
            .related(Span::new(&source, 5..6), "first here")
            .help("new");
        let mut plain = diagnostic.render(true);
        assert!(plain.contains("\x1b[1;33mwarning[JSL0050]\x1b[0m"));
        for sequence in [
            ANSI.error,
            ANSI.warning,
            ANSI.note,
            ANSI.frame,
            ANSI.bold,
            ANSI.reset,
        ] {
            plain = plain.replace(sequence, "");
        }
        assert_eq!(plain, diagnostic.render(false));
    }
}
