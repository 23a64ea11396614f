//! The settings and names of sessions, and how a dead owner's sessions are ended.

use std::sync::atomic::{AtomicU32, Ordering};

use diesel::connection::SimpleConnection;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::{BigInt, Nullable, Text};

use crate::repository::diesel::session::{RunQueryDsl, Session};

/// Each statement sees what was committed before it. A text that does not fit is an error instead of being truncated. The wait for a locked
/// row is longer than a lease: a runner whose wait times out has lost its lease. MariaDB ends a transaction that is idle for an hour,
/// unless it is configured otherwise: its process hangs. A statement outside of a transaction commits by itself.
pub(super) const SETTINGS: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SET SESSION innodb_lock_wait_timeout = 60,
        SESSION autocommit = 1,
        SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')
        /*M!100300 , SESSION idle_transaction_timeout = IF(@@idle_transaction_timeout = 0, 3600, @@idle_transaction_timeout) */";

/// The maximum number of named sessions of an owner; a takeover cannot end the others.
const NAMED: u32 = 64;

/// The names of an owner's sessions. The server has no names for sessions, but `IS_USED_LOCK` returns the session that holds a
/// lock of `GET_LOCK`. So each session takes such a lock and keeps it until it ends.
pub(super) struct SessionNames {
    prefix: String,
    next: AtomicU32,
}

impl SessionNames {
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            next: AtomicU32::new(0),
        }
    }

    /// Gives a session a name that no living session has. With more sessions than names it gets none.
    pub(super) fn give(&self, connection: &mut MysqlConnection) -> QueryResult<()> {
        for _ in 0..NAMED {
            let number = self.next.fetch_add(1, Ordering::Relaxed) % NAMED;
            let take = format!("GET_LOCK('{}', 0)", name(&self.prefix, number));
            let taken: Option<i64> =
                diesel::RunQueryDsl::get_result(diesel::select(sql::<Nullable<BigInt>>(&take)), connection)?;
            if taken == Some(1) {
                break;
            }
        }
        Ok(())
    }
}

fn name(prefix: &str, number: u32) -> String {
    format!("{prefix}/{number}")
}

#[derive(QueryableByName)]
struct SessionId {
    #[diesel(sql_type = Nullable<BigInt>)]
    id: Option<i64>,
}

/// Ends the sessions whose names have this prefix. A user may end its own sessions; sessions of another user are left alone.
pub(super) fn end(connection: &mut Session<MysqlConnection>, prefix: &str) -> QueryResult<()> {
    let holders: Vec<String> = (0..NAMED)
        .map(|number| {
            format!(
                "SELECT CAST(IS_USED_LOCK('{}') AS SIGNED) AS id",
                name(prefix, number)
            )
        })
        .collect();
    let holders: Vec<SessionId> = diesel::sql_query(holders.join(" UNION ALL ")).load(connection)?;
    for id in holders.into_iter().filter_map(|session| session.id) {
        if let Err(error) = connection.batch_execute(&format!("KILL {id}")) {
            tracing::debug!(%error, id, "a session of a dead owner cannot be ended");
        }
    }
    Ok(())
}

#[derive(QueryableByName)]
struct OpenTransaction {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = Text)]
    client: String,
    #[diesel(sql_type = BigInt)]
    seconds: i64,
}

/// Implements `Backend::lock_hint`. The server forgets who held the lock when the wait ends, so the hint lists the sessions
/// whose transactions have been open the longest.
pub(super) fn lock_hint(connection: &mut Session<MysqlConnection>, error: &DieselError) -> Option<String> {
    if !error.to_string().contains("Lock wait timeout") {
        return None;
    }
    // Not DATABASE(), which `rename` replaces by the schema of the prefix: sessions have the database of the URL.
    let open = "SELECT CAST(p.ID AS SIGNED) AS id, CONCAT(p.USER, '@', p.HOST) AS client,
             CAST(TIMESTAMPDIFF(SECOND, t.trx_started, NOW()) AS SIGNED) AS seconds
         FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
         WHERE p.ID <> CONNECTION_ID() AND p.DB = SCHEMA() ORDER BY t.trx_started LIMIT 3";
    let sessions: Vec<OpenTransaction> = diesel::sql_query(open).load(connection).unwrap_or_default();
    let Some(first) = sessions.first() else {
        return Some(
            "to see the sessions with open transactions, query information_schema.INNODB_TRX with the privilege PROCESS"
                .into(),
        );
    };
    let described: Vec<String> = sessions
        .iter()
        .map(|OpenTransaction { id, client, seconds }| format!("{id} (`{client}`, open for {seconds} s)"))
        .collect();
    Some(format!(
        "the sessions with the oldest open transactions are {}; to end one, run `KILL {}`",
        described.join(", "),
        first.id
    ))
}
