//! A sheet in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;

use batch_items::choices;
use batch_runtime::xml::suggest::did_you_mean;
use calamine::{DataRef, Reader, Xlsx, XlsxError, open_workbook_from_rs};

use super::letters::letters;
use super::text::text;
use super::unpack::Unpack;

/// The largest sheet.
pub(super) const ROWS: u32 = 1_048_576;
pub(super) const COLUMNS: u32 = 16_384;

/// What a formula without a stored result is: the property `if.no.result`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IfNoResult {
    /// `fail`: the step fails. The default.
    #[default]
    Fail,
    /// `empty`: an empty cell.
    Empty,
}

choices! {
    IfNoResult { "fail" => Fail, "empty" => Empty }
}

/// The rows of a sheet that have values, as text.
pub(super) struct Sheet {
    pub(super) name: String,
    /// The cells by the number of their row, from 1, and the index of their column.
    pub(super) rows: BTreeMap<u64, BTreeMap<u32, String>>,
    /// The cells whose numbers a float does not hold.
    pub(super) inexact: BTreeSet<(u64, u32)>,
}

impl Sheet {
    /// Reads the sheet with a name or number, by default the first one. Only cells with values take memory.
    pub(super) fn read(
        file: File,
        wanted: &str,
        unpack: &Unpack,
        no_result: IfNoResult,
    ) -> Result<Self, String> {
        let failed = |error: XlsxError| error.to_string();
        let (file, numbers) = unpack.open(file)?;
        let mut workbook: Xlsx<_> = open_workbook_from_rs(file)
            .map_err(|error: XlsxError| format!("it is not a valid XLSX file: {error}"))?;
        let name = select(&workbook.sheet_names(), wanted)?;
        let mut rows: BTreeMap<u64, BTreeMap<u32, String>> = BTreeMap::new();
        let mut inexact = BTreeSet::new();
        let mut cells = workbook.worksheet_cells_reader(&name).map_err(failed)?;
        while let Some(cell) = cells.next_cell_with_formula_metadata().map_err(failed)? {
            let (row, column) = cell.pos;
            if row >= ROWS || column >= COLUMNS {
                return Err(format!(
                    "sheet `{name}` has a cell in row {} and column {}, but a sheet has {ROWS} rows and {COLUMNS} columns",
                    u64::from(row) + 1,
                    u64::from(column) + 1
                ));
            }
            let has_no_result = cell.formula.is_some() && cell.value == DataRef::Empty;
            if has_no_result && no_result == IfNoResult::Fail {
                return Err(format!(
                    "cell {}{} of sheet `{name}` has a formula without a stored result; open the workbook in a program that computes \
                     it, and save it, or set `if.no.result` to `empty`",
                    letters(column),
                    row + 1
                ));
            }
            let number = u64::from(row) + 1;
            let digits = match cell.value {
                DataRef::Float(float) => numbers.digits(number, column, float),
                _ => None,
            };
            if digits.as_ref().is_some_and(|digits| !digits.is_exact) {
                inexact.insert((number, column));
            }
            if let Some(text) = digits.map(|digits| digits.text).or_else(|| text(cell.value)) {
                let other = rows.entry(number).or_default().insert(column, text);
                if other.is_some() {
                    let cell = letters(column);
                    return Err(format!("sheet `{name}` has two cells {cell}{number}"));
                }
            }
        }
        Ok(Self { name, rows, inexact })
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
            Err("it has no sheet `0`, but `Orders`, `1`".to_owned())
        );
    }
}
