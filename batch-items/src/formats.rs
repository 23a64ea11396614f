//! Numbers and dates as files write them, for `#[serde(with = "..")]`: each module reads a field, and writes
//! it without points between thousands, and an amount with two digits.
//!
//! | | reads | as |
//! |---|---|---|
//! | [`decimal_comma`] | `1.234,56`, `-12,5` | any type with `FromStr` and `Display`, such as `rust_decimal::Decimal` |
//! | [`cents`] | `1234.56`, `12` | an `i64`, which counts hundredths |
//! | [`cents_comma`] | `1.234,56`, `12` | the same |
//! | [`date_format!`](crate::date_format) | a date in a pattern, with or without a time | any type with `FromStr` and `Display` in the form of ISO 8601: `jiff::civil::Date`, `chrono::NaiveDate`, `String` |
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

use crate::record::decimal;

/// Defines the functions of a format. `$read` returns the text that a value parses from, `$write` the text of a field from the text of a value, and
/// `$holds` whether the text of the value has all of the text that it was parsed from.
#[doc(hidden)]
#[macro_export]
macro_rules! field_format {
    ($read:expr, $write:expr, $holds:expr) => {
        use ::core::fmt::Display;
        use ::core::result::Result;
        use ::core::str::FromStr;

        /// Reads the value of a field.
        ///
        /// # Errors
        /// If the text has another form.
        pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
        where
            T: FromStr<Err: Display> + Display,
            D: $crate::formats::Deserializer<'de>,
        {
            $crate::formats::read(deserializer, $read, $holds)
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
                T: FromStr<Err: Display> + Display,
                D: $crate::formats::Deserializer<'de>,
            {
                $crate::formats::read_optional(deserializer, $read, $holds)
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

/// Declares the format of a field with a date, with or without a time, for `#[serde(with = "..")]`, from a pattern of
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
                |text| $crate::formats::text_of_date($pattern, text),
                $crate::formats::is_same_time
            );
        }
    };
}

/// Numbers with a decimal comma, and points between thousands: `1.234,56`, `-12,5`, `8`.
pub mod decimal_comma {
    crate::field_format!(
        crate::formats::point_of_comma,
        crate::formats::comma_of_point,
        crate::formats::is_same_number
    );
}

/// Amounts with at most two digits after the point, as an integer that counts hundredths: `1234.56` is 123456.
pub mod cents {
    crate::field_format!(
        crate::formats::hundredths,
        crate::formats::amount,
        crate::formats::is_same_number
    );
}

/// Amounts with at most two digits after a decimal comma, as an integer that counts hundredths: `1.234,56` is 123456.
pub mod cents_comma {
    crate::field_format!(
        |text| {
            let expected = |_| format!("expected an amount such as `1.234,56`, not `{text}`");
            crate::formats::point_of_comma(text)
                .and_then(|amount| crate::formats::hundredths(&amount))
                .map_err(expected)
        },
        |text| crate::formats::amount(text).and_then(|amount| crate::formats::comma_of_point(&amount)),
        crate::formats::is_same_number
    );
}

#[doc(hidden)]
pub fn read<'de, T, D>(
    deserializer: D,
    read: impl Fn(&str) -> Result<String, String>,
    holds: impl Fn(&str, &str) -> bool,
) -> Result<T, D::Error>
where
    T: FromStr<Err: Display> + Display,
    D: Deserializer<'de>,
{
    let text = String::deserialize(deserializer)?;
    value_of(&text, read, holds).map_err(de::Error::custom)
}

#[doc(hidden)]
pub fn read_optional<'de, T, D>(
    deserializer: D,
    read: impl Fn(&str) -> Result<String, String>,
    holds: impl Fn(&str, &str) -> bool,
) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display> + Display,
    D: Deserializer<'de>,
{
    let text = Option::<String>::deserialize(deserializer)?;
    let text = text.filter(|text| !text.is_empty());
    text.map(|text| value_of(&text, read, holds).map_err(de::Error::custom))
        .transpose()
}

fn value_of<T: FromStr<Err: Display> + Display>(
    text: &str,
    read: impl Fn(&str) -> Result<String, String>,
    holds: impl Fn(&str, &str) -> bool,
) -> Result<T, String> {
    let parsed = read(text)?;
    let value: T = parsed
        .parse()
        .map_err(|error| format!("`{text}` cannot be read as `{parsed}`: {error}"))?;
    match holds(&parsed, &value.to_string()) {
        true => Ok(value),
        false => Err(format!(
            "the type of the field does not hold `{text}`: it would become `{value}`"
        )),
    }
}

/// Returns whether two texts are equal, or the same number. A float may have rounded one.
#[doc(hidden)]
pub fn is_same_number(parsed: &str, shown: &str) -> bool {
    parsed == shown
        || decimal::canonical(parsed).is_some_and(|number| decimal::canonical(shown) == Some(number))
}

/// Returns whether two texts are equal, or the same date and time. A type without a time may have dropped one.
#[doc(hidden)]
pub fn is_same_time(parsed: &str, shown: &str) -> bool {
    parsed == shown || matches!((time_of(parsed), time_of(shown)), (Ok(parsed), Ok(shown)) if parsed == shown)
}

