//! `sqlScript`: executes SQL on the repository's database, or on another one.

mod database;
mod split;

use std::path::PathBuf;
use std::str::FromStr;

use batch_runtime::destination::DatabaseName;
use batch_runtime::prelude::*;

use self::database::Database;
use self::split::Statement;
use super::cancel::Cancel;
use super::exit::{COMPLETED, STOPPED, completed, counted};
use batch_items::ResourceError;
use batch_items::choices;
use batch_items::file::read_text;
use batch_items::sql::{Syntax, beginning, tokens, variable};

/// Executes the statements of a SQL script on the database of the job repository, or on another one. In Job XML: `sqlScript`.
///
/// ```xml
/// <step id="prepare">
///   <batchlet ref="sqlScript">
///     <properties><property name="resource" value="sql/prepare.sql"/></properties>
///   </batchlet>
/// </step>
/// ```
///
/// | property | default | meaning |
/// |---|---|---|
/// | `resource` | none | the file of the script, in UTF-8; this or `sql` is required |
/// | `sql` | none | the script itself; in Job XML its line breaks become blanks, so write comments as `/* */` |
/// | `database` | the repository | the name or the URL of another database |
/// | `separator` | `;` | the text between statements |
/// | `transaction` | `all` | `all`: one transaction, rolled back if a statement fails; `each`: every statement commits by itself |
/// | `on.error` | `stop` | `stop`: the first error fails the step; `continue`: errors are logged. Requires `transaction` `each` |
///
/// # Statements
///
/// A `;` in a text, a name in quotes or a comment does not end a statement; nor does one in PostgreSQL's `$$ .. $$`. For the bodies
/// of procedures and triggers set another `separator`, such as `/` or `@@`, which counts at the end of a line. On SQLite, variables such as `@id`
/// and `?1` are rejected: they have no values, so they would be null.
///
/// Results of queries are discarded. If statements have failed, the exit status is `STATEMENTS FAILED`, and the exit description
/// says how many, such as `10 statements, 2 failed`. An error shows the file, the line and the beginning of the statement; the log of `continue` shows the
/// file, the line and the message of the database.
///
/// # Transactions
///
/// Statements such as `COMMIT` are rejected with `transaction` `all`. MySQL and MariaDB commit implicitly before and after each
/// DDL statement, so an error rolls back to the last one of these. On SQLite, a transaction excludes all other writers of the
/// database, so use `each` for a script that runs for minutes.
///
/// It is not the transaction of the step's end: if the process is killed between the two, a restart executes the script again.
///
/// # Stop
///
/// A stop interrupts the running statement on PostgreSQL and MySQL, and on SQLite waits for its end. The exit status is `STOPPED`.
#[derive(BatchArtifact)]
pub struct SqlScript {
    #[batch_property(name = "resource")]
    resource: Option<PathBuf>,
    #[batch_property(name = "sql")]
    sql: Option<String>,
    #[batch_property(name = "database", value = "")]
    database: DatabaseName,
    #[batch_property(name = "separator", value = ";")]
    separator: Separator,
    #[batch_property(name = "transaction", value = "all")]
    transaction: Transaction,
    #[batch_property(name = "on.error", value = "stop")]
    on_error: OnError,
    #[batch_context]
    job: JobContext,
    #[batch_context]
    step: StepContext,
    cancel: Cancel,
}

#[batchlet("sqlScript")]
impl SqlScript {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        if self.on_error == OnError::Continue && self.transaction == Transaction::All {
            return Err(BatchError::msg(
                "`on.error` is `continue`, but a failed statement ends the one transaction of the script; set `transaction` to `each`",
            ));
        }
        let script = self.script()?;
        let mut connection = connect(&self.job, &self.database)?;
        let mut database = Database::of(&mut connection)?;
        let statements = split::statements(&script.text, database.syntax, &self.separator.0)
            .map_err(|error| ResourceError::new(format!("split {}", script.name), error))?;
        reject_variables(&script, &statements, database.syntax)?;
        if self.transaction == Transaction::All {
            reject_transaction_control(&script, &statements, database.syntax)?;
        }
        tracing::info!(target: "batch.sql", script = script.name, statements = statements.len(), "executing a script");
        let (job, name, interrupt) = (self.job.clone(), self.database.clone(), database.interrupt.take());
        let interrupt = move || {
            interrupt
                .into_iter()
                .for_each(|statement| interrupt_session(&job, &name, &statement))
        };
        self.cancel
            .interruptible(interrupt, || self.execute(&mut database, &script, &statements))
    }

    #[cancel]
    fn cancel(&self) {
        self.cancel.request();
    }
}

impl SqlScript {
    /// Reads the script.
    fn script(&self) -> Result<Script, BatchError> {
        match (&self.resource, &self.sql) {
            (Some(path), None) => {
                let name = path.display().to_string();
                let text = read_text(path)
                    .map_err(|error| ResourceError::new(format!("read the script {name}"), error))?;
                Ok(Script { name, text })
            }
            (None, Some(text)) => Ok(Script {
                name: "`sql`".into(),
                text: text.clone(),
            }),
            _ => Err(BatchError::msg("set either `resource` or `sql`")),
        }
    }

