//! The overview, and rows that are damaged.

use diesel::prelude::*;

use crate::program::{Scene, form_token};

/// Adds an execution of an instance with the same id, or of an earlier one.
fn add(
    connection: &mut SqliteConnection,
    id: i64,
    instance: i64,
    status: &str,
    created: i64,
    ended: Option<i64>,
) {
    let ended = ended.map_or_else(|| "NULL".to_owned(), |ended| ended.to_string());
    for statement in [
        format!("INSERT OR IGNORE INTO BATCH_JOB_INSTANCE VALUES ({instance}, 0, 'other', '{instance:032}')"),
        format!(
            "INSERT INTO BATCH_JOB_EXECUTION VALUES ({id}, 1, {instance}, {created}, {created}, {ended}, '{status}', '{status}', \
             'message of {id}', {created}, NULL)"
        ),
    ] {
        diesel::sql_query(statement).execute(connection).unwrap();
    }
}

/// Returns the part of a page that has an id.
fn part<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("id=\"{id}\""))
        .unwrap_or_else(|| panic!("no #{id}: {page}"));
    rest.split_once("</section>").unwrap().0
}

/// Returns whether a part lists an execution.
fn lists(part: &str, id: i64) -> bool {
    part.contains(&format!("/executions/{id}\""))
}

/// A dead execution is shown however many others run, a failure as long as nothing has resolved it, however long ago its job began.
///
/// Spec: CON-01
#[test]
fn the_overview_shows_what_needs_attention() {
    let scene = Scene::new();
    scene.kill_at_gate("day=1");
    let now = batch_runtime::time::Clock::now(&batch_runtime::time::SystemClock).0;
    let hour = 3_600_000;
    let mut connection = scene.connect();
    for id in 100..160 {
        add(&mut connection, id, id, "STARTED", now, None);
    }
    // Created before yesterday, ended a minute ago; ended before yesterday; resolved by another execution; failed again.
    add(
        &mut connection,
        201,
        201,
        "FAILED",
        now - 26 * hour,
        Some(now - 60_000),
    );
    add(
        &mut connection,
        202,
        202,
        "FAILED",
        now - 30 * hour,
        Some(now - 29 * hour),
    );
    add(&mut connection, 203, 203, "FAILED", now - hour, Some(now - hour));
    add(
        &mut connection,
        204,
        203,
        "COMPLETED",
        now - hour,
        Some(now - 60_000),
    );
    add(&mut connection, 205, 205, "FAILED", now - hour, Some(now - hour));
    add(
        &mut connection,
        206,
        205,
        "FAILED",
        now - hour,
        Some(now - 60_000),
    );
    let served = scene.serve(&[]);
    let (_, page) = served.get("/");
    assert!(page.contains("<span class=\"figure\">60</span>"), "{page}");
    assert!(lists(part(&page, "attention"), 1), "{page}");
    let failed = part(&page, "failed");
    let shown = [201, 202, 203, 204, 205, 206].map(|id| lists(failed, id));
    assert_eq!(shown, [true, false, false, false, false, true], "{failed}");
}

/// A damaged row is shown as UNKNOWN with its damage, and hides no other.
///
/// Spec: CON-01, REPO-26
#[test]
fn one_damaged_row_hides_no_other() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1"]);
    let mut connection = scene.connect();
    for id in 2..5 {
        add(
            &mut connection,
            id,
            id,
            "FAILED",
            1_795_651_200_000,
            Some(1_795_651_200_000),
        );
    }
    for statement in [
        "UPDATE BATCH_JOB_EXECUTION SET STATUS = 'BR0KEN' WHERE JOB_EXECUTION_ID = 3",
        "UPDATE BATCH_STEP_EXECUTION SET STATUS = NULL, READ_COUNT = NULL WHERE JOB_EXECUTION_ID = 1 AND STEP_NAME = 'load'",
    ] {
        diesel::sql_query(statement).execute(&mut connection).unwrap();
    }
    let served = scene.serve(&[]);
    for path in [
        "/",
        "/jobs",
        "/jobs/nightly",
        "/jobs/other",
        "/executions",
        "/api/v1/executions",
        "/api/v1/jobs",
    ] {
        let (status, page) = served.get(path);
        assert_eq!(status, 200, "{path}: {page}");
    }
    let (_, page) = served.get("/executions");
    assert!([1, 2, 3, 4].iter().all(|id| lists(&page, *id)), "{page}");
    assert!(page.contains("is not a batch status. message of 3"), "{page}");
    // Nothing is done with such a row.
    let token = form_token(&served.get("/jobs/nightly").1);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for action in ["restart", "abandon"] {
        let (status, page) = served.send(
            "POST",
            &format!("/executions/3/do/{action}"),
            &form,
            &format!("form={token}"),
        );
        assert_eq!(status, 500, "{action}: {page}");
        assert!(
            page.contains("job execution 3") && page.contains("The repository has invalid data"),
            "{page}"
        );
    }
}
