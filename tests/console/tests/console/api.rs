//! The JSON API, as its description says.

use serde_json::{Value, json};

use crate::program::{Scene, Served};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// Sends a request, and checks the response against the description.
fn call(
    served: &Served,
    description: &Value,
    method: &str,
    path: &str,
    route: &str,
    body: &str,
) -> (u16, Value) {
    let (status, text) = served.send(method, path, &JSON, body);
    let response: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{method} {path}: {error}: {text}"));
    let operation = &description["paths"][route][method.to_lowercase()];
    let described = &operation["responses"][status.to_string()];
    let described = match described {
        Value::Null => &operation["responses"]["default"],
        described => described,
    };
    let schema = &described["content"]["application/json"]["schema"];
    assert!(schema.is_object(), "{method} {route} does not describe {status}");
    let mut whole = schema.clone();
    whole["components"] = description["components"].clone();
    let validator = jsonschema::validator_for(&whole).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&response)
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{method} {path}: {problems:?}\n{response:#}");
    (status, response)
}

/// Every route is described, and every response is as described.
///
/// Spec: CON-10
#[test]
fn responses_are_as_described() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let (_, text) = served.get("/api/openapi.json");
    let description: Value = serde_json::from_str(&text).unwrap();
    let call = |method: &str, path: &str, route: &str, body: &str| {
        call(&served, &description, method, path, route, body)
    };
    let launch = "/api/v1/jobs/{job}/launch";
    let (status, launched) = call(
        "POST",
        "/api/v1/jobs/nightly/launch",
        launch,
        r#"{"parameters": ["day=1", "fail.at=17"]}"#,
    );
    assert_eq!((status, &launched), (201, &json!({ "execution": 1 })));
    let one = "/api/v1/executions/{execution}";
    crate::program::until("the job has failed", || {
        let (_, execution) = call("GET", "/api/v1/executions/1", one, "");
        (execution["status"] == "FAILED").then_some(())
    });
    let (_, execution) = call("GET", "/api/v1/executions/1", one, "");
    assert_eq!(execution["steps"][0]["writes"], 10);
    assert_eq!(execution["parameters"], json!(["day=1", "fail.at=17"]));
    let (status, _) = call(
        "POST",
        "/api/v1/executions/1/stop",
        "/api/v1/executions/{execution}/stop",
        "{}",
    );
    assert_eq!(status, 409);
    let (status, again) = call(
        "POST",
        "/api/v1/executions/1/restart",
        "/api/v1/executions/{execution}/restart",
        "{}",
    );
    assert_eq!((status, &again["execution"]), (200, &json!(2)));
    crate::program::until("it has failed again", || {
        let (_, execution) = call("GET", "/api/v1/executions/2", one, "");
        (execution["status"] == "FAILED").then_some(())
    });
    let (status, _) = call(
        "POST",
        "/api/v1/executions/2/abandon",
        "/api/v1/executions/{execution}/abandon",
        "{}",
    );
    assert_eq!(status, 200);
    let (status, _) = call(
        "POST",
        "/api/v1/executions/9/declare-dead",
        "/api/v1/executions/{execution}/declare-dead",
        "{}",
    );
    assert_eq!(status, 404);
    let (status, _) = call(
        "POST",
        "/api/v1/jobs/nightly/launch",
        launch,
        r#"{"parameters": ["count=x"]}"#,
    );
    assert_eq!(status, 422);
    let (status, queued) = call(
        "POST",
        "/api/v1/jobs/nightly/launch",
        launch,
        r#"{"parameters": ["day=2"], "queue": "default"}"#,
    );
    assert_eq!(status, 201);
    assert!(queued["launch"].is_i64(), "{queued}");
    // A start is a new instance each time, although its parameters are the same.
    let start = || {
        let started = call(
            "POST",
            "/api/v1/jobs/nightly/start",
            "/api/v1/jobs/{job}/start",
            r#"{"parameters": ["day=1", "count=0"]}"#,
        );
        assert_eq!(started.0, 201, "{started:?}");
        let path = format!("/api/v1/executions/{}", started.1["execution"]);
        crate::program::until("it has completed", || {
            let (_, execution) = call("GET", &path, one, "");
            (execution["status"] == "COMPLETED").then(|| execution["instance"].clone())
        })
    };
    assert_ne!(start(), start());
    let check = "/api/v1/jobs/{job}/check";
    assert_eq!(call("POST", "/api/v1/jobs/nightly/check", check, "{}").0, 200);
    assert_eq!(call("POST", "/api/v1/jobs/nowhere/check", check, "{}").0, 404);
    for (path, route) in [
        ("/api/v1/jobs", "/api/v1/jobs"),
        ("/api/v1/jobs/nightly", "/api/v1/jobs/{job}"),
        ("/api/v1/executions?status=failed&limit=5", "/api/v1/executions"),
        ("/api/v1/workers", "/api/v1/workers"),
        ("/api/v1/launches", "/api/v1/launches"),
        ("/api/v1/repository", "/api/v1/repository"),
        ("/api/v1/repository/purge?force=true", "/api/v1/repository/purge"),
    ] {
        assert_eq!(call("GET", path, route, "").0, 200, "{path}");
    }
    assert_eq!(
        call("POST", "/api/v1/recover", "/api/v1/recover", "{}"),
        (200, json!([]))
    );
    let purged = call(
        "POST",
        "/api/v1/repository/purge",
        "/api/v1/repository/purge",
        r#"{"force": true}"#,
    );
    assert_eq!(purged, (200, json!({ "deleted": 3 })));
}

