//! The values of TIMESTAMP and DATETIME columns.

use diesel::deserialize::{self, FromSql, FromSqlRow};
use diesel::expression::AsExpression;
use diesel::serialize::{self, Output, ToSql};

/// A wall-clock time in the zone of the repository, as milliseconds since 1970-01-01T00:00:00.
///
/// SQLite stores the number itself, as Spring Batch's driver does; the other databases store date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, AsExpression, FromSqlRow)]
#[cfg_attr(feature = "sqlite", diesel(sql_type = diesel::sql_types::BigInt))]
#[cfg_attr(feature = "postgres", diesel(sql_type = diesel::sql_types::Timestamp))]
#[cfg_attr(feature = "mysql", diesel(sql_type = diesel::sql_types::Datetime))]
pub(super) struct DbTimestamp(pub(super) i64);

/// The calendar of Java: Julian before 1582-10-15. JDBC drivers store the date and time that Java shows; these databases
/// understand them by the Gregorian calendar, for all times.
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod calendar {
    use crate::clock::{DateTime, date_time, millis_of};

    const DAY: i64 = 86_400_000;
    /// 1582-10-15.
    const CUTOVER: i64 = -12_219_292_800_000;
    /// From the first of March of the year 0 of the Julian calendar to 1970-01-01.
    const DAYS_BEFORE_1970: i64 = 719_470;

    /// Returns the milliseconds of the Gregorian date that reads like the Julian one of a day before 1582-10-15.
    pub(super) fn shown(millis: i64) -> Result<i64, String> {
        if millis >= CUTOVER {
            return Ok(millis);
        }
        let days = millis.div_euclid(DAY) + DAYS_BEFORE_1970;
        let (cycle, day_of_cycle) = (days.div_euclid(1_461), days.rem_euclid(1_461));
        let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460) / 365;
        let day_of_year = day_of_cycle - 365 * year_of_cycle;
        // Years and months begin with March.
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let year = cycle * 4 + year_of_cycle + i64::from(month >= 10);
        let month = if month < 10 { month + 3 } else { month - 9 };
        let date = i16::try_from(year).ok().and_then(|year| {
            DateTime::new(
                year,
                i8::try_from(month).ok()?,
                i8::try_from(day).ok()?,
                0,
                0,
                0,
                0,
            )
            .ok()
        });
        let date = date.ok_or_else(|| {
            format!("the database cannot store {year}-{month:02}-{day:02}, a day of the Julian calendar only")
        })?;
        Ok(millis_of(date) + millis.rem_euclid(DAY))
    }

    /// The reverse of `shown`.
    pub(super) fn read(shown: i64) -> i64 {
        if shown >= CUTOVER {
            return shown;
        }
        let Some(date) = date_time(shown) else {
            return shown;
        };
        let (year, month) = (i64::from(date.year()), i64::from(date.month()));
        let year = year - i64::from(month <= 2);
        let month = if month > 2 { month - 3 } else { month + 9 };
        let day_of_year = (153 * month + 2) / 5 + i64::from(date.day()) - 1;
        let days = 365 * year + year.div_euclid(4) + day_of_year - DAYS_BEFORE_1970;
        days * DAY + shown.rem_euclid(DAY)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn at(year: i16, month: i8, day: i8) -> i64 {
            millis_of(DateTime::new(year, month, day, 12, 0, 0, 0).unwrap())
        }

        /// The last day of the Julian calendar was the one before 1582-10-15.
        // Spec: REPO-33
        #[test]
        fn old_dates_are_those_of_java() {
            for (gregorian, julian) in [
                (at(1582, 10, 15), at(1582, 10, 15)),
                (at(1582, 10, 14), at(1582, 10, 4)),
                (at(1500, 3, 11), at(1500, 3, 1)),
                (at(1500, 3, 9), at(1500, 2, 28)),
                (at(1000, 1, 6), at(1000, 1, 1)),
                (at(1200, 12, 31), at(1200, 12, 24)),
            ] {
                assert_eq!(shown(gregorian), Ok(julian));
                assert_eq!(read(julian), gregorian);
            }
            // A leap day that the Gregorian calendar does not have.
            assert!(shown(at(1500, 3, 10)).is_err());
            for day in (-350_000..-141_428).filter(|day| shown(day * DAY).is_ok()) {
                assert_eq!(read(shown(day * DAY).unwrap()), day * DAY, "{day}");
            }
        }
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use diesel::serialize::IsNull;
    use diesel::sql_types::{BigInt, Text};
    use diesel::sqlite::{Sqlite, SqliteType};

    use super::*;

    impl ToSql<BigInt, Sqlite> for DbTimestamp {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
            out.set_value(self.0);
            Ok(IsNull::No)
        }
    }

    impl FromSql<BigInt, Sqlite> for DbTimestamp {
        fn from_sql(value: diesel::sqlite::SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
            // SQLite would read the year of a text, as a number.
            if value.value_type() == Some(SqliteType::Text) {
                let text = <String as FromSql<Text, Sqlite>>::from_sql(value)?;
                return Err(format!(
                    "the time `{text}` is stored as text: remove `date_class=TEXT` from the JDBC URL of the program that wrote it, and \
                     convert such times to milliseconds since 1970"
                )
                .into());
            }
            FromSql::<BigInt, Sqlite>::from_sql(value).map(Self)
        }
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use diesel::data_types::PgTimestamp;
    use diesel::pg::{Pg, PgValue};
    use diesel::sql_types::Timestamp;

    use super::*;

    /// 2000-01-01, where PostgreSQL's time begins; it counts microseconds.
    const EPOCH: i64 = 946_684_800_000;

    impl ToSql<Timestamp, Pg> for DbTimestamp {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
            let micros = calendar::shown(self.0)?
                .checked_sub(EPOCH)
                .and_then(|millis| millis.checked_mul(1_000));
            let timestamp = PgTimestamp(micros.ok_or("a point in time out of range")?);
            ToSql::<Timestamp, Pg>::to_sql(&timestamp, &mut out.reborrow())
        }
    }

    impl FromSql<Timestamp, Pg> for DbTimestamp {
        fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
            let PgTimestamp(micros) = FromSql::<Timestamp, Pg>::from_sql(value)?;
            Ok(Self(calendar::read(micros.div_euclid(1_000) + EPOCH)))
        }
    }
}

