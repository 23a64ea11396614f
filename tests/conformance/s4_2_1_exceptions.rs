//! 4.2.1.2: the exceptions that a chunk step skips, and those that it never skips.

use batch_runtime::JobParameters;
use batch_runtime::prelude::*;
use batch_tests::stage::say;
use insta::assert_snapshot;

use super::artifacts::{calls, chosen, error_types, first_step_execution, tree};
use super::faults::{Oops, RULES, faulty, faulty_job, faulty_stage, listener, run};

/// The nearest class in a list decides; exclude wins if both name the same class. Without an include nothing is
/// skipped.
///
/// Spec: CHUNK-SKIP-03, CHUNK-SKIP-04, CHUNK-SKIP-05, CHUNK-EXC-01, CHUNK-EXC-02
#[test]
fn the_nearest_class_decides() {
    // The class that is thrown, the included (+) and excluded (-) classes, and the status of the job.
    for case in [
        "Both  +test.Trouble                COMPLETED",
        "Fatal +test.Trouble                FAILED",
        "Both  +test.Trouble -Both          FAILED",
        "Retry +test.Trouble -Both          COMPLETED",
        "Both  +Both -test.Trouble          COMPLETED",
        "Retry +Both -test.Trouble          FAILED",
        "Both  +Exception -Oops             FAILED",
        "Fatal +java.lang.Exception         COMPLETED",
        "Both  +Both -Both                  FAILED",
        "Retry -Both                        FAILED",
        "Retry                              FAILED",
    ] {
        let words: Vec<&str> = case.split_whitespace().collect();
        let [thrown, lists @ .., status] = words.as_slice() else {
            panic!("{case}")
        };
        let element = |class: &&str| match class.strip_prefix('+') {
            Some(class) => format!("<include class=\"{class}\"/>"),
            None => format!("<exclude class=\"{}\"/>", &class[1..]),
        };
        let lists: String = lists.iter().map(element).collect();
        let rule = format!("<skippable-exception-classes>{lists}</skippable-exception-classes>");
        let stage = faulty("", "Out", "", &rule);
        let story = run(&stage, &format!("process 2: {thrown}"), "3", &[]);
        assert!(story.starts_with(&format!("job job {status}")), "{case}\n{story}");
    }
}

error_types! {
    #[batch_exception(class = "test.Grandparent")]
    Old => "old";
    #[batch_exception(class = "test.Parent", extends = "test.Grandparent")]
    Middle => "middle";
    #[batch_exception(extends = "test.Parent")]
    Young => "young";
    // They extend each other.
    #[batch_exception(class = "test.Hen", extends = "test.Egg")]
    Hen => "hen";
    #[batch_exception(class = "test.Egg", extends = "test.Hen")]
    Egg => "egg";
}

/// Throws the class of its property.
#[item_processor("Throws")]
fn throws(_: &u64, #[batch_property] class: &str) -> Result<Option<String>, BatchError> {
    Err(match class {
        "Old" => Old.into(),
        "Middle" => Middle.into(),
        "Young" => Young.into(),
        "Hen" => Hen.into(),
        _ => Egg.into(),
    })
}

