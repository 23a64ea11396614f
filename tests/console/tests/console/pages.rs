//! What people on call do, in a real browser.

use std::fs;

use diesel::prelude::*;
use thirtyfour::prelude::*;

use crate::browser::{Browser, browse};
use crate::program::Scene;

/// Launches the job `nightly` by its form.
async fn launch(browser: &Browser, parameters: &[(&str, &str)]) {
    browser.open("/jobs/nightly").await;
    for (name, value) in parameters {
        match *name {
            "more" => browser.enter("more", value).await,
            name => browser.enter(&format!("p.{name}"), value).await,
        }
    }
    browser.click("Launch").await;
}

/// The page is not loaded again: what happens appears on it.
///
/// Spec: CON-03, CON-08, CON-09
#[test]
fn a_launch_is_followed_to_its_end() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let gate = scene.path().join("gate");
    browse(&served.url, true, async |browser| {
        let path = gate.to_str().unwrap();
        launch(&browser, &[("gate", path), ("gate.at", "25"), ("more", "day=1")]).await;
        assert_eq!(browser.path().await, "/executions/1");
        browser.script("window.isFirst = true").await;
        browser.until("#steps", "20").await;
        browser.until("#steps", "66 %").await;
        browser.until("#steps", "20 of 30 items").await;
        browser.until("#head", "STARTED").await;
        let facts = browser.text("#facts").await;
        assert!(
            facts.contains("Running for") && facts.contains(", process "),
            "{facts}"
        );
        assert!(!facts.contains("Exit status"), "{facts}");
        // The overview shows how much is done in another tab.
        browser.open_tab("/").await;
        browser.until("#running", "66 %").await;
        let bar = "const bar = document.querySelector('#running progress'); return [bar.value, bar.max, bar.ariaLabel]";
        assert_eq!(
            browser.script(bar).await,
            serde_json::json!([66, 100, "Progress of load"])
        );
        browser.first_tab().await;
        fs::write(&gate, "").unwrap();
        browser.until("#head", "COMPLETED").await;
        browser.until("#facts", "Exit status").await;
        browser.until("#steps", "archive").await;
        assert_eq!(browser.script("return window.isFirst").await, true);
        assert_eq!(browser.count("#graph .element.completed").await, 4);
        assert!(
            browser.text("#log").await.contains("wrote items=10"),
            "{}",
            browser.text("#log").await
        );
        assert_eq!(
            browser.count("#timeline .lane").await,
            2,
            "the flows of the split"
        );
        assert!(browser.text(".environment").await.contains("batch.db"));
        browser.click("branches:2").await;
        assert!(browser.text("#counters").await.contains("30"));
        // The items of partitions count for their step, and for the execution.
        browser.open("/executions/1").await;
        browser.click("branches").await;
        assert!(browser.text("#counters").await.contains("90"));
        assert!(
            browser.text("#log").await.contains("wrote items=10"),
            "lines of its partitions"
        );
        browser.open("/executions").await;
        assert!(
            browser.text("#list").await.contains("120"),
            "{}",
            browser.text("#list").await
        );
    });
}

/// Spec: CON-03, CON-12
#[test]
fn a_job_is_stopped_and_restarted() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let gate = scene.path().join("gate");
    browse(&served.url, true, async |browser| {
        launch(&browser, &[("gate", gate.to_str().unwrap()), ("gate.at", "25")]).await;
        browser.until("#steps", "20").await;
        browser.click("Stop…").await;
        assert!(
            browser
                .text("main")
                .await
                .contains("asked to stop at its next checkpoint")
        );
        browser.click("Stop").await;
        browser.until("#head", "STOPPING").await;
        fs::write(&gate, "").unwrap();
        browser.until("#head", "STOPPED").await;
        browser
            .until("main", "A restart resumes with step load, after")
            .await;
        browser.click("Restart…").await;
        browser.click("Restart").await;
        assert_eq!(browser.path().await, "/executions/2");
        browser.until("#head", "COMPLETED").await;
        browser.until("#others", "STOPPED").await;
        let actions = browser.text("#actions").await;
        assert!(
            actions.contains("restart execution 1") && !actions.contains("launch"),
            "{actions}"
        );
        browser.open("/audit").await;
        let log = browser.text("main").await;
        for entry in ["launch nightly", "stop execution 1", "restart execution 1"] {
            assert!(log.contains(entry), "{entry}: {log}");
        }
    });
}

