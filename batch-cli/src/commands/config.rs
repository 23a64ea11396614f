//! `config`: the settings.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json as value};

use crate::json;
use crate::session::{Outcome, Session};
use crate::tables::Table;

/// The settings
#[derive(Args, Debug)]
pub(crate) struct Config {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Prints every effective setting and its source: argument, environment, file, program or default
    Show {
        /// Prints JSON
        #[arg(long)]
        json: bool,
    },
}

impl Config {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let Action::Show { json: as_json } = self.action;
        let rows = session.settings.describe();
        if as_json {
            let rows = rows
                .iter()
                .map(|[key, value, from]| value!({ "key": key, "value": value, "from": from }));
            json::print(&rows.collect::<Value>());
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(&["KEY", "VALUE", "FROM"]);
        rows.into_iter().for_each(|row| table.row(row));
        table.print();
        Ok(ExitCode::SUCCESS)
    }
}
