//! Values of any type, as databases send them.

use diesel::backend::Backend;
use diesel::deserialize;

use crate::record::Value;

/// A database whose values can be decoded without knowing their type.
pub(super) trait Decode: Backend {
    /// Returns whether the value is a decimal that the database would compare with a text as a float.
    fn is_decimal(_value: &Self::RawValue<'_>) -> bool {
        false
    }

    /// Returns why a key must not have the type of a value.
    fn unordered(_value: &Self::RawValue<'_>) -> Option<&'static str> {
        None
    }

    /// Decodes the value of the column `name`; `None` is null.
    fn decode(value: Option<Self::RawValue<'_>>, name: &str) -> deserialize::Result<Value>;
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use diesel::deserialize::{self, FromSql};
    use diesel::sql_types::{BigInt, Binary, Double, Text};
    use diesel::sqlite::{Sqlite, SqliteType, SqliteValue};

    use super::{Decode, Value};

    impl Decode for Sqlite {
        fn decode(value: Option<SqliteValue<'_, '_, '_>>, _name: &str) -> deserialize::Result<Value> {
            let Some(value) = value else {
                return Ok(Value::Null);
            };
            Ok(match value.value_type() {
                None => Value::Null,
                Some(SqliteType::SmallInt | SqliteType::Integer | SqliteType::Long) => {
                    Value::Int(FromSql::<BigInt, Self>::from_sql(value)?)
                }
                Some(SqliteType::Float | SqliteType::Double) => {
                    Value::Float(FromSql::<Double, Self>::from_sql(value)?)
                }
                Some(SqliteType::Text) => Value::Text(FromSql::<Text, Self>::from_sql(value)?),
                Some(SqliteType::Binary) => Value::Bytes(FromSql::<Binary, Self>::from_sql(value)?),
            })
        }
    }
}

#[cfg(feature = "mysql")]
mod mysql {
    use diesel::deserialize::{self, FromSql};
    use diesel::mysql::data_types::MysqlTime;
    use diesel::mysql::{Mysql, MysqlType, MysqlValue};
    use diesel::sql_types::{BigInt, Datetime, Double, Unsigned};

    use super::{Decode, Value};

    impl Decode for Mysql {
        fn is_decimal(value: &MysqlValue<'_>) -> bool {
            matches!(
                value.value_type(),
                MysqlType::Numeric | MysqlType::UnsignedLongLong
            )
        }

        fn unordered(value: &MysqlValue<'_>) -> Option<&'static str> {
            matches!(value.value_type(), MysqlType::Enum | MysqlType::Set).then_some(
                "the key is an ENUM or a SET, which MySQL orders by the position of a value in the type, but compares as a text; cast it in \
                 the query, such as CAST(c AS CHAR(20)) AS c",
            )
        }

        fn decode(value: Option<MysqlValue<'_>>, name: &str) -> deserialize::Result<Value> {
            let Some(value) = value else {
                return Ok(Value::Null);
            };
            Ok(match value.value_type() {
                MysqlType::UnsignedLongLong => {
                    let value: u64 = FromSql::<Unsigned<BigInt>, Self>::from_sql(value)?;
                    i64::try_from(value).map_or_else(|_| Value::Decimal(value.to_string()), Value::Int)
                }
                MysqlType::Tiny
                | MysqlType::UnsignedTiny
                | MysqlType::Short
                | MysqlType::UnsignedShort
                | MysqlType::Long
                | MysqlType::UnsignedLong
                | MysqlType::LongLong => Value::Int(FromSql::<BigInt, Self>::from_sql(value)?),
                MysqlType::Float | MysqlType::Double => {
                    Value::Float(FromSql::<Double, Self>::from_sql(value)?)
                }
                kind @ (MysqlType::Date | MysqlType::DateTime | MysqlType::Timestamp | MysqlType::Time) => {
                    let time: MysqlTime = FromSql::<Datetime, Self>::from_sql(value).map_err(|error| {
                        // A negative time, which diesel cannot decode.
                        format!(
                            "column `{name}`: {error}; convert it to a text in the query, by CAST(.. AS CHAR)"
                        )
                    })?;
                    Value::Text(shown(&time, kind))
                }
                MysqlType::Blob => Value::Bytes(value.as_bytes().to_vec()),
                MysqlType::Numeric => Value::Decimal(String::from_utf8(value.as_bytes().to_vec())?),
                MysqlType::String | MysqlType::Enum | MysqlType::Set => {
                    Value::Text(String::from_utf8(value.as_bytes().to_vec())?)
                }
                _ => {
                    return Err(format!(
                        "column `{name}` has a type that cannot be read; convert it in the query"
                    )
                    .into());
                }
            })
        }
    }

    fn shown(time: &MysqlTime, kind: MysqlType) -> String {
        let date = format!("{:04}-{:02}-{:02}", time.year, time.month, time.day);
        let fraction = match time.second_part {
            0 => String::new(),
            micros => format!(".{micros:06}"),
        };
        let clock = format!("{:02}:{:02}:{:02}{fraction}", time.hour, time.minute, time.second);
        match kind {
            MysqlType::Date => date,
            MysqlType::Time => clock,
            _ => format!("{date} {clock}"),
        }
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use diesel::deserialize::{self, FromSql};
    use diesel::pg::data_types::{PgDate, PgNumeric, PgTime, PgTimestamp};
    use diesel::pg::{Pg, PgValue};
    use diesel::sql_types::{BigInt, Bool, Date, Double, Float, Integer, Numeric, SmallInt, Time, Timestamp};

    use super::{Decode, Value};

    impl Decode for Pg {
        fn decode(value: Option<PgValue<'_>>, name: &str) -> deserialize::Result<Value> {
            let Some(value) = value else {
                return Ok(Value::Null);
            };
            // The numbers come from `pg_type`.
            Ok(match value.get_oid().get() {
                16 => Value::Bool(FromSql::<Bool, Self>::from_sql(value)?),
                20 => Value::Int(FromSql::<BigInt, Self>::from_sql(value)?),
                21 => Value::Int(<i16 as FromSql<SmallInt, Self>>::from_sql(value)?.into()),
                23 => Value::Int(<i32 as FromSql<Integer, Self>>::from_sql(value)?.into()),
                700 => {
                    let value: f32 = FromSql::<Float, Self>::from_sql(value)?;
                    Value::Float(value.to_string().parse()?)
                }
                701 => Value::Float(FromSql::<Double, Self>::from_sql(value)?),
                17 => Value::Bytes(value.as_bytes().to_vec()),
                18 | 19 | 25 | 114 | 142 | 705 | 1042 | 1043 => Value::Text(text(value.as_bytes())?),
                // The first byte of `jsonb` is its version.
                3802 => Value::Text(text(value.as_bytes().get(1..).unwrap_or_default())?),
                1082 => {
                    let PgDate(days) = FromSql::<Date, Self>::from_sql(value)?;
                    Value::Text(match days {
                        i32::MAX => "infinity".to_owned(),
                        i32::MIN => "-infinity".to_owned(),
                        _ => date(i64::from(days)),
                    })
                }
                1083 => {
                    let PgTime(micros) = FromSql::<Time, Self>::from_sql(value)?;
                    Value::Text(clock(micros))
                }
                zoned @ (1114 | 1184) => {
                    let PgTimestamp(micros) = FromSql::<Timestamp, Self>::from_sql(value)?;
                    let zone = if zoned == 1184 { "+00" } else { "" };
                    Value::Text(timestamp(micros, zone))
                }
                1700 => match FromSql::<Numeric, Self>::from_sql(value)? {
                    PgNumeric::NaN => Value::Text("NaN".to_owned()),
                    number => Value::Decimal(decimal(&number)),
                },
                2950 => Value::Text(uuid(value.as_bytes())),
                _ => {
                    let cause = format!(
                        "column `{name}` has a type that cannot be read; cast it to text in the query"
                    );
                    return Err(cause.into());
                }
            })
        }
    }

    const DAY: i64 = 86_400_000_000;

    fn text(bytes: &[u8]) -> deserialize::Result<String> {
        Ok(std::str::from_utf8(bytes)?.to_owned())
    }

    /// Returns the date so many days after 2000-01-01, by the algorithm of Howard Hinnant's `civil_from_days`.
    fn date(days: i64) -> String {
        let days = days + 730_425;
        let era = days.div_euclid(146_097);
        let of_era = days.rem_euclid(146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        if year > 0 {
            format!("{year:04}-{month:02}-{day:02}")
        } else {
            format!("{:04}-{month:02}-{day:02} BC", 1 - year)
        }
    }

    /// Returns the timestamp so many microseconds after 2000-01-01.
    fn timestamp(micros: i64, zone: &str) -> String {
        if [i64::MAX, i64::MIN].contains(&micros) {
            return if micros > 0 { "infinity" } else { "-infinity" }.to_owned();
        }
        let date = date(micros.div_euclid(DAY));
        let (date, era) = match date.strip_suffix(" BC") {
            Some(date) => (date, " BC"),
            None => (date.as_str(), ""),
        };
        format!("{date} {}{zone}{era}", clock(micros.rem_euclid(DAY)))
    }

    fn clock(micros: i64) -> String {
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let clock = format!(
            "{:02}:{:02}:{:02}",
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60
        );
        match fraction {
            0 => clock,
            fraction => format!("{clock}.{fraction:06}"),
        }
    }

    fn decimal(value: &PgNumeric) -> String {
        let (sign, weight, scale, digits) = match value {
            PgNumeric::NaN => return "NaN".to_owned(),
            PgNumeric::Positive {
                weight,
                scale,
                digits,
            } => ("", *weight, *scale, digits),
            PgNumeric::Negative {
                weight,
                scale,
                digits,
            } => ("-", *weight, *scale, digits),
        };
        let digit = |index: i32| {
            let digit = usize::try_from(index).ok().and_then(|index| digits.get(index));
            digit.copied().unwrap_or(0)
        };
        let weight = i32::from(weight);
        let mut text: String = (0..=weight.max(0))
            .map(|index| {
                let digit = if weight < 0 { 0 } else { digit(index) };
                if index == 0 {
                    digit.to_string()
                } else {
                    format!("{digit:04}")
                }
            })
            .collect();
        if scale > 0 {
            let fraction = (0..i32::from(scale).div_euclid(4) + 1)
                .map(|index| format!("{:04}", digit(weight + 1 + index)));
            let fraction: String = fraction.collect();
            text = format!("{text}.{}", &fraction[..usize::from(scale)]);
        }
        format!("{sign}{text}")
    }

    fn uuid(bytes: &[u8]) -> String {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match digits.len() {
            32 => format!(
                "{}-{}-{}-{}-{}",
                &digits[..8],
                &digits[8..12],
                &digits[12..16],
                &digits[16..20],
                &digits[20..]
            ),
            _ => digits,
        }
    }
}
