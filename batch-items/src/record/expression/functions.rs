//! The functions of expressions.

use std::borrow::Cow;

use jiff::civil::Date;
use jiff::{Span, Unit};
use sha2::{Digest, Sha256};

use super::json_value::{self, Scalar};
use super::number::{HalfTo, Number};
use super::term::{Called, EQUAL, Function, Operand, Scope, Term, Type};
use crate::formats;
use crate::record::field::MappingError;

macro_rules! functions {
    ($($name:ident $arguments:expr => $returns:expr;)*) => {
        /// All functions, in the order of the guide.
        pub(super) const FUNCTIONS: &[Function] = &[$(Function {
            name: stringify!($name),
            arguments: $arguments,
            returns: $returns,
            call: $name,
        }),*];
    };
}

const ANY: Option<Type> = None;
const NUMBER: Option<Type> = Some(Type::Number);
const TEXT: Option<Type> = Some(Type::Text);

functions! {
    coalesce 1..=20 => ANY;
    nullif 2..=2 => ANY;
    lower 1..=1 => TEXT;
    upper 1..=1 => TEXT;
    trim 1..=1 => TEXT;
    length 1..=1 => NUMBER;
    substring 2..=3 => TEXT;
    split_part 3..=3 => TEXT;
    replace 3..=3 => TEXT;
    lpad 2..=3 => TEXT;
    abs 1..=1 => NUMBER;
    round 1..=2 => NUMBER;
    round_half_even 1..=2 => NUMBER;
    floor 1..=1 => NUMBER;
    ceil 1..=1 => NUMBER;
    from_comma 1..=1 => NUMBER;
    to_comma 1..=1 => TEXT;
    date 2..=2 => TEXT;
    format_date 2..=2 => TEXT;
    add_days 2..=2 => TEXT;
    days_between 2..=2 => NUMBER;
    year 1..=1 => NUMBER;
    month 1..=1 => NUMBER;
    day 1..=1 => NUMBER;
    hash 1..=1 => TEXT;
    uuid 1..=1 => TEXT;
    json_value 2..=2 => ANY;
}

fn text<'r>(text: impl Into<Cow<'r, str>>) -> Called<'r> {
    Ok(Operand::Text(text.into()))
}

fn integer<'r>(value: i64) -> Called<'r> {
    Ok(Operand::Number(Number::integer(value)))
}

/// Returns the first value that is not null.
fn coalesce<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    for argument in arguments {
        let value = scope.evaluate(argument)?;
        if !value.is_null() {
            return Ok(value);
        }
    }
    Ok(Operand::Null)
}

/// Returns null if two values are equal, else the first one.
fn nullif<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let (one, other) = (scope.side(&arguments[0])?, scope.side(&arguments[1])?);
    let are_values = !one.value.is_null() && !other.value.is_null();
    match are_values && scope.compare(EQUAL, &one, &other)? {
        true => Ok(Operand::Null),
        false => Ok(one.value),
    }
}

fn lower<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    text(scope.text(&arguments[0])?.to_lowercase())
}

fn upper<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    text(scope.text(&arguments[0])?.to_uppercase())
}

fn trim<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    text(scope.text(&arguments[0])?.trim().to_owned())
}

/// Returns the number of characters.
fn length<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    integer(scope.text(&arguments[0])?.chars().count() as i64)
}

/// `substring(text, start[, length])`: characters are counted from 1.
fn substring<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let source = scope.text(&arguments[0])?;
    let start = at_least(scope, &arguments[1], 1)? - 1;
    let rest = source.chars().skip(start);
    text(match arguments.get(2) {
        Some(length) => rest.take(at_least(scope, length, 0)?).collect::<String>(),
        None => rest.collect(),
    })
}

/// `split_part(text, separator, number)`: parts are counted from 1; a missing part is null.
fn split_part<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let (source, separator) = (scope.text(&arguments[0])?, scope.text(&arguments[1])?);
    let number = at_least(scope, &arguments[2], 1)?;
    match source.split(&*separator).nth(number - 1) {
        Some(part) if !separator.is_empty() => text(part.to_owned()),
        _ => Ok(Operand::Null),
    }
}

fn replace<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let (source, from, to) = (
        scope.text(&arguments[0])?,
        scope.text(&arguments[1])?,
        scope.text(&arguments[2])?,
    );
    if from.is_empty() {
        return text(source);
    }
    let count = source.matches(&*from).count();
    let kept = source.len() - count * from.len();
    scope.check_length(kept.saturating_add(count.saturating_mul(to.len())), &arguments[0])?;
    text(source.replace(&*from, &to))
}

/// `lpad(text, length[, fill])`: a longer text is an error, not cut.
fn lpad<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    /// Longer ones are mistakes.
    const LONGEST: usize = 10_000;
    let source = scope.text(&arguments[0])?;
    let length = at_least(scope, &arguments[1], 0)?;
    let fill = match arguments.get(2) {
        Some(fill) => scope.text(fill)?,
        None => Cow::Borrowed(" "),
    };
    if length > LONGEST {
        let cause = format!("expected at most {LONGEST} characters, found {length}");
        return Err(fault(scope, &arguments[1], &cause));
    }
    let Some(missing) = length.checked_sub(source.chars().count()) else {
        let cause = format!("{source:?} does not fit into {length} characters");
        return Err(fault(scope, &arguments[0], &cause));
    };
    if missing > 0 && fill.is_empty() {
        return Err(fault(scope, &arguments[2], "the text to fill up with is empty"));
    }
    let padding: String = fill.chars().cycle().take(missing).collect();
    text(padding + &source)
}