/// A class has two names, its path and the declared one, for itself and for its subclasses; cycles of classes do not
/// hang.
///
/// Spec: CHUNK-EXC-01, CHUNK-EXC-02
#[test]
fn classes_are_known_by_all_their_names() {
    let mut text = String::new();
    for included in [
        "test.Grandparent",
        "Grandparent",
        "Old",
        concat!(module_path!(), "::Old"),
        "test.Parent",
        "Middle",
        "Young",
        "test.Egg",
        "Nobody",
    ] {
        let rule = format!(
            r#"<skippable-exception-classes><include class="{included}"/></skippable-exception-classes>"#
        );
        let xml = faulty_job("", "Out", "", &rule).replace("Shape", "Throws");
        let stage = faulty_stage(&xml);
        let skipped = |class: &&str| {
            let execution = stage.start("job", [("class", *class), ("items", "1")]);
            stage.tree(execution).starts_with("job job COMPLETED")
        };
        let skipped = ["Old", "Middle", "Young", "Hen", "Egg"]
            .into_iter()
            .filter(skipped);
        let skipped: Vec<_> = skipped.collect();
        text += &format!("{included}: {}\n", skipped.join(" "));
    }
    assert_snapshot!(text, @r"
    test.Grandparent: Old Middle Young
    Grandparent: Old Middle Young
    Old: Old Middle Young
    conformance::s4_2_1_exceptions::Old: Old Middle Young
    test.Parent: Middle Young
    Middle: Middle Young
    Young: Young
    test.Egg: Hen Egg
    Nobody:
    ");
}

/// Only errors of item methods are skipped. Errors of open, the checkpoint methods, the algorithm and listeners of any class end the step;
/// errors of close are only logged. A panic is never skipped or retried, and fails its step only.
///
/// Spec: CHUNK-SKIP-05, CHUNK-SKIP-14, LISTEN-SKIP-06, CHUNK-LOOP-13, CHUNK-LOOP-14, CHUNK-EXC-03
#[test]
fn nothing_else_is_skipped() {
    // The outcome of an error, and of a panic where it differs.
    assert_snapshot!(each_fails(), @r#"
    open reader at 0: FAILED
    open writer at 0: FAILED
    begin checkpoint: FAILED rollback 1
    ready? true: FAILED rollback 1
    end checkpoint: FAILED rollback 1
    checkpoint reader at 3: FAILED rollback 1
    checkpoint writer: FAILED rollback 1
    close writer: COMPLETED read 5 write 3 commit 3 rollback 1 read skip 1 process skip 1 write skip 1
    close reader: COMPLETED read 5 write 3 commit 3 rollback 1 read skip 1 process skip 1 write skip 1
    L before read: FAILED rollback 1
    L after read 1: FAILED rollback 1
    L on read error Skip: FAILED rollback 1
    L on skip in read Skip: FAILED rollback 1
    L before process 1: FAILED rollback 1
    L after process 1 Some("n1"): FAILED rollback 1
    L on process error Skip 4: FAILED read 2 write 2 commit 1 rollback 1 read skip 1
    L on skip in process Skip 4: FAILED read 2 write 2 commit 1 rollback 1 read skip 1
    L before write n1 n3: FAILED rollback 1
    L after write n1 n3: FAILED rollback 1
    L on write error Retry n5: FAILED read 2 write 2 commit 1 rollback 1 read skip 1
    L on retry exception Retry n5: COMPLETED read 5 write 3 commit 3 rollback 1 read skip 1 process skip 1 write skip 1
        panic: FAILED read 2 write 2 commit 1 rollback 1 read skip 1
    L on retry item Retry n5: COMPLETED read 5 write 2 commit 3 rollback 1 read skip 1 process skip 1 write skip 2
        panic: FAILED read 2 write 2 commit 1 rollback 2 read skip 1
    L on write error Skip n6: FAILED read 4 write 3 commit 2 rollback 2 read skip 1 process skip 1
    L on skip in write Skip n6: FAILED read 4 write 3 commit 2 rollback 2 read skip 1 process skip 1
    L before checkpoint: FAILED rollback 1
    L after checkpoint: FAILED read 2 write 2 commit 1 read skip 1
    read 1: COMPLETED read 4 write 2 commit 3 rollback 1 read skip 2 process skip 1 write skip 1
        panic: FAILED rollback 1
    process 1: COMPLETED read 5 write 2 commit 3 rollback 1 read skip 1 process skip 2 write skip 1
        panic: FAILED rollback 1
    write n1 n3: COMPLETED read 5 write 3 commit 3 rollback 2 read skip 1 process skip 1 write skip 1
        panic: FAILED rollback 1
    read the end: COMPLETED read 5 write 3 commit 3 rollback 1 read skip 2 process skip 1 write skip 1
        panic: FAILED read 4 write 3 commit 2 rollback 2 read skip 1 process skip 1
    "#);
}

/// The outcome of the step when each call in turn throws or panics, in a job that skips and retries every exception.
fn each_fails() -> String {
    let rules = r#"<checkpoint-algorithm ref="Every"/>
        <skippable-exception-classes><include class="Exception"/></skippable-exception-classes>
        <retryable-exception-classes><include class="Retry"/><include class="Soft"/></retryable-exception-classes>
        <no-rollback-exception-classes><include class="Soft"/></no-rollback-exception-classes>"#;
    let xml = faulty_job(
        &listener("", ""),
        "TableOut",
        "checkpoint-policy=\"custom\"",
        rules,
    );
    let usual = "read 2: Skip x1; process 4: Skip x1; has n5: @Retry x1; has n6: @Skip x1";
    let outcome = |call: &str, class: &str| {
        let faults = format!("{call}: {class} x1; {usual}");
        let story = run(&faulty_stage(&xml), &faults, "6", &["nothing"]);
        let (_, step) = story.split_once("step copy ").unwrap();
        let outcome = step.lines().next().and_then(|line| line.split(" |").next());
        outcome.unwrap().to_owned()
    };
    let mut text = String::new();
    for call in [
        "open reader at 0",
        "open writer at 0",
        "begin checkpoint",
        "ready? true",
        "end checkpoint",
        "checkpoint reader at 3",
        "checkpoint writer",
        "close writer",
        "close reader",
        "L before read",
        "L after read 1",
        "L on read error Skip",
        "L on skip in read Skip",
        "L before process 1",
        "L after process 1 Some(\"n1\")",
        "L on process error Skip 4",
        "L on skip in process Skip 4",
        "L before write n1 n3",
        "L after write n1 n3",
        "L on write error Retry n5",
        "L on retry exception Retry n5",
        "L on retry item Retry n5",
        "L on write error Skip n6",
        "L on skip in write Skip n6",
        "L before checkpoint",
        "L after checkpoint",
        // These may be skipped, unless they panic.
        "read 1",
        "process 1",
        "write n1 n3",
        "read the end",
    ] {
        let (thrown, panicked) = (outcome(call, "Skip"), outcome(call, "Panic"));
        text += &format!("{call}: {thrown}\n");
        if panicked != thrown {
            text += &format!("    panic: {panicked}\n");
        }
    }
    text
}

/// Fails at its third and fourth record a number of times, without moving on.
#[derive(BatchArtifact)]
struct Stuck {
    #[batch_property(name = "log")]
    log: String,
    #[batch_property(name = "stuck", value = "4000000000")]
    stuck: u32,
    /// The distance that its position moves with each failure.
    #[batch_property(name = "moves", value = "0")]
    moves: u64,
    position: u64,
    last: u64,
    failed: u32,
}

#[item_reader]
impl Stuck {
    #[open]
    fn open(&mut self, _: Option<u64>) {}
    #[read_item]
    fn read(&mut self) -> Result<Option<u64>, Oops> {
        if [2, 3].contains(&self.last) && self.failed < self.stuck {
            self.failed += 1;
            self.position += self.moves;
            return Err(Oops::Skip);
        }
        self.last += 1;
        self.position += 1;
        self.failed = 0;
        Ok((self.last < 5).then_some(self.last))
    }
    #[get_checkpoint_info]
    fn position(&mut self) -> u64 {
        self.position
    }
    #[close]
    fn close(&mut self) {
        let (last, failed) = (self.last, self.failed);
        say(
            &self.log,
            format!("close reader at {last} after {failed} failures"),
        );
    }
}

/// Without a skip-limit, a reader that fails repeatedly at the same place ends the step; a reader that recovers in
/// time, or whose position moves, does not.
///
/// Spec: CHUNK-SKIP-08, CHUNK-LOOP-13
#[test]
fn a_reader_that_is_stuck_fails_the_step() {
    let xml = faulty_job("", "Out", "", RULES).replace("Source", "Stuck");
    let stage = faulty_stage(&xml);
    let outcome = |parameters: &[(&str, &str)]| {
        let execution = stage.start("job", parameters.iter().copied().collect::<JobParameters>());
        tree(&stage, execution) + &calls(&stage, &["close", "write"])
    };
    assert_snapshot!(outcome(&[]), @r"
    job job FAILED | Skip | thrown by #[read_item] of item reader `Stuck`
        | 2000 reads in a row were skipped, and the reader's position has not changed during the last 1000; the reader has to advance past input that it cannot read
      step copy FAILED rollback 1 | the job's message
    close writer · close reader at 2 after 2000 failures
    ");
    assert_snapshot!(outcome(&[("stuck", "1999")]), @r"
    job job COMPLETED
      step copy COMPLETED read 4 write 4 commit 1 read skip 3998
    write n1 n2 n3 n4 · close writer · close reader at 5 after 0 failures
    ");
    let execution = stage.start("job", [("stuck", "4999"), ("moves", "1")]);
    let step = stage.operator().step_executions(execution).unwrap().remove(0);
    assert_eq!((step.counters.reads, step.counters.read_skips), (4, 9998));
}

/// The step's context shows the skipped exceptions and the counters in the repository.
///
/// Spec: CTX-29, CTX-30, CTX-40, CHUNK-SKIP-09, CHUNK-SKIP-10, CHUNK-SKIP-11, CHUNK-RETRY-12
#[test]
fn the_context_shows_exceptions_and_counters() {
    let listener = "<listener ref=\"Inspects\"/>";
    let stage = faulty(listener, "Out", "commit-interval=\"3\"", RULES);
    let mut text = String::new();
    for (faults, filter) in [
        ("read 2: Skip", "100"),
        ("process 2: Skip", "3"),
        ("has n2: Skip", "100"),
        ("has n2: @Retry x2", "100"),
        ("read 1: Skip; process 2: Skip; has n3: @Both", "4"),
    ] {
        let parameters = [("faults", faults), ("items", "7"), ("filter.every", filter)];
        let execution = stage.start("job", parameters);
        let c = first_step_execution(&stage, execution).counters;
        let log = chosen(&stage, &["exception", "ReadCount"]);
        let [.., exception, metrics] = log.as_slice() else {
            panic!("{log:?}")
        };
        let counts = [
            c.reads,
            c.writes,
            c.filters,
            c.commits,
            c.rollbacks,
            c.read_skips,
            c.process_skips,
            c.write_skips,
        ];
        let shown = metrics
            .split(", ")
            .map(|metric| metric.rsplit(' ').next().unwrap().parse::<i64>());
        assert_eq!(shown.collect::<Result<Vec<_>, _>>().unwrap(), counts, "{faults}");
        text += &format!("{faults}: {exception}\n{metrics}\n");
    }
    assert_snapshot!(text, @r"
    read 2: Skip: exception Some(Skip)
    ReadCount 6, WriteCount 6, FilterCount 0, CommitCount 3, RollbackCount 0, ReadSkipCount 1, ProcessSkipCount 0, WriteSkipCount 0
    process 2: Skip: exception Some(Skip)
    ReadCount 7, WriteCount 4, FilterCount 2, CommitCount 3, RollbackCount 0, ReadSkipCount 0, ProcessSkipCount 1, WriteSkipCount 0
    has n2: Skip: exception Some(Skip)
    ReadCount 7, WriteCount 6, FilterCount 0, CommitCount 3, RollbackCount 1, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 1
    has n2: @Retry x2: exception Some(Retry)
    ReadCount 7, WriteCount 7, FilterCount 0, CommitCount 3, RollbackCount 2, ReadSkipCount 0, ProcessSkipCount 0, WriteSkipCount 0
    read 1: Skip; process 2: Skip; has n3: @Both: exception Some(Both)
    ReadCount 6, WriteCount 3, FilterCount 1, CommitCount 3, RollbackCount 1, ReadSkipCount 1, ProcessSkipCount 1, WriteSkipCount 1
    ");
}

/// Exceptions thrown under observation and by retry listeners are shown as well.
///
/// Spec: CTX-29
#[test]
fn the_context_shows_errors_of_observed_and_retry_listeners() {
    let listeners = format!("<listener ref=\"Inspects\"/>{}", listener("", ""));
    let stage = faulty(&listeners, "Out", "commit-interval=\"3\"", RULES);
    let mut text = String::new();
    for faults in [
        "process 2: Skip",
        "has n2: @Soft x1; L on retry exception Soft n2: Fatal",
        "has n2: @Retry x1; L on retry item Retry n2: Skip",
    ] {
        stage.start("job", [("faults", faults)]);
        let log = chosen(&stage, &["exception"]);
        text += &format!("{faults}: {}\n", log.last().unwrap());
    }
    assert_snapshot!(text, @r"
    process 2: Skip: exception Some(Skip)
    has n2: @Soft x1; L on retry exception Soft n2: Fatal: exception Some(Fatal)
    has n2: @Retry x1; L on retry item Retry n2: Skip: exception Some(Skip)
    ");
}
