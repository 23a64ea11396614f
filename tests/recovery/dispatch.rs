//! The dispatchers that need no server: processes on one host that share a SQLite file.

use batch_tests::database::{Database, Place};
use batch_tests::dispatcher_tests;
use batch_tests::fleet::Fleet;

dispatcher_tests!(repository, {
    let place = |folder: &std::path::Path| Place::new(Database::Sqlite, folder);
    Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository")
});
