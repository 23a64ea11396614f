//! Writes the graph for Mermaid.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Exit, ExitKind, Group, Lines, Node};
use crate::model::ElementKind;

const CLASSES: &str = "\
classDef step fill:#ddeeff,stroke:#3b7dc4,color:#1f2328
classDef decision fill:#fff3c4,stroke:#b7860b,color:#1f2328
classDef endExit fill:#d9f5e0,stroke:#2da44e,color:#1f2328
classDef failExit fill:#fde2e3,stroke:#d1434b,color:#1f2328
classDef stopExit fill:#fdebd3,stroke:#c4701c,color:#1f2328
classDef mark fill:#7a838d,stroke:#7a838d,color:#7a838d
classDef flow fill:#f4f5f7,stroke:#8b949e,color:#1f2328
classDef split fill:#e6e9ee,stroke:#6e7781,color:#1f2328,stroke-dasharray:7 4";

/// Returns the whole text.
pub(super) fn write(root: &Group) -> String {
    let mut mermaid = Mermaid::default();
    writeln!(mermaid.lines, "flowchart TD");
    mermaid.lines.depth = 1;
    mermaid.group(root, true);
    mermaid.restarts();
    for class in CLASSES.lines() {
        writeln!(mermaid.lines, "{class}");
    }
    mermaid.lines.text
}

#[derive(Default)]
struct Mermaid {
    lines: Lines,
    by_id: HashMap<String, String>,
}

impl Mermaid {
    /// Writes a group; `marked` draws its begin and end.
    fn group(&mut self, group: &Group, marked: bool) {
        let names: Vec<String> = group.nodes.iter().map(|node| self.node(node)).collect();
        if marked {
            let begin = self.lines.name();
            writeln!(self.lines, "{begin}(( )):::mark");
            for start in &group.starts {
                writeln!(self.lines, "{begin} --> {}", names[*start]);
            }
        }
        for edge in &group.edges {
            let (from, to) = (&names[edge.from], &names[edge.to]);
            match edge.label() {
                Some(label) => writeln!(self.lines, "{from} -->|{}| {to}", Quoted(&label)),
                None => writeln!(self.lines, "{from} --> {to}"),
            }
        }
        if marked && !group.ends.is_empty() {
            let end = self.lines.name();
            writeln!(self.lines, "{end}((( ))):::mark");
            for last in &group.ends {
                writeln!(self.lines, "{} --> {end}", names[*last]);
            }
        }
    }

    fn node(&mut self, node: &Node) -> String {
        let name = self.lines.name();
        self.by_id.insert(node.id.clone(), name.clone());
        if let Some(group) = &node.group {
            let word = node.kind.as_str();
            let label = format!("{word} {}", node.title());
            writeln!(self.lines, "subgraph {name} [{}]", Quoted(&label));
            self.lines.depth += 1;
            self.group(group, group.is_split);
            self.lines.depth -= 1;
            writeln!(self.lines, "end");
            writeln!(self.lines, "class {name} {word}");
            return name;
        }
        let label = format!("{}\n{}", node.title(), node.detail);
        let label = Quoted(&label);
        match (node.kind, &node.partitions) {
            (ElementKind::Decision, _) => writeln!(self.lines, "{name}{{{label}}}:::decision"),
            // Double sides show that it is partitioned.
            (_, Some(_)) => writeln!(self.lines, "{name}[[{label}]]:::step"),
            _ => writeln!(self.lines, "{name}[{label}]:::step"),
        }
        for exit in &node.exits {
            self.exit(&name, exit);
        }
        name
    }

    fn exit(&mut self, from: &str, exit: &Exit) {
        let (on, text) = (Quoted(&exit.on), exit.text());
        let text = Quoted(&text);
        let (shape, class) = match exit.kind {
            ExitKind::End => (format!("([{text}])"), "endExit"),
            ExitKind::Fail => (format!("[{text}]"), "failExit"),
            ExitKind::Stop => (format!("{{{{{text}}}}}"), "stopExit"),
            ExitKind::Again => return writeln!(self.lines, "{from} -->|{on}| {from}"),
        };
        let to = self.lines.name();
        writeln!(self.lines, "{from} -->|{on}| {to}{shape}:::{class}");
        let restart = exit.restart.clone();
        self.lines.restarts.extend(restart.map(|id| (to, id)));
    }

    fn restarts(&mut self) {
        for (from, id) in std::mem::take(&mut self.lines.restarts) {
            if let Some(to) = self.by_id.get(&id) {
                writeln!(self.lines, "{from} -.-> {to}");
            }
        }
    }
}

/// A quoted text. Everything with a meaning in Mermaid or HTML is escaped as a character number.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '\n' => f.write_str("<br>")?,
                c if c.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c if c.is_alphanumeric() || !c.is_ascii() || " .,:_-+/()?=".contains(c) => f.write_char(c)?,
                c => write!(f, "#{};", u32::from(c))?,
            }
        }
        f.write_char('"')
    }
}
