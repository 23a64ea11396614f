//! Tests of the job with `batch-testing`.

use batch_testing::JobTest;

#[test]
fn the_batchlet_greets() {
    let run = JobTest::new("hello/hello.xml").parameter("name", "Ada").launch();
    run.assert_completed().step("greet").assert_exit_status("GREETED");
}
