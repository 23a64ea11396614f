//! The pages without JavaScript.

use crate::browser::browse;
use crate::program::{Scene, until};

/// Spec: CON-08
#[test]
fn everything_works_without_javascript() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let gate = scene.path().join("gate");
    browse(&served.url, false, async |browser| {
        browser.open("/jobs/nightly").await;
        browser.enter("p.gate", gate.to_str().unwrap()).await;
        browser.click("Launch").await;
        assert_eq!(browser.path().await, "/executions/1");
        browser.until("#head", "STARTED").await;
        assert_eq!(
            browser.count("noscript, meta[http-equiv=refresh]").await,
            2,
            "the page loads itself again"
        );
        for page in ["/jobs/nightly", "/executions"] {
            browser.open(page).await;
            let refreshing = browser.count("meta[http-equiv=refresh]").await;
            assert_eq!(refreshing, 0, "a form is not emptied: {page}");
        }
        browser.open("/executions/1").await;
        browser.click("Stop…").await;
        browser.click("Stop").await;
        std::fs::write(&gate, "").unwrap();
        until("the job has stopped", || {
            served.get("/executions/1").1.contains(">STOPPED<").then_some(())
        });
        browser.open("/executions/1").await;
        std::fs::remove_file(&gate).unwrap();
        browser.click("Restart…").await;
        browser.click("Restart").await;
        assert_eq!(browser.path().await, "/executions/2");
        browser.until("#head", "STARTED").await;
        // As after a launch, whose form has a fragment.
        browser.open("/").await;
        browser.open("/executions/2#launch").await;
        std::fs::write(&gate, "").unwrap();
        browser.until("#head", "COMPLETED").await;
        for page in [
            "/",
            "/jobs",
            "/executions",
            "/executions/1/rejects",
            "/workers",
            "/repository",
            "/audit",
        ] {
            browser.open(page).await;
            assert!(!browser.text("h1").await.is_empty(), "{page}");
        }
    });
}
