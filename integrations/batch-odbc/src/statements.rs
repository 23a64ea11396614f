//! The statements of the writer.

use batch_items::database::{Column, Plan, quoted, quoted_table};
use batch_items::writers::WriteMode;

use crate::dialect::{Dialect, Insert, Upsert};

/// A statement that writes one row or several.
pub(crate) struct Statement {
    pub(crate) text: String,
    /// The columns of the plan whose values are the parameters of a row, in their order.
    pub(crate) parameters: Vec<usize>,
}

/// How names are written.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) quote: char,
    pub(crate) dialect: &'static Dialect,
}

/// The most parameters of a statement: SQL Server has no more.
const MOST_PARAMETERS: usize = 2_000;
/// The most rows of a statement: more are not faster.
const MOST_ROWS: usize = 100;

impl Names {
    /// Returns how many rows one statement inserts.
    pub(crate) fn rows_of_insert(&self, plan: &Plan) -> usize {
        match self.dialect.insert {
            Insert::One => 1,
            Insert::Values | Insert::Select(_) => {
                (MOST_PARAMETERS / plan.columns.len().max(1)).clamp(1, MOST_ROWS)
            }
        }
    }

    /// Returns the statement that inserts this number of rows.
    pub(crate) fn insert(&self, plan: &Plan, rows: usize) -> Statement {
        let (into, row) = (self.into(plan), placeholders(plan.columns.len()));
        let text = match self.dialect.insert {
            Insert::Values | Insert::One => {
                format!("{into} VALUES {}", vec![format!("({row})"); rows].join(", "))
            }
            Insert::Select(from) => {
                format!(
                    "{into} {}",
                    vec![format!("SELECT {row}{from}"); rows].join(" UNION ALL ")
                )
            }
        };
        Statement {
            text,
            parameters: places_of(plan, |_| true),
        }
    }

    /// Returns the statements that write one row: each follows if the one before has changed none.
    pub(crate) fn row(&self, plan: &Plan) -> Vec<Statement> {
        let table = self.table(plan);
        match plan.mode {
            WriteMode::Insert => vec![self.insert(plan, 1)],
            WriteMode::Update => vec![self.update(plan)],
            WriteMode::Delete => vec![Statement {
                text: format!("DELETE FROM {table} WHERE {}", self.conditions(plan)),
                parameters: places_of(plan, |column| column.is_key),
            }],
            WriteMode::Upsert => self.upsert(plan),
        }
    }

    fn update(&self, plan: &Plan) -> Statement {
        let mut set: Vec<_> = plan
            .values()
            .map(|column| format!("{} = ?", self.name(column)))
            .collect();
        // An upsert of a row that is its key alone.
        if set.is_empty() {
            set.extend(
                plan.keys()
                    .take(1)
                    .map(|column| format!("{0} = {0}", self.name(column))),
            );
        }
        Statement {
            text: format!(
                "UPDATE {} SET {} WHERE {}",
                self.table(plan),
                set.join(", "),
                self.conditions(plan)
            ),
            parameters: [
                places_of(plan, |column| !column.is_key),
                places_of(plan, |column| column.is_key),
            ]
            .concat(),
        }
    }

    fn upsert(&self, plan: &Plan) -> Vec<Statement> {
        let (table, row) = (self.table(plan), placeholders(plan.columns.len()));
        let keys = self.list(plan.keys());
        match self.dialect.upsert {
            Upsert::OnConflict => {
                let set = self.set_from(plan, "excluded");
                let end = match set.is_empty() {
                    // An update of nothing, so that the row is counted.
                    true => self.set_key(plan),
                    false => set,
                };
                let into = self.into(plan);
                vec![self.of_all(
                    plan,
                    format!("{into} VALUES ({row}) ON CONFLICT ({keys}) DO UPDATE SET {end}"),
                )]
            }
            Upsert::UpdateOrInsert => {
                let all = self.list(plan.columns.iter());
                let text = format!("UPDATE OR INSERT INTO {table} ({all}) VALUES ({row}) MATCHING ({keys})");
                vec![self.of_all(plan, text)]
            }
            Upsert::Merge(from) => vec![self.of_all(plan, self.merge(plan, from))],
            Upsert::UpdateElseInsert => vec![self.update(plan), self.insert(plan, 1)],
            Upsert::UpdateThenInsert(from) => {
                let text = format!(
                    "{} SELECT {row}{from} WHERE NOT EXISTS (SELECT 1 FROM {table} WHERE {})",
                    self.into(plan),
                    self.conditions(plan)
                );
                let parameters =
                    [places_of(plan, |_| true), places_of(plan, |column| column.is_key)].concat();
                vec![self.update(plan), Statement { text, parameters }]
            }
        }
    }

    /// Returns whether the statements of a row count it.
    pub(crate) fn counts_row(&self, plan: &Plan) -> bool {
        match (plan.mode, self.dialect.upsert) {
            (WriteMode::Upsert, Upsert::UpdateThenInsert(_)) => false,
            // A row that is its key alone, and is there, is not changed.
            (WriteMode::Upsert, Upsert::Merge(_)) => plan.values().next().is_some(),
            _ => true,
        }
    }

