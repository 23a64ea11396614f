//! The page `docs/guide/properties.md`: each ready-made artifact with its properties, from the registry and the documentation of the structs.
//!
//! `BATCH_UPDATE=1 cargo test properties_are_listed` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use batch_runtime::BatchRuntime;
use batch_runtime::operator::{ArtifactDescription, PropertyDescription};

/// Compares the chapter of a crate with what the crate registers. `optional` are artifacts that only some features have.
pub fn check_chapter(crate_name: &str, folder: &str, optional: &[&str]) {
    let page = root().join("docs/guide/properties.md");
    let text = fs::read_to_string(&page).unwrap();
    let written = sections(&text, crate_name);
    // Artifacts of the other crates may contain those of batch-items.
    let mut known = described(&root().join("batch-items/src"));
    known.extend(described(&root().join(folder).join("src")));
    let path = format!("{}::", crate_name.replace('-', "_"));
    let definitions = BatchRuntime::builder().definitions().unwrap();
    let artifacts = definitions.artifacts();
    let mut expected: BTreeMap<String, String> = artifacts
        .iter()
        .filter(|artifact| artifact.class.starts_with(&path))
        .map(|artifact| (artifact.name.to_owned(), section(artifact, &known)))
        .collect();
    for name in optional {
        if let (false, Some(section)) = (expected.contains_key(*name), written.get(*name)) {
            expected.insert((*name).to_owned(), section.clone());
        }
    }
    let undescribed: BTreeSet<_> = expected
        .values()
        .flat_map(|text| text.lines())
        .filter(|line| line.contains(UNDESCRIBED))
        .collect();
    assert!(
        undescribed.is_empty(),
        "the documentation of the structs lacks {undescribed:#?}"
    );
    if written != expected && std::env::var_os("BATCH_UPDATE").is_some() {
        fs::write(page, with_chapter(&text, crate_name, &expected)).unwrap();
        return;
    }
    for name in written.keys().chain(expected.keys()).collect::<BTreeSet<_>>() {
        assert_eq!(
            written.get(name),
            expected.get(name),
            "`{name}` in docs/guide/properties.md differs: BATCH_UPDATE=1 cargo test properties_are_listed"
        );
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// Returns the sections of a chapter by their names.
fn sections(page: &str, crate_name: &str) -> BTreeMap<String, String> {
    let chapter = page
        .split("\n## ")
        .find_map(|chapter| chapter.strip_prefix(&format!("{crate_name}\n")));
    let sections = chapter.unwrap_or_default().split("\n### ").skip(1);
    let section = |section: &str| {
        let (name, text) = section.split_once('\n').unwrap();
        (name.to_owned(), text.trim().to_owned())
    };
    sections.map(section).collect()
}

/// Returns the page with another chapter, which is appended if it is new.
fn with_chapter(page: &str, crate_name: &str, sections: &BTreeMap<String, String>) -> String {
    let mut chapter = format!("{crate_name}\n");
    for (name, text) in sections {
        write!(chapter, "\n### {name}\n\n{text}\n").unwrap();
    }
    let is_it = |old: &&str| old.starts_with(&format!("{crate_name}\n"));
    let mut chapters: Vec<&str> = page.trim_end().split("\n## ").collect();
    match chapters.iter().position(is_it) {
        Some(place) => chapters[place] = chapter.trim_end(),
        None => chapters.push(chapter.trim_end()),
    }
    let chapters: Vec<_> = chapters.iter().map(|chapter| chapter.trim_end()).collect();
    chapters.join("\n\n## ") + "\n"
}

/// Returns the text of an artifact.
fn section(artifact: &ArtifactDescription, known: &Descriptions) -> String {
    let roles: Vec<_> = artifact.roles.iter().map(|role| role.replace('_', " ")).collect();
    let roles = roles.join(" and ");
    let article = if roles.starts_with('i') { "An" } else { "A" };
    let mut text = format!("{article} {roles}.");
    if artifact.properties.is_empty() {
        return text + " It has no properties.";
    }
    text.push_str("\n\n| property | default | |\n|---|---|---|\n");
    for property in &artifact.properties {
        writeln!(text, "{}", row(property, known)).unwrap();
    }
    text.trim_end().to_owned()
}

fn row(property: &PropertyDescription, known: &Descriptions) -> String {
    let by = property.declared_by;
    // With a prefix of an outer artifact, the name ends with the name that the struct declares.
    let mut names = known
        .range((by.to_owned(), String::new())..)
        .take_while(|((owner, _), _)| owner == by);
    let found =
        names.find(|((_, name), _)| property.name == *name || property.name.ends_with(&format!(".{name}")));
    let undescribed = Described {
        default: String::new(),
        text: format!("{UNDESCRIBED} `{by}`"),
    };
    let described = found.map_or(&undescribed, |(_, described)| described);
    let default = match (property.required, property.default) {
        (true, _) => "required".to_owned(),
        // What the struct does if nothing sets it.
        (false, None | Some("")) => match described.default.as_str() {
            "" | "required" | "all" => "none".to_owned(),
            default => default.to_owned(),
        },
        (false, Some(default)) => format!("`{}`", default.replace('\n', "\\n").replace('|', "\\|")),
    };
    // A reference to another struct means its text.
    let name = property.name.rsplit('.').next().unwrap_or_default();
    let referred = described.text.strip_prefix("as of `").and_then(|rest| {
        let owner = rest.split('`').next()?;
        let found = [&property.name, name].map(|name| known.get(&(owner.to_owned(), name.to_owned())));
        found.into_iter().flatten().next()
    });
    let text = referred.map_or(&described.text, |referred| &referred.text);
    format!("| `{}` | {default} | {text} |", property.name)
}

/// Stands for a description that the struct, whose name follows, lacks.
const UNDESCRIBED: &str = "no description in";

/// The descriptions of properties, by the struct and the name.
type Descriptions = BTreeMap<(String, String), Described>;

/// A property, as a table or its field describes it.
#[derive(Clone)]
struct Described {
    default: String,
    text: String,
}

/// Reads the tables in the documentation of structs, and the documentation of fields that no table has.
fn described(folder: &Path) -> Descriptions {
    let mut found = Descriptions::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            describe(&fs::read_to_string(path).unwrap(), &mut found);
        }
    }
    found
}

