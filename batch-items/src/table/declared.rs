//! The types of columns as databases declare them, and what they hold.

use crate::rows::{Dialect, Kind, Limit, Temporal};

/// Returns the type of the values. The server converts texts to all types that are not listed here.
pub fn postgres_kind(declared: &str) -> Kind {
    match declared {
        "boolean" => Kind::Bool,
        "smallint" | "integer" | "bigint" => Kind::Int,
        "real" | "double precision" => Kind::Float,
        "bytea" => Kind::Bytes,
        // The server would read a text of money by its locale, where the point may separate thousands.
        "money" => Kind::Decimal,
        "date" => Kind::Temporal(Temporal::Date, Dialect::Postgres),
        "time without time zone" | "time with time zone" => Kind::Temporal(Temporal::Time, Dialect::Postgres),
        "timestamp without time zone" | "timestamp with time zone" => {
            Kind::Temporal(Temporal::Timestamp, Dialect::Postgres)
        }
        _ => Kind::Text,
    }
}

/// Returns what a column holds of its values, from its type and the modifier: a cast of a text rounds, cuts and drops the rest.
pub fn postgres_limit(base: &str, modifier: i32) -> Limit {
    /// Numbers and times without a modifier.
    const NONE: i32 = -1;
    let clock = |kind| Limit::Clock {
        kind,
        fraction: usize::try_from(modifier).unwrap_or(6),
        has_zone: base.ends_with("with time zone"),
    };
    match base {
        "numeric" if modifier == NONE => Limit::None,
        // The header of 4 bytes, and the scale in 11 bits with its sign.
        "numeric" => Limit::Fraction(i64::from((((modifier - 4) & 0x7ff) ^ 0x400) - 0x400)),
        "money" => Limit::Fraction(i64::from(modifier)),
        "real" => Limit::Single,
        "time without time zone" | "time with time zone" => clock(Temporal::Time),
        "timestamp without time zone" | "timestamp with time zone" => clock(Temporal::Timestamp),
        // The modifier includes a header of 4 bytes.
        "character varying" => usize::try_from(modifier - 4).map_or(Limit::None, Limit::Characters),
        "name" => Limit::Bytes(63),
        "jsonb" => Limit::Json,
        "\"char\"" => Limit::Bytes(1),
        _ => Limit::None,
    }
}

/// Returns the type of the values. The server converts texts to dates and decimals. A DELETE would compare a key that is not a number
/// as 0.
pub fn mysql_kind(declared: &str) -> Kind {
    let declared = declared.to_ascii_lowercase();
    let name = declared.split(['(', ' ']).next().unwrap_or_default();
    match name {
        "decimal" => Kind::Decimal,
        // It may be over the largest `i64`.
        "bigint" if declared.contains("unsigned") => Kind::Decimal,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" | "bit" => Kind::Int,
        // It rounds to the digits of its type.
        "float" | "double" if declared.contains(',') => Kind::Decimal,
        "float" | "double" => Kind::Float,
        "date" => Kind::Temporal(Temporal::Date, Dialect::Mysql),
        "datetime" | "timestamp" => Kind::Temporal(Temporal::Timestamp, Dialect::Mysql),
        "time" => Kind::Temporal(Temporal::Time, Dialect::Mysql),
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => Kind::Bytes,
        _ => Kind::Text,
    }
}

/// Returns what a column holds of its values. The offset of a time is dropped.
pub fn mysql_limit(declared: &str) -> Limit {
    let declared = declared.to_ascii_lowercase();
    let name = declared.split(['(', ' ']).next().unwrap_or_default();
    // The last number of the type.
    let digits: Option<usize> = declared
        .split_once(')')
        .and_then(|(before, _)| before.rsplit(['(', ',']).next())
        .and_then(|digits| digits.parse().ok());
    let fraction = Limit::Fraction(digits.and_then(|digits| i64::try_from(digits).ok()).unwrap_or(0));
    let clock = |kind| Limit::Clock {
        kind,
        fraction: digits.unwrap_or(0),
        has_zone: false,
    };
    match name {
        "decimal" => fraction,
        "float" | "double" if declared.contains(',') => fraction,
        "bigint" if declared.contains("unsigned") => Limit::Fraction(0),
        "float" => Limit::Single,
        "datetime" | "timestamp" => clock(Temporal::Timestamp),
        "time" => clock(Temporal::Time),
        "varchar" => digits.map_or(Limit::None, Limit::Characters),
        _ => Limit::None,
    }
}

/// Returns whether PostgreSQL or MySQL adds values of a type without rounding.
pub fn is_exact_number(declared: &str) -> bool {
    let declared = declared.to_ascii_lowercase();
    matches!(
        declared.split(['(', ' ']).next(),
        Some("smallint" | "integer" | "bigint" | "numeric" | "tinyint" | "mediumint" | "int" | "decimal")
    )
}

/// Returns the type of the values: first of the types that SQLite does not have, then by its rules for the affinity of a column.
pub fn sqlite_kind(declared: &str) -> Kind {
    let declared = declared.to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| declared.contains(word));
    let temporal = |kind| Kind::Temporal(kind, Dialect::Sqlite);
    match declared.split(['(', ' ']).next().unwrap_or_default() {
        "" => Kind::Any,
        "DATE" => temporal(Temporal::Date),
        "TIME" => temporal(Temporal::Time),
        // Not an integer, as SQLite has it.
        "POINT" | "INTERVAL" => Kind::AnyNumeric,
        _ if has(&["INT"]) => Kind::Int,
        _ if has(&["DATETIME", "TIMESTAMP"]) => temporal(Temporal::Timestamp),
        _ if has(&["CHAR", "CLOB", "TEXT"]) => Kind::Text,
        _ if has(&["BLOB", "BINARY", "BYTEA"]) => Kind::Bytes,
        _ if has(&["REAL", "FLOA", "DOUB"]) => Kind::Float,
        _ if has(&["BOOL"]) => Kind::Bool,
        _ if has(&["DEC", "NUMERIC", "NUMBER"]) => Kind::ShortDecimal,
        _ => Kind::AnyNumeric,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: ITEM-VALUE-05
    #[test]
    fn limits_of_mysql_are_those_of_the_declared_types() {
        let clock = |kind, fraction| Limit::Clock {
            kind,
            fraction,
            has_zone: false,
        };
        for (declared, expected) in [
            ("decimal(10,2)", Limit::Fraction(2)),
            ("DECIMAL(65,30) unsigned zerofill", Limit::Fraction(30)),
            ("double(8,3)", Limit::Fraction(3)),
            ("bigint(20) unsigned", Limit::Fraction(0)),
            ("bigint(20)", Limit::None),
            ("float", Limit::Single),
            ("double", Limit::None),
            ("datetime", clock(Temporal::Timestamp, 0)),
            ("timestamp(6)", clock(Temporal::Timestamp, 6)),
            ("time(3)", clock(Temporal::Time, 3)),
            ("varchar(20)", Limit::Characters(20)),
            ("char(20)", Limit::None),
        ] {
            assert_eq!(mysql_limit(declared), expected, "{declared}");
        }
    }
}