#[cfg(feature = "mysql")]
mod mysql {
    use diesel::mysql::data_types::{MysqlTime, MysqlTimestampType};
    use diesel::mysql::{Mysql, MysqlValue};
    use diesel::sql_types::Datetime;

    use super::*;
    use crate::clock::{DateTime, date_time, millis_of};

    impl ToSql<Datetime, Mysql> for DbTimestamp {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Mysql>) -> serialize::Result {
            // The range of the columns. Spec: REPO-33
            let time = date_time(calendar::shown(self.0)?)
                .filter(|time| time.year() >= 1_000)
                .ok_or("a point in time out of range")?;
            let time = MysqlTime::new(
                time.year().try_into()?,
                time.month().try_into()?,
                time.day().try_into()?,
                time.hour().try_into()?,
                time.minute().try_into()?,
                time.second().try_into()?,
                (i64::from(time.millisecond()) * 1_000).try_into()?,
                false,
                MysqlTimestampType::MYSQL_TIMESTAMP_DATETIME,
                0,
            );
            ToSql::<Datetime, Mysql>::to_sql(&time, &mut out.reborrow())
        }
    }

    impl FromSql<Datetime, Mysql> for DbTimestamp {
        fn from_sql(value: MysqlValue<'_>) -> deserialize::Result<Self> {
            let time: MysqlTime = FromSql::<Datetime, Mysql>::from_sql(value)?;
            let nanos = time.second_part / 1_000 * 1_000_000;
            let time = DateTime::new(
                time.year.try_into()?,
                time.month.try_into()?,
                time.day.try_into()?,
                time.hour.try_into()?,
                time.minute.try_into()?,
                time.second.try_into()?,
                nanos.try_into()?,
            )?;
            Ok(Self(calendar::read(millis_of(time))))
        }
    }
}
