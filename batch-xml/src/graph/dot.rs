//! Writes the graph for Graphviz.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::{ExitKind, Group, Node, NodeKind};

/// Returns the whole file.
pub(super) fn write(title: &str, root: &Group) -> String {
    let mut dot = Dot::default();
    dot.line(0, format_args!("digraph {} {{", Quoted(title)));
    dot.line(
        1,
        format_args!("graph [compound=true, fontname=\"Helvetica\", fontsize=12];"),
    );
    dot.line(
        1,
        format_args!("node [fontname=\"Helvetica\", fontsize=11, style=filled];"),
    );
    dot.line(
        1,
        format_args!("edge [fontname=\"Helvetica\", fontsize=10, color=\"#57606a\"];"),
    );
    dot.group(1, root);
    dot.restarts();
    dot.line(0, format_args!("}}"));
    dot.text
}

/// The end points of a node's edges, and the cluster at which they end.
#[derive(Clone)]
struct Ports {
    enter: String,
    leave: String,
    cluster: Option<String>,
}

#[derive(Default)]
struct Dot {
    text: String,
    count: usize,
    by_id: HashMap<String, Ports>,
    /// The edges from an exit to the id that a restart starts with.
    restarts: Vec<(String, String)>,
}

impl Dot {
    fn line(&mut self, depth: usize, text: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.text, "{:1$}{text}", "", 2 * depth);
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("n{}", self.count)
    }

    /// Writes a group, and returns its begin and end nodes.
    fn group(&mut self, depth: usize, group: &Group) -> (String, String) {
        let (begin, end) = (self.name(), self.name());
        let shape = if group.is_split {
            "shape=box, label=\"\", height=0.05, width=0.8, fillcolor=\"#57606a\""
        } else {
            "shape=circle, label=\"\", width=0.15, fillcolor=\"#57606a\""
        };
        self.line(depth, format_args!("{begin} [{shape}];"));
        let shape = shape.replace("circle", "doublecircle");
        self.line(depth, format_args!("{end} [{shape}];"));
        let ports: Vec<Ports> = group.nodes.iter().map(|node| self.node(depth, node)).collect();
        for start in &group.starts {
            self.edge(depth, &Ports::of(&begin), &ports[*start], "");
        }
        for edge in &group.edges {
            let attributes = edge.label().map_or_else(String::new, |label| {
                format!("label={}, color=\"#0969da\"", Quoted(&label))
            });
            self.edge(depth, &ports[edge.from], &ports[edge.to], &attributes);
        }
        for last in &group.ends {
            self.edge(depth, &ports[*last], &Ports::of(&end), "");
        }
        (begin, end)
    }

    fn edge(&mut self, depth: usize, from: &Ports, to: &Ports, attributes: &str) {
        let tail = from.cluster.as_ref().map(|cluster| format!("ltail={cluster}"));
        let head = to.cluster.as_ref().map(|cluster| format!("lhead={cluster}"));
        let own = (!attributes.is_empty()).then(|| attributes.to_owned());
        let all: Vec<String> = [own, tail, head].into_iter().flatten().collect();
        let all = if all.is_empty() {
            String::new()
        } else {
            format!(" [{}]", all.join(", "))
        };
        self.line(depth, format_args!("{} -> {}{all};", from.leave, to.enter));
    }

    fn node(&mut self, depth: usize, node: &Node) -> Ports {
        let count = node.partitions.as_ref().map(|count| format!(" × {count}"));
        let title = format!("{}{}", node.id, count.unwrap_or_default());
        let ports = match &node.group {
            Some(group) => {
                let cluster = format!("cluster_{}", self.count + 1);
                let style = match node.kind {
                    NodeKind::Split => "style=\"rounded,dashed\", color=\"#57606a\"",
                    _ => "style=\"rounded,filled\", color=\"#8c959f\", fillcolor=\"#f6f8fa\"",
                };
                self.line(depth, format_args!("subgraph {cluster} {{"));
                let label = format!("{} {title}", node.kind.word());
                self.line(
                    depth + 1,
                    format_args!(
                        "label={}; labeljust=l; {};",
                        Quoted(&label),
                        style.replace(", color", "; color").replace(", fill", "; fill")
                    ),
                );
                let (enter, leave) = self.group(depth + 1, group);
                self.line(depth, format_args!("}}"));
                Ports {
                    enter,
                    leave,
                    cluster: Some(cluster),
                }
            }
            None => {
                let name = self.name();
                let label = format!("{title}\n{}", node.detail);
                let style = match node.kind {
                    NodeKind::Decision => "shape=diamond, fillcolor=\"#fff3c4\", color=\"#b7860b\"",
                    _ => "shape=box, style=\"filled,rounded\", fillcolor=\"#ddeeff\", color=\"#3b7dc4\"",
                };
                let several = if node.partitions.is_some() {
                    ", peripheries=2"
                } else {
                    ""
                };
                self.line(
                    depth,
                    format_args!("{name} [label={}, {style}{several}];", Quoted(&label)),
                );
                Ports::of(&name)
            }
        };
        for exit in &node.exits {
            let label = Quoted(&exit.on);
            let (shape, color) = match exit.kind {
                ExitKind::End => (
                    "shape=box, style=\"filled,rounded\", fillcolor=\"#d9f5e0\"",
                    "#2da44e",
                ),
                ExitKind::Fail => ("shape=box, fillcolor=\"#fde2e3\"", "#d1434b"),
                ExitKind::Stop => ("shape=octagon, fillcolor=\"#fdebd3\"", "#c4701c"),
                ExitKind::Again => {
                    let back = format!("label={label}, color=\"#0969da\"");
                    self.edge(depth, &ports, &ports, &back);
                    continue;
                }
            };
            let name = self.name();
            let text = exit.text();
            self.line(
                depth,
                format_args!("{name} [label={}, {shape}, color=\"{color}\"];", Quoted(&text)),
            );
            let attributes = format!("label={label}, color=\"{color}\"");
            self.edge(depth, &ports, &Ports::of(&name), &attributes);
            self.restarts.extend(exit.restart.clone().map(|id| (name, id)));
        }
        self.by_id.insert(node.id.clone(), ports.clone());
        ports
    }

    /// Writes the edges of restarts, once all nodes have names.
    fn restarts(&mut self) {
        for (from, id) in std::mem::take(&mut self.restarts) {
            if let Some(to) = self.by_id.get(&id).cloned() {
                let attributes = "style=dotted, color=\"#c4701c\", constraint=false";
                self.edge(1, &Ports::of(&from), &to, attributes);
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

/// A quoted text, in which Graphviz sees no escape sequences except our line breaks.
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