    fn merge(&self, plan: &Plan, from: &str) -> String {
        let table = self.table(plan);
        let source: Vec<_> = plan
            .columns
            .iter()
            .map(|column| format!("? AS {}", self.name(column)))
            .collect();
        let same: Vec<_> = plan
            .keys()
            .map(|column| format!("t.{0} = s.{0}", self.name(column)))
            .collect();
        let set = self.set_from(plan, "s");
        let update = match set.is_empty() {
            true => String::new(),
            false => format!(" WHEN MATCHED THEN UPDATE SET {set}"),
        };
        let values: Vec<_> = plan
            .columns
            .iter()
            .map(|column| format!("s.{}", self.name(column)))
            .collect();
        // SQL Server locks the key, so that no other merge inserts it, and wants a semicolon.
        let (hint, end) = match self.dialect.name {
            "Microsoft SQL Server" => (" WITH (HOLDLOCK)", ";"),
            _ => ("", ""),
        };
        format!(
            "MERGE INTO {table}{hint} t USING (SELECT {}{from}) s ON ({}){update} WHEN NOT MATCHED THEN INSERT ({}) VALUES ({}){end}",
            source.join(", "),
            same.join(" AND "),
            self.list(plan.columns.iter()),
            values.join(", ")
        )
    }

    fn of_all(&self, plan: &Plan, text: String) -> Statement {
        Statement {
            text,
            parameters: places_of(plan, |_| true),
        }
    }

    fn into(&self, plan: &Plan) -> String {
        format!(
            "INSERT INTO {} ({})",
            self.table(plan),
            self.list(plan.columns.iter())
        )
    }

    fn set_from(&self, plan: &Plan, source: &str) -> String {
        let set: Vec<_> = plan
            .values()
            .map(|column| format!("{0} = {source}.{0}", self.name(column)))
            .collect();
        set.join(", ")
    }

    fn set_key(&self, plan: &Plan) -> String {
        let first = plan
            .keys()
            .next()
            .map(|column| self.name(column))
            .unwrap_or_default();
        format!("{first} = excluded.{first}")
    }

    fn conditions(&self, plan: &Plan) -> String {
        let conditions: Vec<_> = plan
            .keys()
            .map(|column| format!("{} = ?", self.name(column)))
            .collect();
        conditions.join(" AND ")
    }

    fn table(&self, plan: &Plan) -> String {
        self.quoted_table(&plan.table)
    }

    pub(crate) fn quoted_table(&self, table: &str) -> String {
        quoted_table(table, self.quote)
    }

    fn name(&self, column: &Column) -> String {
        quoted(&column.name, self.quote)
    }

    fn list<'c>(&self, columns: impl Iterator<Item = &'c Column>) -> String {
        let names: Vec<_> = columns.map(|column| self.name(column)).collect();
        names.join(", ")
    }
}

/// Returns where columns of a kind are in a plan.
fn places_of(plan: &Plan, is_one: impl Fn(&Column) -> bool) -> Vec<usize> {
    let columns = plan.columns.iter().enumerate();
    columns
        .filter(|(_, column)| is_one(column))
        .map(|(place, _)| place)
        .collect()
}

/// Returns placeholders for this number of values.
fn placeholders(count: usize) -> String {
    vec!["?"; count].join(", ")
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use batch_items::database::{Settings, Table, TableColumn};
    use batch_items::rows::{Kind, Limit};
    use batch_items::writers::RowsAffected;

    use super::*;
    use crate::dialect::COMPARED;

    fn table() -> Table {
        let column = |name: &str| TableColumn {
            name: name.to_owned(),
            sql_type: String::new(),
            kind: Some(Kind::Text),
            limit: Limit::None,
            needs_value: false,
            is_computed: false,
            is_distinct: false,
            is_exact_number: false,
        };
        Table {
            columns: ["ID", "PART", "NAME", "CENTS"].map(column).to_vec(),
            ..Table::default()
        }
    }

    /// Oracle, SQL Server and DB2 are not there for tests: their statements are.
    // Spec: ODBC-06
    #[test]
    fn statements_of_each_database() {
        let mut shown = String::new();
        for (database, quote) in COMPARED {
            let names = Names {
                quote: *quote,
                dialect: Dialect::of(database),
            };
            writeln!(shown, "-- {database}").unwrap();
            for mode in [
                WriteMode::Insert,
                WriteMode::Upsert,
                WriteMode::Update,
                WriteMode::Delete,
            ] {
                let settings = Settings {
                    add: &[],
                    table: "LEDGER.POSTING",
                    key: &["ID".to_owned(), "PART".to_owned()],
                    mode,
                    rows_affected: RowsAffected::Check,
                };
                let fields = ["ID", "PART", "NAME", "CENTS"].map(str::to_owned);
                let plan = Plan::new(&settings, &fields, &table()).unwrap();
                let statements = match mode {
                    WriteMode::Insert => vec![names.insert(&plan, names.rows_of_insert(&plan).min(2))],
                    _ => names.row(&plan),
                };
                for statement in statements {
                    let parameters: Vec<_> = statement
                        .parameters
                        .iter()
                        .map(|place| plan.columns[*place].name.as_str())
                        .collect();
                    writeln!(shown, "{}\n    {}", statement.text, parameters.join(" ")).unwrap();
                }
                // A row that is its key alone.
                if mode == WriteMode::Upsert {
                    let plan = Plan::new(&settings, &fields[..2], &table()).unwrap();
                    for statement in names.row(&plan) {
                        writeln!(shown, "{}", statement.text).unwrap();
                    }
                }
            }
        }
        insta::assert_snapshot!(shown);
    }
}
