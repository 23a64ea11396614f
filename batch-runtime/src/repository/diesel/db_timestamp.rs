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

#[cfg(feature = "sqlite")]
mod sqlite {
    use diesel::serialize::IsNull;
    use diesel::sql_types::BigInt;
    use diesel::sqlite::Sqlite;

    use super::*;

    impl ToSql<BigInt, Sqlite> for DbTimestamp {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
            out.set_value(self.0);
            Ok(IsNull::No)
        }
    }

    impl FromSql<BigInt, Sqlite> for DbTimestamp {
        fn from_sql(value: diesel::sqlite::SqliteValue<'_, '_, '_>) -> deserialize::Result<Self> {
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
            let micros = self
                .0
                .checked_sub(EPOCH)
                .and_then(|millis| millis.checked_mul(1_000));
            let timestamp = PgTimestamp(micros.ok_or("a point in time out of range")?);
            ToSql::<Timestamp, Pg>::to_sql(&timestamp, &mut out.reborrow())
        }
    }

    impl FromSql<Timestamp, Pg> for DbTimestamp {
        fn from_sql(value: PgValue<'_>) -> deserialize::Result<Self> {
            let PgTimestamp(micros) = FromSql::<Timestamp, Pg>::from_sql(value)?;
            Ok(Self(micros.div_euclid(1_000) + EPOCH))
        }
    }
}

#[cfg(feature = "mysql")]
mod mysql {
    use diesel::mysql::data_types::{MysqlTime, MysqlTimestampType};
    use diesel::mysql::{Mysql, MysqlValue};
    use diesel::sql_types::Datetime;

    use super::*;
    use crate::clock::civil_date;

    const DAY: i64 = 86_400_000;

    impl ToSql<Datetime, Mysql> for DbTimestamp {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Mysql>) -> serialize::Result {
            let (year, month, day) = civil_date(self.0.div_euclid(DAY));
            // What the columns can hold. Spec: REPO-33
            if !(1_000..=9_999).contains(&year) {
                return Err("a point in time out of range".into());
            }
            let millis = self.0.rem_euclid(DAY);
            let time = MysqlTime::new(
                year.try_into()?,
                month.try_into()?,
                day.try_into()?,
                (millis / 3_600_000).try_into()?,
                (millis / 60_000 % 60).try_into()?,
                (millis / 1_000 % 60).try_into()?,
                (millis % 1_000 * 1_000).try_into()?,
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
            let (year, month, day) = (time.year.into(), time.month.into(), time.day.into());
            let seconds = i64::from(time.hour) * 3_600 + i64::from(time.minute) * 60 + i64::from(time.second);
            let millis = i64::try_from(time.second_part)? / 1_000;
            Ok(Self(days(year, month, day) * DAY + seconds * 1_000 + millis))
        }
    }

    /// The inverse of `civil_date`: days from 1970-01-01, with years that begin on 1 March.
    fn days(year: i64, month: i64, day: i64) -> i64 {
        let (year, months) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        year * 365 + leap_days + (153 * months + 2) / 5 + day - 1 - 719_468
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_date_is_the_day_that_it_came_from() {
            for day in -360_000..2_900_000 {
                let (year, month, date) = civil_date(day);
                assert_eq!(days(year, month, date), day);
            }
        }
    }
}
