//! The layout of a record, and the values of its fields.

use std::fmt::Write as _;
use std::ops::Range;
use std::str::FromStr;

use batch_items::Value;

/// The fields of a record in their order: `account text 10, amount packed 9.2, day zoned 8`.
#[derive(Clone, Debug)]
pub(crate) struct Layout(pub(crate) Vec<FieldLayout>);

/// A field of a record.
#[derive(Clone, Debug)]
pub(crate) struct FieldLayout {
    pub(crate) name: String,
    pub(crate) bytes: Range<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Characters, without the blanks at their end.
    Text,
    /// Two digits in each byte, and the sign in the last half of the last byte: `PIC S9(7)V99 COMP-3` is `packed 9.2`.
    Packed { digits: usize, scale: usize },
    /// A digit in each byte, and the sign in the first half of the last byte: `PIC S9(8)` is `zoned 8`.
    Zoned { scale: usize },
}

impl Layout {
    /// Returns the length of a record, in bytes.
    pub(crate) fn length(&self) -> usize {
        self.0.last().map_or(0, |field| field.bytes.end)
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut fields: Vec<FieldLayout> = Vec::new();
        for field in text.split(',') {
            let start = fields.last().map_or(0, |field| field.bytes.end);
            let field = parse_field(field, start).ok_or_else(|| {
                format!(
                    "expected a field such as `amount packed 9.2`, found `{}`",
                    field.trim()
                )
            })?;
            if fields.iter().any(|other| other.name == field.name) {
                return Err(format!("there are two fields `{}`", field.name));
            }
            fields.push(field);
        }
        Ok(Self(fields))
    }
}

/// Parses `amount packed 9.2`.
fn parse_field(text: &str, start: usize) -> Option<FieldLayout> {
    let [name, kind, size] = text.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    let (digits, scale) = size.split_once('.').unwrap_or((size, "0"));
    let (digits, scale): (usize, usize) = (digits.parse().ok()?, scale.parse().ok()?);
    let (kind, length) = match kind {
        "text" if !size.contains('.') => (Kind::Text, digits),
        "packed" => (Kind::Packed { digits, scale }, digits / 2 + 1),
        "zoned" => (Kind::Zoned { scale }, digits),
        _ => return None,
    };
    let is_valid = (1..=32_767).contains(&digits) && scale <= digits;
    is_valid.then(|| FieldLayout {
        name: name.to_owned(),
        bytes: start..start + length,
        kind,
    })
}

impl FieldLayout {
    /// Returns the value of the field.
    ///
    /// # Errors
    /// If the bytes are no value: they are damaged, or the file has another layout.
    pub(crate) fn value(&self, bytes: &[u8]) -> Result<Value, String> {
        match self.kind {
            Kind::Text => text(bytes).map(Value::Text),
            Kind::Packed { digits, scale } => packed(bytes, digits, scale),
            Kind::Zoned { scale } => zoned(bytes, scale),
        }
    }
}

fn text(bytes: &[u8]) -> Result<String, String> {
    let mut text = String::new();
    for byte in bytes {
        // Below are controls, which no text has: a byte of a number, or one that no program has set.
        let character = byte
            .checked_sub(0x40)
            .map(|index| CODE_PAGE_037[usize::from(index)]);
        text.push(character.ok_or_else(|| format!("byte {byte:02X} is no character"))?);
    }
    text.truncate(text.trim_end_matches(' ').len());
    Ok(text)
}

fn packed(bytes: &[u8], digits: usize, scale: usize) -> Result<Value, String> {
    let mut halves: Vec<u8> = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]).collect();
    let sign = halves.pop().unwrap_or_default();
    // With an even number of digits, the first half byte is not used.
    if halves.len() > digits && halves.remove(0) != 0 {
        return Err(format!("it has more than {digits} digits"));
    }
    number(&halves, sign, scale)
}

fn zoned(bytes: &[u8], scale: usize) -> Result<Value, String> {
    let (last, before) = bytes.split_last().ok_or("it is empty")?;
    if let Some(byte) = before.iter().find(|byte| **byte >> 4 != 0xF) {
        return Err(format!("byte {byte:02X} is no digit"));
    }
    let digits: Vec<u8> = bytes.iter().map(|byte| byte & 0xF).collect();
    number(&digits, last >> 4, scale)
}

fn number(digits: &[u8], sign: u8, scale: usize) -> Result<Value, String> {
    let sign = match sign {
        0xB | 0xD => "-",
        0xA | 0xC | 0xE | 0xF => "",
        _ => return Err(format!("half byte {sign:X} is no sign")),
    };
    let mut text = sign.to_owned();
    for (index, digit) in digits.iter().enumerate() {
        if *digit > 9 {
            return Err(format!("half byte {digit:X} is no digit"));
        }
        if scale > 0 && index == digits.len() - scale {
            text.push_str(if index == 0 { "0." } else { "." });
        }
        write!(text, "{digit}").map_err(|error| error.to_string())?;
    }
    // Digits of a number stay as they are: a float would not have all of them.
    match text.parse() {
        Ok(number) if scale == 0 => Ok(Value::Int(number)),
        _ => Ok(Value::Decimal(without_zeros(&text))),
    }
}

/// Returns the number without zeros at its beginning.
fn without_zeros(number: &str) -> String {
    let (sign, digits) = number
        .strip_prefix('-')
        .map_or(("", number), |digits| ("-", digits));
    let rest = digits.trim_start_matches('0');
    let zero = if rest.is_empty() || rest.starts_with('.') {
        "0"
    } else {
        ""
    };
    format!("{sign}{zero}{rest}")
}

/// The characters of code page 037 (EBCDIC of the United States and others) from byte 40 on. Another code page is another table.
#[rustfmt::skip]
const CODE_PAGE_037: [char; 192] = [
    ' ', '\u{a0}', 'â', 'ä', 'à', 'á', 'ã', 'å', 'ç', 'ñ', '¢', '.', '<', '(', '+', '|',
    '&', 'é', 'ê', 'ë', 'è', 'í', 'î', 'ï', 'ì', 'ß', '!', '$', '*', ')', ';', '¬',
    '-', '/', 'Â', 'Ä', 'À', 'Á', 'Ã', 'Å', 'Ç', 'Ñ', '¦', ',', '%', '_', '>', '?',
    'ø', 'É', 'Ê', 'Ë', 'È', 'Í', 'Î', 'Ï', 'Ì', '`', ':', '#', '@', '\'', '=', '"',
    'Ø', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', '«', '»', 'ð', 'ý', 'þ', '±',
    '°', 'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 'ª', 'º', 'æ', '¸', 'Æ', '¤',
    'µ', '~', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', '¡', '¿', 'Ð', 'Ý', 'Þ', '®',
    '^', '£', '¥', '·', '©', '§', '¶', '¼', '½', '¾', '[', ']', '¯', '¨', '´', '×',
    '{', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', '\u{ad}', 'ô', 'ö', 'ò', 'ó', 'õ',
    '}', 'J', 'K', 'L', 'M', 'N', 'O', 'P', 'Q', 'R', '¹', 'û', 'ü', 'ù', 'ú', 'ÿ',
    '\\', '÷', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', '²', 'Ô', 'Ö', 'Ò', 'Ó', 'Õ',
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '³', 'Û', 'Ü', 'Ù', 'Ú', '\u{9f}',
];
