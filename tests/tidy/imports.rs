//! The files of a crate that use items of other files, and the cycles among them.

use std::collections::{BTreeMap, BTreeSet};

/// The files of a crate by module path: `["engine", "chunk"]` for `engine/chunk/mod.rs` and `engine/chunk.rs`.
pub(crate) struct Crate {
    files: BTreeMap<Vec<String>, File>,
}

struct File {
    name: String,
    text: String,
}

fn path_of(name: &str) -> Vec<String> {
    let name = name.trim_end_matches(".rs");
    let mut parts: Vec<String> = name.split('/').map(str::to_owned).collect();
    if ["mod", "lib"].contains(&parts[parts.len() - 1].as_str()) {
        parts.pop();
    }
    parts
}

/// Returns every path in a `use` tree: `a::{b::C, d}` has `a::b::C` and `a::d`.
fn leaves(tree: &str) -> Vec<String> {
    let Some((prefix, rest)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or(tree);
        return vec![name.trim().to_owned()];
    };
    let rest = rest.strip_suffix('}').unwrap_or(rest);
    let mut depth = 0;
    let parts = rest.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| leaves(part).into_iter().map(|leaf| format!("{prefix}{leaf}")))
        .collect()
}

/// Returns the `use` items of a file, as trees without line breaks; `pub` ones are re-exports. In a module inside of the file, `super` is
/// the file.
fn uses(text: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(whole) = lines.next() {
        let line = whole.trim();
        let Some(at) = line.find("use ") else { continue };
        let visibility = line[..at].trim();
        if !(visibility.is_empty() || visibility.starts_with("pub")) {
            continue;
        }
        let mut tree = line[at + 4..].to_owned();
        while !tree.ends_with(';') {
            let Some(more) = lines.next() else { break };
            tree.push_str(more.trim());
        }
        if whole.starts_with(' ')
            && let Some(inside) = tree.strip_prefix("super::")
        {
            tree = format!("self::{inside}");
        }
        found.push((!visibility.is_empty(), tree.trim_end_matches(';').to_owned()));
    }
    found
}

impl Crate {
    /// Reads files by their names in `src`; their texts are without comments and tests.
    pub(crate) fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let files = files.into_iter();
        Self {
            files: files
                .map(|(name, text)| (path_of(&name), File { name, text }))
                .collect(),
        }
    }

    /// Returns the module path and the rest of a path in a file of `module`. `None` is another crate.
    fn absolute(&self, module: &[String], path: &str) -> Option<Vec<String>> {
        let mut parts = path.split("::").peekable();
        let mut base = match *parts.peek()? {
            "crate" => Vec::new(),
            "self" | "super" => module.to_vec(),
            first => {
                let mut child = module.to_vec();
                child.push(first.to_owned());
                return self.files.contains_key(&child).then(|| {
                    let rest = parts.skip(1).map(str::to_owned);
                    child.into_iter().chain(rest).collect()
                });
            }
        };
        for part in parts {
            match part {
                "crate" | "self" => {}
                "super" => {
                    base.pop()?;
                }
                name => base.push(name.to_owned()),
            }
        }
        Some(base)
    }

    /// Returns the file that defines the item, following re-exports.
    fn file_of(&self, path: &[String], depth: usize) -> Option<&str> {
        let module = (0..=path.len())
            .rev()
            .find_map(|end| self.files.get_key_value(&path[..end]).map(|it| (end, it)));
        let (end, (module, file)) = module?;
        let Some(item) = path.get(end).filter(|_| depth < 8) else {
            return Some(&file.name);
        };
        let reexports = uses(&file.text).into_iter().filter(|(is_public, _)| *is_public);
        for leaf in reexports.flat_map(|(_, tree)| leaves(&tree)) {
            let (base, name) = leaf.rsplit_once("::").unwrap_or(("", &leaf));
            let Some(mut to) = self.absolute(module, &leaf) else {
                continue;
            };
            if name == item {
                return self.file_of(&to, depth + 1);
            }
            if name == "*" && !base.is_empty() {
                to.pop();
                let declares = |file: &File| file.text.contains(&format!(" {item}"));
                if self.files.get(&to).is_some_and(declares) {
                    return self.files.get(&to).map(|file| file.name.as_str());
                }
            }
        }
        // An item of the crate's root that is not re-exported: a macro.
        (!module.is_empty()).then_some(&file.name)
    }

    /// Returns the files whose items a file uses.
    fn imports<'a>(&'a self, module: &[String], file: &File) -> BTreeSet<&'a str> {
        let trees = uses(&file.text).into_iter().filter(|(is_public, _)| !is_public);
        let mut paths: Vec<String> = trees.flat_map(|(_, tree)| leaves(&tree)).collect();
        // Paths written in expressions.
        for (at, _) in file.text.match_indices("crate::") {
            let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let path: String = file.text[at..].chars().take_while(|c| is_path(*c)).collect();
            let is_visibility = file.text[..at].ends_with("(in ");
            if !path.ends_with(':') && !is_visibility {
                paths.push(path);
            }
        }
        let files = paths
            .iter()
            .filter_map(|path| self.file_of(&self.absolute(module, path)?, 0));
        files.filter(|name| *name != file.name).collect()
    }

    /// Returns every cycle, as the shortest one for each pair of files that use each other directly or indirectly.
    pub(crate) fn cycles(&self) -> Vec<Vec<&str>> {
        let graph: BTreeMap<&str, BTreeSet<&str>> = self
            .files
            .iter()
            .map(|(module, file)| (file.name.as_str(), self.imports(module, file)))
            .collect();
        let mut cycles: Vec<Vec<&str>> = Vec::new();
        for (from, targets) in &graph {
            for to in targets {
                let Some(back) = shortest(&graph, to, from) else {
                    continue;
                };
                // The same cycle, whichever of its files it starts at.
                let first = (0..back.len()).min_by_key(|at| back[*at]).unwrap_or(0);
                let ring: Vec<&str> = back[first..].iter().chain(&back[..first]).copied().collect();
                if !cycles.contains(&ring) {
                    cycles.push(ring);
                }
            }
        }
        cycles.sort();
        cycles
    }
}

/// Returns the shortest path from one file to another, including both.
fn shortest<'a>(
    graph: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    from: &'a str,
    to: &'a str,
) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut pending = std::collections::VecDeque::from([from]);
    while let Some(file) = pending.pop_front() {
        if file == to {
            let mut way = vec![to];
            while let Some(before) = came_from
                .get(way[way.len() - 1])
                .filter(|_| way[way.len() - 1] != from)
            {
                way.push(before);
            }
            way.reverse();
            return Some(way);
        }
        for next in graph.get(file).into_iter().flatten() {
            if *next != from && !came_from.contains_key(next) {
                came_from.insert(next, file);
                pending.push_back(next);
            }
        }
    }
    None
}

#[test]
fn a_cycle_is_found_through_a_reexport() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let files = [
        file("lib.rs", "mod a;\nmod b;\npub use b::Second;\n"),
        file("a/mod.rs", "mod one;\npub(crate) use one::First;\n"),
        file(
            "a/one.rs",
            "use crate::{b::third::{Third, Fourth as Other},\n    Second};\n",
        ),
        file("b/mod.rs", "mod third;\npub struct Second;\n"),
        file("b/third.rs", "fn third(_: crate::a::First) {}\n"),
    ];
    assert_eq!(Crate::new(files).cycles(), [["a/one.rs", "b/third.rs"]]);
}
