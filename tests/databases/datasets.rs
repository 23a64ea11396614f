//! The tables that readers and writers of `batch-items` report, on each database.

use std::fs;
use std::sync::{Arc, Mutex};

use batch_runtime::JobParameters;
use batch_runtime::observer::{JobEvent, JobEventKind};
use batch_tests::database::Database;
use batch_tests::stage::Stage;
use {batch_batchlets as _, batch_items as _};

const JOB: &str = r#"<job id="job">
  <step id="load" next="report">
    <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordTableWriter"><properties>
      <property name="resource" value="${folder}/in.csv"/>
      <property name="table" value="payment"/>
    </properties></chunk>
  </step>
  <step id="report">
    <chunk reader="queryRecordReader" processor="recordProcessor" writer="recordJsonlWriter"><properties>
      <property name="query" value="SELECT id FROM payment ORDER BY id"/>
      <property name="tables" value="payment, missing"/>
      <property name="output" value="${folder}/out.jsonl"/>
      <property name="max.items.per.file" value="1"/>
    </properties></chunk>
  </step>
</job>"#;

/// Returns the namespace and the name that a table should have.
fn expected(stage: &Stage, table: &str) -> (String, String) {
    let place = stage.place();
    let address = place.address();
    let (_, database) = address.rsplit_once('/').unwrap();
    match place.database() {
        Database::Sqlite => (format!("sqlite://{address}"), table.to_owned()),
        // The servers listen at sockets.
        Database::Postgres => (
            "postgres://localhost:5432".to_owned(),
            format!("{database}.public.{table}"),
        ),
        Database::Mariadb => ("mysql://localhost:3306".to_owned(), format!("{database}.{table}")),
    }
}

/// A table has the name of its server, database and schema, and its columns; a password is in no name. Each file is a dataset.
///
/// Spec: LIN-02
#[test]
fn tables_are_datasets_of_their_server() {
    for database in Database::ALL {
        let stage = Stage::on(database, JOB);
        fs::write(stage.path().join("in.csv"), "id,amount\n1,1.5\n2,2.5\n").unwrap();
        let create = "CREATE TABLE payment (id BIGINT, amount DOUBLE PRECISION)";
        stage.outside().execute(create).unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&received);
        let runtime = stage.another_runtime_with(|builder| {
            builder.observer(move |event: &JobEvent| {
                if let JobEventKind::DatasetUsed(dataset) = &event.kind {
                    seen.lock().unwrap().push((**dataset).clone());
                }
            })
        });
        let operator = runtime.job_operator();
        let execution = operator.start("job", JobParameters::default()).unwrap();
        operator.wait(execution).unwrap();
        operator.flush_observers();
        let received = received.lock().unwrap();
        let tables: Vec<_> = received
            .iter()
            .filter(|dataset| dataset.namespace != "file")
            .collect();
        assert_eq!(tables.len(), 2, "{received:?}");
        let file = |name: &str| {
            let path = stage.path().join(name).display().to_string();
            received.iter().filter(|dataset| dataset.name == path).count()
        };
        let files = ["in.csv", "out-0001.jsonl", "out-0002.jsonl"];
        assert_eq!(files.map(file), [1, 1, 1], "{received:?}");
        for table in tables {
            let name = (table.namespace.clone(), table.name.clone());
            assert_eq!(name, expected(&stage, "payment"), "{database:?}");
            let columns: Vec<_> = table.fields.iter().map(|field| field.name.as_str()).collect();
            assert_eq!(columns, ["id", "amount"], "{database:?}");
        }
    }
}
