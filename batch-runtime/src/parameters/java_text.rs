//! Values as the classes of Java show them, by `toString`.

use crate::clock::{Timestamp, civil};
use crate::time_zone::TimeZone;

/// Formats like `Double.toString`: plain between 10^-3 and 10^7 with at least one fraction digit, else with an exponent.
pub(super) fn java_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let magnitude = number.abs();
    if number == 0.0 || (1e-3..1e7).contains(&magnitude) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    // At least two digits, the nearest ones: 4.9E-324, although 5E-324 would identify the number too.
    let shortest = format!("{number:e}");
    let scientific = match shortest.split_once('e') {
        Some((digits, _)) if !digits.contains('.') => format!("{number:.1e}"),
        _ => shortest,
    };
    scientific.replace('e', "E")
}

/// Java 18 and before write some numbers of these sizes with other digits than later versions: 8E23 is `7.999999999999999E23`. The differences
/// that were found, in 12 million numbers, are between 2^54 and 2^86, and below the least normal number.
const OTHER_DIGITS: std::ops::Range<f64> = 9e15..1e28;

/// Returns whether every version of Java formats a number as [`java_double`] does.
pub(super) fn is_certain_double(number: f64) -> bool {
    let magnitude = number.abs();
    !OTHER_DIGITS.contains(&magnitude) && !number.is_subnormal()
}

/// From here on, Java and the database of time zones use the same abbreviations: 2010-01-01.
const SAME_NAMES: i64 = 1_262_304_000_000;
/// The first day of Java's Gregorian calendar, 1582-10-15.
const GREGORIAN: i64 = -12_219_292_800_000;
/// The zones that Java calls by other names.
const OTHER_NAMES: [&str; 5] = [
    "Africa/Windhoek",
    "America/Adak",
    "America/Atka",
    "US/Aleutian",
    "Pacific/Johnston",
];

/// Formats like `java.util.Date.toString` in a time zone, as in `Mon Jan 01 01:00:00 CET 2024`; `None` if Java's text for the zone is not
/// certain.
pub(super) fn java_date(time: Timestamp, zone: &TimeZone) -> Option<String> {
    let (shown, abbreviation) = zone.shown(time)?;
    let certain_since = match &*abbreviation {
        "UTC" => GREGORIAN,
        _ => SAME_NAMES,
    };
    let is_name = abbreviation.bytes().all(|byte| byte.is_ascii_uppercase());
    // Java calls a zone by its last names, also before it had them.
    let is_same = is_name && zone.has_same_names_since(Timestamp(SAME_NAMES));
    if time.0 < certain_since || !is_same || OTHER_NAMES.contains(&&*zone.to_string()) {
        return None;
    }
    Some(format!(
        "{} {abbreviation} {:04}",
        shown.strftime("%a %b %d %H:%M:%S"),
        shown.year()
    ))
}

/// Formats like `Instant.toString`, as Spring Batch stores dates: the milliseconds only if there are any.
pub(super) fn java_instant(time: Timestamp) -> String {
    let text = time.to_string();
    match text.strip_suffix(".000Z") {
        Some(seconds) => format!("{seconds}Z"),
        None => text,
    }
}

/// Returns the text of a value in the identity, from the text that Spring Batch stores; `None` if it is not certain.
pub(super) fn shown(class: &str, stored: &str) -> Option<String> {
    let is_certain = match class.strip_prefix("java.")? {
        "lang.Byte" => is_integer(stored) && stored.parse::<i8>().is_ok(),
        "lang.Short" => is_integer(stored) && stored.parse::<i16>().is_ok(),
        "lang.Integer" => is_integer(stored) && stored.parse::<i32>().is_ok(),
        "math.BigInteger" => is_integer(stored),
        "math.BigDecimal" => is_plain_decimal(stored),
        "lang.Boolean" => matches!(stored, "true" | "false"),
        "util.UUID" => is_uuid(stored),
        "time.LocalDate" => {
            let date = stored.parse::<civil::Date>();
            date.is_ok_and(|date| date.to_string() == stored)
        }
        "time.LocalTime" => return time(stored),
        "time.LocalDateTime" => {
            let (date, time_of_day) = stored.split_once('T')?;
            let date = shown("java.time.LocalDate", date)?;
            return Some(format!("{date}T{}", time(time_of_day)?));
        }
        _ => false,
    };
    is_certain.then(|| stored.to_owned())
}