/// Spec: CON-03
#[test]
fn a_dead_execution_is_recovered() {
    let scene = Scene::new();
    scene.kill_at_gate("day=1");
    fs::write(scene.path().join("never"), "").unwrap();
    let later = "UPDATE BATCH_STEP_EXECUTION SET LAST_UPDATED = START_TIME + 5000";
    diesel::sql_query(later).execute(&mut scene.connect()).unwrap();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/").await;
        assert!(
            browser
                .text("#attention")
                .await
                .contains("1 execution has not ended, although its process is dead")
        );
        // It ran at least until its last commit.
        let attention = browser.text("#attention").await;
        assert!(
            attention.split_whitespace().any(|word| word.starts_with("5.0")),
            "{attention}"
        );
        browser.click("1").await;
        assert!(browser.text("#head").await.contains("DEAD"));
        assert!(
            browser.text("#facts").await.contains("Took\n5.0"),
            "{}",
            browser.text("#facts").await
        );
        assert!(
            browser
                .text("main")
                .await
                .contains("A restart resumes with step load, after 20 items and 2 commits.")
        );
        browser.open("/").await;
        browser.click("Recover…").await;
        browser.click("Recover").await;
        browser.until("#latest", "COMPLETED").await;
        browser.open("/executions/1").await;
        browser.until("#head", "FAILED").await;
        browser.until("#facts", "CRASHED").await;
        browser.open("/executions/2").await;
        let facts = browser.text("#facts").await;
        assert!(
            facts.contains("from execution 1 (") && facts.contains("), whose process had died, at 20 items"),
            "{facts}"
        );
    });
}

/// Spec: CON-02, CON-03
#[test]
fn a_failure_says_what_and_where() {
    let scene = Scene::new();
    scene.run(&[
        "launch",
        "nightly",
        "day=1",
        "fail.at=17",
        "message=no such account",
    ]);
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/").await;
        assert!(browser.text("#failed").await.contains("no such account"));
        browser.click("1").await;
        let failure = browser.text("#failure").await;
        assert!(
            failure.contains("thrown by #[process_item] of item processor `Check`"),
            "{failure}"
        );
        assert!(
            failure.contains("A restart resumes with step load, after 10 items and 1 commit."),
            "{failure}"
        );
        assert_eq!(browser.count("#graph .element.failed").await, 1);
        browser.click("Abandon…").await;
        browser.click("Abandon").await;
        browser.until("#head", "ABANDONED").await;
        assert_eq!(browser.text("#head .buttons").await, "Launch again…");
    });
}

/// Spec: CON-09
#[test]
fn a_form_is_checked() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/jobs/nightly").await;
        browser.enter("p.count", "many").await;
        browser.click("Check").await;
        let problem = browser.text("#launch [role=alert]").await;
        assert!(problem.contains("many") && problem.contains("count"), "{problem}");
        // What was entered is kept.
        assert_eq!(
            browser
                .script("return document.getElementsByName('p.count')[0].value")
                .await,
            "many"
        );
        browser.enter("p.count", "3").await;
        browser.enter("more", "x(long)=y").await;
        browser.click("Launch").await;
        let problem = browser.text("#launch [role=alert]").await;
        assert!(
            problem.contains("line 1 of the further parameters: invalid value `y`"),
            "{problem}"
        );
        browser.enter("more", "x(long)=5\n-note=again").await;
        browser.click("Check").await;
        assert!(
            browser
                .text("#launch [role=status]")
                .await
                .contains("can be launched")
        );
        browser.click("Launch").await;
        browser.until("#head", "COMPLETED").await;
        assert!(browser.text("main").await.contains("-note=again"));
        browser.open("/jobs/nightly").await;
        browser.enter("p.count", "3").await;
        browser.enter("more", "x(long)=5").await;
        browser.click("Launch").await;
        let problem = browser.text("#launch [role=alert]").await;
        assert!(
            problem.contains("is complete (execution 1 ended COMPLETED)"),
            "{problem}"
        );
    });
}

