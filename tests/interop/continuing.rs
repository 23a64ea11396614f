//! Instances that start in one program and resume in the other.

use batch_runtime::{BatchStatus, JobExecutionId, JobOperatorError, JobParameters};
use serde_json::{Value, json};

use super::shared::{On, Shared, TablesOf, parameters, shown_parameters};
use super::spring::Version;

fn failing(run: i64) -> JobParameters {
    parameters(run).with_non_identifying("load", "fail")
}

/// The names of an execution's steps.
fn steps(execution: &Value) -> Vec<&str> {
    let steps = execution["steps"].as_array().unwrap();
    steps.iter().map(|step| step["step"].as_str().unwrap()).collect()
}

/// An instance that failed in one program is the same in the other, which resumes the failed step; a complete instance
/// is complete for both.
///
/// Spec: REPO-26, REPO-27, REPO-39, REPO-42, REPO-71, ID-04, ID-06, OP-36, RESTART-01, RESTART-02
#[test]
fn an_instance_is_resumed_on_either_side() {
    for (on, tables) in On::with_tables() {
        let mut shared = Shared::new(on, tables);
        // Spring Batch, this runtime, Spring Batch, and this runtime to the end.
        assert_eq!(shared.run("prepared", &failing(1)).unwrap()["instance"], 1);
        let here = shared.launch("prepared", &failing(1));
        assert_eq!(
            (here.id.0, here.instance_id.0, here.status),
            (2, 1, BatchStatus::Failed),
            "{on:?}"
        );
        let known = json!(["last", "prepared", shown_parameters(&parameters(1))]);
        let known = shared.spring.done(&shared.place, known);
        assert_eq!(
            known,
            json!({"execution": 2, "instance": 1, "status": "FAILED"}),
            "{on:?}"
        );
        let there = shared.run("prepared", &failing(1)).unwrap();
        assert_eq!(
            there,
            json!({"execution": 3, "instance": 1, "status": "FAILED"}),
            "{on:?}"
        );
        let works = JobParameters::new().with_non_identifying("load", "");
        let last = shared.operator.restart(JobExecutionId(3), works.clone()).unwrap();
        let last = shared.operator.wait(last).unwrap();
        assert_eq!((last.id.0, last.instance_id.0), (4, 1), "{on:?}");
        assert_eq!(
            last.status,
            BatchStatus::Completed,
            "{on:?}: {}",
            last.exit_message
        );
        let refused = shared.run("prepared", &parameters(1)).unwrap_err();
        assert!(
            refused.starts_with("JobInstanceAlreadyCompleteException"),
            "{on:?}: {refused}"
        );
        let refused = shared.operator.launch("prepared", parameters(1)).unwrap_err();
        assert!(
            matches!(refused, JobOperatorError::JobInstanceAlreadyComplete { .. }),
            "{on:?}: {refused}"
        );

        // This runtime, and Spring Batch to the end.
        let here = shared.launch("prepared", &failing(2));
        assert_eq!(
            (here.id.0, here.instance_id.0, here.status),
            (5, 2, BatchStatus::Failed),
            "{on:?}"
        );
        let there = shared.run("prepared", &parameters(2)).unwrap();
        assert_eq!(
            there,
            json!({"execution": 6, "instance": 2, "status": "COMPLETED"}),
            "{on:?}"
        );
        let refused = shared.operator.launch("prepared", parameters(2)).unwrap_err();
        assert!(
            matches!(refused, JobOperatorError::JobInstanceAlreadyComplete { .. }),
            "{on:?}: {refused}"
        );

        let seen = shared.seen_here();
        let started: Vec<_> = seen.iter().map(steps).collect();
        let (whole, rest) = (vec!["prepare", "load"], vec!["load"]);
        assert_eq!(
            started,
            [&whole, &rest, &rest, &rest, &whole, &rest].map(Clone::clone),
            "{on:?}"
        );
    }
}

