//! A sheet in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use calamine::{Reader, Xlsx, XlsxError, open_workbook_from_rs};

use super::text::text;
use crate::nearest::did_you_mean;

/// The rows of a sheet that have values, as text.
pub(super) struct Sheet {
    pub(super) name: String,
    /// The cells by the number of their row, from 1, and the index of their column.
    pub(super) rows: BTreeMap<u64, BTreeMap<u32, String>>,
}

impl Sheet {
    /// Reads the sheet with a name or number, by default the first one. Only cells with values take memory.
    pub(super) fn read(file: File, wanted: &str) -> Result<Self, String> {
        let failed = |error: XlsxError| error.to_string();
        let mut workbook: Xlsx<_> = open_workbook_from_rs(BufReader::new(file))
            .map_err(|error: XlsxError| format!("it is not a valid XLSX file: {error}"))?;
        let name = select(&workbook.sheet_names(), wanted)?;
        let mut rows: BTreeMap<u64, BTreeMap<u32, String>> = BTreeMap::new();
        let mut cells = workbook.worksheet_cells_reader(&name).map_err(failed)?;
        while let Some(cell) = cells.next_cell().map_err(failed)? {
            let (row, column) = cell.get_position();
            if let Some(text) = text(cell.get_value().clone()) {
                rows.entry(u64::from(row) + 1).or_default().insert(column, text);
            }
        }
        Ok(Self { name, rows })
    }
}

fn select(names: &[String], wanted: &str) -> Result<String, String> {
    let number = match wanted {
        "" => Some(1),
        _ => wanted.parse::<usize>().ok(),
    };
    let by_number = || names.get(number?.checked_sub(1)?);
    let found = names.iter().find(|name| *name == wanted).or_else(by_number);
    found.cloned().ok_or_else(|| {
        let hint = did_you_mean(wanted, names.iter().map(String::as_str));
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        format!("it has no sheet `{wanted}`, but {}{hint}", names.join(", "))
    })
}

/// Returns the letters of a column: `A` for 0, `AA` for 26.
pub(super) fn letters(column: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = Some(column);
    while let Some(index) = rest {
        letters.push(char::from(b'A' + (index % 26) as u8));
        rest = (index / 26).checked_sub(1);
    }
    letters.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_letters() {
        let columns = [0, 25, 26, 51, 52, 701, 702, 16383];
        assert_eq!(
            columns.map(letters),
            ["A", "Z", "AA", "AZ", "BA", "ZZ", "AAA", "XFD"]
        );
    }

    #[test]
    fn sheets_have_names_and_numbers() {
        let names = ["Orders".to_owned(), "1".to_owned()];
        let select = |wanted| select(&names, wanted);
        assert_eq!(select(""), Ok("Orders".to_owned()));
        assert_eq!(select("1"), Ok("1".to_owned()), "a name comes first");
        assert_eq!(select("2"), Ok("1".to_owned()));
        assert_eq!(
            select("orders"),
            Err("it has no sheet `orders`, but `Orders`, `1`; did you mean `Orders`?".to_owned())
        );
        assert_eq!(
            select("0"),
            Err("it has no sheet `0`, but `Orders`, `1`; did you mean `1`?".to_owned())
        );
    }
}
