//! Numbers and dates as files write them, for `#[serde(with = "..")]`: each module reads a field, and writes it in the same form.
//!
//! | | reads | as |
//! |---|---|---|
//! | [`decimal_comma`] | `1.234,56`, `-12,5` | any type with `FromStr` and `Display`, such as `rust_decimal::Decimal` |
//! | [`cents`] | `1234.56`, `12` | an `i64`, which counts hundredths |
//! | [`cents_comma`] | `1.234,56`, `12` | the same |
//! | [`date_format!`](crate::date_format) | a date or time in a pattern | any type with `FromStr` and `Display` in the form of ISO 8601: `jiff::civil::Date`, `chrono::NaiveDate`, `String` |
//!
//! Each module has a module `optional` for a field of the type `Option`, which is `None` if the field is empty. A table has a column of integers or dates for such
//! fields, not a text: there, read them by `deserialize_with = "batch_items::formats::cents::deserialize"`, which writes them as they are.
//!
//! ```
//! use batch_items::formats::{cents_comma, decimal_comma};
//! use serde::{Deserialize, Serialize};
//!
//! batch_items::date_format!(german = "%d.%m.%Y");
//!
//! #[derive(Deserialize, Serialize)]
//! struct Line {
//!     #[serde(with = "german")]
//!     day: String,
//!     #[serde(with = "decimal_comma")]
//!     rate: f64,
//!     #[serde(with = "cents_comma::optional")]
//!     fee: Option<i64>,
//! }
//!
//! let line: Line = serde_json::from_str(r#"{"day":"31.12.2026","rate":"0,5","fee":"1.234,50"}"#)?;
//! assert_eq!((line.day.as_str(), line.rate, line.fee), ("2026-12-31", 0.5, Some(123_450)));
//! let text = serde_json::to_string(&line)?;
//! assert_eq!(text, r#"{"day":"31.12.2026","rate":"0,5","fee":"1234,50"}"#);
//! # Ok::<(), serde_json::Error>(())
//! ```
// Spec: ITEM-FORMAT-01

use std::fmt::Display;
use std::str::FromStr;

use jiff::civil;
use jiff::fmt::strtime::{self, BrokenDownTime};
use serde::{Deserialize, de, ser};
#[doc(hidden)]
pub use serde::{Deserializer, Serializer};

/// Defines the functions of a format. `$read` returns the text that a value parses from, and `$write` the text of a field from the text of a value.
#[doc(hidden)]
#[macro_export]
macro_rules! field_format {
    ($read:expr, $write:expr) => {
        use ::core::fmt::Display;
        use ::core::result::Result;
        use ::core::str::FromStr;

        /// Reads the value of a field.
        ///
        /// # Errors
        /// If the text has another form.
        pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
        where
            T: FromStr<Err: Display>,
            D: $crate::formats::Deserializer<'de>,
        {
            $crate::formats::read(deserializer, $read)
        }

        /// Writes the value of a field.
        ///
        /// # Errors
        /// If the value has no text in this form.
        pub fn serialize<T, S>(value: &T, serializer: S) -> Result<S::Ok, S::Error>
        where
            T: Display,
            S: $crate::formats::Serializer,
        {
            $crate::formats::write(value, serializer, $write)
        }

        /// For a field of the type `Option`, which is `None` if the field is empty.
        pub mod optional {
            use super::*;

            /// Reads the value of a field; `None` if it is empty.
            ///
            /// # Errors
            /// If the text has another form.
            pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
            where
                T: FromStr<Err: Display>,
                D: $crate::formats::Deserializer<'de>,
            {
                $crate::formats::read_optional(deserializer, $read)
            }

            /// Writes the value of a field; nothing for `None`.
            ///
            /// # Errors
            /// If the value has no text in this form.
            pub fn serialize<T, S>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error>
            where
                T: Display,
                S: $crate::formats::Serializer,
            {
                match value {
                    Some(value) => $crate::formats::write(value, serializer, $write),
                    None => serializer.serialize_none(),
                }
            }
        }
    };
}

/// Declares the format of a field with a date or a time, for `#[serde(with = "..")]`, from a pattern of
/// [`strftime`](https://docs.rs/jiff/latest/jiff/fmt/strtime/index.html#conversion-specifications). A date that the pattern would write in another way, such as `1.2.2026` for
/// `%d.%m.%Y`, is an error: `%-d.%-m.%Y` is its pattern. Capital letters in names do not matter.
///
/// ```
/// batch_items::date_format!(swift = "%y%m%d");
/// batch_items::date_format!(pub(crate) american = "%m/%d/%Y %H:%M");
///
/// #[derive(serde::Deserialize)]
/// struct Line {
///     #[serde(with = "swift")]
///     day: String,
///     #[serde(with = "american::optional")]
///     changed: Option<String>,
/// }
///
/// let line: Line = serde_json::from_str(r#"{"day":"261231","changed":"12/31/2026 18:05"}"#)?;
/// assert_eq!(line.day, "2026-12-31");
/// assert_eq!(line.changed.as_deref(), Some("2026-12-31T18:05:00"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[macro_export]
macro_rules! date_format {
    ($visibility:vis $name:ident = $pattern:literal) => {
        #[allow(unused_imports, dead_code, missing_docs, clippy::ref_option)]
        $visibility mod $name {
            $crate::field_format!(
                |text| $crate::formats::date_of($pattern, text),
                |text| $crate::formats::text_of_date($pattern, text)
            );
        }
    };
}

