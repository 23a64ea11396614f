//! Compares the results of two runs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use super::settings::Normalize;
use crate::database::TableRows;

/// The number of rows that are shown.
const SHOWN: usize = 3;

/// The result of a run.
pub(super) struct Snapshot {
    /// The rows of tables and the lines of files, in the order of their names.
    parts: BTreeMap<Part, Vec<String>>,
}

/// A table or a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Table(String),
    File(String),
    /// The result of a function of the test.
    Check,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(name) => write!(f, "table `{name}`"),
            Self::File(name) => write!(f, "file `{name}`"),
            Self::Check => f.write_str("the result of the check"),
        }
    }
}

impl Snapshot {
    pub(super) fn of(tables: Vec<TableRows>, folder: &Path, normalize: Option<&Normalize>) -> Self {
        let tables = tables
            .into_iter()
            .map(|table| (Part::Table(table.table), table.rows));
        let mut parts: BTreeMap<_, _> = tables.collect();
        add_files(folder, "", normalize, &mut parts);
        Self { parts }
    }

    /// Returns whether there is nothing to compare: no rows, no lines, and no result of a function.
    pub(super) fn is_empty(&self) -> bool {
        let mut parts = self.parts.iter();
        !parts.any(|(part, lines)| *part == Part::Check || !lines.is_empty())
    }

    pub(super) fn of_check(result: String) -> Self {
        let lines = result.lines().map(str::to_owned).collect();
        Self {
            parts: [(Part::Check, lines)].into(),
        }
    }
}

fn add_files(
    folder: &Path,
    prefix: &str,
    normalize: Option<&Normalize>,
    parts: &mut BTreeMap<Part, Vec<String>>,
) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        if path.is_dir() {
            add_files(&path, &format!("{name}/"), normalize, parts);
        } else {
            let content = fs::read(&path).unwrap_or_default();
            // Different bytes that are not UTF-8 nearly always differ after the conversion, too; a line end belongs to its line.
            let mut text = String::from_utf8_lossy(&content).into_owned();
            if let Some(normalize) = normalize {
                text = normalize(&name, text);
            }
            let lines = text.split_inclusive('\n').map(str::to_owned).collect();
            parts.insert(Part::File(name), lines);
        }
    }
}

/// The parts that differ.
pub(super) struct Difference {
    parts: Vec<PartDifference>,
}

/// The kind of difference of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Order,
    Extra,
    Missing,
    /// As many rows, with other values.
    Values,
}

struct PartDifference {
    part: Part,
    expected: usize,
    found: usize,
    /// Rows that are there too often, with the number of additional times.
    surplus: Vec<(String, usize)>,
    missing: Vec<(String, usize)>,
}

impl Difference {
    pub(super) fn between(expected: &Snapshot, found: &Snapshot) -> Option<Self> {
        let names = expected.parts.keys().chain(found.parts.keys());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names.dedup();
        let none = Vec::new();
        let parts = names.into_iter().filter_map(|part| {
            let expected = expected.parts.get(part).unwrap_or(&none);
            let found = found.parts.get(part).unwrap_or(&none);
            (expected != found).then(|| PartDifference {
                part: part.clone(),
                expected: expected.len(),
                found: found.len(),
                surplus: more(found, expected),
                missing: more(expected, found),
            })
        });
        let parts: Vec<_> = parts.collect();
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// Returns the first part that differs, and how.
    pub(super) fn first(&self) -> Option<(&Part, Kind)> {
        let part = self.parts.first()?;
        let kind = match (part.surplus.is_empty(), part.missing.is_empty()) {
            (true, true) => Kind::Order,
            (false, true) => Kind::Extra,
            (true, false) => Kind::Missing,
            (false, false) if part.found == part.expected => Kind::Values,
            (false, false) => Kind::Extra,
        };
        Some((&part.part, kind))
    }
}

/// Returns the rows that are in `found` more often than in `than`, with the number of additional times.
fn more(found: &[String], than: &[String]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, isize> = BTreeMap::new();
    found.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    than.iter().for_each(|row| *counts.entry(row).or_default() -= 1);
    let surplus = counts.into_iter().filter(|(_, count)| *count > 0);
    surplus
        .map(|(row, count)| (row.to_owned(), count.unsigned_abs()))
        .collect()
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            let what = match part.part {
                Part::Table(_) => "row",
                _ => "line",
            };
            writeln!(
                f,
                "{}: {}, expected {}",
                part.part,
                counted(part.found, what),
                part.expected
            )?;
            if part.surplus.is_empty() && part.missing.is_empty() {
                writeln!(f, "  the same {what}s in another order")?;
            }
            for (how, rows) in [("extra", &part.surplus), ("missing", &part.missing)] {
                let count: usize = rows.iter().map(|(_, count)| count).sum();
                if count > 0 {
                    let such_as = if SHOWN < rows.len() { ", such as" } else { ":" };
                    writeln!(f, "  {}{such_as}", counted(count, &format!("{how} {what}")))?;
                }
                for (row, _) in rows.iter().take(SHOWN) {
                    writeln!(f, "    {}", shown(row.trim_end_matches('\n')))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns a row with escaped control characters, such as the zeros of a file that was extended.
fn shown(row: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    row.chars().map(escaped).collect()
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
