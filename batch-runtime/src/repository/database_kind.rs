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
}

impl DatabaseKind {
    /// Returns the database that the scheme of a URL names.
    pub(super) fn named_in(url: &str) -> Option<Self> {
        match url.split_once(':')?.0 {
            "sqlite" => Some(Self::Sqlite),
            "postgres" | "postgresql" => Some(Self::Postgresql),
            "mysql" | "mariadb" => Some(Self::Mysql),
            _ => None,
        }
    }
}