/// Returns whether Spring Batch reads a text as a value of a class; true if that is not known.
pub(super) fn is_readable(class: &str, stored: &str) -> bool {
    let number: String = stored
        .chars()
        .filter(|character| !character.is_whitespace())
        .collect();
    let unsigned = number.strip_prefix(['+', '-']).unwrap_or(&number);
    let is_in = |least: i64, most: i64| {
        let value = java_integer(&number);
        value.is_some_and(|value| (i128::from(least)..=i128::from(most)).contains(&value))
    };
    match class.strip_prefix("java.").unwrap_or_default() {
        "lang.Byte" => is_in(i8::MIN.into(), i8::MAX.into()),
        "lang.Short" => is_in(i16::MIN.into(), i16::MAX.into()),
        "lang.Integer" => is_in(i32::MIN.into(), i32::MAX.into()),
        "lang.Long" => is_in(i64::MIN, i64::MAX),
        "math.BigInteger" => {
            let is_decimal = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
            is_decimal || java_integer(&number).is_some()
        }
        "lang.Double" | "math.BigDecimal" => {
            let is_decimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
            number.parse::<f64>().is_ok() && number.bytes().all(is_decimal)
        }
        "lang.Boolean" => {
            let known = ["true", "on", "yes", "1", "false", "off", "no", "0"];
            known
                .iter()
                .any(|known| known.eq_ignore_ascii_case(stored.trim()))
        }
        "util.UUID" => {
            let groups = || stored.trim().split('-');
            let is_group =
                |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_hexdigit());
            groups().count() == 5 && groups().all(is_group)
        }
        "util.Date" => stored.contains('T') && stored.ends_with('Z') && stored.parse::<Timestamp>().is_ok(),
        "time.LocalDate" | "time.LocalDateTime" if stored.starts_with(['+', '-']) => {
            is_of_a_far_year(class, stored)
        }
        "time.LocalDate" | "time.LocalTime" | "time.LocalDateTime" => shown(class, stored).is_some(),
        // Its repository has no converters for them, although its command line has some.
        "time.ZonedDateTime"
        | "time.OffsetDateTime"
        | "time.OffsetTime"
        | "time.Instant"
        | "time.Year"
        | "time.YearMonth"
        | "time.MonthDay"
        | "time.Duration"
        | "time.Period" => false,
        _ => true,
    }
}

/// Parses an integer as Spring does: decimal, or hexadecimal after `0x`, `0X` or `#`.
fn java_integer(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let mut starts = ["0x", "0X", "#"].iter();
    match starts.find_map(|start| digits.strip_prefix(start)) {
        Some(hex) if hex.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            i128::from_str_radix(&format!("{sign}{hex}"), 16).ok()
        }
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// Returns whether it is a day, or a time of a day, of a year with a sign. (The calendar of this runtime has no such years.)
fn is_of_a_far_year(class: &str, stored: &str) -> bool {
    let Some((year, rest)) = stored[1..].split_once('-') else {
        return false;
    };
    let least = if stored.starts_with('+') { 5 } else { 4 };
    let is_year = (least..=9).contains(&year.len()) && year.bytes().all(|byte| byte.is_ascii_digit());
    // A leap year.
    is_year && shown(class, &format!("2000-{rest}")).is_some()
}

/// Without a plus sign, leading zeros and negative zero.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (text == "0" || !digits.starts_with('0'))
}

/// With at most six fraction digits: `BigDecimal` may show more of them with an exponent.
fn is_plain_decimal(text: &str) -> bool {
    let Some((whole, fraction)) = text.split_once('.') else {
        return is_integer(text);
    };
    let has_fraction =
        (1..=6).contains(&fraction.len()) && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let is_negative_zero =
        text.starts_with('-') && text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    has_fraction && !is_negative_zero && (is_integer(whole) || whole == "-0")
}

fn is_uuid(text: &str) -> bool {
    let lengths = text.split('-').map(str::len);
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    lengths.eq([8, 4, 4, 4, 12]) && text.bytes().all(is_hex)
}