fn abs<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    Ok(Operand::Number(scope.number(&arguments[0])?.abs()))
}

/// `round(number[, digits])`: halves away from zero.
fn round<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    rounded(scope, arguments, HalfTo::AwayFromZero)
}

/// `round_half_even(number[, digits])`
fn round_half_even<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    rounded(scope, arguments, HalfTo::Even)
}

fn rounded<'r>(scope: &Scope<'r>, arguments: &'r [Term], half: HalfTo) -> Called<'r> {
    let number = scope.number(&arguments[0])?;
    let digits = match arguments.get(1) {
        Some(digits) => scope.integer(digits)?,
        None => 0,
    };
    let rounded = i32::try_from(digits)
        .ok()
        .and_then(|digits| number.round(digits, half));
    rounded
        .map(Operand::Number)
        .ok_or_else(|| scope.too_long(&arguments[0]))
}

fn floor<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    Ok(Operand::Number(scope.number(&arguments[0])?.floor()))
}

fn ceil<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let number = scope.number(&arguments[0])?;
    Ok(Operand::Number(number.negated().floor().negated()))
}

/// Returns the number that a text has with a decimal comma: `from_comma('1.234,56')`. A number is as it is.
fn from_comma<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let value = scope.evaluate(&arguments[0])?;
    if value.is_null() {
        return Err(scope.mismatch(&arguments[0], &value, Type::Number));
    }
    let number = match value.is_number() {
        true => value.into_text(),
        false => formats::point_of_comma(&value.into_text())
            .map_err(|cause| fault(scope, &arguments[0], &cause))?
            .into(),
    };
    match Number::parse(&number) {
        Some(number) => Ok(Operand::Number(number)),
        None => Err(scope.too_long(&arguments[0])),
    }
}

/// Returns a number with a decimal comma, without points between thousands.
fn to_comma<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    text(scope.number(&arguments[0])?.to_string().replace('.', ","))
}

/// `date(text, pattern)`: the date in the form of ISO 8601.
fn date<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let (source, pattern) = (scope.text(&arguments[0])?, scope.text(&arguments[1])?);
    text(formats::date_of(&pattern, &source).map_err(|cause| fault(scope, &arguments[0], &cause))?)
}

/// `format_date(date, pattern)`, also of a part, such as `%Y-%m`.
fn format_date<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let (iso, pattern) = (scope.text(&arguments[0])?, scope.text(&arguments[1])?);
    text(formats::part_of_date(&pattern, &iso).map_err(|cause| fault(scope, &arguments[0], &cause))?)
}

fn add_days<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let (from, days) = (civil(scope, &arguments[0])?, scope.integer(&arguments[1])?);
    let sum = Span::new()
        .try_days(days)
        .and_then(|span| from.checked_add(span))
        .map_err(|error| fault(scope, &arguments[0], &error.to_string()))?;
    text(sum.to_string())
}

/// `days_between(from, to)`
fn days_between<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let (from, to) = (civil(scope, &arguments[0])?, civil(scope, &arguments[1])?);
    let span = from
        .until((Unit::Day, to))
        .map_err(|error| fault(scope, &arguments[1], &error.to_string()))?;
    integer(i64::from(span.get_days()))
}

fn year<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    integer(civil(scope, &arguments[0])?.year().into())
}

fn month<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    integer(civil(scope, &arguments[0])?.month().into())
}

fn day<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    integer(civil(scope, &arguments[0])?.day().into())
}

/// Returns the SHA-256 of a text, in hexadecimal digits.
fn hash<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let digest = Sha256::digest(scope.text(&arguments[0])?.as_bytes());
    text(
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>(),
    )
}

/// Returns a UUID of version 8 (RFC 9562) from the SHA-256 of a key: equal keys have equal UUIDs.
fn uuid<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let mut bytes = Sha256::digest(scope.text(&arguments[0])?.as_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits: String = bytes[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    text(parts.join("-"))
}

/// `json_value(json, path)`: null if there is no value at the path.
fn json_value<'r>(scope: &Scope<'r>, arguments: &'r [Term]) -> Called<'r> {
    let (json, path) = (scope.text(&arguments[0])?, scope.text(&arguments[1])?);
    let found = json_value::json_value(&json, &path);
    match found.map_err(|cause| fault(scope, &arguments[0], &cause))? {
        Scalar::Null => Ok(Operand::Null),
        Scalar::Bool(value) => Ok(Operand::Bool(value)),
        Scalar::Text(value) => text(value),
        Scalar::Number(digits) => match Number::parse(&digits) {
            Some(number) => Ok(Operand::Number(number)),
            None => Err(scope.too_long(&arguments[0])),
        },
    }
}

/// Returns a date in the form of ISO 8601. A time after it does not count.
fn civil<'r>(scope: &Scope<'r>, argument: &'r Term) -> Result<Date, MappingError> {
    let iso = scope.text(argument)?;
    iso.parse().map_err(|_| {
        fault(
            scope,
            argument,
            &format!("expected a date such as `2026-12-31`, found {iso:?}"),
        )
    })
}

fn at_least<'r>(scope: &Scope<'r>, argument: &'r Term, least: i64) -> Result<usize, MappingError> {
    let number = scope.integer(argument)?;
    usize::try_from(number)
        .ok()
        .filter(|_| number >= least)
        .ok_or_else(|| {
            fault(
                scope,
                argument,
                &format!("expected at least {least}, found {number}"),
            )
        })
}

#[cold]
fn fault(scope: &Scope<'_>, argument: &Term, cause: &str) -> MappingError {
    scope.error(format!("{}: {cause}", scope.shown(argument)))
}