/// A property that neither the documentation of its struct nor its own describes is in an earlier table of the file: of the public type
/// that contains the struct.
fn describe(source: &str, found: &mut Descriptions) {
    let (mut docs, mut of_struct) = (Vec::new(), String::new());
    let mut earlier = BTreeMap::new();
    for line in source.lines().map(str::trim) {
        if let Some(doc) = line.strip_prefix("///") {
            docs.push(doc.trim());
            earlier.extend(table_row(doc.trim()));
        } else if let Some((_, rest)) = line.split_once("struct ").filter(|_| !line.starts_with("//")) {
            of_struct = rest
                .split(|c: char| !c.is_alphanumeric())
                .next()
                .unwrap()
                .to_owned();
            for (name, text) in docs.drain(..).flat_map(table_row) {
                found.insert((of_struct.clone(), name), text);
            }
        } else if let Some((_, rest)) = line.split_once("#[batch_property(name = \"") {
            let name = rest.split('"').next().unwrap();
            let of_field = Described {
                default: String::new(),
                text: plain(&docs.join(" ")).trim_end_matches('.').to_owned(),
            };
            let text = match docs.is_empty() {
                true => earlier.get(name).cloned(),
                false => Some(of_field),
            };
            if let Some(text) = text {
                found.entry((of_struct.clone(), name.to_owned())).or_insert(text);
            }
            docs.clear();
        } else if !line.starts_with("#[") && !line.is_empty() {
            docs.clear();
        }
    }
}

/// Returns the properties of a row ``| `name` | default | text |``.
fn table_row(doc: &str) -> Vec<(String, Described)> {
    let Some(rest) = doc.strip_prefix("| `") else {
        return Vec::new();
    };
    let cells: Vec<&str> = rest.trim_end_matches('|').splitn(3, " | ").collect();
    let [names, default, text] = cells[..] else {
        return Vec::new();
    };
    let described = Described {
        default: default.to_owned(),
        text: plain(text.trim()),
    };
    let names = names.split(", ").map(|name| name.trim_matches('`').to_owned());
    names.map(|name| (name, described.clone())).collect()
}

/// Returns a text without the links, which lead to items of Rust: ``[`Item`]`` and `[text](link)`.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        let is_item = link.starts_with('`');
        match link.split_once(']') {
            Some((shown, after)) if after.starts_with('(') => {
                plain.push_str(shown);
                rest = after.split_once(')').map_or("", |(_, after)| after);
            }
            Some((shown, after)) if is_item => {
                plain.push_str(shown);
                rest = after;
            }
            _ => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}