/// Spec: CON-10
#[test]
fn wrong_requests_are_explained() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    for (method, path, body, status, text) in [
        (
            "GET",
            "/api/v1/executions?limit=x",
            "",
            400,
            "invalid value `x` for `limit`",
        ),
        (
            "GET",
            "/api/v1/executions?status=bad",
            "",
            400,
            "expected one of STARTING",
        ),
        (
            "GET",
            "/api/v1/executions?before=x",
            "",
            400,
            "expected the id of an execution",
        ),
        (
            "GET",
            "/api/v1/executions/x",
            "",
            404,
            "is not the id of an execution",
        ),
        (
            "GET",
            "/api/v1/executions/77",
            "",
            404,
            "unknown job execution 77",
        ),
        ("GET", "/api/v1/nothing", "", 404, "there is no such page"),
        ("PUT", "/api/v1/jobs", "", 405, "the method is not allowed"),
        ("POST", "/api/v1/jobs/nightly/launch", "[", 400, "invalid JSON"),
        (
            "POST",
            "/api/v1/jobs/nightly/launch",
            r#"{"params": []}"#,
            400,
            "unknown field `params`",
        ),
        (
            "POST",
            "/api/v1/jobs/nightly/launch",
            r#"{"parameters": ["x"]}"#,
            400,
            "expected NAME=VALUE",
        ),
        (
            "POST",
            "/api/v1/jobs/nowhere/launch",
            "{}",
            404,
            "unknown job `nowhere`",
        ),
        (
            "POST",
            "/api/v1/repository/purge",
            r#"{"before": "x"}"#,
            400,
            "invalid value `x` for `before`",
        ),
    ] {
        let (found, response) = served.send(method, path, &JSON, body);
        assert_eq!(found, status, "{method} {path}: {response}");
        let response: Value = serde_json::from_str(&response).unwrap();
        let error = response["error"].as_str().unwrap();
        assert!(error.contains(text), "{method} {path}: {error}");
    }
    let long = format!(r#"{{"parameters": ["x={}"]}}"#, "y".repeat(70_000));
    assert_eq!(
        served.send("POST", "/api/v1/jobs/nightly/launch", &JSON, &long).0,
        413
    );
}

/// Spec: CON-13
#[test]
fn metrics_and_health_are_served() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    served.send("POST", "/api/v1/jobs/nightly/launch", &JSON, "{}");
    crate::program::until("the job is in the metrics", || {
        served
            .get("/metrics")
            .1
            .contains("status=\"COMPLETED\"")
            .then_some(())
    });
    assert_eq!(served.get("/health"), (200, "up\n".into()));
    assert_eq!(served.get("/health/live"), (200, "up\n".into()));
}

/// Requests that no route can read are problems as well: pages for people, JSON for programs.
///
/// Spec: CON-10, CON-11
#[test]
fn unreadable_requests_are_problems() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let json = [("content-type", "application/json")];
    let large = format!("{{\"parameters\": [\"x={}\"]}}", "y".repeat(100_000));
    let (status, text) = served.send("POST", "/api/v1/jobs/nightly/launch", &json, &large);
    assert_eq!(status, 413);
    assert!(
        text.starts_with("{\"error\":\"the body of a request has at most 64 KiB\""),
        "{text}"
    );
    let (status, text) = served.get("/api/v1/repository/purge?keep=x");
    assert_eq!(status, 400);
    assert!(text.starts_with("{\"error\":") && text.contains("keep"), "{text}");
    for path in ["/jobs/%ff", "/repository/purge?keep=x"] {
        let (status, page) = served.get(path);
        assert_eq!(status, 400, "{path}: {page}");
        assert!(
            page.contains("</html>") && page.contains("Invalid request"),
            "{path}: {page}"
        );
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let (status, page) = served.send("POST", "/jobs/nightly/launch", &form, &large);
    assert!(status == 413 && page.contains("</html>"), "{status}: {page}");
}