/// Formats like `LocalTime.toString`, from a text of ISO 8601: without seconds if they are zero, and with groups of three fraction digits.
fn time(stored: &str) -> Option<String> {
    let is_iso = stored
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b':' | b'.'));
    // The calendar of this runtime takes a second 60 for 59.
    let is_iso = is_iso && stored.as_bytes().get(2) == Some(&b':') && stored.get(6..8) != Some("60");
    let time: civil::Time = stored.parse().ok().filter(|_| is_iso)?;
    let mut text = format!("{:02}:{:02}", time.hour(), time.minute());
    let nanos = time.subsec_nanosecond();
    if time.second() > 0 || nanos > 0 {
        text.push_str(&format!(":{:02}", time.second()));
    }
    match nanos {
        0 => {}
        _ if nanos % 1_000_000 == 0 => text.push_str(&format!(".{:03}", nanos / 1_000_000)),
        _ if nanos % 1_000 == 0 => text.push_str(&format!(".{:06}", nanos / 1_000)),
        _ => text.push_str(&format!(".{nanos:09}")),
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_spelled_as_java_does() {
        let check = |number, text: &str| assert_eq!(java_double(number), text);
        check(-0.0, "-0.0");
        check(0.001, "0.001");
        check(9_999_999.0, "9999999.0");
        check(1e7, "1.0E7");
        check(9e-4, "9.0E-4");
        check(12_345_678.9, "1.23456789E7");
        check(f64::from_bits(1), "4.9E-324");
        check(f64::from_bits(2), "9.9E-324");
        check(-2e23, "-2.0E23");
        check(f64::MAX, "1.7976931348623157E308");
        check(f64::NAN, "NaN");
        check(f64::NEG_INFINITY, "-Infinity");
    }

    /// OpenJDK 17 prints 7.999999999999999E23, 9.007199254740992E15, 1.0E-323 and 4.9E-324.
    // Spec: REPO-89
    #[test]
    fn doubles_that_versions_of_java_spell_differently_are_known() {
        for other in [
            8e23,
            -8e23,
            9_007_199_254_740_992.0,
            9.9e27,
            f64::from_bits(2),
            f64::from_bits(1),
        ] {
            assert!(!is_certain_double(other), "{other:e}");
        }
        for same in [
            0.0,
            -0.0,
            0.1,
            1e15,
            8.9e15,
            1e28,
            f64::MAX,
            f64::MIN_POSITIVE,
            1e-300,
        ] {
            assert!(is_certain_double(same), "{same:e}");
        }
    }

    /// Texts that OpenJDK 17 prints. For a zone that Java names differently, there is no certain text.
    // Spec: REPO-89
    #[test]
    fn dates_are_spelled_as_java_does_or_not_at_all() {
        let check = |millis, zone: &str, text: Option<&str>| {
            let shown = java_date(Timestamp(millis), &zone.parse().unwrap());
            assert_eq!(shown.as_deref(), text, "{zone}");
        };
        check(1_704_067_200_123, "UTC", Some("Mon Jan 01 00:00:00 UTC 2024"));
        check(0, "UTC", Some("Thu Jan 01 00:00:00 UTC 1970"));
        check(
            1_704_067_200_123,
            "Europe/Berlin",
            Some("Mon Jan 01 01:00:00 CET 2024"),
        );
        check(
            1_720_000_000_000,
            "Europe/Berlin",
            Some("Wed Jul 03 11:46:40 CEST 2024"),
        );
        check(
            1_720_000_000_000,
            "Asia/Kolkata",
            Some("Wed Jul 03 15:16:40 IST 2024"),
        );
        check(0, "Europe/London", None);
        check(1_720_000_000_000, "America/Sao_Paulo", None);
        check(1_720_000_000_000, "+02:00", None);
        check(1_720_000_000_000, "America/Adak", None);
        // Java calls a zone by its last names, also before it had them.
        check(1_372_304_000_246, "Africa/Tripoli", None);
        check(1_720_000_000_000, "America/Cancun", None);
        check(GREGORIAN - 1, "UTC", None);
        assert_eq!(
            java_instant(Timestamp(1_704_067_200_123)),
            "2024-01-01T00:00:00.123Z"
        );
        assert_eq!(java_instant(Timestamp(1_704_067_200_000)), "2024-01-01T00:00:00Z");
    }

    // Spec: REPO-89
    #[test]
    fn values_of_java_are_shown_or_not_certain() {
        let check = |class: &str, stored: &str, text: Option<&str>| {
            assert_eq!(shown(class, stored).as_deref(), text, "{class} {stored}");
        };
        for (class, certain, uncertain) in [
            ("java.lang.Byte", "-128", "128"),
            ("java.lang.Short", "7", "40000"),
            ("java.lang.Integer", "-5", "05"),
            ("java.lang.Integer", "0", "-0"),
            ("java.lang.Integer", "2147483647", "2147483648"),
            ("java.math.BigInteger", "123456789012345678901234567890", "+1"),
            ("java.math.BigDecimal", "-0.10", "-0.00"),
            ("java.math.BigDecimal", "1.100000", "0.0000001"),
            ("java.math.BigDecimal", "100", "1E+2"),
            ("java.lang.Boolean", "true", "yes"),
            (
                "java.util.UUID",
                "123e4567-e89b-12d3-a456-426614174000",
                "123E4567-e89b-12d3-a456-426614174000",
            ),
            ("java.time.LocalDate", "2024-01-31", "2024-1-31"),
            ("java.time.LocalTime", "10:30:05", "10"),
            (
                "java.time.LocalDateTime",
                "2024-01-31T10:30:05",
                "2024-01-31 10:30:05",
            ),
        ] {
            check(class, certain, Some(certain));
            check(class, uncertain, None);
            assert!(is_readable(class, certain), "{class} {certain}");
        }
        check("java.time.LocalTime", "1030", None);
        check("java.time.LocalTime", "10:30:00", Some("10:30"));
        check("java.time.LocalTime", "10:30:00.1", Some("10:30:00.100"));
        check("java.time.LocalTime", "10:30:05.000001", Some("10:30:05.000001"));
        check(
            "java.time.LocalTime",
            "10:30:05.000000001",
            Some("10:30:05.000000001"),
        );
        check(
            "java.time.LocalDateTime",
            "2024-01-31T10:30:00",
            Some("2024-01-31T10:30"),
        );
        check("java.util.Locale", "de", None);
        check("com.example.Kind", "A", None);
    }

    // Spec: REPO-89
    #[test]
    fn values_that_java_cannot_read_are_known() {
        for (class, readable, unreadable) in [
            ("java.lang.Byte", "+5", "128"),
            ("java.lang.Byte", "-0x80", "0x1FF"),
            ("java.lang.Short", "0x7F", "1.5"),
            ("java.lang.Integer", "05", "five"),
            ("java.lang.Integer", "1 000", "0xZZ"),
            ("java.lang.Integer", "#ff", "+0x5"),
            ("java.lang.Long", "9223372036854775807", "9223372036854775808"),
            ("java.lang.Double", "-1e3", "NaN1"),
            ("java.util.Date", "2024-01-31T10:30:00Z", "tomorrow"),
            ("java.math.BigInteger", "+1", "1e3"),
            ("java.math.BigDecimal", "1E+2", "1,5"),
            ("java.lang.Boolean", "YES", "maybe"),
            ("java.util.UUID", "123E4567-e89b-12d3-a456-426614174000", "123"),
            ("java.time.LocalDate", "+12024-01-31", "tomorrow"),
            ("java.time.LocalDate", "-0044-03-15", "-tomorrow"),
            ("java.time.LocalTime", "10:30", "1030"),
            ("java.time.LocalTime", "10:30:59", "10:30:60"),
            ("java.time.LocalDateTime", "2024-01-31T10:30", "2024-01-31"),
        ] {
            assert!(is_readable(class, readable), "{class} {readable}");
            assert!(!is_readable(class, unreadable), "{class} {unreadable}");
        }
        assert!(!is_readable("java.time.ZonedDateTime", "2024-01-31T10:30:00Z"));
        assert!(!is_readable("java.time.Instant", "2024-01-31T10:30:00Z"));
        assert!(is_readable("org.example.Iban", "anything"));
    }
}
