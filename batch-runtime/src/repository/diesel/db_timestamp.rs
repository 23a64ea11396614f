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
    use crate::clock::{DateTime, date_time, millis_of};

    impl ToSql<Datetime, Mysql> for DbTimestamp {
        fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Mysql>) -> serialize::Result {
            // The range of the columns. Spec: REPO-33
            let time = date_time(self.0)
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
            Ok(Self(millis_of(time)))
        }
    }
}
