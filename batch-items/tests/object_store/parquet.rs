//! Parquet files in an object store: written as others, and downloaded to be read.

use batch_items::{ParquetItemReader, ParquetItemWriter};
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use batch_test_servers::ObjectServer;

use super::proxy::Proxy;
use super::stage::Stage;
use super::{Row, client};

#[item_reader("ParquetRowReader")]
type ParquetRowReader = ParquetItemReader<Row>;
#[item_writer("ParquetRowWriter")]
type ParquetRowWriter = ParquetItemWriter<Row>;

#[test]
fn a_parquet_file_is_written_and_read() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let (bucket, client) = (server.new_bucket(), client(&proxy));
    let rows: String = (1..=9).map(|id| format!("{id},x,\n")).collect();
    for fail_at in [4, 9] {
        let write = Stage::new(
            "reader=\"RowReader\" processor=\"PassRow\" writer=\"ParquetRowWriter\" commit-interval=\"2\"",
            &format!("resource=${{dir}}/in\noutput=s3://{bucket}/a.parquet\nspool=${{dir}}/spool\n{client}"),
        );
        write.write("in", format!("id,text,file\n{rows}"));
        let failed = write.start([("fail.at", fail_at.to_string())]);
        let again = write.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        let read = Stage::new(
            "reader=\"ParquetRowReader\" processor=\"PassRow\" writer=\"RowWriter\" commit-interval=\"2\"",
            &format!("resource=s3://{bucket}/*.parquet\noutput=${{dir}}/out\n{client}"),
        );
        let failed = read.start([("fail.at", fail_at.to_string())]);
        let again = read.restart(&failed, [("fail.at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(read.read("out"), format!("id,text,file\n{rows}"));
    }
}
