//! The databases that a repository can be on.

/// A database that a repository can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatabaseKind {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgresql,
    /// MySQL and MariaDB.
    Mysql,
    /// None: the repository `memory:` is in the memory of this process, and is gone with its runtime.
    ///
    /// Jobs run by the same rules, and an operator of the same runtime gets the same answers, as on a database: an execution that
    /// has failed or was stopped can be restarted as long as the runtime lives. Rejected with a reason, because other processes
    /// cannot see it and it has no tables: dispatchers other than `local`, [`JobOperator::launch_remote`](crate::JobOperator::launch_remote)
    /// and [workers](crate::BatchRuntime::worker); jobs whose writer takes the [`ChunkTransaction`](crate::ChunkTransaction);
    /// [`JobContext::connect`](crate::context::JobContext::connect) and [`JobOperator::connect`](crate::JobOperator::connect).
    // Spec: MEM-01 to MEM-04
    Memory,
}

/// The URL of a repository in memory.
pub(super) const MEMORY_URL: &str = "memory:";

impl DatabaseKind {
    /// Returns the database that the scheme of a URL names.
    pub(crate) fn named_in(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Self::Sqlite),
            "postgres" | "postgresql" => Some(Self::Postgresql),
            "mysql" | "mariadb" => Some(Self::Mysql),
            "memory" => Some(Self::Memory),
            _ => None,
        }
    }
}
