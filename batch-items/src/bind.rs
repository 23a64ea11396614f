//! Values as parameters of statements, on any database.

use diesel::backend::Backend;
use diesel::query_builder::AstPass;
use diesel::result::QueryResult;
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, Binary, Bool, Double, HasSqlType, Nullable, Text};

use crate::rows::Kind;

/// A parameter of a statement.
#[derive(Clone, Copy)]
pub(crate) enum Parameter<'b> {
    /// Null, as a value of this type.
    Null(Kind),
    Bool(&'b bool),
    Int(&'b i64),
    Float(&'b f64),
    Text(&'b str),
    Bytes(&'b [u8]),
}

/// A database that takes each kind of parameter.
pub(crate) trait Bind: Backend {
    /// Adds the placeholder of a parameter to the statement, and its value.
    fn bind<'b>(out: &mut AstPass<'_, 'b, Self>, parameter: Parameter<'b>) -> QueryResult<()>;
}

impl<DB> Bind for DB
where
    DB: Backend
        + HasSqlType<Bool>
        + HasSqlType<BigInt>
        + HasSqlType<Double>
        + HasSqlType<Text>
        + HasSqlType<Binary>,
    bool: ToSql<Bool, DB>,
    i64: ToSql<BigInt, DB>,
    f64: ToSql<Double, DB>,
    str: ToSql<Text, DB>,
    [u8]: ToSql<Binary, DB>,
{
    fn bind<'b>(out: &mut AstPass<'_, 'b, DB>, parameter: Parameter<'b>) -> QueryResult<()> {
        match parameter {
            Parameter::Bool(value) => out.push_bind_param::<Bool, bool>(value),
            Parameter::Int(value) => out.push_bind_param::<BigInt, i64>(value),
            Parameter::Float(value) => out.push_bind_param::<Double, f64>(value),
            Parameter::Text(value) => out.push_bind_param::<Text, str>(value),
            Parameter::Bytes(value) => out.push_bind_param::<Binary, [u8]>(value),
            Parameter::Null(Kind::Bool) => out.push_bind_param::<Nullable<Bool>, Option<bool>>(&None),
            Parameter::Null(Kind::Int) => out.push_bind_param::<Nullable<BigInt>, Option<i64>>(&None),
            Parameter::Null(Kind::Float) => out.push_bind_param::<Nullable<Double>, Option<f64>>(&None),
            Parameter::Null(Kind::Bytes) => {
                out.push_bind_param::<Nullable<Binary>, Option<&'static [u8]>>(&None)
            }
            Parameter::Null(_) => out.push_bind_param::<Nullable<Text>, Option<&'static str>>(&None),
        }
    }
}
