//! Texts of jobs, parameters, errors and logs stay texts; pages are accessible.

use std::fs;

use diesel::prelude::*;
use serde_json::json;

use crate::browser::browse;
use crate::program::{Scene, form_token};

const CANARY: &str = "<img src=x onerror=\"window.xss=1\"><script>window.xss=1</script>'\"><b id=canary>";
/// All kinds of pages.
const PAGES: [&str; 12] = [
    "/",
    "/jobs",
    "/jobs/nightly",
    "/executions",
    "/executions/1",
    "/executions/1/steps/1",
    "/executions/1/rejects",
    "/executions/1/do/restart",
    "/workers",
    "/repository",
    "/repository/purge?days=0",
    "/audit",
];

/// Spec: CON-06
#[test]
fn hostile_texts_stay_texts() {
    let scene = Scene::new();
    scene.run(&[
        "launch",
        "nightly",
        "day=1",
        "fail.at=5",
        &format!("message={CANARY}"),
        &format!("x={CANARY}"),
    ]);
    let mut connection = scene.connect();
    let quoted = CANARY.replace('\'', "''");
    for statement in [
        format!("INSERT INTO BATCH_JOB_INSTANCE VALUES (99, 0, '{}', '0')", quoted),
        format!(
            "INSERT INTO BATCH_JOB_EXECUTION VALUES (99, 1, 99, 1767225600000, 1767225600000, 1767225601000, \
             'FAILED', '{quoted}', '{quoted}', 1767225601000, '{quoted}')"
        ),
        format!(
            "INSERT INTO BATCH_STEP_EXECUTION (STEP_EXECUTION_ID, VERSION, STEP_NAME, JOB_EXECUTION_ID, START_TIME, STATUS, COMMIT_COUNT, \
             READ_COUNT, FILTER_COUNT, WRITE_COUNT, READ_SKIP_COUNT, WRITE_SKIP_COUNT, PROCESS_SKIP_COUNT, ROLLBACK_COUNT, EXIT_CODE, \
             EXIT_MESSAGE, LAST_UPDATED) VALUES (99, 1, '{}', 99, 1767225600000, 'FAILED', 0, 0, 0, 0, 0, 0, 0, 0, '{quoted}', \
             '{quoted}', 1767225600000)",
            quoted
        ),
    ] {
        diesel::sql_query(statement).execute(&mut connection).unwrap();
    }
    let served = scene.serve(&[]);
    served.post(
        "/jobs/nightly/launch",
        "/jobs/nightly",
        &[
            ("more", &format!("y={CANARY}")),
            ("action", "launch"),
            ("p.fail.at", "5"),
            ("p.message", CANARY),
        ],
    );
    let job = percent(CANARY);
    browse(&served.url, true, async |browser| {
        let mut pages: Vec<String> = PAGES.iter().map(|page| (*page).to_owned()).collect();
        pages.extend([
            "/executions/99".into(),
            "/executions/99/steps/99".into(),
            "/executions/2".into(),
            format!("/jobs/{job}"),
            format!("/executions?job={job}"),
        ]);
        for page in pages {
            browser.open(&page).await;
            browser.until("h1", "").await;
            let found = browser
                .script("return [window.xss || 0, document.querySelectorAll('#canary, img').length]")
                .await;
            assert_eq!(found, json!([0, 0]), "{page}");
        }
        browser.open("/executions/2").await;
        assert!(
            browser
                .text("#failure")
                .await
                .contains("<script>window.xss=1</script>")
        );
        assert!(
            browser.text("#log").await.contains("<script>"),
            "{}",
            browser.text("#log").await
        );
    });
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Spec: CON-06, CON-07
#[test]
fn headers_forbid_foreign_content() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    for page in ["/", "/login", "/no/such/page", "/api/v1/jobs", "/health"] {
        let response = served.response("GET", page, &[], "");
        let headers = response.headers();
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"),
            "{page}: {policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'"), "{page}: {policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{page}");
        assert_eq!(headers["cache-control"], "no-store", "{page}");
    }
    let (_, page) = served.get("/");
    assert!(
        !page.contains("<style") && !page.contains("style=") && !page.contains("onclick"),
        "{page}"
    );
}

/// Spec: CON-07
#[test]
fn a_form_without_its_token_does_nothing() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1", "fail.at=5"]);
    let served = scene.serve(&[]);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for body in ["", "form=", "form=0123456789abcdef"] {
        let (status, page) = served.send("POST", "/executions/1/do/restart", &form, body);
        assert_eq!(status, 403, "{body}");
        assert!(page.contains("the form is not from this console"), "{page}");
    }
    let (_, page) = served.get("/executions/1/do/restart");
    // The console of another process.
    let other = scene.serve(&[]);
    let body = format!("form={}", form_token(&page));
    assert_eq!(
        other.send("POST", "/executions/1/do/restart", &form, &body).0,
        403
    );
    let response = served.response("POST", "/executions/1/do/restart", &form, &body);
    assert_eq!(response.headers()["location"], "/executions/2");
}

/// Labels, landmarks, one heading of the first level, and the contrast of every text, in both color schemes and on a narrow screen.
///
/// Spec: CON-08
#[test]
fn pages_are_accessible() {
    const CHECK: &str = include_str!("accessible.js");
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1"]);
    scene.run(&["launch", "nightly", "day=2", "fail.at=17"]);
    scene.kill_at_gate("day=3");
    let served = scene.serve(&[]);
    browse(&served.url, true, async |browser| {
        for scheme in ["light", "dark"] {
            browser.color_scheme(scheme).await;
            for (width, height) in [(1280, 1400), (500, 900)] {
                browser.resize(width, height).await;
                for page in PAGES
                    .into_iter()
                    .chain(["/executions/2", "/executions/3", "/executions/9"])
                {
                    browser.open(page).await;
                    browser
                        .script("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                        .await;
                    let problems = browser.script(CHECK).await;
                    assert_eq!(problems, json!([]), "{scheme}, {width} pixels: {page}");
                }
            }
        }
    });
}

/// Characters that reverse or hide text are replaced wherever they come from, and a default that may be a secret is masked.
///
/// Spec: CON-06
#[test]
fn nothing_is_hidden_and_no_secret_shown() {
    let scene = Scene::new();
    let job = fs::read_to_string(scene.path().join("jobs/import.xml")).unwrap();
    let job = job.replace(
        "<properties>\n    <property name=\"resource\"",
        "<properties>\n    <property name=\"api.token\" value=\"swordfish\"/>\n    <property name=\"note\" value=\"a\u{202e}b\"/>\n    <property name=\"resource\"",
    );
    assert!(job.contains("swordfish"));
    fs::write(scene.path().join("jobs/import.xml"), job).unwrap();
    let served = scene.serve(&[]);
    let (status, page) = served.get("/jobs/import");
    assert_eq!(status, 200);
    assert!(page.contains("api.token") && page.contains("•••"), "{page}");
    assert!(!page.contains("swordfish"), "{page}");
    assert!(
        page.contains("a\u{fffd}b") && !page.contains('\u{202e}'),
        "{page}"
    );
}
