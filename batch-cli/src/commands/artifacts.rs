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

/// The characters of a line of descriptions.
const WIDTH: u16 = 120;

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
    let mut table = Table::new(&["PROPERTY", "DEFAULT", ""]);
    for property in &artifact.properties {
        let default = match (property.required, property.default) {
            (true, _) => "required",
            (false, Some(default)) if !default.is_empty() => default,
            (false, _) => property.if_absent,
        };
        table.row([&property.name, default, property.description].map(str::to_owned));
    }
    table.print_within(WIDTH);
    if let Some(example) = example(artifact) {
        outln!("\n{example}");
    }
}

/// Returns the element of Job XML that names the artifact, with the properties that it requires.
fn example(artifact: &ArtifactDescription) -> Option<String> {
    let name = artifact.name;
    let (open, close) = artifact.roles.iter().find_map(|role| {
        Some(match *role {
            "item_reader" => (format!("<chunk reader=\"{name}\" writer=\"..\">"), "</chunk>"),
            "item_processor" => (
                format!("<chunk reader=\"..\" processor=\"{name}\" writer=\"..\">"),
                "</chunk>",
            ),
            "item_writer" => (format!("<chunk reader=\"..\" writer=\"{name}\">"), "</chunk>"),
            "batchlet" => (format!("<batchlet ref=\"{name}\">"), "</batchlet>"),
            "partition_algorithm" => (
                format!("<partition><algorithm ref=\"{name}\">"),
                "</algorithm></partition>",
            ),
            "decider" => (format!("<decision id=\"..\" ref=\"{name}\">"), "</decision>"),
            role if role.ends_with("_listener") => (
                format!("<listeners><listener ref=\"{name}\">"),
                "</listener></listeners>",
            ),
            _ => return None,
        })
    })?;
    let required = artifact.properties.iter().filter(|property| property.required);
    let property = |name: &String| format!("    <property name=\"{name}\" value=\"..\"/>\n");
    let properties: String = required.map(|one| property(&one.name)).collect();
    Some(match properties.is_empty() {
        true => format!("{open}{close}"),
        false => format!("{open}\n  <properties>\n{properties}  </properties>\n{close}"),
    })
}
