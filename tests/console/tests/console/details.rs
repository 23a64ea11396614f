//! Pages of unusual executions and jobs.

use std::fs;

use diesel::prelude::*;

use crate::browser::browse;
use crate::program::Scene;

/// A form has the parameters of earlier executions, with their types.
///
/// Spec: CON-09
#[test]
fn a_job_is_launched_again() {
    let scene = Scene::new();
    scene.run(&[
        "launch",
        "nightly",
        "day=monday",
        "number(long)=5",
        "-note=first",
        "count=3",
    ]);
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/jobs/nightly").await;
        assert!(browser.text("#launch").await.contains("last time: monday"));
        browser.open("/executions/1").await;
        browser.click("Launch again…").await;
        let value = async |name: &str| {
            let script = format!("return document.getElementsByName('{name}')[0].value");
            browser.script(&script).await
        };
        assert_eq!(value("p.day").await, "monday");
        assert_eq!(value("p.count").await, "3");
        // The same instance is complete.
        browser.click("Launch").await;
        let problem = browser.text("#launch [role=alert]").await;
        assert!(problem.contains("is complete"), "{problem}");
        browser.enter("p.number", "many").await;
        browser.click("Launch").await;
        let problem = browser.text("#launch [role=alert]").await;
        assert!(
            problem.contains("parameter `number`: invalid value `many`"),
            "{problem}"
        );
        browser.enter("p.number", "6").await;
        browser.click("Launch").await;
        browser.until("#head", "COMPLETED").await;
        let facts = browser.text("#facts").await;
        for parameter in ["day=monday", "number(long)=6", "-note=first", "count=3"] {
            assert!(facts.contains(parameter), "{parameter}: {facts}");
        }
        // A browser may ask for the address of the form.
        browser.open("/jobs/nightly/launch").await;
        assert_eq!(browser.path().await, "/jobs/nightly");
    });
}

/// Spec: CON-02
#[test]
fn a_message_is_not_a_failure() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1"]);
    for table in ["JOB", "STEP"] {
        let statement = format!("UPDATE BATCH_{table}_EXECUTION SET EXIT_MESSAGE = 'all is well'");
        diesel::sql_query(statement)
            .execute(&mut scene.connect())
            .unwrap();
    }
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        for page in ["/executions/1", "/executions/1/steps/1"] {
            browser.open(page).await;
            assert_eq!(browser.text("#failure").await, "Message\nall is well", "{page}");
            assert_eq!(browser.count(".failure, .bad").await, 0, "{page}");
        }
    });
}

/// Spec: CON-09
#[test]
fn a_job_that_is_not_valid_cannot_be_launched() {
    let scene = Scene::new();
    let job = r#"<job id="broken"><step id="one" next="tow"><batchlet ref="Done"/></step></job>"#;
    fs::write(scene.path().join("jobs/broken.xml"), job).unwrap();
    let job = r#"<job id="many"><step id="one"><batchlet ref="Done"/>
        <partition instances="${n}"/></step></job>"#;
    fs::write(scene.path().join("jobs/many.xml"), job).unwrap();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/jobs").await;
        browser.click("not valid").await;
        assert_eq!(browser.path().await, "/jobs/broken");
        let page = browser.text("main").await;
        assert!(
            page.contains("The definition is not valid") && page.contains("`tow`"),
            "{page}"
        );
        assert_eq!(browser.count("form[method=post]").await, 0);
        // The values of parameters make it valid, and draw it afterwards.
        browser.open("/jobs/many").await;
        let page = browser.text("main").await;
        assert!(
            page.contains("The job cannot be drawn without parameters"),
            "{page}"
        );
        // The form has a field for each parameter that the document refers to.
        browser.enter("p.n", "2").await;
        browser.click("Launch").await;
        browser.until("#head", "COMPLETED").await;
        browser.open("/jobs/many").await;
        assert_eq!(browser.count(".job-graph").await, 1);
    });
}

/// Spec: CON-02
#[test]
fn many_partitions_are_cut() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1", "fail.at=5"]);
    let mut connection = scene.connect();
    for number in 1..=300 {
        let status = if number == 299 { "FAILED" } else { "COMPLETED" };
        let statement = format!(
            "INSERT INTO BATCH_STEP_EXECUTION (STEP_EXECUTION_ID, VERSION, STEP_NAME, JOB_EXECUTION_ID, START_TIME, STATUS, COMMIT_COUNT, \
             READ_COUNT, FILTER_COUNT, WRITE_COUNT, READ_SKIP_COUNT, WRITE_SKIP_COUNT, PROCESS_SKIP_COUNT, ROLLBACK_COUNT, EXIT_CODE, \
             EXIT_MESSAGE, LAST_UPDATED) VALUES ({}, 1, 'load:{number}', 1, 1767225600000, '{status}', 1, 2, 0, 0, 0, 0, 0, 0, '', '', \
             1767225600000)",
            1000 + number
        );
        diesel::sql_query(statement).execute(&mut connection).unwrap();
    }
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/executions/1").await;
        let failure = browser.text("#failure").await;
        let resume = "A restart resumes with step load, after 600 items and 300 commits.";
        assert!(failure.contains(resume), "{failure}");
        for (page, part) in [
            ("/executions/1", "#steps"),
            ("/executions/1/steps/1", "#partitions"),
        ] {
            browser.open(page).await;
            let text = browser.text(part).await;
            assert!(text.contains("100 more partitions are not listed."), "{text}");
            assert_eq!(browser.count(&format!("{part} tr.partition")).await, 200);
            let first = format!(
                "{part} tr.partition:nth-child({})",
                if part == "#steps" { 2 } else { 1 }
            );
            assert!(browser.text(&first).await.starts_with("load:299"));
        }
    });
}

/// Spec: CON-02
#[test]
fn a_purge_says_what_it_deletes() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=monday"]);
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/repository").await;
        browser.enter("days", "0").await;
        browser.click("Preview").await;
        let preview = browser.text("#purge tbody").await;
        assert!(
            preview.contains("day=monday") && preview.contains("COMPLETED"),
            "{preview}"
        );
        browser.click("Delete 1 instance").await;
        browser.open("/executions").await;
        browser.until("#list", "No execution matches").await;
    });
}
