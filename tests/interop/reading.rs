//! Rows of one program, as the other reads them.

use batch_runtime::BatchStatus;
use batch_tests::process::text;
use serde_json::json;

use super::artifacts::{message, until_waiting};
use super::shared::{On, Shared, TablesOf, assert_same, contexts, parameters};

const WIDTH: usize = 2_500;

/// Runs three jobs in this runtime: one fails, one completes, one is stopped.
fn write_here(shared: &Shared) {
    assert_eq!(shared.launch("skips", &parameters(1)).status, BatchStatus::Failed);
    assert_eq!(
        shared.launch("prepared", &parameters(2)).status,
        BatchStatus::Completed
    );
    let started = shared.operator.start("waits", parameters(3)).unwrap();
    until_waiting(&shared.name);
    assert!(shared.operator.stop(started).unwrap());
}

/// Spring Batch reads the same ids, parameters, statuses, messages, times, counters and contexts that this runtime
/// writes; and computes the same keys of instances from its parameters.
///
/// Spec: REPO-02, REPO-14, REPO-26, REPO-28 to REPO-36, REPO-39, REPO-43, REPO-45 to REPO-47, REPO-54 to REPO-61, REPO-64 to
/// REPO-69, REPO-75, ID-03, ID-04
#[test]
fn spring_batch_reads_rows_of_this_runtime() {
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::Us);
        write_here(&shared);
        let mut there = shared.seen_there();
        let contexts = contexts(&mut there);
        // `start` creates a new instance by adding a number, under the parameter name that Spring Batch's JSR-352 uses
        // too, and does not print it.
        let of_start = there[2]["parameters"].as_array_mut().unwrap();
        let place = of_start.iter().position(|one| one["name"] == "jsr_batch_run_id");
        let run = of_start.remove(place.unwrap());
        assert_eq!(
            (&run["type"], &run["value"], &run["identifying"]),
            (&json!("LONG"), &json!(3), &json!(true))
        );
        assert_same(&there.clone().into(), &shared.seen_here().into(), on);

        let [skips, prepared, waits] = &there[..] else {
            panic!("{there:?}");
        };
        for (execution, status) in [(skips, "FAILED"), (prepared, "COMPLETED"), (waits, "STOPPED")] {
            assert_eq!(execution["status"], status, "{on:?}");
            let id = execution["execution"].as_i64().unwrap();
            assert_eq!(execution["key"], shared.column("JOB_KEY", id), "{on:?}");
        }
        let said = skips["steps"][0]["exitMessage"].as_str().unwrap();
        assert_eq!(said.chars().count(), WIDTH, "{on:?}");
        assert!(said.contains(&message()[..100]), "{on:?}: {said}");
        let counters = json!({
            "reads": 16, "writes": 14, "filters": 1, "commits": 4, "rollbacks": 1,
            "readSkips": 0, "processSkips": 1, "writeSkips": 0,
        });
        assert_eq!(skips["steps"][0]["counters"], counters, "{on:?}");
        // Of the job, and of its step: the reader, the writer, and the writer's data.
        assert_eq!(contexts[0], json!({}), "{on:?}");
        let kept = json!({
            "batch.reader.checkpoint": "16",
            "batch.writer.checkpoint": "\"größer 漢字 😀\"",
            "batch.persistent.user.data": "[\"größer 漢字 😀\",[13,14,15,16]]",
        });
        assert_eq!(contexts[1], kept, "{on:?}");
    }
}

