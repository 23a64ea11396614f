//! What pages cite exists: the tests that prove the comparison, and the messages of the troubleshooting page.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::root;

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the cells of the rows of a table whose first cell is a number.
fn numbered_rows(page: &str) -> Vec<Vec<&str>> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    rows.map(|row| row.trim_end_matches('|').split('|').map(str::trim).collect())
        .filter(|cells: &Vec<&str>| cells[0].parse::<u32>().is_ok())
        .collect()
}

/// The tests that the comparison cites exist, and each row has a proof, or this runtime has nothing to prove.
#[test]
fn each_row_of_the_comparison_has_its_proof() {
    let page = read("docs/comparison.md");
    let mut proofs: BTreeMap<&str, usize> = BTreeMap::new();
    let mut row = "";
    for line in page.lines() {
        match line.split_once(". ") {
            Some((number, _)) if number.parse::<u32>().is_ok() => row = number,
            _ if line.is_empty() => row = "",
            _ => {}
        }
        for (name, rest) in line
            .match_indices("[`")
            .filter_map(|(at, _)| line[at + 2..].split_once("`](../"))
        {
            let file = rest.split(')').next().unwrap();
            assert!(
                read(file).contains(&format!("fn {name}(")),
                "{file} has no test `{name}`"
            );
            *proofs.entry(row).or_default() += 1;
        }
    }
    let rows = numbered_rows(&page);
    assert_eq!(rows.len(), 34);
    for cells in &rows {
        let (number, ours) = (cells[0], cells[2]);
        // Both are proven by the benchmark.
        let is_measured = ["33", "34"].contains(&number);
        assert!(
            ours == "-" || is_measured || proofs.contains_key(number),
            "row {number}: {proofs:?}"
        );
    }
}

/// A cell about another framework is a dash, links its source, or follows from the figures of the benchmark.
#[test]
fn each_cell_about_another_framework_has_its_source() {
    let page = read("docs/comparison.md");
    for cells in numbered_rows(&page) {
        for cell in &cells[3..8] {
            let is_measured = ["33", "34"].contains(&cells[0]);
            let says_nothing = cell.is_empty() || cell.starts_with('-');
            assert!(
                is_measured || says_nothing || cell.contains("]["),
                "row {}: {cell}",
                cells[0]
            );
        }
    }
    for (_, rest) in page.match_indices("][").map(|(at, _)| page.split_at(at + 2)) {
        let label = rest.split(']').next().unwrap();
        assert!(page.contains(&format!("\n[{label}]: https://")), "[{label}]");
    }
}

/// Appends the Rust files below a folder, without their line breaks in strings, and without quotes.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = fs::read_to_string(&path).unwrap();
            let mut lines = file.lines();
            while let Some(line) = lines.next() {
                let mut joined = line.to_owned();
                while joined.ends_with('\\') {
                    joined.pop();
                    joined.push_str(lines.next().unwrap_or_default().trim_start());
                }
                text.push_str(&joined.replace('`', ""));
                text.push('\n');
            }
        }
    }
}

/// Returns the messages in a heading: what is between backticks.
fn messages(heading: &str) -> Vec<&str> {
    heading.split('`').skip(1).step_by(2).collect()
}

/// Each message of the troubleshooting page is one of the sources, and they are in alphabetical order.
#[test]
fn the_messages_of_the_troubleshooting_page_are_those_of_the_sources() {
    let mut text = String::new();
    for entry in fs::read_dir(root()).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        if name.starts_with("batch-") && folder.join("src").is_dir() {
            sources(&folder.join("src"), &mut text);
        }
    }
    let page = read("docs/guide/troubleshooting.md");
    let (own, foreign) = page.split_once("## Messages of databases").unwrap();
    let (of_programs, of_check) = own.split_once("## Codes of `check`").unwrap();
    for part in [of_programs, of_check] {
        let headings = part.lines().filter_map(|line| line.strip_prefix("### "));
        let headings: Vec<Vec<&str>> = headings.map(messages).collect();
        assert!(headings.len() > 10, "{headings:?}");
        for message in headings.iter().flatten() {
            for words in message.split(" .. ") {
                assert!(text.contains(words), "no source has {words:?} of {message:?}");
            }
        }
        let first: Vec<String> = headings
            .iter()
            .map(|messages| sorted_by(&messages.join(" ")))
            .collect();
        let misplaced = first.windows(2).find(|pair| pair[0] > pair[1]);
        assert_eq!(misplaced, None, "not in alphabetical order");
    }
    assert!(foreign.contains("### "), "the part about databases is empty");
}

/// Returns the words of a message without signs, in lower case.
fn sorted_by(message: &str) -> String {
    let words = message.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ").to_lowercase()
}
