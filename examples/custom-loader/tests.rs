//! Tests of the job with `batch-testing`.

use batch_testing::{JobTest, WrittenItems};

/// The loader of batch.xml creates the processor with its client; the writer is a double.
#[test]
fn invoices_are_converted() {
    let written = WrittenItems::<String>::new();
    let run = JobTest::new("custom-loader/custom-loader.xml")
        .system_property("data", "data")
        .batch_xml("batch.xml", include_str!("batch.xml"))
        .writer("PrintInvoices", &written)
        .launch();
    run.assert_completed()
        .step("usage")
        .assert_exit_status("4 REQUESTS");
    assert_eq!(written.items().len(), 9);
    assert!(written.items()[0].ends_with("110.40 EUR"), "{written:?}");
}
