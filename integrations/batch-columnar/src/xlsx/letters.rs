//! The letters of columns.

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
