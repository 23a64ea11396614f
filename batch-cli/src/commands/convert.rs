//! `convert`: a job in another dialect of Job XML.

use std::process::ExitCode;

use batch_runtime::Dialect;
use batch_runtime::xml::is_unprintable;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::error::USAGE;
use crate::print::{errln, out};
use crate::session::{Outcome, Session};

/// Prints a job in another dialect of Job XML, and reports what differs there
#[derive(Args, Debug)]
pub(crate) struct Convert {
    /// Id of the job
    job: String,
    /// Dialect of the result [default: the other dialect]
    #[arg(long, value_name = "DIALECT", value_parser = dialect())]
    to: Option<Dialect>,
    /// Prints the result even if it lacks something because of errors
    #[arg(long)]
    incomplete: bool,
}

/// Returns a parser that lists the dialects in the help and in completions.
fn dialect() -> impl TypedValueParser<Value = Dialect> {
    PossibleValuesParser::new(["draft", "jakarta"]).try_map(|name| name.parse::<Dialect>())
}

impl Convert {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let conversion = session.definitions()?.convert(&self.job, self.to)?;
        let problems = conversion.problems.to_string();
        if !problems.is_empty() {
            errln!("{problems}");
        }
        if conversion.is_complete || self.incomplete {
            out(printable_xml(conversion.xml.trim_end()));
        }
        Ok(ExitCode::from(if conversion.is_complete { 0 } else { USAGE }))
    }
}

/// Escapes the characters that a terminal would interpret as character references, which XML reads as the same characters.
fn printable_xml(xml: &str) -> String {
    let mut text = String::with_capacity(xml.len());
    for c in xml.chars() {
        if c != '\n' && is_unprintable(c) {
            text.push_str(&format!("&#{};", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}
