//! Triggers that refuse a wrong row of the repository at the statement that writes it.

use std::path::Path;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;

/// Opens a database as a tool beside the runtime would.
pub fn open(database: &Path) -> SqliteConnection {
    let mut connection =
        SqliteConnection::establish(&database.display().to_string()).expect("the database opens");
    connection
        .batch_execute("PRAGMA busy_timeout = 10000")
        .expect("a setting");
    connection
}

/// Installs the triggers: the item balance at every commit, VERSION + 1 at every update, no change of an ended
/// execution, only the edges of the status graph, END_TIME exactly when ended.
pub fn install(database: &Path) {
    let open_status = "('STARTING', 'STARTED', 'STOPPING')";
    let mut sql = String::from(
        "CREATE TRIGGER balance AFTER UPDATE ON BATCH_STEP_EXECUTION
         WHEN NEW.READ_COUNT <> NEW.WRITE_COUNT + NEW.FILTER_COUNT + NEW.PROCESS_SKIP_COUNT + NEW.WRITE_SKIP_COUNT
         BEGIN SELECT RAISE(ABORT, 'the item balance is broken'); END;",
    );
    for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
        sql.push_str(&format!(
            "CREATE TRIGGER version_{table} AFTER UPDATE ON {table} WHEN NEW.VERSION <> OLD.VERSION + 1
             BEGIN SELECT RAISE(ABORT, 'VERSION did not grow by one'); END;
             CREATE TRIGGER final_{table} AFTER UPDATE ON {table} WHEN OLD.STATUS NOT IN {open_status}
             BEGIN SELECT RAISE(ABORT, 'an ended execution was changed'); END;
             CREATE TRIGGER edge_{table} AFTER UPDATE ON {table}
             WHEN NEW.STATUS <> OLD.STATUS AND OLD.STATUS || '>' || NEW.STATUS NOT IN (
                'STARTING>STARTED', 'STARTING>STOPPING', 'STARTING>FAILED', 'STARTED>COMPLETED', 'STARTED>FAILED',
                'STARTED>STOPPING', 'STOPPING>STOPPED', 'STOPPING>FAILED', 'STARTED>STOPPED', 'STARTING>STOPPED')
             BEGIN SELECT RAISE(ABORT, 'no edge of the status graph'); END;
             CREATE TRIGGER ended_{table} AFTER UPDATE ON {table}
             WHEN (NEW.STATUS IN {open_status}) <> (NEW.END_TIME IS NULL)
             BEGIN SELECT RAISE(ABORT, 'END_TIME does not fit STATUS'); END;"
        ));
    }
    open(database)
        .batch_execute(&sql)
        .expect("the triggers are installed");
}