/// This runtime reads the rows of Spring Batch, in tables that Spring Batch created: by the operator and by the command
/// line; its contexts are kept unchanged.
///
/// Spec: REPO-05, REPO-13, REPO-26, REPO-38, REPO-43, REPO-45 to REPO-47, REPO-54 to REPO-61, REPO-64 to REPO-69, REPO-75
#[test]
fn this_runtime_reads_rows_of_spring_batch() {
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::SpringBatch);
        let fails = parameters(2).with_non_identifying("load", "fail");
        let works = parameters(3).with_non_identifying("load", "größer 漢字 😀");
        for (job, parameters, status) in [
            ("skips", &parameters(1), "FAILED"),
            ("prepared", &fails, "FAILED"),
            ("prepared", &works, "COMPLETED"),
        ] {
            assert_eq!(shared.run(job, parameters).unwrap()["status"], status, "{on:?}");
        }
        let mut there = shared.seen_there();
        let contexts = contexts(&mut there);
        assert_same(&there.clone().into(), &shared.seen_here().into(), on);
        assert_eq!(contexts[1]["numbers.read.count"], 16, "{on:?}");
        assert_eq!(there[0]["steps"][0]["counters"]["processSkips"], 1, "{on:?}");
        assert_eq!(
            there[0]["exitMessage"].as_str().unwrap().encode_utf16().count(),
            WIDTH
        );

        let found = shared.json(&["executions", "--json", "--job", "prepared", "--status", "FAILED"]);
        assert_eq!(found.as_array().unwrap().len(), 1, "{on:?}");
        assert_eq!(found[0]["execution"], 2, "{on:?}");
        assert_eq!(found[0]["exitMessage"], there[1]["exitMessage"], "{on:?}");
        let shown = shared.json(&["show", "1", "--json"]);
        assert_eq!(shown["steps"][0]["processSkips"], 1, "{on:?}");
        assert_eq!(shown["steps"][0]["filters"], 1, "{on:?}");
        let printed = text(&shared.command(&["params", "2"]).stdout);
        assert_eq!(
            printed,
            "-big(long)=-9223372036854775808\ndate(date)=2024-01-01T00:00:00.123Z\n\
             input.file=/data/größer 漢字 😀.csv\n-load=fail\n-note=\nrate(double)=1.5\nrun.id(long)=2\n\
             -tiny(double)=1.0E-7\n-until(date)=1969-12-31T23:59:59.999Z\n",
            "{on:?}"
        );

        // An exported instance keeps the entries that this runtime does not understand.
        let line = text(&shared.command(&["export", "2"]).stdout);
        let mut elsewhere = Shared::new(on, TablesOf::Us);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), line).unwrap();
        let imported = elsewhere.command(&["import", file.path().to_str().unwrap()]);
        assert_eq!(
            text(&imported.stdout),
            "imported as instance 1\n",
            "{}",
            text(&imported.stderr)
        );
        let mut again = elsewhere.seen_there();
        assert_eq!(self::contexts(&mut again), contexts[2..5], "{on:?}");
        assert_eq!(contexts[4]["text"], "größer 漢字 😀", "{on:?}");
    }
}

/// Reports, abandons and purges instances that Spring Batch wrote; Spring Batch then rejects the abandoned one, and does not see the
/// purged one.
///
/// Spec: REPO-75, REPO-87, OP-27, OP-28
#[test]
fn this_runtime_operates_rows_of_spring_batch() {
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::SpringBatch);
        let fails = parameters(1).with_non_identifying("load", "fail");
        assert_eq!(
            shared.run("prepared", &fails).unwrap()["status"],
            "FAILED",
            "{on:?}"
        );
        assert_eq!(
            shared.run("prepared", &parameters(2)).unwrap()["status"],
            "COMPLETED",
            "{on:?}"
        );
        let listed = text(&shared.command(&["list", "prepared"]).stdout);
        assert!(
            listed.contains("FAILED") && listed.contains("COMPLETED"),
            "{on:?}: {listed}"
        );

        let report = tempfile::NamedTempFile::with_suffix(".md").unwrap();
        let path = report.path().to_str().unwrap();
        let reported = shared.command(&["show", "1", "--report", path]);
        assert!(reported.status.success(), "{on:?}: {}", text(&reported.stderr));
        let report = std::fs::read_to_string(report.path()).unwrap();
        for expected in ["prepared", "load", "FAILED"] {
            assert!(report.contains(expected), "{on:?}: {report}");
        }

        let abandoned = shared.command(&["abandon", "1"]);
        assert!(abandoned.status.success(), "{on:?}: {}", text(&abandoned.stderr));
        assert_eq!(shared.seen_there()[0]["status"], "ABANDONED", "{on:?}");
        let refused = shared.run("prepared", &parameters(1)).unwrap_err();
        assert!(
            refused.starts_with("JobInstanceAlreadyComplete"),
            "{on:?}: {refused}"
        );

        let purged = shared.command(&["purge", "--keep", "1"]);
        assert!(purged.status.success(), "{on:?}: {}", text(&purged.stderr));
        let left = shared.seen_there();
        assert_eq!(left.len(), 1, "{on:?}: {left:?}");
        assert_eq!(left[0]["execution"], 2, "{on:?}");
    }
}
