//! Jobs that crash at every event of their repository. A program of its own: the processes that a sweep starts have for a moment the files,
//! with their locks, that other tests of the same program write.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::fs;

use batch_items as _;
use batch_testing::crash_sweep;

/// Wherever the process dies, each row of a whole group is in the table once.
#[test]
fn a_crash_loses_or_duplicates_no_group() {
    let folder = tempfile::tempdir().unwrap();
    let (job, input) = (folder.path().join("orders.xml"), folder.path().join("in.csv"));
    let xml = r#"<job id="orders"><step id="load">
      <chunk reader="csvRecordGroupReader" processor="recordGroupProcessor" writer="recordGroupTableWriter"
             commit-interval="2" skip-limit="1">
        <properties>
          <property name="group" value="key order"/>
          <property name="table" value="item"/>
        </properties>
        <skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>
      </chunk>
    </step></job>"#;
    fs::write(&job, xml).unwrap();
    let rows = "order,article\n1,x\n1,y\n2,x\n2,bad,bad\n2,y\n3,x\n4,x\n4,y\n4,z\n5,x\n";
    fs::write(&input, rows).unwrap();
    crash_sweep(job)
        .parameter("resource", input.display())
        .prepare(|database| database.execute("CREATE TABLE item (\"order\" TEXT, article TEXT)"))
        .run();
}
