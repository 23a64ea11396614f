//! Statements that diesel finds by their type.
//!
//! diesel caches prepared statements per connection, by the type of the query if its text never changes, else by the text. Building
//! that text costs time for each value. The text of a statement depends on the table, so each type here is assigned one text for
//! the life of the process.

use std::sync::{Mutex, PoisonError};

use diesel::connection::Connection;
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::result::QueryResult;

use crate::bind::Bind;

/// The texts in the order of their numbers.
static TEXTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The number of a text, if there is a type for it.
#[derive(Clone, Copy)]
pub(super) struct TextNumber(Option<usize>);

/// The statement whose text has the number `N`.
struct Numbered<S, const N: usize>(S);

/// The identity of all statements whose text has the number `N`.
struct Text<const N: usize>;

impl<S, const N: usize> QueryId for Numbered<S, N> {
    type QueryId = Text<N>;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl<DB: Bind, S: QueryFragment<DB>, const N: usize> QueryFragment<DB> for Numbered<S, N> {
    fn walk_ast<'b>(&'b self, out: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.0.walk_ast(out)
    }
}

impl<C, S, const N: usize> RunQueryDsl<C> for Numbered<S, N> {}

/// Defines the number of types and the choice among them.
macro_rules! numbered {
    ($count:literal: $($number:literal)*) => {
        impl TextNumber {
            /// Returns the number of a text; none if all numbers are assigned to other texts.
            pub(super) fn of(text: String) -> Self {
                let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(number) = texts.iter().position(|other| *other == text) {
                    return Self(Some(number));
                }
                if texts.len() == $count {
                    return Self(None);
                }
                texts.push(text);
                Self(Some(texts.len() - 1))
            }
        }

        /// Executes a statement whose text has the number.
        pub(super) fn execute<C, S>(
            connection: &mut C,
            statement: S,
            number: TextNumber,
        ) -> QueryResult<usize>
        where
            C: Connection<Backend: Bind>,
            S: QueryFragment<C::Backend> + QueryId + RunQueryDsl<C>,
        {
            match number.0 {
                $(Some($number) => Numbered::<S, $number>(statement).execute(connection),)*
                _ => statement.execute(connection),
            }
        }
    };
}

// Two texts for each table that a program writes, which is more than most programs need.
numbered!(8: 0 1 2 3 4 5 6 7);
