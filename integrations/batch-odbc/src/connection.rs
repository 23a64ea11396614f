//! Connections.
// Spec: ODBC-07

use std::fmt;

use batch_runtime::destination::ConnectionString;
use odbc_api::{Connection, ConnectionOptions, Cursor, environment};

use crate::dialect::{Dialect, MYSQL_CHARSET, Texts};
use crate::error::OdbcError;
use crate::parameters::Parameter;

/// A connection to a database by ODBC: what `#[write_items]` takes, inside the transaction of the interval.
pub struct OdbcConnection {
    connection: Connection<'static>,
    dialect: &'static Dialect,
}

/// How long an attempt to connect takes at most, if the driver knows a limit.
const LOGIN_SECONDS: u32 = 30;

impl OdbcConnection {
    /// Opens a connection.
    pub(crate) fn open(string: &ConnectionString) -> Result<Self, OdbcError> {
        check_mysql(string.as_str())?;
        let options = ConnectionOptions {
            login_timeout_sec: Some(LOGIN_SECONDS),
            ..ConnectionOptions::default()
        };
        let connection = environment()?.connect_with_connection_string(string.as_str(), options)?;
        let name = connection.database_management_system_name()?;
        let opened = Self {
            connection,
            dialect: Dialect::of(&name),
        };
        for statement in opened.dialect.prepare {
            opened.execute(statement, &[])?;
        }
        opened.check_encoding()?;
        Ok(opened)
    }

    /// Returns the connection of `odbc-api`, for statements in the transaction of the interval. It must neither be committed nor rolled
    /// back, and the mode of its commits must stay as it is.
    pub fn odbc(&self) -> &Connection<'static> {
        &self.connection
    }

    /// Executes a statement without parameters, and returns how many rows it has changed; 0 if the driver does not say.
    ///
    /// # Errors
    /// The error of the database.
    pub fn run(&self, statement: &str) -> Result<usize, OdbcError> {
        self.execute(statement, &[])
    }

    pub(crate) fn into_odbc(self) -> Connection<'static> {
        self.connection
    }

    pub(crate) fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Executes a statement, and returns how many rows it has changed.
    pub(crate) fn execute(&self, statement: &str, parameters: &[Parameter<'_>]) -> Result<usize, OdbcError> {
        let mut prepared = self.connection.preallocate()?;
        if prepared.execute(statement, parameters)?.is_some() {
            return Ok(0);
        }
        Ok(prepared.row_count()?.unwrap_or_default())
    }

    /// Fails if the last statement has failed, and the driver has reported that as a warning. It has changed no row then.
    pub(crate) fn check_errors(&self) -> Result<(), OdbcError> {
        let Some(query) = self.dialect.errors else {
            return Ok(());
        };
        match self.select(query, &[])?.first() {
            // Level, code and message.
            Some(error) => {
                let message = error.last().cloned().flatten();
                Err(OdbcError::new(
                    message.unwrap_or_else(|| "the statement has failed".to_owned()),
                ))
            }
            None => Ok(()),
        }
    }

    /// Returns the rows of a query, as texts.
    pub(crate) fn select(
        &self,
        query: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Vec<Option<String>>>, OdbcError> {
        let cursor = self.connection.execute(query, parameters, None)?;
        let (Some(mut cursor), mut rows) = (cursor, Vec::new()) else {
            return Ok(Vec::new());
        };
        let columns = u16::try_from(odbc_api::ResultSetMetadata::num_result_cols(&mut cursor)?).unwrap_or(0);
        while let Some(mut row) = cursor.next_row()? {
            let mut values = Vec::new();
            for column in 1..=columns {
                values.push(text_of(&mut row, column, self.dialect.texts)?);
            }
            rows.push(values);
        }
        Ok(rows)
    }

    /// Checks that the driver passes texts as they are.
    fn check_encoding(&self) -> Result<(), OdbcError> {
        let Some((query, expected)) = self.dialect.encoding else {
            return Ok(());
        };
        let rows = self.select(query, &[])?;
        let found = rows
            .first()
            .and_then(|row| row.first().cloned())
            .flatten()
            .unwrap_or_default();
        check_charset(expected, &found)
    }
}

fn check_charset(expected: &str, found: &str) -> Result<(), OdbcError> {
    match found == expected {
        true => Ok(()),
        false => Err(OdbcError::new(format!(
            "the driver would change texts: expected the character set and line end {expected:?}, found {found:?}; remove the attributes \
             `LFConversion` and `charset` from the connection string, or use the Unicode driver"
        ))),
    }
}

/// Checks the character set in a connection string for a driver of MySQL. With some character sets, MariaDB's driver sometimes fails to connect, with
/// "Memory allocation error".
fn check_mysql(string: &str) -> Result<(), OdbcError> {
    let attribute = |wanted: &str| {
        let attributes = string
            .split(';')
            .filter_map(|attribute| attribute.split_once('='));
        let mut found = attributes.filter(|(name, _)| name.trim().eq_ignore_ascii_case(wanted));
        found
            .next()
            .map(|(_, value)| value.trim().trim_matches(['{', '}']).to_ascii_lowercase())
    };
    let driver = attribute("driver").unwrap_or_default();
    let is_mysql = ["maria", "maodbc", "mysql", "myodbc"]
        .iter()
        .any(|name| driver.contains(name));
    match attribute("charset") {
        Some(charset) if is_mysql => check_charset(MYSQL_CHARSET, &charset),
        _ => Ok(()),
    }
}

impl fmt::Debug for OdbcConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OdbcConnection")
            .field("database", &self.dialect.name)
            .finish_non_exhaustive()
    }
}

/// Returns a value of a row as a text of any length.
pub(crate) fn text_of(
    row: &mut odbc_api::CursorRow<'_>,
    column: u16,
    texts: Texts,
) -> Result<Option<String>, OdbcError> {
    match texts {
        Texts::Narrow => {
            let mut text = Vec::new();
            let is_there = row.get_text(column, &mut text)?;
            is_there.then(|| utf8(text)).transpose()
        }
        Texts::Wide => {
            let mut text = Vec::new();
            let is_there = row.get_wide_text(column, &mut text)?;
            is_there.then(|| utf16(&text)).transpose()
        }
    }
}

pub(crate) fn utf8(text: Vec<u8>) -> Result<String, OdbcError> {
    String::from_utf8(text).map_err(|_| OdbcError::new("the driver returned a text that is not UTF-8"))
}

pub(crate) fn utf16(text: &[u16]) -> Result<String, OdbcError> {
    String::from_utf16(text).map_err(|_| OdbcError::new("the driver returned a text that is not UTF-16"))
}
