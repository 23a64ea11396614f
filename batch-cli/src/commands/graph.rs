//! `graph`: a drawing of a job.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use batch_runtime::xml::graph::JobGraph;
use clap::{Args, ValueEnum};

use crate::error::CliError;
use crate::parameters::Parameters;
use crate::print::out;
use crate::session::{Outcome, Session};

/// Draws a job as it would run
#[derive(Args, Debug)]
pub(crate) struct Graph {
    /// Id of the job
    job: String,
    #[command(flatten)]
    parameters: Parameters,
    /// Format of the drawing
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// File to write instead of the standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Format {
    /// A picture for browsers and documents
    #[default]
    Svg,
    /// Text for Graphviz
    Dot,
    /// Text for Mermaid, as in Markdown
    Mermaid,
}

impl Graph {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let parameters = self.parameters.into_parameters()?;
        let job = session.definitions()?.effective_job(&self.job, &parameters)?;
        let graph = JobGraph::new(&job);
        let text = match self.format {
            Format::Svg => graph.to_svg(),
            Format::Dot => graph.to_dot(),
            Format::Mermaid => graph.to_mermaid(),
        };
        match self.output {
            Some(file) => fs::write(&file, text).map_err(CliError::file("write", &file))?,
            None => out(text.trim_end()),
        }
        Ok(ExitCode::SUCCESS)
    }
}
