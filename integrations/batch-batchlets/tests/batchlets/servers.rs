//! `sqlScript` on PostgreSQL and MariaDB.

use batch_runtime::BatchStatus;
use batch_test_servers::{Kind, shared};
use diesel::prelude::*;
use diesel::query_builder::SqlQuery;
use diesel::query_dsl::LoadQuery;
use diesel::sql_types::BigInt;

use super::stage::{Stage, step};

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// Returns the value of a query with one column `number`.
fn number<C>(connection: &mut C, query: &str) -> i64
where
    C: Connection,
    for<'q> SqlQuery: LoadQuery<'q, C, Row>,
{
    let row: Row = diesel::sql_query(query).get_result(connection).unwrap();
    row.number
}

fn stage(url: &str, script: &str, more: &[(&str, &str)]) -> Stage {
    let mut properties = vec![("resource", "${folder}/setup.sql")];
    properties.extend(more);
    let stage = Stage::on(&step("step", "sqlScript", &properties), Some(url.to_owned()));
    stage.write("setup.sql", script);
    stage
}

#[cfg(feature = "postgres")]
mod postgres {
    use super::*;

    #[test]
    fn functions_and_texts_are_statements() {
        let url = shared(Kind::Postgres).new_database();
        let script = r"CREATE TABLE a (id bigint);
/* /* nested; */ ; */
CREATE FUNCTION fill() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  INSERT INTO a VALUES (length('it''s;$$'));
  INSERT INTO a VALUES (length(E'it\'s;'));
END $body$;
SELECT fill();";
        stage(&url, script, &[]).run().completed_as("COMPLETED");
        let mut connection = PgConnection::establish(&url).unwrap();
        assert_eq!(
            number(&mut connection, "SELECT sum(id)::bigint AS number FROM a"),
            12
        );
    }

    #[test]
    fn an_error_rolls_back_everything() {
        let url = shared(Kind::Postgres).new_database();
        let stage = stage(
            &url,
            "CREATE TABLE a (id bigint);\nINSERT INTO a\nVALUES ('x');",
            &[],
        );
        let ended = stage.run();
        let expected = format!(
            "at {}:2, `INSERT INTO a VALUES ('x')`: invalid input",
            stage.name("setup.sql")
        );
        assert!(ended.failed().contains(&expected), "{}", ended.message);
        let mut connection = PgConnection::establish(&url).unwrap();
        let tables = "SELECT count(*) AS number FROM pg_tables WHERE tablename = 'a'";
        assert_eq!(number(&mut connection, tables), 0);
    }

    #[test]
    fn a_stop_interrupts_the_statement() {
        let url = shared(Kind::Postgres).new_database();
        let stage = stage(&url, "CREATE TABLE a (id bigint);\nSELECT pg_sleep(10000);", &[]);
        let mut connection = PgConnection::establish(&url).unwrap();
        let sleeping = "SELECT count(*) AS number FROM pg_stat_activity \
                        WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active' AND datname = current_database()";
        let ended = stage.start_and_stop(|| number(&mut connection, sleeping) == 1);
        assert_eq!(
            (ended.status, ended.exit_status.as_str()),
            (BatchStatus::Stopped, "STOPPED")
        );
        assert_eq!(number(&mut connection, sleeping), 0);
    }
}

#[cfg(feature = "mysql")]
mod mariadb {
    use super::*;

    #[test]
    fn procedures_and_texts_are_statements() {
        let url = shared(Kind::Mariadb).new_database();
        let script = r"CREATE TABLE `a;b` (id bigint)@@
# A procedure; with statements.
CREATE PROCEDURE fill() BEGIN
  INSERT INTO `a;b` VALUES (length('it\'s;'));
  INSERT INTO `a;b` VALUES (5--3);
END@@
CALL fill()@@
SELECT * FROM `a;b`@@
";
        let ended = stage(&url, script, &[("separator", "@@")]).run();
        ended.completed_as("COMPLETED");
        let mut connection = MysqlConnection::establish(&url).unwrap();
        let sum = "SELECT CAST(sum(id) AS SIGNED) AS number FROM `a;b`";
        assert_eq!(number(&mut connection, sum), 13);
    }

    /// MariaDB commits before and after `CREATE TABLE`.
    #[test]
    fn an_error_rolls_back_to_the_last_implicit_commit() {
        let url = shared(Kind::Mariadb).new_database();
        let script = "CREATE TABLE a (id bigint);\nINSERT INTO a VALUES (1);\nCREATE TABLE b (id bigint);\n\
                      INSERT INTO a VALUES (2);\nINSERT INTO missing VALUES (1);";
        let stage = stage(&url, script, &[]);
        let ended = stage.run();
        assert!(
            ended.failed().contains("setup.sql:5, `INSERT INTO missing"),
            "{}",
            ended.message
        );
        let mut connection = MysqlConnection::establish(&url).unwrap();
        let rows = |id| format!("SELECT count(*) AS number FROM a WHERE id = {id}");
        assert_eq!(number(&mut connection, &rows(1)), 1);
        assert_eq!(number(&mut connection, &rows(2)), 0);
    }

    #[test]
    fn a_stop_interrupts_the_statement() {
        let url = shared(Kind::Mariadb).new_database();
        let stage = stage(&url, "SELECT SLEEP(10000);\nSELECT 1;", &[]);
        let mut connection = MysqlConnection::establish(&url).unwrap();
        let sleeping = "SELECT count(*) AS number FROM information_schema.processlist \
                        WHERE info LIKE 'SELECT SLEEP%' AND db = database()";
        let ended = stage.start_and_stop(|| number(&mut connection, sleeping) == 1);
        assert_eq!(
            (ended.status, ended.exit_status.as_str()),
            (BatchStatus::Stopped, "STOPPED")
        );
        assert_eq!(number(&mut connection, sleeping), 0);
    }
}
