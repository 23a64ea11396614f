//! Events as lines, without what differs from run to run.

use std::path::Path;

use serde_json::Value;

/// Returns the events, one a line: runs have numbers in the order of their first event, paths begin in the folder.
pub(crate) fn lines(events: &[Value], folder: &Path) -> String {
    let mut runs: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for event in events {
        let run = text(&event["run"]["runId"]);
        if !runs.contains(&run) {
            runs.push(run);
        }
        lines.push((run, event));
    }
    let number = |run: &str| match runs.iter().position(|known| *known == run) {
        Some(place) => format!("#{}", place + 1),
        None => run.to_owned(),
    };
    let shown = lines.iter().map(|(run, event)| {
        let facets = &event["run"]["facets"];
        let mut line = format!(
            "{} {} {}",
            text(&event["eventType"]),
            number(run),
            text(&event["job"]["name"])
        );
        let runs = [("parent", &facets["parent"]), ("root", &facets["parent"]["root"])];
        for (name, facet) in runs.into_iter().filter(|(_, facet)| !facet.is_null()) {
            let (run, job) = (text(&facet["run"]["runId"]), text(&facet["job"]["name"]));
            line += &format!(" {name}={}:{job}", number(run));
        }
        if let Some(message) = facets["errorMessage"]["message"].as_str() {
            // The place in the source follows, or the name of a dead process.
            let message = message.lines().next().unwrap_or_default();
            let message = message.split(" (owner ").next().unwrap_or_default();
            line += &format!(" error={message:?}");
        }
        for (role, arrow) in [("inputs", "<-"), ("outputs", "->")] {
            let datasets = event[role].as_array().unwrap();
            datasets
                .iter()
                .for_each(|used| line += &format!("\n  {arrow} {}", dataset(used)));
        }
        line
    });
    let shown: Vec<_> = shown.collect();
    let folder = folder.display().to_string();
    shown.join("\n").replace(&folder, "")
}

fn dataset(used: &Value) -> String {
    let mut shown = format!("{} {}", text(&used["namespace"]), text(&used["name"]));
    if let Some(fields) = used["facets"]["schema"]["fields"].as_array() {
        let fields: Vec<_> = fields
            .iter()
            .map(|field| format!("{} {}", text(&field["name"]), text(&field["type"])))
            .collect();
        shown += &format!(" ({})", fields.join(", "));
    }
    let statistics = [
        &used["inputFacets"]["inputStatistics"],
        &used["outputFacets"]["outputStatistics"],
    ];
    for rows in statistics
        .map(|facet| facet["rowCount"].as_i64())
        .into_iter()
        .flatten()
    {
        shown += &format!(" {rows} rows");
    }
    shown
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
