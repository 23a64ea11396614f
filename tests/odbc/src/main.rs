//! A program of records that reads and writes by ODBC, and announces the statements of its repository; see `batch_tests::moving`.

use std::io::{self, Write};
use std::process::ExitCode;

// They register the readers and writers that the job names.
use batch_items as _;
use batch_odbc as _;
use diesel::connection::{Instrumentation, InstrumentationEvent, set_default_instrumentation};

struct Statements;

impl Instrumentation for Statements {
    fn on_connection_event(&mut self, happened: InstrumentationEvent<'_>) {
        if let InstrumentationEvent::StartQuery { .. } = happened {
            // A test that has killed this process reads no more.
            let _ = writeln!(io::stdout(), "statement");
        }
    }
}

fn statements() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(Statements))
}

fn main() -> ExitCode {
    if set_default_instrumentation(statements).is_err() {
        return ExitCode::FAILURE;
    }
    batch_cli::main()
}
