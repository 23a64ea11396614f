//! Section 4.2.6: partitioned steps.

use std::collections::BTreeSet;

use batch_runtime::prelude::*;
use batch_runtime::{BatchStatus, JobParameters, OutputPath};
use batch_tests::stage::Stage;
use insta::assert_snapshot;

use crate::artifacts::{
    Gate, assert_completed, assert_contains, assert_failed, calls, completed_steps, impatient, job, refused,
    restart_with, started, story, wrapped,
};
use crate::parallel::{
    A_AND_B, ONE_THREAD, in_turn, log_of, partition_of, partitioned, properties, sorted, sorted_tree,
};
use crate::sequence::{done, flow, meeting, run, split};

/// Returns a chunk step in partitions `a` and `b`, each with its own log.
fn chunks(numbers: &str) -> String {
    let own = format!("log.1=${{log}}/a; log.2=${{log}}/b; {numbers}");
    format!(
        r#"<step id="load"><chunk reader="Numbers" processor="Labels" writer="Lines" commit-interval="2"/>
  <partition instances="2">{}</partition></step>"#,
        properties(&own)
    )
}

/// Every partition waits for all others: they run at the same time, each with a row, and the step waits for all.
///
/// Spec: PART-01, PART-03, PART-04, PART-05, PART-07, PART-26, PART-27, PART-32, PART-34, PALG-01, CTX-04, D-75
#[test]
fn all_partitions_run_at_the_same_time() {
    let names = properties("name.1=a; name.2=b; name.3=c; name.4=d");
    let elements = format!(
        r#"<step id="all" next="last"><batchlet ref="Meeting"><properties><property name="meets" value="a, b, c, d"/></properties></batchlet>
        <partition instances="4">{names}</partition></step>"#
    ) + &done("last");
    let (stage, execution) = started(&elements, ());
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED MET
      step all:2 COMPLETED MET
      step all:3 COMPLETED MET
      step all:4 COMPLETED MET
      step last COMPLETED DONE
    ");
}

