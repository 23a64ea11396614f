//! The columns of a sheet that is written: their names, types and formats.

use std::str::FromStr;

use batch_runtime::xml::suggest::one_of;

/// Columns with types, such as `id, day date, price number(0.00)`: the property `columns`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ColumnList {
    /// The names, with a `?` where items may lack the field.
    pub(super) names: Vec<String>,
    pub(super) columns: Vec<Column>,
}

/// The type of a column, and the format of its cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Column {
    pub(super) kind: Kind,
    /// The number format of Excel; `None` for the general one.
    pub(super) format: Option<String>,
    /// The number of the format in the workbook, from 1; 0 for the general one.
    pub(super) style: usize,
}

/// The type of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Each value decides.
    #[default]
    Any,
    Text,
    Number,
    Date,
    Time,
    Timestamp,
}

impl Kind {
    const NAMED: [Self; 5] = [Self::Text, Self::Number, Self::Date, Self::Time, Self::Timestamp];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Text => "text",
            Self::Number => "number",
            Self::Date => "date",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
        }
    }

    fn default_format(self) -> Option<&'static str> {
        match self {
            Self::Any | Self::Number => None,
            Self::Text => Some("@"),
            Self::Date => Some("yyyy-mm-dd"),
            Self::Time => Some("hh:mm:ss"),
            Self::Timestamp => Some("yyyy-mm-dd hh:mm:ss"),
        }
    }

    /// Returns the width at which Excel shows the values instead of `####`; `None` if the usual one is enough.
    pub(super) fn width(self) -> Option<u32> {
        match self {
            Self::Date => Some(12),
            Self::Timestamp => Some(21),
            _ => None,
        }
    }

    /// Checks a format: a number must not be shown as a date, nor a date as a number.
    fn check(self, format: &str) -> Result<(), String> {
        /// The longest format of Excel.
        const LONGEST: usize = 255;
        if format.encode_utf16().count() > LONGEST {
            return Err(format!("it has more than {LONGEST} characters"));
        }
        if self == Self::Text {
            return Err("texts have no format".to_owned());
        }
        let plain = plain(format)?;
        let is_of_date = |c: char| "dmyhs".contains(c.to_ascii_lowercase());
        let is_number = self == Self::Number;
        let shows_value = match is_number {
            true => plain.contains(['0', '#', '?']),
            false => plain.contains(is_of_date),
        };
        if !shows_value {
            let parts = if is_number {
                "`0`, `#` or `?`"
            } else {
                "`y`, `m`, `d`, `h` or `s`"
            };
            return Err(format!("it does not show the value; expected {parts} in it"));
        }
        let is_known = |c: char| {
            if is_number {
                c.eq_ignore_ascii_case(&'e')
            } else {
                is_of_date(c)
            }
        };
        match plain.chars().find(|c| c.is_ascii_alphabetic() && !is_known(*c)) {
            Some(other) => Err(format!("`{other}` has no meaning in it; put texts in quotes")),
            None => Ok(()),
        }
    }
}

/// Returns a format without its texts, escaped characters, conditions and `AM/PM`.
fn plain(format: &str) -> Result<String, String> {
    let (mut plain, mut rest) = (String::new(), format.chars());
    while let Some(c) = rest.next() {
        match c {
            '"' if !rest.any(|c| c == '"') => return Err("a quote is not closed".to_owned()),
            '"' => {}
            '\\' | '_' | '*' if rest.next().is_none() => {
                return Err(format!("a character is missing after `{c}`"));
            }
            '\\' | '_' | '*' => {}
            '[' => {
                let (inside, after) = rest.as_str().split_once(']').ok_or("a bracket is not closed")?;
                if !inside.is_empty() && inside.chars().all(|c| "hmsHMS".contains(c)) {
                    return Err(format!("`[{inside}]` is of a duration"));
                }
                rest = after.chars();
            }
            c if c.is_control() => return Err("it has a control character".to_owned()),
            c => plain.push(c),
        }
    }
    Ok(plain.replace("AM/PM", "").replace("A/P", ""))
}

impl FromStr for ColumnList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut list, mut formats): (Self, Vec<String>) = (Self::default(), Vec::new());
        for part in split(text) {
            let (name, mut column) = column(part.trim())?;
            if let Some(format) = &column.format {
                // Excel limits the number of formats, so columns share them.
                let known = formats.iter().position(|other| other == format);
                column.style = 1 + known.unwrap_or(formats.len());
                if known.is_none() {
                    formats.push(format.clone());
                }
            }
            list.names.push(name.to_owned());
            list.columns.push(column);
        }
        Ok(list)
    }
}

