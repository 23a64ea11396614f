//! The page `docs/guide/properties.md`: each ready-made artifact with its properties, as the program describes them.
//!
//! `BATCH_UPDATE=1 cargo test properties_are_listed` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use batch_runtime::BatchRuntime;
use batch_runtime::operator::{ArtifactDescription, PropertyDescription};

/// Compares the chapter of a crate with what the crate registers. `optional` are artifacts that only some features have.
pub fn check_chapter(crate_name: &str, optional: &[&str]) {
    let page = root().join("docs/guide/properties.md");
    let text = fs::read_to_string(&page).unwrap();
    let written = sections(&text, crate_name);
    let path = format!("{}::", crate_name.replace('-', "_"));
    let definitions = BatchRuntime::builder().definitions().unwrap();
    let artifacts = definitions.artifacts();
    let mut expected: BTreeMap<String, String> = artifacts
        .iter()
        .filter(|artifact| artifact.class.starts_with(&path))
        .map(|artifact| (artifact.name.to_owned(), section(artifact)))
        .collect();
    for name in optional {
        if let (false, Some(section)) = (expected.contains_key(*name), written.get(*name)) {
            expected.insert((*name).to_owned(), section.clone());
        }
    }
    let ours = artifacts
        .iter()
        .filter(|artifact| artifact.class.starts_with(&path));
    let undescribed: BTreeSet<_> = ours
        .flat_map(|artifact| &artifact.properties)
        .filter(|property| property.description.is_empty())
        .map(|property| format!("`{}` of {}", property.name, property.declared_by))
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
fn section(artifact: &ArtifactDescription) -> String {
    let roles: Vec<_> = artifact.roles.iter().map(|role| role.replace('_', " ")).collect();
    let roles = roles.join(" and ");
    let article = if roles.starts_with('i') { "An" } else { "A" };
    let mut text = format!("{article} {roles}.");
    if artifact.properties.is_empty() {
        return text + " It has no properties.";
    }
    text.push_str("\n\n| property | default | |\n|---|---|---|\n");
    for property in artifact.distinct_properties() {
        writeln!(text, "{}", row(property)).unwrap();
    }
    if artifact.distinct_properties().count() < artifact.properties.len() {
        text.push_str("| `2.` .. | | the same for the second part, and so on |\n");
    }
    text.trim_end().to_owned()
}

fn row(property: &PropertyDescription) -> String {
    let default = match (property.required, property.default) {
        (true, _) => "required".to_owned(),
        (false, Some(default)) if !default.is_empty() => {
            format!("`{}`", default.replace('\n', "\\n").replace('|', "\\|"))
        }
        (false, _) if property.if_absent.is_empty() => "none".to_owned(),
        (false, _) => property.if_absent.to_owned(),
    };
    let description = property.description.replace('|', "\\|");
    format!("| `{}` | {default} | {description} |", property.name)
}