/// Spec: CON-02
#[test]
fn executions_are_filtered_and_paged() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1"]);
    let mut connection = scene.connect();
    for number in 2..=130 {
        let (status, job) = if number % 10 == 0 {
            ("FAILED", "other")
        } else {
            ("COMPLETED", "nightly")
        };
        for statement in [
            format!("INSERT INTO BATCH_JOB_INSTANCE VALUES ({number}, 0, '{job}', '{number:032}')"),
            format!(
                "INSERT INTO BATCH_JOB_EXECUTION VALUES ({number}, 1, {number}, 1767225600000, 1767225600000, \
                 1767225601000, '{status}', '{status}', '', 1767225601000, NULL)"
            ),
        ] {
            diesel::sql_query(statement).execute(&mut connection).unwrap();
        }
    }
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/executions").await;
        let first = "#list tbody tr:first-child td:first-child";
        assert!(browser.text(first).await.starts_with("130"));
        assert_eq!(browser.count("#list tbody tr").await, 50);
        browser.click("Older").await;
        assert!(browser.text(first).await.starts_with("80"));
        browser.click("Older").await;
        assert_eq!(browser.count("#list tbody tr").await, 30);
        assert_eq!(browser.count("[rel=next]").await, 0);
        browser.click("Newer").await;
        assert!(browser.text(first).await.starts_with("80"));
        assert_eq!(browser.count("#list tbody tr").await, 50);
        browser.click("Newer").await;
        assert!(browser.text(first).await.starts_with("130"));
        assert_eq!(browser.count("[rel=prev]").await, 0);
        assert_eq!(browser.count(".pages a").await, 1, "it is the newest page");
        browser.open("/executions?before=1000").await;
        assert_eq!(browser.count("[rel=prev]").await, 0, "nothing is newer");
        browser.open("/executions").await;
        browser.click("Older").await;
        browser.click("Newest").await;
        browser.enter("job", "other").await;
        browser.choose("status", "FAILED").await;
        browser.click("Filter").await;
        assert_eq!(browser.count("#list tbody tr").await, 13);
        browser.enter("since", "2026-02-01").await;
        browser.click("Filter").await;
        assert!(browser.text("#list").await.contains("No execution matches"));
        browser.enter("since", "yesterday").await;
        browser.click("Filter").await;
        let problem = browser.text("main [role=alert]").await;
        assert!(
            problem.contains("invalid value `yesterday` for `since`"),
            "{problem}"
        );
        let entered = "return [...document.querySelectorAll('.filter input, .filter select')].map((field) => field.value)";
        let kept = serde_json::json!(["other", "FAILED", "yesterday", ""]);
        assert_eq!(browser.script(entered).await, kept);
        browser.open("/executions?job=nightly").await;
        browser.click("Older").await;
        browser.click("Newer").await;
        assert_eq!(browser.count("#list tbody tr").await, 50);
        let others = browser.count("#list a[href='/jobs/other']").await;
        assert_eq!(others, 0, "the filter is kept");
        browser.click("Older").await;
        browser.click("Newest").await;
        let others = browser.count("#list a[href='/jobs/other']").await;
        assert_eq!(others, 0, "the filter is kept");
    });
}

/// Spec: CON-02
#[test]
fn skipped_items_are_shown() {
    let scene = Scene::new();
    fs::write(scene.path().join("payments.csv"), "id,amount\n1,5\n2,6,7\n3,9\n").unwrap();
    scene.run(&["launch", "import"]);
    fs::write(scene.path().join("valid.csv"), "id,amount\n1,5\n").unwrap();
    let valid = [
        "resource=valid.csv",
        "output=valid.jsonl",
        "rejects.output=none.jsonl",
    ];
    scene.run(&[&["launch", "import"], &valid[..]].concat());
    // A report may hold rejects of other instances, which do not belong to this one.
    let report = scene.path().join("rejects.jsonl");
    let own: String = fs::read_to_string(&report).unwrap();
    let of_another = own
        .replace("\"instance\":1,", "\"instance\":9,")
        .replace("2,6,7", "of another instance");
    assert_ne!(of_another, own);
    fs::write(&report, own + of_another.as_str()).unwrap();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/executions/2/rejects").await;
        assert!(browser.text("main").await.contains("No item has been rejected."));
        browser.open("/executions/1").await;
        browser.click("1").await;
        let rejects = browser.text("main").await;
        assert!(
            rejects.contains("2,6,7")
                && rejects.contains("payments.csv:3")
                && !rejects.contains("another instance"),
            "{rejects}"
        );
    });
    // A parameter can name any file: what is no reject of the instance is not shown.
    fs::write(
        scene.path().join("secret"),
        "{\"password\": \"hunter2\"}\nhunter2\n",
    )
    .unwrap();
    scene.run(&[
        "launch",
        "import",
        "rejects.output=secret",
        "output=other.jsonl",
        "rejects.if.exists=overwrite",
    ]);
    fs::write(
        scene.path().join("secret"),
        "{\"password\": \"hunter2\"}\nhunter2\n",
    )
    .unwrap();
    let (status, page) = served.get("/executions/3/rejects");
    assert_eq!(status, 200);
    assert!(!page.contains("hunter2"), "{page}");
}

/// Spec: CON-08
#[test]
fn the_keyboard_is_enough() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/").await;
        browser.press(Key::Tab).await;
        assert_eq!(
            browser.script("return document.activeElement.textContent").await,
            "Skip to the content"
        );
        for _ in 0..3 {
            browser.press(Key::Tab).await;
        }
        assert_eq!(
            browser.script("return document.activeElement.textContent").await,
            "Jobs"
        );
        browser.press(Key::Enter).await;
        browser.until("h1", "Jobs").await;
        assert_eq!(browser.path().await, "/jobs");
    });
}

/// Spec: MARK-14
#[test]
fn a_job_shows_what_a_crash_does_to_its_items() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/jobs/import").await;
        let shown = browser.text("#guarantees").await;
        assert!(
            shown.contains("copy exactly-once the writer removes what it has written after the checkpoint"),
            "{shown}"
        );
    });
}
