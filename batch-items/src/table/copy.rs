//! Inserting into tables of PostgreSQL by `COPY`, which is faster for many rows.

use std::cell::RefCell;
use std::io::Write;

use diesel::pg::{CopyTarget, Pg};
use diesel::prelude::*;
use diesel::query_builder::AstPass;
use diesel::result::Error;
use diesel::sql_types::{BigInt, Bool, Text};

use super::plan::{Plan, quoted_list, quoted_table};
use crate::rows::{Cell, Rows};

/// From this number of rows on, it takes less time than a statement with arrays: a fifteenth less for 5,000 rows, a third for 20,000.
pub(super) const ROWS: usize = 3_000;

/// The bytes that are sent at once.
const PACKET: usize = 1 << 16;

/// Returns whether `COPY` has the effect of `INSERT`. It rejects views and row-level security, ignores rules, and writes to identity
/// columns that `INSERT` protects.
pub(super) fn is_possible(connection: &mut PgConnection, table: &str) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Bool)]
        plain: bool,
    }
    let found: Option<Found> = diesel::sql_query(
        "SELECT relkind IN ('r', 'p') AND NOT relrowsecurity AND NOT relhasrules AND NOT EXISTS (SELECT FROM pg_attribute \
         WHERE attrelid = pg_class.oid AND attidentity = 'a' AND NOT attisdropped) AS plain FROM pg_class \
         WHERE oid = to_regclass($1)",
    )
    .bind::<Text, _>(quoted_table(table, '"'))
    .get_result(connection)
    .optional()?;
    Ok(found.is_some_and(|found| found.plain))
}

/// Inserts the rows, and returns their number.
pub(super) fn insert(connection: &mut PgConnection, plan: &Plan, rows: &Rows) -> QueryResult<usize> {
    let table = quoted_table(&plan.table, '"');
    let target = format!("{table} ({})", quoted_list(plan.columns.iter(), '"'));
    TARGET.set(target);
    diesel::copy_from(any_table::table)
        .from_raw_data(Target, |packets| send(plan, rows, packets))
        .execute(connection)
}

// diesel needs the table of `COPY` at compile time; this one is a placeholder.
diesel::table! {
    any_table (id) {
        id -> BigInt,
    }
}

thread_local! {
    /// The table and the columns of the current call.
    static TARGET: RefCell<String> = const { RefCell::new(String::new()) };
}

struct Target;

impl CopyTarget for Target {
    type Table = any_table::table;
    type SqlType = BigInt;

    fn walk_target(mut pass: AstPass<'_, '_, Pg>) -> QueryResult<()> {
        TARGET.with_borrow(|target| pass.push_sql(target));
        Ok(())
    }
}

/// Writes the rows in the text format of `COPY`.
fn send(plan: &Plan, rows: &Rows, packets: &mut dyn Write) -> QueryResult<()> {
    let mut packet = Vec::with_capacity(2 * PACKET);
    let mut scratch = String::new();
    for row in 0..rows.len() {
        for (index, column) in plan.columns.iter().enumerate() {
            if index > 0 {
                packet.push(b'\t');
            }
            match rows.cell(row, column.field) {
                Cell::Null => packet.extend_from_slice(b"\\N"),
                Cell::Bytes(_) => {
                    packet.extend_from_slice(b"\\\\x");
                    packet.extend_from_slice(rows.shown(row, column.field, &mut scratch).as_bytes());
                }
                _ => push_escaped(
                    &mut packet,
                    rows.shown(row, column.field, &mut scratch).as_bytes(),
                ),
            }
        }
        packet.push(b'\n');
        if packet.len() >= PACKET {
            send_packet(&mut packet, packets)?;
        }
    }
    send_packet(&mut packet, packets)
}

fn send_packet(packet: &mut Vec<u8>, packets: &mut dyn Write) -> QueryResult<()> {
    packets
        .write_all(packet)
        .map_err(|error| Error::SerializationError(error.into()))?;
    packet.clear();
    Ok(())
}

fn push_escaped(packet: &mut Vec<u8>, mut text: &[u8]) {
    let special = |byte: &u8| matches!(byte, b'\\' | b'\t' | b'\n' | b'\r');
    while let Some(at) = text.iter().position(special) {
        packet.extend_from_slice(&text[..at]);
        packet.extend_from_slice(match text[at] {
            b'\\' => b"\\\\",
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            _ => b"\\r",
        });
        text = &text[at + 1..];
    }
    packet.extend_from_slice(text);
}
