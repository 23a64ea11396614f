//! What pages cite exists: the tests that prove the comparison.

use std::collections::BTreeMap;
use std::fs;

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
        for cell in &cells[3..7] {
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
