//! Calls of other processes, by LISTEN and NOTIFY.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::Text;

use super::Connection;
use crate::repository::diesel::transaction_error::database_error;
use crate::repository::{Channel, Listener, RepositoryError, Result};

#[diesel::declare_sql_function]
extern "SQL" {
    /// Its result is of type `void`, and is not read.
    fn pg_notify(channel: Text, payload: Text) -> Text;
}

/// A connection that listens to one channel.
struct PostgresListener {
    connection: PgConnection,
    about: String,
}

/// Returns the name of a channel. Tables with another prefix use the same name, which wakes processes that have nothing to do.
fn name(channel: Channel) -> &'static str {
    match channel {
        Channel::Tickets => "batch_tickets",
        Channel::Reports => "batch_reports",
    }
}

/// Implements `Backend::notify`.
pub(super) fn notify(connection: &mut Connection, channel: Channel, about: &str) -> QueryResult<()> {
    diesel::select(pg_notify(name(channel), about))
        .execute(&mut **connection)
        .map(drop)
}

/// Implements `Backend::listen`.
pub(super) fn listen(
    mut connection: PgConnection,
    channel: Channel,
    about: &str,
) -> Result<Box<dyn Listener>> {
    let listening = diesel::sql_query(format!("LISTEN {}", name(channel))).execute(&mut connection);
    listening.map_err(|error| database_error::<RepositoryError>("listen for other processes", error))?;
    Ok(Box::new(PostgresListener {
        connection,
        about: about.to_owned(),
    }))
}

impl Listener for PostgresListener {
    fn is_woken(&mut self) -> Result<bool> {
        let mut is_woken = false;
        for call in self.connection.notifications_iter() {
            let call =
                call.map_err(|error| database_error::<RepositoryError>("listen for other processes", error))?;
            is_woken |= call.payload == self.about;
        }
        Ok(is_woken)
    }
}
