//! Amounts of money: whole cents, so that sums are exact.

/// Reads an amount such as `12.50`, `8` or `-5.00`, in cents; `None` if it is none.
pub fn cents(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "00"));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(part) || part.len() != 2 {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let part: i64 = part.parse().ok()?;
    whole.checked_mul(100)?.checked_add(part)?.checked_mul(sign)
}

/// Writes cents as people do: `12.50`.
pub fn text(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    let cents = cents.unsigned_abs();
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        for amount in ["0.00", "12.50", "-5.00", "-0.07", "1480.00"] {
            assert_eq!(cents(amount).map(text).as_deref(), Some(amount));
        }
        assert_eq!(cents("8"), Some(800));
        for wrong in [
            "",
            "-",
            "twelve",
            "1.5",
            "1.234",
            "+1.00",
            "--1.00",
            "1,50",
            "99999999999999999999.00",
        ] {
            assert_eq!(cents(wrong), None, "{wrong}");
        }
    }
}