/// Returns the time of a text in the form of ISO 8601, which has no offset.
fn time_of(iso: &str) -> Result<civil::DateTime, String> {
    let not_iso = |cause: &dyn Display| {
        format!("`{iso}` is not a date or time without offset in the form of ISO 8601{cause}")
    };
    let time = iso.split_once(['T', 't', ' ']).map_or("", |(_, time)| time);
    if time.contains(['+', '-', '[', 'Z', 'z']) {
        return Err(not_iso(&""));
    }
    iso.parse().map_err(|error| not_iso(&format_args!(": {error}")))
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
pub(crate) fn point_of_comma(text: &str) -> Result<String, String> {
    let wrong = || format!("expected a number such as `1.234,56`, not `{text}`");
    let (sign, unsigned) = split_sign(text);
    let (whole, fraction) = match unsigned.split_once(',') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let mut groups = whole.split('.');
    let first = groups.next().unwrap_or_default();
    let is_grouped = whole.contains('.');
    // `0.500` is a number with a decimal point.
    let is_valid = is_digits(first)
        && (!is_grouped || first.len() <= 3 && !first.starts_with('0'))
        && groups.all(|group| group.len() == 3 && is_digits(group))
        && fraction.is_none_or(is_digits);
    if !is_valid {
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
        false => Err(format!(
            "cannot write `{text}` with a decimal comma: expected digits only"
        )),
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
    let wrong = || match formatted(pattern, EXAMPLE) {
        Ok(example) if moment(pattern, &example).is_none() => {
            format!("the pattern `{pattern}` needs a year, a month and a day")
        }
        Ok(example) => format!("expected a date such as `{example}`, not `{text}`"),
        Err(cause) => cause,
    };
    let is_of_half_days = ["%I", "%l", "%-I"].iter().any(|hour| pattern.contains(hour));
    if is_of_half_days && !pattern.contains("%p") && !pattern.contains("%P") {
        return Err(format!(
            "the pattern `{pattern}` has hours of half a day; add `%p`, or write `%H`"
        ));
    }
    let (iso, time) = moment(pattern, text).ok_or_else(wrong)?;
    // `%Y` would take `26` for the year 26.
    match formatted(pattern, time)?.eq_ignore_ascii_case(text) {
        true => Ok(iso),
        false => Err(wrong()),
    }
}

const EXAMPLE: civil::DateTime = civil::date(2026, 12, 31).at(18, 5, 9, 0);

/// Returns the date of a text, with its time if the pattern has one: in the form of ISO 8601, and as a time.
fn moment(pattern: &str, text: &str) -> Option<(String, civil::DateTime)> {
    let parsed = BrokenDownTime::parse(pattern, text).ok()?;
    if parsed.hour().is_some() {
        let time = parsed.to_datetime().ok()?;
        return Some((time.to_string(), time));
    }
    let date = parsed.to_date().ok()?;
    Some((date.to_string(), date.into()))
}

#[doc(hidden)]
pub fn text_of_date(pattern: &str, iso: &str) -> Result<String, String> {
    let time = time_of(iso)?;
    let text = formatted(pattern, time)?;
    match date_of(pattern, &text) {
        Ok(again) if again.parse().ok() == Some(time) => Ok(text),
        _ => Err(format!("the pattern `{pattern}` would lose a part of `{iso}`")),
    }
}

/// Checks that dates can be read by a pattern.
pub(crate) fn check_pattern(pattern: &str) -> Result<(), String> {
    let example = formatted(pattern, EXAMPLE)?;
    date_of(pattern, &example).map(drop)
}

/// Returns a date, or a part of it, by a pattern.
pub(crate) fn part_of_date(pattern: &str, iso: &str) -> Result<String, String> {
    formatted(pattern, time_of(iso)?)
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
                "", "-", ",5", "5,", "1,2,3", "0.500", "012.345", "12.5", "1.2345", "1234.567", "1..234",
                "1 234", "1e3", "--1", "٣",
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
        check(
            written,
            &[],
            &["2026-12-31T00:00:00+02:00", "2026-12-31T00:00:00Z"],
        );
        let error = date_of("%H:%M", "18:05").unwrap_err();
        assert_eq!(error, "the pattern `%H:%M` needs a year, a month and a day");
        let error = date_of("%d.%Q", "31.12").unwrap_err();
        assert!(error.starts_with("the pattern `%d.%Q` is not valid: "), "{error}");
        let error = german("31.12.26").unwrap_err();
        assert_eq!(error, "expected a date such as `31.12.2026`, not `31.12.26`");
    }

    #[test]
    fn a_type_that_does_not_hold_the_value_is_an_error() {
        let float = |text: &str| value_of::<f64>(text, point_of_comma, is_same_number);
        assert_eq!(float("0,1"), Ok(0.1));
        for text in ["9007199254740993", &"9".repeat(400)] {
            assert!(float(text).unwrap_err().contains("does not hold"), "{text}");
        }
        let american = |text: &str| date_of("%m/%d/%Y %H:%M", text);
        let date = value_of::<civil::Date>("12/31/2026 18:05", american, is_same_time);
        assert!(date.unwrap_err().ends_with("it would become `2026-12-31`"));
        let time = value_of::<civil::DateTime>("12/31/2026 18:05", american, is_same_time);
        assert_eq!(time, Ok(civil::date(2026, 12, 31).at(18, 5, 0, 0)));
    }
}
