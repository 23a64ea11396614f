//! `graph`: a drawing of a job. What is drawn how, is up to `batch_xml::graph`.

use std::fs;
use std::path::Path;

use batch_xml::graph::JobGraph;

use super::args::GraphFormat;
use super::print::out;
use crate::operator::Definitions;
use crate::parameters::JobParameters;

/// Draws one job, into a file or on the standard output.
///
/// # Errors
/// When the job has no drawing because its definition is wrong, or the file cannot be written.
pub(super) fn run(
    definitions: &Definitions,
    job: &str,
    parameters: &JobParameters,
    format: GraphFormat,
    output: Option<&Path>,
) -> Result<(), String> {
    let (resolved, _) = definitions
        .resolve(job, parameters)
        .map_err(|error| error.to_string())?;
    let graph = JobGraph::new(&resolved.job);
    let text = match format {
        GraphFormat::Svg => graph.to_svg(),
        GraphFormat::Dot => graph.to_dot(),
        GraphFormat::Mermaid => graph.to_mermaid(),
    };
    match output {
        Some(file) => {
            fs::write(file, text).map_err(|error| format!("cannot write `{}`: {error}", file.display()))
        }
        None => {
            out(text.trim_end());
            Ok(())
        }
    }
}
