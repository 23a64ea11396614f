//! Writes the graph for Graphviz.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{Exit, ExitKind, Group, Lines, Node};
use crate::model::ElementKind;

/// Returns the whole file.
pub(super) fn write(title: &str, root: &Group) -> String {
    let mut dot = Dot::default();
    writeln!(dot.lines, "digraph {} {{", Quoted(title));
    dot.lines.depth = 1;
    for defaults in [
        "graph [compound=true, fontname=\"Helvetica\", fontsize=12];",
        "node [fontname=\"Helvetica\", fontsize=11, style=filled];",
        "edge [fontname=\"Helvetica\", fontsize=10, color=\"#57606a\"];",
    ] {
        writeln!(dot.lines, "{defaults}");
    }
    dot.group(root);
    dot.restarts();
    dot.lines.depth = 0;
    writeln!(dot.lines, "}}");
    dot.lines.text
}

/// The end points of a node's edges, and the cluster that clips them.
#[derive(Clone)]
struct Ports {
    enter: String,
    leave: String,
    cluster: Option<String>,
}

#[derive(Default)]
struct Dot {
    lines: Lines,
    by_id: HashMap<String, Ports>,
}

impl Dot {
    /// Writes a group, and returns its begin and end nodes.
    fn group(&mut self, group: &Group) -> (String, String) {
        let (begin, end) = (self.lines.name(), self.lines.name());
        let shape = if group.is_split {
            "shape=box, label=\"\", height=0.05, width=0.8, fillcolor=\"#57606a\""
        } else {
            "shape=circle, label=\"\", width=0.15, fillcolor=\"#57606a\""
        };
        writeln!(self.lines, "{begin} [{shape}];");
        let shape = shape.replace("circle", "doublecircle");
        writeln!(self.lines, "{end} [{shape}];");
        let ports: Vec<Ports> = group.nodes.iter().map(|node| self.node(node)).collect();
        for start in &group.starts {
            self.edge(&Ports::of(&begin), &ports[*start], "");
        }
        for edge in &group.edges {
            let attributes = edge.label().map_or_else(String::new, |label| {
                format!("label={}, color=\"#0969da\"", Quoted(&label))
            });
            self.edge(&ports[edge.from], &ports[edge.to], &attributes);
        }
        for last in &group.ends {
            self.edge(&ports[*last], &Ports::of(&end), "");
        }
        (begin, end)
    }

    fn edge(&mut self, from: &Ports, to: &Ports, attributes: &str) {
        let tail = from.cluster.as_ref().map(|cluster| format!("ltail={cluster}"));
        let head = to.cluster.as_ref().map(|cluster| format!("lhead={cluster}"));
        let own = (!attributes.is_empty()).then(|| attributes.to_owned());
        let all: Vec<String> = [own, tail, head].into_iter().flatten().collect();
        let all = if all.is_empty() {
            String::new()
        } else {
            format!(" [{}]", all.join(", "))
        };
        writeln!(self.lines, "{} -> {}{all};", from.leave, to.enter);
    }

    fn node(&mut self, node: &Node) -> Ports {
        let ports = match &node.group {
            Some(group) => self.cluster(node, group),
            None => self.leaf(node),
        };
        for exit in &node.exits {
            self.exit(&ports, exit);
        }
        self.by_id.insert(node.id.clone(), ports.clone());
        ports
    }

    fn cluster(&mut self, node: &Node, group: &Group) -> Ports {
        let cluster = format!("cluster_{}", self.lines.names + 1);
        let style = match node.kind {
            ElementKind::Split => "style=\"rounded,dashed\"; color=\"#57606a\"",
            _ => "style=\"rounded,filled\"; color=\"#8c959f\"; fillcolor=\"#f6f8fa\"",
        };
        writeln!(self.lines, "subgraph {cluster} {{");
        self.lines.depth += 1;
        let label = format!("{} {}", node.kind.as_str(), node.title());
        writeln!(self.lines, "label={}; labeljust=l; {style};", Quoted(&label));
        let (enter, leave) = self.group(group);
        self.lines.depth -= 1;
        writeln!(self.lines, "}}");
        Ports {
            enter,
            leave,
            cluster: Some(cluster),
        }
    }

    fn leaf(&mut self, node: &Node) -> Ports {
        let name = self.lines.name();
        let label = format!("{}\n{}", node.title(), node.detail);
        let style = match (node.kind, &node.partitions) {
            (ElementKind::Decision, _) => "shape=diamond, fillcolor=\"#fff3c4\", color=\"#b7860b\"",
            (_, None) => "shape=box, style=\"filled,rounded\", fillcolor=\"#ddeeff\", color=\"#3b7dc4\"",
            (_, Some(_)) => {
                "shape=box, style=\"filled,rounded\", fillcolor=\"#ddeeff\", color=\"#3b7dc4\", peripheries=2"
            }
        };
        writeln!(self.lines, "{name} [label={}, {style}];", Quoted(&label));
        Ports::of(&name)
    }

    fn exit(&mut self, from: &Ports, exit: &Exit) {
        let label = Quoted(&exit.on);
        let (shape, color) = match exit.kind {
            ExitKind::End => (
                "shape=box, style=\"filled,rounded\", fillcolor=\"#d9f5e0\"",
                "#2da44e",
            ),
            ExitKind::Fail => ("shape=box, fillcolor=\"#fde2e3\"", "#d1434b"),
            ExitKind::Stop => ("shape=octagon, fillcolor=\"#fdebd3\"", "#c4701c"),
            ExitKind::Again => {
                return self.edge(from, from, &format!("label={label}, color=\"#0969da\""));
            }
        };
        let name = self.lines.name();
        let text = exit.text();
        let text = Quoted(&text);
        writeln!(self.lines, "{name} [label={text}, {shape}, color=\"{color}\"];");
        let attributes = format!("label={label}, color=\"{color}\"");
        self.edge(from, &Ports::of(&name), &attributes);
        let restart = exit.restart.clone();
        self.lines.restarts.extend(restart.map(|id| (name, id)));
    }

    fn restarts(&mut self) {
        for (from, id) in std::mem::take(&mut self.lines.restarts) {
            if let Some(to) = self.by_id.get(&id).cloned() {
                let attributes = "style=dotted, color=\"#c4701c\", constraint=false";
                self.edge(&Ports::of(&from), &to, attributes);
            }
        }
    }
}

impl Ports {
    fn of(name: &str) -> Ports {
        Ports {
            enter: name.to_owned(),
            leave: name.to_owned(),
            cluster: None,
        }
    }
}

/// A quoted text. Graphviz sees no escape sequences in it except our line breaks.
struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                // Labels are parsed as HTML text, where `&amp;` would become `&`.
                '&' => f.write_str("&amp;")?,
                c if c.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}
