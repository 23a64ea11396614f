//! Valid annotations: each module is a program that compiles without a warning, and checks its registrations. Invalid
//! annotations are in `ui`, and tested by `diagnostics`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

mod adapters;
mod batchlet;
mod exceptions;
mod fields;
mod functions;
mod generic;
mod item_processor;
mod item_reader;
mod item_writer;
mod listeners;
mod loaders;
mod places;
mod registration;
mod results;
mod roles;

use batch_runtime::__private::{ArtifactRegistration, inventory};

/// Returns the artifacts of a module, as role and name, in the order of the source; those on one line, as a macro
/// writes them, by name.
fn registered(module: &str) -> Vec<(&'static str, &'static str)> {
    let all = inventory::iter::<ArtifactRegistration>();
    let mut found: Vec<_> = all.filter(|one| one.class.starts_with(module)).collect();
    found.sort_by_key(|one| (one.line, one.role().attribute(), one.name));
    found
        .iter()
        .map(|one| (one.role().attribute(), one.name))
        .collect()
}
