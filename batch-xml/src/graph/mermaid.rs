//! Writes the graph for Mermaid.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{ExitKind, Group, Node, NodeKind};

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
    mermaid.line(0, format_args!("flowchart TD"));
    mermaid.group(1, root, true);
    mermaid.restarts();
    for class in CLASSES.lines() {
        mermaid.line(1, format_args!("{class}"));
    }
    mermaid.text
}

#[derive(Default)]
struct Mermaid {
    text: String,
    count: usize,
    names: HashMap<String, String>,
    /// The edges from an exit to the id that a restart starts with.
    restarts: Vec<(String, String)>,
}

impl Mermaid {
    fn line(&mut self, depth: usize, text: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.text, "{:1$}{text}", "", 2 * depth);
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("n{}", self.count)
    }

    /// Writes a group; `marked` draws its begin and end.
    fn group(&mut self, depth: usize, group: &Group, marked: bool) {
        let names: Vec<String> = group.nodes.iter().map(|node| self.node(depth, node)).collect();
        if marked {
            let begin = self.name();
            self.line(depth, format_args!("{begin}(( )):::mark"));
            for start in &group.starts {
                self.line(depth, format_args!("{begin} --> {}", names[*start]));
            }
        }
        for edge in &group.edges {
            let (from, to) = (&names[edge.from], &names[edge.to]);
            match edge.label() {
                Some(label) => self.line(depth, format_args!("{from} -->|{}| {to}", Quoted(&label))),
                None => self.line(depth, format_args!("{from} --> {to}")),
            }
        }
        if marked && !group.ends.is_empty() {
            let end = self.name();
            self.line(depth, format_args!("{end}((( ))):::mark"));
            for last in &group.ends {
                self.line(depth, format_args!("{} --> {end}", names[*last]));
            }
        }
    }

    fn node(&mut self, depth: usize, node: &Node) -> String {
        let name = self.name();
        self.names.insert(node.id.clone(), name.clone());
        let count = node.partitions.as_ref().map(|count| format!(" × {count}"));
        let title = format!("{}{}", node.id, count.unwrap_or_default());
        if let Some(group) = &node.group {
            let word = node.kind.word();
            let label = format!("{word} {title}");
            self.line(depth, format_args!("subgraph {name} [{}]", Quoted(&label)));
            self.group(depth + 1, group, group.is_split);
            self.line(depth, format_args!("end"));
            self.line(depth, format_args!("class {name} {word}"));
            return name;
        }
        let label = format!("{title}\n{}", node.detail);
        let label = Quoted(&label);
        match (node.kind, &node.partitions) {
            (NodeKind::Decision, _) => self.line(depth, format_args!("{name}{{{label}}}:::decision")),
            // Double sides show that it is partitioned.
            (_, Some(_)) => self.line(depth, format_args!("{name}[[{label}]]:::step")),
            _ => self.line(depth, format_args!("{name}[{label}]:::step")),
        }
        for exit in &node.exits {
            let on = Quoted(&exit.on);
            if exit.kind == ExitKind::Again {
                self.line(depth, format_args!("{name} -->|{on}| {name}"));
                continue;
            }
            let to = self.name();
            let text = exit.text();
            let text = Quoted(&text);
            let (shape, class) = match exit.kind {
                ExitKind::Fail => (format!("[{text}]"), "failExit"),
                ExitKind::Stop => (format!("{{{{{text}}}}}"), "stopExit"),
                ExitKind::End | ExitKind::Again => (format!("([{text}])"), "endExit"),
            };
            self.line(depth, format_args!("{name} -->|{on}| {to}{shape}:::{class}"));
            self.restarts.extend(exit.restart.clone().map(|id| (to, id)));
        }
        name
    }

    /// Writes the edges of restarts, once all nodes have names.
    fn restarts(&mut self) {
        for (from, id) in std::mem::take(&mut self.restarts) {
            if let Some(to) = self.names.get(&id).cloned() {
                self.line(1, format_args!("{from} -.-> {to}"));
            }
        }
    }
}

/// A quoted text, in which everything with a meaning in Mermaid or HTML is a character number.
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
