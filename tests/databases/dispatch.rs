//! The dispatcher without a broker: processes that share a database server.

use batch_tests::database::{Database, Place};
use batch_tests::dispatcher_tests;
use batch_tests::fleet::Fleet;

dispatcher_tests!(postgres, {
    let place = |folder: &std::path::Path| Place::new(Database::Postgres, folder);
    Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository")
});

dispatcher_tests!(mariadb, {
    let place = |folder: &std::path::Path| Place::new(Database::Mariadb, folder);
    Fleet::new(env!("CARGO_BIN_EXE_fleet"), place, "repository")
});
