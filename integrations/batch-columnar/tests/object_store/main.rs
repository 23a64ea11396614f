//! Parquet files and Excel workbooks in a real object store, Ceph: written as other files, and downloaded to be read.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "../../../../batch-items/tests/files/stage.rs"]
#[expect(dead_code, reason = "the tests of batch-items use the rest of it")]
mod stage;

use batch_columnar::{ParquetItemReader, ParquetItemWriter, XlsxItemReader, XlsxItemWriter};
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
#[item_reader("SheetRowReader")]
type SheetRowReader = XlsxItemReader<Row>;
#[item_writer("SheetRowWriter")]
type SheetRowWriter = XlsxItemWriter<Row>;

pass!(PassRow: Row);

#[test]
fn a_parquet_file_is_written_and_read() {
    check_restarts("ParquetRow", "parquet");
}

/// Spec: LOSS-01
#[test]
fn a_workbook_is_written_and_read() {
    check_restarts("SheetRow", "xlsx");
}

/// Checks that a file is written and read whole, after restarts.
fn check_restarts(artifacts: &str, extension: &str) {
    let server = ObjectServer::shared();
    let (bucket, endpoint) = (server.new_bucket(), server.endpoint());
    let client = format!(
        "store.options=endpoint={endpoint}, allow_http=true, access_key_id={ACCESS_KEY}, secret_access_key={SECRET_KEY}"
    );
    let rows: String = (1..=9).map(|id| format!("{id},x\n")).collect();
    for fail_at in [4, 9] {
        let write = Stage::new(
            &format!(
                "reader=\"RowReader\" processor=\"PassRow\" writer=\"{artifacts}Writer\" commit-interval=\"2\""
            ),
            &format!(
                "resource=${{dir}}/in\noutput=s3://{bucket}/a.{extension}\nspool=${{dir}}/spool\n{client}"
            ),
        );
        write.write("in", format!("id,text\n{rows}"));
        let read = Stage::new(
            &format!(
                "reader=\"{artifacts}Reader\" processor=\"PassRow\" writer=\"RowWriter\" commit-interval=\"2\""
            ),
            &format!("resource=s3://{bucket}/*.{extension}\noutput=${{dir}}/out\n{client}"),
        );
        for stage in [&write, &read] {
            let failed = stage.start([("fail.at", fail_at.to_string())]);
            let again = stage.restart(&failed, [("fail.at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        }
        assert_eq!(read.read("out"), format!("id,text\n{rows}"));
    }
}
