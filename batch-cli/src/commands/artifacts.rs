//! `artifacts`: what a job file can name.

use std::collections::BTreeMap;
use std::process::ExitCode;

use batch_runtime::operator::ArtifactDescription;
use batch_runtime::xml::Dialect;
use batch_runtime::xml::suggest::{Proposal, did_you_mean, xsd};
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
    /// Prints an XML Schema of job files for editors, in the dialect `draft` or `jakarta`
    #[arg(long, value_name = "DIALECT", num_args = 0..=1, default_missing_value = "draft", conflicts_with_all = ["name", "json"])]
    schema: Option<Dialect>,
}

impl Artifacts {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let all = session.definitions()?.artifacts();
        if let Some(dialect) = self.schema {
            let schema = xsd(dialect, |element, attribute| proposals(&all, element, attribute));
            outln!("{}", schema.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
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

/// Returns the values for an attribute of a job file: the artifacts of its role, or the names of properties.
fn proposals(all: &[ArtifactDescription], element: &str, attribute: &str) -> Vec<Proposal> {
    let role = match (element, attribute) {
        ("property", "name") => return properties(all),
        ("chunk", "reader") | ("reader", "ref") => "item_reader",
        ("chunk", "processor") | ("processor", "ref") => "item_processor",
        ("chunk", "writer") | ("writer", "ref") => "item_writer",
        ("listener", "ref") => "_listener",
        ("decision", "ref" | "decider") => "decider",
        ("algorithm" | "mapper", "ref") => "partition_algorithm",
        ("logicalTX" | "reducer", "ref") => "logical_tx",
        ("collector" | "analyzer", "ref") => &format!("sub_job_{element}"),
        ("batchlet" | "checkpoint-algorithm", "ref") => &element.replace('-', "_"),
        _ => return Vec::new(),
    };
    let named = all
        .iter()
        .filter(|artifact| artifact.roles.iter().any(|one| one.ends_with(role)));
    let proposal = |artifact: &ArtifactDescription| Proposal {
        value: artifact.name.to_owned(),
        documentation: artifact.class.to_owned(),
    };
    named.map(proposal).collect()
}

/// Returns the names of all properties, each with its description and the artifacts that have it.
fn properties(all: &[ArtifactDescription]) -> Vec<Proposal> {
    let mut named: BTreeMap<&str, (&str, Vec<&str>)> = BTreeMap::new();
    for artifact in all {
        for property in &artifact.properties {
            let (_, artifacts) = named
                .entry(&property.name)
                .or_insert_with(|| (property.description, Vec::new()));
            artifacts.push(artifact.name);
        }
    }
    let proposal = |(name, (description, artifacts)): (&str, (&str, Vec<&str>))| Proposal {
        value: name.to_owned(),
        documentation: format!("{description} ({})", artifacts.join(", ")),
    };
    named.into_iter().map(proposal).collect()
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
    for property in artifact.distinct_properties() {
        let default = match (property.required, property.default) {
            (true, _) => "required",
            (false, Some(default)) if !default.is_empty() => default,
            (false, _) => property.if_absent,
        };
        table.row([&property.name, default, property.description].map(str::to_owned));
    }
    if artifact.distinct_properties().count() < artifact.properties.len() {
        table.row(["2. ..", "", "the same for the second part, and so on"].map(str::to_owned));
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
