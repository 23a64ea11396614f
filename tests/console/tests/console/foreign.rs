//! Executions of other programs on the same repository.

use crate::browser::browse;
use crate::program::Scene;

/// As Spring Batch writes them: without a lease.
///
/// Spec: CON-02, CON-03
#[test]
fn executions_of_spring_batch_are_marked() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1"]);
    scene.add_execution_of_spring_batch();
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        browser.open("/").await;
        assert!(
            browser
                .text("#running")
                .await
                .contains("started by another program")
        );
        browser.open("/jobs").await;
        assert!(browser.text("main").await.contains("not on the job path"));
        browser.open("/executions/70").await;
        assert!(
            browser
                .text("#facts")
                .await
                .contains("another one, such as Spring Batch")
        );
        browser.click("Stop…").await;
        browser.click("Stop").await;
        browser.until("#head", "STOPPING").await;
        browser.click("Declare dead…").await;
        browser.click("Declare dead").await;
        browser.until("#head", "STOPPED").await;
    });
}
