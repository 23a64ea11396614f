//! Open pages: what refreshes them, and what that leaves alone.

use std::fs;

use diesel::prelude::*;

use crate::browser::browse;
use crate::program::Scene;

/// A browser opens six connections to a server, and a tab whose stream would take the seventh could not even load.
///
/// Spec: CON-08
#[test]
fn many_tabs_are_open() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/").await;
        browser.until("#latest", "no executions").await;
        for _ in 0..8 {
            browser.open_tab("/").await;
            browser.until("#latest", "no executions").await;
        }
        scene.run(&["launch", "nightly", "day=1"]);
        browser.until("#latest", "COMPLETED").await;
        // A tab that was hidden shows what has happened meanwhile.
        browser.first_tab().await;
        browser.until("#latest", "COMPLETED").await;
    });
}

/// Without JavaScript too, the browser loads the page of the problem again.
///
/// Spec: CON-11
#[test]
fn a_page_that_is_opened_in_an_outage_recovers() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1"]);
    let served = scene.serve(&[]);
    let rename = |from: &str, to: &str| {
        let statement = format!("ALTER TABLE {from} RENAME TO {to}");
        diesel::sql_query(statement)
            .execute(&mut scene.connect())
            .unwrap();
    };
    browse(&served.url, true, async |browser| {
        browser.open("/executions").await;
        browser.script("window.isFirst = true").await;
        rename("BATCH_JOB_EXECUTION", "AWAY");
        browser.until("#offline", "The repository cannot be used").await;
        browser.open_tab("/executions/1").await;
        browser.until("h1", "The repository cannot be used").await;
        rename("AWAY", "BATCH_JOB_EXECUTION");
        browser.until("h1", "nightly").await;
        browser.first_tab().await;
        browser.until("#list", "COMPLETED").await;
        assert_eq!(browser.text("#offline").await, "");
        assert_eq!(browser.script("return window.isFirst").await, true);
    });
}

/// Spec: CON-08
#[test]
fn parts_appear_and_times_grow() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let gate = scene.path().join("gate");
    browse(&served.url, true, async |browser| {
        browser.open("/jobs/nightly").await;
        browser.enter("p.count", "7").await;
        assert_eq!(browser.count("#history svg, #executions table").await, 0);
        let parameters = [
            ("p.gate", gate.to_str().unwrap()),
            ("p.gate.at", "25"),
            ("action", "launch"),
        ];
        served.post("/jobs/nightly/launch", "/jobs/nightly", &parameters);
        browser.until("#executions", "STARTED").await;
        // The second chart shows items, once there are some.
        browser
            .until_script("return document.querySelectorAll('#history svg').length === 2")
            .await;
        // What was entered is not lost.
        let entered = "return document.getElementsByName('p.count')[0].value";
        assert_eq!(browser.script(entered).await, "7");
        // Nothing is committed while the job waits.
        browser.open("/executions/1").await;
        browser.until("#steps", "20").await;
        browser
            .script("window.facts = document.getElementById('facts').textContent")
            .await;
        browser
            .until_script("return document.getElementById('facts').textContent !== window.facts")
            .await;
        // An execution that has ended does not change any more.
        fs::write(&gate, "").unwrap();
        browser.until("#head", "COMPLETED").await;
        browser
            .until_script("return document.body.dataset.events === ''")
            .await;
    });
}

/// Spec: CON-08
#[test]
fn the_focus_stays() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1"]);
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/").await;
        browser
            .script("document.querySelector('#latest a[href=\"/executions/1\"]').focus()")
            .await;
        scene.run(&["launch", "nightly", "day=2", "fail.at=3"]);
        browser.until("#latest", "FAILED").await;
        let focused = browser
            .script("return document.activeElement.getAttribute('href')")
            .await;
        assert_eq!(focused, "/executions/1");
    });
}

/// Spec: CON-11
#[test]
fn what_is_deleted_is_not_an_outage() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1"]);
    scene.add_execution_of_spring_batch();
    let mut connection = scene.connect();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/executions/70").await;
        browser.until("#head", "STARTED").await;
        let delete = "DELETE FROM BATCH_JOB_EXECUTION WHERE JOB_EXECUTION_ID = 70";
        diesel::sql_query(delete).execute(&mut connection).unwrap();
        browser.until("h1", "Not found").await;
        assert_eq!(browser.text("#offline").await, "");
    });
}