/// The contexts of Spring Batch survive an execution of this runtime, and this runtime's data survives one of Spring
/// Batch.
///
/// Spec: REPO-65, REPO-66, REPO-68, REPO-69, REPO-75, CTX-23
#[test]
fn contexts_survive_executions_of_the_other_program() {
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::Us);
        shared.run("prepared", &failing(1)).unwrap();
        assert_eq!(shared.launch("prepared", &failing(1)).status, BatchStatus::Failed);
        let here = shared
            .operator
            .restart(JobExecutionId(2), JobParameters::new())
            .unwrap();
        assert_eq!(shared.operator.wait(here).unwrap().status, BatchStatus::Failed);
        let seen = shared.seen_there();
        // After the entries that Spring Batch adds for each step that it runs.
        let mut step = seen[0]["steps"][1]["context"].clone();
        for key in ["batch.stepType", "batch.taskletType", "batch.version"] {
            let entry = step.as_object_mut().unwrap().remove(key);
            let is_there = on.version != Version::V4 || key != "batch.version";
            assert_eq!(entry.is_some(), is_there, "{on:?}: {key}");
        }
        assert_eq!(step["much"], super::artifacts::message(), "{on:?}");
        let mut job = seen[0]["context"].clone();
        job.as_object_mut().unwrap().remove("batch.version");
        for later in [1, 2] {
            assert_eq!(seen[later]["context"], job, "{on:?}");
            let mut kept = seen[later]["steps"][0]["context"].clone();
            let ours = kept.as_object_mut().unwrap().remove("batch.persistent.user.data");
            assert_eq!(
                ours,
                Some(json!(format!("[\"größer 漢字 😀\",{later}]"))),
                "{on:?}"
            );
            assert_eq!(kept, step, "{on:?}");
        }
        // Spring Batch copies this runtime's entries, so they are still there.
        shared.run("prepared", &failing(1)).unwrap();
        assert_eq!(shared.launch("prepared", &failing(1)).id.0, 5, "{on:?}");
        let seen = shared.seen_there();
        let kept = &seen[4]["steps"][0]["context"]["batch.persistent.user.data"];
        assert_eq!(kept, "[\"größer 漢字 😀\",3]", "{on:?}");
    }
}

/// Spring Batch starts a chunk step of this runtime from the beginning, because it does not know its checkpoint; a
/// chunk step that Spring Batch has partly committed is rejected by this runtime, even if this runtime has a
/// checkpoint of the step.
///
/// Spec: REPO-68, RESTART-17
#[test]
fn a_chunk_step_that_the_other_program_started() {
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::Us);
        assert_eq!(shared.launch("skips", &parameters(1)).status, BatchStatus::Failed);
        let there = shared.run("skips", &parameters(1)).unwrap();
        assert_eq!(
            there,
            json!({"execution": 2, "instance": 1, "status": "FAILED"}),
            "{on:?}"
        );
        // It resumes at its own position, and commits nothing.
        shared.run("skips", &parameters(1)).unwrap();
        let seen = shared.seen_there();
        assert_eq!(seen[1]["steps"][0]["counters"]["writes"], 14, "{on:?}");
        assert_eq!(seen[2]["steps"][0]["counters"]["commits"], 0, "{on:?}");
        assert_eq!(
            seen[2]["steps"][0]["context"]["batch.reader.checkpoint"], "16",
            "{on:?}"
        );
        assert_eq!(seen[2]["steps"][0]["context"]["numbers.read.count"], 16, "{on:?}");
        let here = shared.launch("skips", &parameters(1));
        assert_eq!(here.status, BatchStatus::Failed, "{on:?}");
        assert!(
            here.exit_message
                .contains("another program, such as Spring Batch, has started step"),
            "{on:?}: {}",
            here.exit_message
        );
        // Spring Batch can still resume it.
        shared.run("skips", &parameters(1)).unwrap();
        let last = &shared.seen_here()[4]["steps"][0]["counters"];
        assert_eq!(
            (&last["reads"], &last["commits"]),
            (&json!(4), &json!(0)),
            "{on:?}"
        );
    }
}

/// Ids that both programs allocate in turn are unique and ascending.
///
/// Spec: REPO-18 to REPO-22, ID-07
#[test]
fn ids_that_both_allocate_never_collide() {
    for (on, tables) in On::with_tables() {
        let mut shared = Shared::new(on, tables);
        for run in 0..6 {
            if run % 2 == 0 {
                shared.run("prepared", &parameters(run)).unwrap();
            } else {
                shared.launch("prepared", &parameters(run));
            }
        }
        let seen = shared.seen_here();
        let numbers =
            |name: &str| -> Vec<i64> { seen.iter().map(|one| one[name].as_i64().unwrap()).collect() };
        assert_eq!(numbers("execution"), [1, 2, 3, 4, 5, 6], "{on:?}");
        assert_eq!(numbers("instance"), [1, 2, 3, 4, 5, 6], "{on:?}");
        let steps = seen.iter().flat_map(|one| one["steps"].as_array().unwrap());
        let steps: Vec<i64> = steps
            .map(|step| step["stepExecution"].as_i64().unwrap())
            .collect();
        assert_eq!(steps, (1..=12).collect::<Vec<_>>(), "{on:?}");
    }
}