    /// Executes the statements, in a transaction if there is one for all. Returns the exit status.
    fn execute(
        &self,
        database: &mut Database<'_>,
        script: &Script,
        statements: &[Statement<'_>],
    ) -> Result<String, BatchError> {
        let within = |action: &str| format!("{action} the transaction of {}", script.name);
        if self.transaction == Transaction::All {
            let started = database.execute(database.begin);
            started.map_err(|error| ResourceError::new(within("begin"), error))?;
        }
        let mut failed = 0;
        for (index, statement) in statements.iter().enumerate() {
            // Without a commit, closing the connection rolls back.
            if self.cancel.is_requested() {
                return Ok(STOPPED.into());
            }
            self.step.heartbeat();
            let Err(error) = database.execute(statement.text) else {
                continue;
            };
            let place = format!("{}:{}", script.name, statement.line);
            if self.cancel.is_requested() {
                return Ok(STOPPED.into());
            }
            if self.on_error == OnError::Stop {
                let (number, count) = (index + 1, statements.len());
                let beginning = beginning(statement.text);
                let action = format!("execute statement {number} of {count} at {place}, `{beginning}`");
                return Err(ResourceError::new(action, error).into());
            }
            // Without the statement, which may contain a secret.
            tracing::warn!(target: "batch.sql", %place, %error, "a statement failed");
            failed += 1;
        }
        if self.transaction == Transaction::All {
            let committed = database.execute("COMMIT");
            committed.map_err(|error| ResourceError::new(within("commit"), error))?;
        }
        let succeeded = statements.len() - failed;
        tracing::info!(target: "batch.sql", script = %script.name, succeeded, failed, "executed the statements");
        if failed == 0 {
            return Ok(COMPLETED.into());
        }
        completed(
            &self.step,
            format!("{}, {failed} failed", counted(succeeded, "statement")),
        );
        Ok("STATEMENTS FAILED".into())
    }
}

/// A script, and its name in errors.
struct Script {
    name: String,
    text: String,
}

/// Returns an error if a statement has a variable: a script has no value for it.
fn reject_variables(
    script: &Script,
    statements: &[Statement<'_>],
    syntax: &Syntax,
) -> Result<(), BatchError> {
    let mut found = statements
        .iter()
        .filter_map(|statement| Some((variable(statement.text, syntax)?, statement)));
    match found.next() {
        Some((variable, statement)) => Err(BatchError::msg(format!(
            "`{variable}` in the statement `{}` at {}:{} has no value and would be null; write the value into the script",
            beginning(statement.text),
            script.name,
            statement.line
        ))),
        None => Ok(()),
    }
}

/// Returns an error if a statement would end the transaction of the script.
fn reject_transaction_control(
    script: &Script,
    statements: &[Statement<'_>],
    syntax: &Syntax,
) -> Result<(), BatchError> {
    let Some(control) = statements
        .iter()
        .find(|statement| controls_transaction(statement.text, syntax))
    else {
        return Ok(());
    };
    Err(BatchError::msg(format!(
        "`{}` at {}:{} would interfere with the one transaction of the script; remove it, or set `transaction` to `each`; if it belongs to a \
         trigger or procedure, set `separator`, for example to `@@`, and end each statement with it at the end of a line",
        beginning(control.text),
        script.name,
        control.line
    )))
}

fn controls_transaction(statement: &str, syntax: &Syntax) -> bool {
    let words = tokens(statement, syntax).into_iter().take(3);
    let words: Vec<String> = words.map(str::to_ascii_uppercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["BEGIN" | "START" | "COMMIT" | "END" | "ABORT", ..] => true,
        ["PREPARE", "TRANSACTION", ..] | ["SET", "AUTOCOMMIT", ..] => true,
        ["ROLLBACK", after @ ..] => !after.contains(&"TO"),
        _ => false,
    }
}

/// Opens a connection to the database of the script.
fn connect(job: &JobContext, database: &str) -> Result<RepositoryConnection, BatchError> {
    Ok(match database {
        "" => job.connect()?,
        database => job.database(database)?.connect()?,
    })
}

/// Interrupts the statement of a session, from another one.
fn interrupt_session(job: &JobContext, database: &str, statement: &str) {
    let interrupted = connect(job, database)
        .and_then(|mut connection| Ok(Database::of(&mut connection)?.execute(statement)?));
    if let Err(error) = interrupted {
        tracing::warn!(target: "batch.sql", error = error.chain(), "cannot interrupt the running statement");
    }
}

/// The text between statements; not empty.
struct Separator(String);

impl FromStr for Separator {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "" => Err("expected a separator such as `;` or `@@`"),
            separator => Ok(Self(separator.to_owned())),
        }
    }
}

/// The transactions of a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    All,
    Each,
}

/// The reaction to a failed statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnError {
    Stop,
    Continue,
}

choices! {
    Transaction { "all" => All, "each" => Each }
    OnError { "stop" => Stop, "continue" => Continue }
}

#[cfg(test)]
mod tests {
    use super::*;
    use batch_items::sql::POSTGRES;

    #[test]
    fn statements_of_transactions_are_recognised() {
        for statement in [
            "BEGIN",
            "begin immediate",
            "START TRANSACTION",
            "COMMIT",
            "end transaction",
            "ROLLBACK",
            "ROLLBACK -- x",
            "ROLLBACK /* to */",
            "rollback and chain",
            "ABORT",
            "PREPARE TRANSACTION 'a'",
            "set autocommit = 1",
        ] {
            assert!(controls_transaction(statement, &POSTGRES), "{statement}");
        }
        for statement in [
            "ROLLBACK TO SAVEPOINT a",
            "ROLLBACK TO a",
            "ROLLBACK /* all */ WORK TO a",
            "SAVEPOINT a",
            "CREATE TRIGGER t BEGIN SELECT 1; END",
            "SELECT 'COMMIT'",
        ] {
            assert!(!controls_transaction(statement, &POSTGRES), "{statement}");
        }
    }
}
