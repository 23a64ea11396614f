//! The databases of the tests in `per_backend/` on a server.

use std::sync::Arc;
use std::time::Duration;

use batch_test_servers::shared;

use super::super::fixture::KIND;
use super::{Db, open};
use crate::clock::Clock;
use crate::repository::RepositoryConfig;
use crate::repository::diesel::DieselRepository;
use crate::repository::diesel::session::SessionSettings;

/// A database of one test.
pub(in crate::repository::diesel) struct Place {
    url: String,
}

impl Place {
    pub(in crate::repository::diesel) fn new() -> Self {
        Self {
            url: shared(KIND).new_database(),
        }
    }

    pub(in crate::repository::diesel) fn open(
        &self,
        clock: Arc<dyn Clock>,
        lease: Duration,
    ) -> DieselRepository<Db> {
        let config = RepositoryConfig {
            clock,
            ..RepositoryConfig::with_lease(lease)
        };
        open(&self.url, SessionSettings::default(), config).unwrap()
    }
}
