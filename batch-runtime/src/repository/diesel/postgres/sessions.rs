//! The settings and names of sessions, and how a dead owner's sessions are ended.

use diesel::prelude::*;
use diesel::result::Error as DieselError;
use diesel::sql_types::{BigInt, Integer, Nullable, Text};

use super::Connection;
use crate::repository::diesel::session::RunQueryDsl;

/// Options of libpq, unless the URL sets them: how long to wait for a connection, and for a host that does not answer.
const OPTIONS: [(&str, u32); 5] = [
    ("connect_timeout", 10),
    ("keepalives_idle", 10),
    ("keepalives_interval", 5),
    ("keepalives_count", 4),
    ("tcp_user_timeout", 30_000),
];

/// Settings of the server for a session, unless the URL, the role or the server configures them. A statement waits for a locked row for
/// longer than a lease lasts: a runner whose wait times out has lost its lease. The server ends the sessions of a host that does not
/// answer. A transaction that is idle for an hour belongs to a process that hangs; a shorter time would also end transactions of slow
/// writers.
const SETTINGS: [(&str, &str); 6] = [
    ("lock_timeout", "60s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "4"),
    ("tcp_user_timeout", "30s"),
    ("idle_in_transaction_session_timeout", "1h"),
];

/// Returns the URL with [`OPTIONS`].
pub(super) fn with_timeouts(url: &str) -> String {
    let options = url.split_once('?').map_or("", |(_, options)| options);
    let names: Vec<&str> = options
        .split('&')
        .filter_map(|option| Some(option.split_once('=')?.0))
        .collect();
    let mut url = url.to_owned();
    for (name, value) in OPTIONS.iter().filter(|(name, _)| !names.contains(name)) {
        let separator = if url.contains('?') { '&' } else { '?' };
        url.push_str(&format!("{separator}{name}={value}"));
    }
    url
}

/// Returns the statements that prepare a session. Its name is added to the application name of the URL, which may have 63
/// bytes in all.
pub(super) fn settings(name: &str) -> String {
    let values: Vec<String> = SETTINGS
        .iter()
        .map(|(name, value)| format!("('{name}', '{value}')"))
        .collect();
    format!(
        "SELECT set_config(s.name, v.value, false) FROM (VALUES {}) AS v (name, value)
             JOIN pg_catalog.pg_settings s ON s.name = v.name WHERE s.source = 'default';
         SELECT set_config('application_name',
             ltrim(left(current_setting('application_name'), 30) || ' {name}'), false)",
        values.join(", ")
    )
}

/// Ends the sessions with this name. A server shows a role only the names of the role's sessions, and lets it end them.
pub(super) fn end(connection: &mut Connection, name: &str) -> QueryResult<()> {
    let end = "SELECT pg_terminate_backend(pid)::int AS ended FROM pg_catalog.pg_stat_activity
         WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
         AND right(application_name, length($1)) = $1";
    diesel::sql_query(end)
        .bind::<Text, _>(name)
        .execute(connection)
        .map(drop)
}

#[derive(QueryableByName)]
struct IdleTransaction {
    #[diesel(sql_type = Integer)]
    pid: i32,
    #[diesel(sql_type = Nullable<Text>)]
    application: Option<String>,
    #[diesel(sql_type = Text)]
    client: String,
    #[diesel(sql_type = BigInt)]
    seconds: i64,
}

/// Implements `Backend::lock_hint`. The server forgets who held the lock when the wait ends, so the hint lists the sessions
/// whose transactions have been open the longest.
pub(super) fn lock_hint(connection: &mut Connection, error: &DieselError) -> Option<String> {
    if !error.to_string().contains("lock timeout") {
        return None;
    }
    let open =
        "SELECT pid, application_name AS application, coalesce(client_addr::text, 'this host') AS client,
             extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds
         FROM pg_catalog.pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
         ORDER BY xact_start LIMIT 3";
    let sessions: Vec<IdleTransaction> = diesel::sql_query(open).load(connection).unwrap_or_default();
    let Some(first) = sessions.first() else {
        return Some(
            "no session of this role has an open transaction; ask an administrator for pg_stat_activity"
                .into(),
        );
    };
    let described: Vec<String> = sessions
        .iter()
        .map(|session| {
            let application = session.application.as_deref().filter(|name| !name.is_empty());
            let IdleTransaction {
                pid, client, seconds, ..
            } = session;
            format!(
                "{pid} (`{}` on {client}, open for {seconds} s)",
                application.unwrap_or("unnamed")
            )
        })
        .collect();
    Some(format!(
        "the sessions with the oldest open transactions are {}; to end one, run `SELECT pg_terminate_backend({})`",
        described.join(", "),
        first.pid
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_url_are_kept() {
        let url = with_timeouts("postgres://me@host/db?connect_timeout=2&user=a");
        assert!(
            url.starts_with("postgres://me@host/db?connect_timeout=2&user=a&keepalives_idle=10&"),
            "{url}"
        );
        assert_eq!(url.matches("connect_timeout").count(), 1);
        assert!(with_timeouts("postgres:///db").starts_with("postgres:///db?connect_timeout=10&"));
    }
}