/// Splits at the commas that are neither in brackets nor in quotes.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut is_quoted) = (0_usize, false);
    text.split(move |c| {
        match c {
            '"' if depth > 0 => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// Returns the name of a column and its type, which is the last word if that is a type.
fn column(part: &str) -> Result<(&str, Column), String> {
    for (at, _) in part.match_indices(char::is_whitespace) {
        let (name, last) = (part[..at].trim_end(), part[at..].trim_start());
        let typed = |kind: &Kind| Some((*kind, last.strip_prefix(kind.name())?));
        for (kind, format) in Kind::NAMED.iter().filter_map(typed) {
            let format = match format {
                "" => kind.default_format(),
                _ => match format
                    .strip_prefix('(')
                    .and_then(|format| format.strip_suffix(')'))
                {
                    Some(format) => Some(format),
                    None => continue,
                },
            };
            if let Some(format) = format.filter(|format| Some(*format) != kind.default_format()) {
                kind.check(format)
                    .map_err(|cause| format!("column `{name}`: the format `{format}`: {cause}"))?;
            }
            let column = Column {
                kind,
                format: format.map(str::to_owned),
                style: 0,
            };
            return Ok((name, column));
        }
    }
    if part.is_empty() {
        let kinds = Kind::NAMED.map(Kind::name);
        return Err(format!(
            "a column has no name; expected a name, and perhaps a type: {}",
            one_of(&kinds)
        ));
    }
    Ok((part, Column::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, Kind, Option<&str>)]) {
        let ColumnList { names, columns } = text.parse().unwrap();
        let found = names.iter().zip(&columns);
        let found: Vec<_> = found
            .map(|(name, column)| (&**name, column.kind, column.format.as_deref()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    // Spec: ITEM-VALUE-13
    #[test]
    fn columns_have_names_types_and_formats() {
        check(
            "id, note?,day date , price number(#,##0.00)",
            &[
                ("id", Kind::Any, None),
                ("note?", Kind::Any, None),
                ("day", Kind::Date, Some("yyyy-mm-dd")),
                ("price", Kind::Number, Some("#,##0.00")),
            ],
        );
        // Names may have blanks and brackets, and formats texts.
        check(
            "order date date(d. mmm yyyy), price (EUR) number(0.00 \"),\";(0.00)), date text",
            &[
                ("order date", Kind::Date, Some("d. mmm yyyy")),
                ("price (EUR)", Kind::Number, Some("0.00 \"),\";(0.00)")),
                ("date", Kind::Text, Some("@")),
            ],
        );
        check(
            "date, a dates, at time(h:mm AM/PM), seen timestamp([$-407]dd.mm.yyyy hh:mm:ss.000)",
            &[
                ("date", Kind::Any, None),
                ("a dates", Kind::Any, None),
                ("at", Kind::Time, Some("h:mm AM/PM")),
                ("seen", Kind::Timestamp, Some("[$-407]dd.mm.yyyy hh:mm:ss.000")),
            ],
        );
    }

    // Spec: ITEM-VALUE-13
    #[test]
    fn a_format_keeps_the_type_of_its_column() {
        let error = |text: &str| text.parse::<ColumnList>().unwrap_err();
        for (column, cause) in [
            (
                "number(yyyy)",
                "it does not show the value; expected `0`, `#` or `?` in it",
            ),
            ("number(0 d)", "`d` has no meaning in it; put texts in quotes"),
            ("number(0 EUR)", "`U` has no meaning in it; put texts in quotes"),
            ("number(0\")", "a quote is not closed"),
            ("number(0\\)", "a character is missing after `\\`"),
            ("number([Red)", "a bracket is not closed"),
            (
                "number()",
                "it does not show the value; expected `0`, `#` or `?` in it",
            ),
            (
                "date(0.00)",
                "it does not show the value; expected `y`, `m`, `d`, `h` or `s` in it",
            ),
            (
                "date(yyyy General)",
                "`G` has no meaning in it; put texts in quotes",
            ),
            ("time([h]:mm)", "`[h]` is of a duration"),
            ("text(@@)", "texts have no format"),
        ] {
            let format = column.split_once('(').unwrap().1.strip_suffix(')').unwrap();
            assert_eq!(
                error(&format!("id {column}")),
                format!("column `id`: the format `{format}`: {cause}")
            );
        }
        assert!(error(&format!("id number({})", "0".repeat(256))).contains("more than 255"));
        assert!(error("id,,b").starts_with("a column has no name"));
    }
}
