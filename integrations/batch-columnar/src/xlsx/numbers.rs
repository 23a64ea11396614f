//! The numbers of a workbook, with all their digits.

use std::collections::HashMap;
use std::io::{self, Write};

use batch_items::record::decimal;

use super::letters::letters;

/// Up to here, a float holds every integer, and shows all of its digits.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The numbers of a workbook that a float does not hold or does not show, as the parts of its archive are written to it. The library that
/// reads the cells gives floats, without the digits, and leaves out what is not plain text in a value.
#[derive(Default)]
pub(super) struct Numbers {
    /// By the name of the cell and the bits of the float. The sheet is not known.
    digits: HashMap<(String, u64), Digits>,
    /// The first cell whose value is not plain text.
    unreadable: Option<String>,
    /// The beginning of the current markup, after its `<`.
    markup: Vec<u8>,
    is_markup: bool,
    /// Whether a cell is open.
    is_cell: bool,
    /// The name of the current cell.
    cell: String,
    /// Whether the current cell has a number.
    is_number: bool,
    /// The value of the current cell, until its end.
    value: Option<String>,
}

/// The digits of a number.
#[derive(Clone)]
pub(super) struct Digits {
    pub(super) text: String,
    /// Whether the float is the same number.
    pub(super) is_exact: bool,
}

impl Numbers {
    /// Returns the first cell whose value is not plain text.
    pub(super) fn unreadable(&self) -> Option<&str> {
        self.unreadable.as_deref()
    }

    /// Returns the digits of a number, if the float is another number, or is shown with others.
    pub(super) fn digits(&self, row: u64, column: u32, float: f64) -> Option<Digits> {
        if self.digits.is_empty() {
            return None;
        }
        let of = |cell| self.digits.get(&(cell, float.to_bits())).cloned();
        // A cell may have no name.
        of(format!("{}{row}", letters(column))).or_else(|| of(String::new()))
    }

    fn check(&mut self, text: &str) {
        let Ok(float) = text.parse::<f64>() else { return };
        let is_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let is_as_shown = is_integer && float.to_string() == text;
        let is_exact = is_as_shown || decimal::is_exactly(text, float);
        let is_shown = is_as_shown || !is_integer || float.abs() < MOST_EXACT;
        if !is_exact || !is_shown {
            let digits = Digits {
                text: text.to_owned(),
                is_exact,
            };
            self.digits.insert((self.cell.clone(), float.to_bits()), digits);
        }
    }

    fn end_markup(&mut self, markup: &[u8]) {
        let name = markup
            .split(|byte| byte.is_ascii_whitespace())
            .next()
            .unwrap_or_default();
        let (is_end, name) = match name.strip_prefix(b"/") {
            Some(name) => (true, name),
            None => (false, name),
        };
        match name.rsplit(|byte| *byte == b':').next() {
            Some(b"c") => {
                self.is_cell = !is_end && !markup.ends_with(b"/");
                self.cell = attribute(markup, b"r").unwrap_or_default().to_ascii_uppercase();
                self.is_number = attribute(markup, b"t").is_none_or(|kind| kind == "n");
            }
            Some(b"v") if !is_end => self.value = self.is_cell.then(String::new),
            Some(b"v") => {
                let value = self.value.take().unwrap_or_default();
                if self.is_number {
                    self.check(value.trim_ascii());
                }
            }
            _ if self.value.is_some() => self.reject(),
            _ => {}
        }
    }

    fn reject(&mut self) {
        self.unreadable.get_or_insert_with(|| self.cell.clone());
    }
}

/// Returns an attribute of a start tag.
fn attribute(markup: &[u8], name: &[u8]) -> Option<String> {
    let mut words = markup.split(|byte| byte.is_ascii_whitespace());
    let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix(b"="))?;
    let (quote, value) = value.split_first()?;
    let value = value.split(|byte| byte == quote).next()?;
    String::from_utf8(value.to_vec()).ok()
}

impl Write for Numbers {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// More than a number, and than the name and the attributes of a cell have.
        const LONGEST: usize = 400;
        for byte in bytes {
            match (byte, self.is_markup, &mut self.value) {
                (b'<', false, _) => self.is_markup = true,
                (b'>', true, _) => {
                    let mut markup = std::mem::take(&mut self.markup);
                    self.end_markup(&markup);
                    markup.clear();
                    (self.markup, self.is_markup) = (markup, false);
                }
                (byte, true, _) if self.markup.len() < LONGEST => self.markup.push(*byte),
                (byte, false, Some(value)) if self.is_number => {
                    value.push(char::from(*byte));
                    if *byte == b'&' || value.len() > LONGEST {
                        self.reject();
                    }
                }
                _ => {}
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
