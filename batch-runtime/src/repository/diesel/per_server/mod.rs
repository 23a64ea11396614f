//! The common code of PostgreSQL and MySQL, compiled once for each of them, like `per_backend`.

mod open;
pub(super) mod row_locks;

use super::{Db, schema};
use crate::repository::diesel::backend::Backend;
use crate::repository::diesel::session::Session;

pub(in crate::repository::diesel) use open::missing_migrations;
pub(in crate::repository::diesel) use open::open;

type Connection = Session<<Db as Backend>::Connection>;
