//! Parquet files in a real object store, Ceph: written as other files, and downloaded to be read.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "../../../../batch-items/tests/files/stage.rs"]
#[expect(dead_code, reason = "the tests of batch-items use the rest of it")]
mod stage;

use batch_columnar::{ParquetItemReader, ParquetItemWriter};
use batch_items::{DelimitedItemReader, DelimitedItemWriter};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_test_servers::{ACCESS_KEY, ObjectServer, SECRET_KEY};
use serde::{Deserialize, Serialize};

use self::stage::{Stage, pass};

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Row {
    id: u64,
    text: String,
}

#[item_reader("RowReader")]
type RowReader = DelimitedItemReader<Row>;
#[item_writer("RowWriter")]
type RowWriter = DelimitedItemWriter<Row>;
#[item_reader("ParquetRowReader")]
type ParquetRowReader = ParquetItemReader<Row>;
#[item_writer("ParquetRowWriter")]
type ParquetRowWriter = ParquetItemWriter<Row>;

pass!(PassRow: Row);

#[test]
fn a_parquet_file_is_written_and_read() {
    let server = ObjectServer::shared();
    let (bucket, endpoint) = (server.new_bucket(), server.endpoint());
    let client = format!(
        "store.options=endpoint={endpoint}, allow_http=true, access_key_id={ACCESS_KEY}, secret_access_key={SECRET_KEY}"
    );
    let rows: String = (1..=9).map(|id| format!("{id},x\n")).collect();
    for fail_at in [4, 9] {
        let write = Stage::new(
            "reader=\"RowReader\" processor=\"PassRow\" writer=\"ParquetRowWriter\" commit-interval=\"2\"",
            &format!("resource=${{dir}}/in\noutput=s3://{bucket}/a.parquet\nspool=${{dir}}/spool\n{client}"),
        );
        write.write("in", format!("id,text\n{rows}"));
        let read = Stage::new(
            "reader=\"ParquetRowReader\" processor=\"PassRow\" writer=\"RowWriter\" commit-interval=\"2\"",
            &format!("resource=s3://{bucket}/*.parquet\noutput=${{dir}}/out\n{client}"),
        );
        for stage in [&write, &read] {
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            let again = stage.restart(&failed, [("fail.at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        }
        assert_eq!(read.read("out"), format!("id,text\n{rows}"));
    }
}
