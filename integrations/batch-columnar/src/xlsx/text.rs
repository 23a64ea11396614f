//! The values of cells as text.

use calamine::{DataRef, ExcelDateTime};

/// Returns the value of a cell; nothing if it has none.
pub(super) fn text(value: DataRef<'_>) -> Option<String> {
    match value {
        DataRef::Empty => None,
        DataRef::Int(number) => Some(number.to_string()),
        DataRef::Float(number) => Some(number.to_string()),
        DataRef::String(text) | DataRef::DateTimeIso(text) | DataRef::DurationIso(text) => Some(text),
        DataRef::SharedString(text) => Some(text.to_owned()),
        DataRef::Bool(value) => Some(value.to_string()),
        DataRef::DateTime(time) => Some(iso_8601(&time)),
        DataRef::Error(error) => Some(error.to_string()),
    }
    .filter(|text| !text.is_empty())
}

/// Returns a date, a time, both, or a duration. Excel has one number for all of them: days, with the time of day as a fraction.
fn iso_8601(time: &ExcelDateTime) -> String {
    let days = time.as_f64();
    if time.is_duration() {
        let milliseconds = (days.abs() * 86_400_000.0).round() as u64;
        let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let sign = if days < 0.0 { "-" } else { "" };
        return format!("{sign}PT{hours}H{minutes}M{}{}S", seconds % 60, fraction(rest));
    }
    // Excel has no dates before 1900, nor after 9999.
    if !(0.0..2_958_466.0).contains(&days) {
        return days.to_string();
    }
    let (year, month, day, hour, minute, second, rest) = time.to_ymd_hms_milli();
    let date = format!("{year:04}-{month:02}-{day:02}");
    let clock = format!("{hour:02}:{minute:02}:{second:02}{}", fraction(rest.into()));
    if (0.0..1.0).contains(&days) {
        clock
    } else if days.fract() == 0.0 {
        date
    } else {
        format!("{date}T{clock}")
    }
}

fn fraction(milliseconds: u64) -> String {
    match milliseconds {
        0 => String::new(),
        some => format!(".{some:03}"),
    }
}

#[cfg(test)]
mod tests {
    use calamine::{CellErrorType, ExcelDateTimeType};

    use super::*;

    #[test]
    fn values_have_the_text_that_rust_types_parse() {
        let shown = |value| text(value).unwrap_or_default();
        assert_eq!(shown(DataRef::Float(5.0)), "5");
        assert_eq!(shown(DataRef::Float(-0.125)), "-0.125");
        assert_eq!(shown(DataRef::Float(1e21)), "1000000000000000000000");
        assert_eq!(shown(DataRef::Float(1e-7)), "0.0000001");
        assert_eq!(shown(DataRef::Int(-7)), "-7");
        assert_eq!(shown(DataRef::Bool(true)), "true");
        assert_eq!(shown(DataRef::SharedString("007")), "007");
        assert_eq!(shown(DataRef::Error(CellErrorType::NA)), "#N/A");
        assert_eq!(text(DataRef::String(String::new())), None);
    }

    #[test]
    fn dates_and_times_are_iso_8601() {
        let shown = |days, kind, is_1904| iso_8601(&ExcelDateTime::new(days, kind, is_1904));
        let date = |days| shown(days, ExcelDateTimeType::DateTime, false);
        assert_eq!(date(45351.0), "2024-02-29");
        assert_eq!(date(45351.520833333336), "2024-02-29T12:30:00");
        assert_eq!(date(45943.541), "2025-10-13T12:59:02.400");
        assert_eq!(date(0.75), "18:00:00");
        assert_eq!(date(2_958_465.0), "9999-12-31");
        assert_eq!([date(-0.5), date(2_958_466.0)], ["-0.5", "2958466"]);
        assert_eq!(shown(43889.0, ExcelDateTimeType::DateTime, true), "2024-02-29");
        let duration = |days| shown(days, ExcelDateTimeType::TimeDelta, false);
        assert_eq!(duration(1.5), "PT36H0M0S");
        assert_eq!(duration(0.0000174), "PT0H0M1.503S");
        assert_eq!(duration(-0.25), "-PT6H0M0S");
    }
}