/// Numbers with a decimal comma, and points between thousands: `1.234,56`, `-12,5`, `8`.
pub mod decimal_comma {
    crate::field_format!(crate::formats::point_of_comma, crate::formats::comma_of_point);
}

/// Amounts with at most two digits after the point, as an integer that counts hundredths: `1234.56` is 123456.
pub mod cents {
    crate::field_format!(crate::formats::hundredths, crate::formats::amount);
}

/// Amounts with at most two digits after a decimal comma, as an integer that counts hundredths: `1.234,56` is 123456.
pub mod cents_comma {
    crate::field_format!(
        |text| crate::formats::hundredths(&crate::formats::point_of_comma(text)?),
        |text| { crate::formats::comma_of_point(&crate::formats::amount(text)?) }
    );
}

#[doc(hidden)]
pub fn read<'de, T, D>(deserializer: D, read: impl Fn(&str) -> Result<String, String>) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    value_of(&text, read).map_err(de::Error::custom)
}

#[doc(hidden)]
pub fn read_optional<'de, T, D>(
    deserializer: D,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    let text = text.filter(|text| !text.is_empty());
    text.map(|text| value_of(&text, read).map_err(de::Error::custom))
        .transpose()
}

fn value_of<T: FromStr<Err: Display>>(
    text: &str,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<T, String> {
    let value = read(text)?;
    value
        .parse()
        .map_err(|error| format!("`{text}` cannot be read as `{value}`: {error}"))
}

#[doc(hidden)]
pub fn write<T: Display, S: Serializer>(
    value: &T,
    serializer: S,
    write: impl Fn(&str) -> Result<String, String>,
) -> Result<S::Ok, S::Error> {
    let text = write(&value.to_string()).map_err(ser::Error::custom)?;
    serializer.serialize_str(&text)
}

/// Returns a number with a decimal point.
fn point_of_comma(text: &str) -> Result<String, String> {
    let wrong = || format!("expected a number such as `1.234,56`, not `{text}`");
    let (sign, unsigned) = split_sign(text);
    let (whole, fraction) = match unsigned.split_once(',') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let mut groups = whole.split('.');
    let first = groups.next().unwrap_or_default();
    let is_grouped = whole.contains('.');
    let is_right = is_digits(first)
        && (!is_grouped || first.len() <= 3)
        && groups.all(|group| group.len() == 3 && is_digits(group))
        && fraction.is_none_or(is_digits);
    if !is_right {
        return Err(wrong());
    }
    let fraction = fraction.map(|digits| format!(".{digits}")).unwrap_or_default();
    Ok(format!("{sign}{}{fraction}", whole.replace('.', "")))
}

/// Returns a number with a decimal comma.
fn comma_of_point(text: &str) -> Result<String, String> {
    let (_, unsigned) = split_sign(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    match is_digits(whole) && is_digits(fraction) {
        true => Ok(text.replace('.', ",")),
        false => Err(format!("`{text}` is not a number without an exponent")),
    }
}

/// Returns an amount in hundredths.
fn hundredths(text: &str) -> Result<String, String> {
    let wrong = || format!("expected an amount with at most two digits after the point, not `{text}`");
    let (sign, unsigned) = split_sign(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    if !is_digits(whole) || !is_digits(fraction) {
        return Err(wrong());
    }
    // Zeros at the end do not count.
    let digits = match fraction.len() {
        0..=2 => fraction,
        _ => fraction.trim_end_matches('0'),
    };
    if digits.len() > 2 {
        return Err(wrong());
    }
    let hundredths = format!("{whole}{digits:0<2}");
    let hundredths = hundredths.trim_start_matches('0');
    match hundredths {
        "" => Ok("0".to_owned()),
        digits => Ok(format!("{}{digits}", if sign == "-" { "-" } else { "" })),
    }
}

/// Returns the amount of hundredths.
fn amount(text: &str) -> Result<String, String> {
    let (sign, digits) = split_sign(text);
    if !is_digits(digits) {
        return Err(format!("`{text}` is not an integer, which counts hundredths"));
    }
    let digits = format!("{digits:0>3}");
    let (whole, fraction) = digits.split_at(digits.len() - 2);
    Ok(format!("{sign}{whole}.{fraction}"))
}

fn split_sign(text: &str) -> (&str, &str) {
    match text.as_bytes() {
        [b'-' | b'+', ..] => text.split_at(1),
        _ => ("", text),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[doc(hidden)]
pub fn date_of(pattern: &str, text: &str) -> Result<String, String> {
    let wrong = || match formatted(pattern, civil::date(2026, 12, 31).at(18, 5, 9, 0)) {
        Ok(example) => format!("expected a date such as `{example}`, not `{text}`"),
        Err(cause) => cause,
    };
    let parsed = BrokenDownTime::parse(pattern, text).map_err(|_| wrong())?;
    let (iso, time) = match parsed.hour() {
        Some(_) => {
            let time = parsed.to_datetime().map_err(|_| wrong())?;
            (time.to_string(), time)
        }
        None => {
            let date = parsed.to_date().map_err(|_| wrong())?;
            (date.to_string(), date.into())
        }
    };
    // `%Y` would take `26` for the year 26.
    match formatted(pattern, time)?.eq_ignore_ascii_case(text) {
        true => Ok(iso),
        false => Err(wrong()),
    }
}

#[doc(hidden)]
pub fn text_of_date(pattern: &str, iso: &str) -> Result<String, String> {
    let not_iso =
        |error: jiff::Error| format!("`{iso}` is not a date or time in the form of ISO 8601: {error}");
    let time: civil::DateTime = iso.parse().map_err(not_iso)?;
    let text = formatted(pattern, time)?;
    match date_of(pattern, &text) {
        Ok(again) if again.parse().ok() == Some(time) => Ok(text),
        _ => Err(format!("the pattern `{pattern}` does not hold `{iso}` whole")),
    }
}

fn formatted(pattern: &str, time: civil::DateTime) -> Result<String, String> {
    strtime::format(pattern, time).map_err(|error| format!("the pattern `{pattern}` is not valid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Convert = fn(&str) -> Result<String, String>;

    fn check(convert: Convert, right: &[(&str, &str)], wrong: &[&str]) {
        for (text, expected) in right {
            assert_eq!(convert(text).as_deref(), Ok(*expected), "{text}");
        }
        for text in wrong {
            assert!(convert(text).is_err(), "{text}: {:?}", convert(text));
        }
    }

    #[test]
    fn numbers_keep_their_value_or_are_rejected() {
        check(
            point_of_comma,
            &[
                ("1.234,56", "1234.56"),
                ("-12,5", "-12.5"),
                ("8", "8"),
                ("1234567,0", "1234567.0"),
                ("+0,10", "+0.10"),
            ],
            &[
                "", "-", ",5", "5,", "1,2,3", "12.5", "1.2345", "1234.567", "1..234", "1 234", "1e3", "--1",
                "٣",
            ],
        );
        check(
            hundredths,
            &[
                ("12.50", "1250"),
                ("12.5", "1250"),
                ("8", "800"),
                ("-0.07", "-7"),
                ("0.00", "0"),
                ("-0", "0"),
                ("1.500", "150"),
                ("+1", "100"),
            ],
            &["", "-", ".5", "5.", "1.005", "1,50", "1.5e2", "1.-5"],
        );
        check(
            amount,
            &[("1250", "12.50"), ("-7", "-0.07"), ("0", "0.00")],
            &["1.5", "", "-"],
        );
        check(
            comma_of_point,
            &[("-1234.5", "-1234,5"), ("8", "8")],
            &["1e30", "NaN", "inf"],
        );
    }

    #[test]
    fn dates_keep_their_value_or_are_rejected() {
        let german: Convert = |text| date_of("%d.%m.%Y", text);
        check(
            german,
            &[("31.12.2026", "2026-12-31"), ("29.02.2024", "2024-02-29")],
            &[
                "31.12.26",
                "1.2.2026",
                "29.02.2026",
                "31.12.2026 ",
                " 31.12.2026",
                "2026-12-31",
                "",
                "31.12.2026x",
                "00.01.2026",
            ],
        );
        let named: Convert = |text| date_of("%d-%b-%Y %H:%M:%S", text);
        check(
            named,
            &[("31-DEC-2026 18:05:09", "2026-12-31T18:05:09")],
            &["31-DEC-2026", "31-DEC-2026 24:00:00"],
        );
        let written: Convert = |iso| text_of_date("%d.%m.%Y", iso);
        check(
            written,
            &[("2026-12-31", "31.12.2026")],
            &["2026-12-31T18:05:09", "yesterday", ""],
        );
        let error = date_of("%d.%Q", "31.12").unwrap_err();
        assert!(error.starts_with("the pattern `%d.%Q` is not valid: "), "{error}");
        let error = german("31.12.26").unwrap_err();
        assert_eq!(error, "expected a date such as `31.12.2026`, not `31.12.26`");
    }
}
