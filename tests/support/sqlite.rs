//! Triggers that reject a wrong row of the repository at the statement that writes it.

use std::path::Path;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use crate::database::Outside;

/// Opens a database as a tool beside the runtime would.
pub fn open(database: &Path) -> SqliteConnection {
    let mut connection =
        SqliteConnection::establish(&database.display().to_string()).expect("the database opens");
    connection
        .batch_execute("PRAGMA busy_timeout = 10000")
        .expect("a setting");
    connection
}

/// Installs the triggers of `Outside::reject_wrong_rows`.
pub fn reject_wrong_rows(database: &Path) {
    Outside::Sqlite(open(database)).reject_wrong_rows();
}
