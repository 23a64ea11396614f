//! `artifacts`: what a job file can name.

use std::process::ExitCode;

use batch_runtime::operator::ArtifactDescription;
use batch_runtime::xml::suggest::did_you_mean;
use clap::Args;
use serde_json::json as value;

use crate::error::CliError;
use crate::json;
use crate::print::outln;
use crate::session::{Outcome, Session};
use crate::tables::Table;

/// Lists the artifacts that job files can name, or the properties of one
#[derive(Args, Debug)]
pub(crate) struct Artifacts {
    /// Name of an artifact
    name: Option<String>,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

impl Artifacts {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let all = session.definitions()?.artifacts();
        let shown: Vec<_> = match &self.name {
            None => all.iter().collect(),
            Some(name) => all.iter().filter(|artifact| artifact.name == *name).collect(),
        };
        match &self.name {
            Some(name) if shown.is_empty() => {
                let hint = did_you_mean(name, all.iter().map(|artifact| artifact.name));
                return Err(CliError::NoArtifact(name.clone(), hint));
            }
            _ if self.json => json::print(&value!(shown)),
            Some(_) => shown.iter().for_each(|artifact| print_properties(artifact)),
            None => print_names(&shown),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn print_names(artifacts: &[&ArtifactDescription]) {
    let mut table = Table::new(&["NAME", "ROLES", "TYPE"]);
    for artifact in artifacts {
        table.row([artifact.name, &artifact.roles.join(", "), artifact.class].map(str::to_owned));
    }
    table.print();
}

fn print_properties(artifact: &ArtifactDescription) {
    outln!(
        "{} ({}), {}",
        artifact.name,
        artifact.roles.join(", "),
        artifact.class
    );
    let mut table = Table::new(&["PROPERTY", "DEFAULT", "TYPE"]);
    for property in &artifact.properties {
        let default = match (property.required, property.default) {
            (true, _) => "required",
            (false, default) => default.unwrap_or_default(),
        };
        let type_name = property.type_name.rsplit("::").next().unwrap_or_default();
        table.row([&property.name, default, type_name].map(str::to_owned));
    }
    table.print();
}