/// Each partition has its own reader, writer, checkpoint, counters and property values.
///
/// Spec: PART-06, PART-08, PART-09, PART-10, PART-12, PART-14, PART-16, SUBST-09, SUBST-18, OVR-09, D-33, D-34
#[test]
fn partitions_of_a_chunk_are_independent() {
    let stage = Stage::new(&job(&chunks("items.1=3; items.2=1")));
    // A job parameter or system property of that name does not override the value of a partition.
    let execution = stage.start("job", [("items", "9")]);
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job COMPLETED
      step load COMPLETED
      step load:1 COMPLETED read 3 write 3 commit 2
      step load:2 COMPLETED read 1 write 1 commit 1
    ");
    assert_snapshot!(log_of(&stage, "a"), @r"
    open reader at the beginning · open writer at the beginning · read 1 · process 1 · read 2
    process 2 · write n1 n2 · checkpoint reader at 2 · checkpoint writer at 2 · read 3 · process 3
    read the end · write n3 · checkpoint reader at 3 · checkpoint writer at 3 · close writer
    close reader
    ");
    assert_snapshot!(log_of(&stage, "b"), @r"
    open reader at the beginning · open writer at the beginning · read 1 · process 1 · read the end
    write n1 · checkpoint reader at 1 · checkpoint writer at 1 · close writer · close reader
    ");
    // The system property `log` did not reach the partitions.
    assert_eq!(stage.log(), [""; 0]);
}

/// The parameter with the number gives one partition its value.
///
/// Spec: PART-13, OVR-12, D-34
#[test]
fn a_parameter_with_the_number_overrides_one_partition() {
    let elements = in_turn(A_AND_B);
    let stage = Stage::new(&job(&elements));
    stage.start("job", [("name.2", "from outside"), ("name", "not this")]);
    assert_snapshot!(wrapped(&stage.log()), @"process a · process from outside");
}

/// A property with a target reaches that artifact only, and symbols take their values from the partition.
///
/// Spec: PART-14, PART-15, PART-16, SUBST-09, D-35
#[test]
fn a_target_and_a_symbol_count_within_the_partition() {
    let elements = r#"<step id="load"><chunk reader="Numbers" processor="Labels" writer="Lines" commit-interval="${every}"/>
  <partition instances="2"><properties>
    <property name="log.1" value="${log}/a"/><property name="log.2" value="${log}/b"/>
    <property name="items.1" value="2" target="reader"/><property name="items.2" value="3" target="reader"/>
    <property name="fail.1" value="process 2" target="writer"/>
    <property name="every.1" value="1"/><property name="every.2" value="5"/>
  </properties></partition></step>"#;
    let (stage, execution) = started(elements, ());
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job COMPLETED
      step load COMPLETED
      step load:1 COMPLETED read 2 write 2 commit 3
      step load:2 COMPLETED read 3 write 3 commit 1
    ");
}

/// The algorithm decides the number of partitions and the properties of each; attributes and properties of the element
/// are then ignored.
///
/// Spec: PART-17, PART-18, PART-19, PART-20, PART-21, PALG-03, PPLAN-04, SUBST-09
#[test]
fn an_algorithm_plans_the_partitions() {
    let elements = in_turn(
        r#"instances="7"|<properties><property name="name.1" value="from XML"/></properties>
               <algorithm ref="Planner"><properties><property name="parts" value="x,y,z"/></properties></algorithm>"#,
    );
    assert_snapshot!(run(&elements), @r"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED x DONE
      step all:2 COMPLETED y DONE
      step all:3 COMPLETED z DONE
    plan · process x · process y · process z
    ");
}

/// A plan may have no properties and no partitions; a negative number, or one that differs from the number of its
/// properties, is rejected.
///
/// Spec: PART-22, PART-23, PART-24, D-49
#[test]
fn odd_plans() {
    let mut text = String::new();
    for (parts, count, bare) in [
        ("a,b", "2", "true"),
        ("", "0", "false"),
        ("a,b", "3", "false"),
        ("a", "-1", "true"),
    ] {
        let elements = in_turn("|<algorithm ref=\"Planner\"/><logicalTX ref=\"Unit\"/>");
        let (stage, execution) = started(&elements, [("parts", parts), ("count", count), ("bare", bare)]);
        text += &format!("{}\n", story(&stage, execution));
    }
    assert_snapshot!(text, @r"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED nameless DONE
      step all:2 COMPLETED nameless DONE
    tx begin · plan · process nameless · process nameless · tx before completion
    tx after 2 calls COMMIT
    job job COMPLETED
      step all COMPLETED
    tx begin · plan · tx before completion · tx after 2 calls COMMIT
    job job FAILED | the partition algorithm has planned 3 partitions, and the properties of 2
      step all FAILED | the job's message
    tx begin · plan · tx rollback · tx after 2 calls ROLLBACK
    job job FAILED | the partition algorithm has planned -1 partitions
      step all FAILED | the job's message
    tx begin · plan · tx rollback · tx after 2 calls ROLLBACK
    ");
}

/// Limits apply per partition: the skips of one do not count for the others.
///
/// Spec: PART-06, CHUNK-SKIP-06, CHUNK-SKIP-15
#[test]
fn each_partition_has_its_own_skip_limit() {
    let skips = r#"<skippable-exception-classes><include class="Exception"/></skippable-exception-classes>"#;
    let limited = format!("commit-interval=\"2\" skip-limit=\"1\">{skips}</chunk>");
    let elements = chunks("items.1=3; items.2=4").replace("commit-interval=\"2\"/>", &limited);
    let (stage, execution) = started(&elements, [("fail", "process 2")]);
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job COMPLETED
      step load COMPLETED
      step load:1 COMPLETED read 3 write 2 commit 2 process skip 1
      step load:2 COMPLETED read 4 write 3 commit 3 process skip 1
    ");
}

/// If one partition fails the others are stopped, and the step fails.
///
/// Spec: PART-25, PART-26, PART-28, STATUS-25, D-32
#[test]
fn a_partition_that_fails_stops_the_others() {
    let elements = format!(
        r#"<step id="all"><batchlet ref="Meeting"><properties><property name="meets" value="a, b, c"/></properties></batchlet>
        <partition instances="3">{}</partition></step>"#,
        properties("name.1=a; name.2=b; name.3=c; then.1=fail; then.2=wait; then.3=wait")
    );
    let (stage, execution) = started(&elements, ());
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job FAILED | a had enough | thrown by #[process] of batchlet `Meeting` | in partition 1 of `all`
      step all FAILED | the job's message
      step all:1 FAILED | a had enough | thrown by #[process] of batchlet `Meeting`
      step all:2 STOPPED MET
      step all:3 STOPPED MET
    ");
    assert_snapshot!(sorted(&stage), @"cancel b · cancel c");
}

/// A stop reaches every running partition, and no other starts.
///
/// Spec: PART-26, PART-28, BLET-06, BLET-11, D-105
#[test]
fn a_stop_reaches_every_partition() {
    let elements = format!(
        r#"<step id="all"><properties><property name="batch.partition.threads" value="2"/></properties>
        <batchlet ref="Meeting"><properties><property name="then" value="wait"/></properties></batchlet>
        <partition instances="3">{}</partition></step>"#,
        properties("name.1=a; name.2=b; meets.1=b; meets.2=a")
    );
    let stage = Stage::new(&job(&elements));
    let operator = stage.operator();
    let execution = operator.start("job", ()).unwrap();
    let gate = Gate::at(&stage);
    gate.pass("a is here");
    gate.pass("b is here");
    let statuses = || -> Vec<BatchStatus> {
        let steps = operator.step_executions(execution).unwrap();
        steps.iter().map(|step| step.status).collect()
    };
    // The last one waits for a thread.
    let [step, one, two, last] = statuses()[..] else {
        panic!()
    };
    assert_eq!([step, one, two], [BatchStatus::Started; 3]);
    assert_eq!(last, BatchStatus::Starting);
    operator.stop(execution).unwrap();
    operator.wait(execution).unwrap();
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job STOPPED
      step all STOPPED
      step all:1 STOPPED MET
      step all:2 STOPPED MET
      step all:3 STOPPED
    ");
    assert_snapshot!(sorted(&stage), @"cancel a · cancel b");
    let steps = operator.step_executions(execution).unwrap();
    assert_eq!(
        steps[3].ended,
        Some(steps[3].started),
        "it waited, and took no time"
    );
}

/// After a stop the restart runs the incomplete partitions, from their checkpoints, with the plan of the first
/// execution.
///
/// Spec: PART-26, PART-28, PART-29, PART-30, RESTART-09, RESTART-13, D-48, D-50
#[test]
fn a_restart_runs_incomplete_partitions() {
    let elements = ONE_THREAD.to_owned() + &chunks("items.1=3; items.2=5; hold.at.2=3");
    let stage = impatient(&job(&elements));
    let operator = stage.operator();
    let execution = operator.start("job", ()).unwrap();
    let gate = Gate::at(&stage);
    gate.pass("held");
    operator.stop(execution).unwrap();
    gate.open("go");
    operator.wait(execution).unwrap();
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job STOPPED
      step load STOPPED
      step load:1 COMPLETED read 3 write 3 commit 2
      step load:2 STOPPED read 3 write 3 commit 2
    ");
    log_of(&stage, "a");
    log_of(&stage, "b");
    // With another number they would not be the same partitions.
    stage.rewrite(&job(&elements.replace("instances=\"2\"", "instances=\"3\"")));
    let again = stage.another_runtime().job_operator();
    let refused = again.restart(execution, ()).unwrap();
    let message = again.wait(refused).unwrap().exit_message;
    assert_contains(&message, "there were 2 partitions, and the Job XML has 3 now");
    stage.rewrite(&job(&elements));
    let again = stage.another_runtime().job_operator();
    let execution = again.restart(execution, ()).unwrap();
    again.wait(execution).unwrap();
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job COMPLETED
      step load COMPLETED
      step load:2 COMPLETED read 2 write 2 commit 2
    ");
    assert_snapshot!(log_of(&stage, "a"), @"");
    assert_snapshot!(log_of(&stage, "b"), @r"
    open reader at 3 · open writer at 3 · read 4 · process 4 · read 5 · process 5 · write n4 n5
    checkpoint reader at 5 · checkpoint writer at 5 · read the end · checkpoint reader at 5
    checkpoint writer at 5 · close writer · close reader
    ");
}

/// The algorithm is called once; a restart uses the stored plan. A complete step that runs again is planned again.
///
/// Spec: PART-30, JSL-STEP-10, D-50
#[test]
fn the_plan_is_kept_until_the_step_is_complete() {
    let attributes = r#"allow-start-if-complete="true" next="last""#;
    let step = partitioned("all", attributes, "Part", "|<algorithm ref=\"Planner\"/>");
    let elements = ONE_THREAD.to_owned() + &step + &done("last");
    let (stage, first) = started(&elements, [("parts", "a,b"), ("fail", "process b")]);
    assert_snapshot!(story(&stage, first), @r"
    job job FAILED | cannot process b | thrown by #[process] of batchlet `Part`
        | in partition 2 of `all`
      step all FAILED | the job's message
      step all:1 COMPLETED a DONE
      step all:2 FAILED | cannot process b | thrown by #[process] of batchlet `Part`
    plan · process a · process b
    ");
    let second = restart_with(&stage, first, [("parts", "c"), ("fail", "process last")]);
    assert_snapshot!(story(&stage, second), @r"
    job job FAILED | cannot process last | thrown by #[process] of batchlet `Task`
      step all COMPLETED
      step all:2 COMPLETED b DONE
      step last FAILED | the job's message
    process b · begin last · process last · end last
    ");
    let third = restart_with(&stage, second, [("parts", "d"), ("fail", "")]);
    assert_snapshot!(story(&stage, third), @r"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED d DONE
      step last COMPLETED DONE
    plan · process d · begin last · process last · end last
    ");
}

/// Step listeners are called once, on the step's thread; item listeners in the partitions, each with its own instance.
///
/// Spec: PART-31, LISTEN-JOB-06, JSL-STEPLIS-02
#[test]
fn step_listeners_run_once_and_item_listeners_in_the_partitions() {
    let elements = format!(
        r#"<listeners><listener ref="JobWatch"/></listeners>{ONE_THREAD}
        <step id="load"><listeners><listener ref="NamedListener"><properties><property name="name" value="${{name}}"/></properties></listener></listeners>
        <chunk reader="Numbers" processor="Labels" writer="Lines"/>
        <partition instances="2">{}</partition></step>"#,
        properties("name.1=a; name.2=b; items.1=1; items.2=2")
    );
    let stage = Stage::new(&job(&elements));
    stage.start("job", ());
    let recorded = calls(&stage, &["nameless", "JobWatch", "a ", "b ", "open reader"]);
    assert_snapshot!(recorded, @r"
    JobWatch before job job STARTED · JobWatch before step load STARTED · nameless before load
    open reader at the beginning · a read 1 load · open reader at the beginning · b read 1 load
    b read 2 load · nameless after load · JobWatch after step load COMPLETED
    JobWatch after job job COMPLETED
    ");
}

/// Each partition has its own contexts: other partitions and the step do not see its values, and its persistent data is
/// restored to it.
///
/// Spec: PART-27, PART-33, CTX-06, CTX-07, CTX-08, CTX-25, CTX-36, D-67
#[test]
fn partitions_have_contexts_of_their_own() {
    let elements = in_turn(A_AND_B);
    let (stage, failed) = started(&elements, [("look", "contexts"), ("fail", "process a;process b")]);
    assert_snapshot!(story(&stage, failed), @r"
    job job FAILED | cannot process a | thrown by #[process] of batchlet `Part`
        | in partition 1 of `all`
      step all FAILED | the job's message
      step all:1 FAILED | cannot process a | thrown by #[process] of batchlet `Part`
      step all:2 STOPPED
    a in job job STARTED, step all STARTED; transient false, job exit None, kept None · process a
    ");
    let again = restart_with(&stage, failed, [("look", "contexts"), ("fail", "")]);
    assert_snapshot!(story(&stage, again), @r#"
    job job COMPLETED
      step all COMPLETED
      step all:1 COMPLETED a DONE
      step all:2 COMPLETED b DONE
    a in job job STARTED, step all STARTED; transient false, job exit None, kept Some("by a")
    process a · b in job job STARTED, step all STARTED; transient false, job exit None, kept None
    process b
    "#);
}

/// The maximum number of threads is a setting of the runtime, or a property of the step or job; the job's property wins.
///
/// Spec: PART-03, PART-34
#[test]
fn threads_can_be_limited() {
    // Three run at the same time and wait for each other; the fourth starts when a thread is free.
    let names: Vec<_> = (1..=9).map(|number| format!("name.{number}=p{number}")).collect();
    let elements = format!(
        r#"<step id="all"><properties><property name="batch.partition.threads" value="3"/></properties>
        <batchlet ref="Crowd"/><partition instances="9">{}</partition></step>"#,
        properties(&names.join("; "))
    );
    let without = elements.replace("batch.partition.threads", "unused");
    let three = "<properties><property name=\"batch.partition.threads\" value=\"3\"/></properties>";
    let of_job = three.to_owned() + &without;
    let none = JobParameters::new();
    let parameter = JobParameters::from([("batch.partition.threads", "3")]);
    for (elements, of_runtime, of_system, parameters) in [
        (&elements, 1, "", none.clone()),
        (&of_job, 1, "", none.clone()),
        (&without, 3, "", none.clone()),
        (&without, 1, "3", none),
        (&without, 1, "", parameter),
    ] {
        let stage = Stage::configured(&job(elements), |builder| {
            let builder = builder.partition_threads(of_runtime);
            match of_system {
                "" => builder,
                threads => builder.system_property("batch.partition.threads", threads),
            }
        });
        stage.start("job", parameters);
        // Each reports it while the others run.
        let mut log = stage.log();
        log.sort();
        let expected = ["1 at the same time", "2 at the same time", "3 at the same time"];
        assert_eq!(log, expected);
    }
    let many = elements.replace("value=\"3\"", "value=\"many\"");
    let zero = JobParameters::from([("batch.partition.threads", "0")]);
    for (elements, parameters, value) in [(&many, JobParameters::new(), "many"), (&without, zero, "0")] {
        let error = refused(&Stage::new(&job(elements)), "job", parameters);
        let problem = format!("invalid value \"{value}\" for `batch.partition.threads`");
        assert_contains(&error, &problem);
    }
}

/// A mistake in one partition is reported before anything runs, and once if it is in all of them.
///
/// Spec: PART-02, PART-05, PART-11, SUBST-09, BPROP-10
#[test]
fn mistakes_within_partitions_are_reported_at_the_start() {
    let mut text = String::new();
    let part = |partition: &str| partitioned("all", "", "Part", partition);
    for elements in [
        chunks("items.1=3; items.2=many"),
        chunks("").replace("\"Numbers\"", "\"Number\""),
        part(r#"instances="2"|<collector ref="Sent"/><analyzer ref="Part"/>"#),
        part(r#"|<algorithm ref="Plan"/><logicalTX ref="Unite"/>"#).replace("\"Part\"", "\"Parts\""),
        part(r#"instances="2"|<collector ref="Send"/><analyzer ref="Count"/>"#),
    ] {
        text += &refused(&Stage::new(&job(&elements)), "job", ());
        text += "\n";
    }
    assert_snapshot!(text);
}

/// A mistake that only the plan reveals is reported when the partition starts: the step fails.
///
/// Spec: SUBST-09, PART-21, D-39
#[test]
fn a_symbol_that_the_plan_does_not_give_fails_the_partition() {
    let elements = r#"<step id="all"><batchlet ref="${part.kind}"/><partition><algorithm ref="Planner"/></partition></step>"#;
    let (stage, execution) = started(elements, [("parts", "a")]);
    let folder = format!("{}/", stage.path().display());
    assert_snapshot!(sorted_tree(&stage, execution).replace(&folder, ""), @r#"
    job job FAILED
        | error[JSL0041]: the symbol `part.kind` has no value
        |  --> jobs/job.xml:2:31
        |   |
        | 2 | <step id="all"><batchlet ref="${part.kind}"/><partition><algorithm ref="Planner"/></partition></step>
        |   |                               ^^^^^^^^^^^^ no job parameter, system property or enclosing property has this name
        | in partition 1 of `all`
      step all FAILED | the job's message
      step all:1 FAILED
        | error[JSL0041]: the symbol `part.kind` has no value
        |  --> jobs/job.xml:2:31
        |   |
        | 2 | <step id="all"><batchlet ref="${part.kind}"/><partition><algorithm ref="Planner"/></partition></step>
        |   |                               ^^^^^^^^^^^^ no job parameter, system property or enclosing property has this name
    "#);
}

/// Any number of partitions completes, on any number of threads.
///
/// Spec: PART-03, PART-32, PART-34
#[test]
fn any_number_of_partitions_ends() {
    for threads in [1, 2, 8] {
        let elements = format!(
            r#"<step id="all"><properties><property name="batch.partition.threads" value="{threads}"/></properties>
            <batchlet ref="Part"/><partition><algorithm ref="Planner"/></partition></step>"#
        );
        let stage = Stage::new(&job(&elements));
        for count in [1, 2, 9, 1_000] {
            let execution = stage.start("job", [("bare", "true"), ("count", &count.to_string())]);
            let steps = completed_steps(&stage, execution);
            let names: BTreeSet<&str> = steps.iter().map(|step| step.step_name.as_str()).collect();
            assert_eq!((steps.len(), names.len()), (count + 1, count + 1));
        }
    }
}

/// A split of partitioned flows of partitioned steps, each with one thread: an element that waits for subjobs does not
/// occupy one of their threads.
///
/// Spec: FPART-07, SPLIT-06, PART-34
#[test]
fn three_levels_of_subjobs_end() {
    let subjobs = r#"<collector ref="Send"/><analyzer ref="Receive"/>"#;
    let inner = partition_of(&format!("instances=\"5\"|{subjobs}"));
    let outer = partition_of(&format!("instances=\"4\"|<logicalTX ref=\"Unit\"/>{subjobs}"));
    let flows: String = (1..=3)
        .map(|number| {
            let step = format!(r#"<step id="step{number}"><batchlet ref="Part"/>{inner}</step>"#);
            flow(&format!("flow{number}"), "", &(step + &outer))
        })
        .collect();
    let around = format!("<concurrency>{subjobs}</concurrency>");
    let elements = ONE_THREAD.to_owned() + &split("all", "", &(flows + &around));
    let (stage, execution) = started(&elements, ());
    let steps = completed_steps(&stage, execution);
    // In each of three flows: four partitions, each with a step and its five partitions.
    assert_eq!(steps.len(), 3 * 4 * (1 + 1 + 5));
    let log = stage.log();
    let count = |word: &str| log.iter().filter(|call| call.starts_with(word)).count();
    assert_eq!(count("process"), 60);
    // Of the steps, the flows and the split.
    assert_eq!(count("data"), 60 + 12 + 3);
    assert_eq!(count("tx after"), 3);
}

/// A failed flow stops the others, with the partitions that they wait for.
///
/// Spec: SPLIT-18, PART-28, D-32
#[test]
fn a_failed_flow_stops_the_partitions_of_its_siblings() {
    let partition = format!(
        r#"<partition instances="2">{}</partition>"#,
        properties("name.1=b; name.2=c")
    );
    let waits = meeting("load", "", "a", "wait", "");
    let waits = waits.replace("</batchlet>", &format!("</batchlet>{partition}"));
    let flows = flow("bad", "", &meeting("a", "", "b, c", "fail", "")) + &flow("good", "", &waits);
    let (stage, execution) = started(&split("both", "", &flows), ());
    assert_snapshot!(sorted_tree(&stage, execution), @r"
    job job FAILED | a had enough | thrown by #[process] of batchlet `Meeting`
      step a FAILED | the job's message
      step load STOPPED
      step load:1 STOPPED load MET
      step load:2 STOPPED load MET
    ");
    assert_snapshot!(sorted(&stage), @"cancel b · cancel c");
}

/// Writes a report.
#[batchlet("WritesReport")]
fn writes_report(#[batch_property] report: &OutputPath) -> Result<(), std::io::Error> {
    std::fs::write(report.path(), "done")
}

/// Returns a step that writes a report to this file of the stage.
fn report(id: &str, file: &str, partition: &str) -> String {
    format!(
        r#"<step id="{id}"><batchlet ref="WritesReport"><properties><property name="report" value="${{folder}}/{file}"/></properties>
           </batchlet>{partition}</step>"#
    )
}

/// Two flows of a split, or partitions inside of two partitions, do not write one output.
///
/// Spec: LOSS-03
#[test]
fn an_output_belongs_to_one_lane() {
    let flows = |second: &str| {
        let flows =
            flow("a", "", &report("report", "report", "")) + &flow("b", "", &report("again", second, ""));
        Stage::new(&job(&split("both", "", &flows)))
    };
    let problem = flows("report").operator().start("job", ()).unwrap_err();
    assert_contains(&problem, "flow `a` and flow `b` both write `");
    let stage = flows("other");
    assert_completed(&stage, stage.start("job", ()));
    let nested = report("report", "report", "<partition instances=\"1\"/>");
    let (stage, execution) = started(&flow("outer", "", &(nested + "<partition instances=\"2\"/>")), ());
    assert_failed(&stage, execution, "of `outer` both write `");
}

/// Two partitions with the same output do not start, even if they name it differently; `check` warns.
///
/// Spec: LOSS-03
#[test]
fn an_output_belongs_to_one_partition() {
    let reporting = |third| {
        let names = properties(&format!("name.1=a; name.2=b; name.3={third}"));
        let partition = format!(r#"<partition instances="3">{names}</partition>"#);
        Stage::new(&job(&report("report", "jobs/../report.${name}", &partition)))
    };
    let shared = "partition 1 and partition 3 both write `";
    let stage = reporting("b/../report.a");
    let checks = stage.operator().check("job", ()).unwrap();
    let warning = checks.iter().find(|problem| problem.code == "ART0029");
    assert_contains(&warning.unwrap().message, shared);
    let execution = stage.start("job", ());
    assert_failed(&stage, execution, shared);
    assert_eq!(stage.operator().step_executions(execution).unwrap().len(), 1);
    let stage = reporting("c");
    assert_completed(&stage, stage.start("job", ()));
}
