//! The JSON API, compared with its description.

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

/// Graphs, reports, exports, imports, notifications, launches that are withdrawn, and restarts with parameters.
///
/// Spec: CON-10
#[test]
fn the_other_verbs_of_the_command_line() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1", "fail.at=17"]);
    let served = scene.serve(&[]);
    let description: Value = serde_json::from_str(&served.get("/api/openapi.json").1).unwrap();
    let call = |method: &str, path: &str, route: &str, body: &str| {
        call(&served, &description, method, path, route, body)
    };
    // Without a body at all, and with parameters.
    let restart = "/api/v1/executions/{execution}/restart";
    let restarted = call("POST", "/api/v1/executions/1/restart", restart, "");
    assert_eq!(restarted, (200, json!({ "execution": 2 })));
    let one = "/api/v1/executions/{execution}";
    let ended = |id: u32, status: &str| {
        crate::program::until("it has ended", || {
            let (_, execution) = call("GET", &format!("/api/v1/executions/{id}"), one, "");
            (execution["status"] == status).then_some(())
        });
    };
    ended(2, "FAILED");
    let body = r#"{"parameters": ["fail.at=0"]}"#;
    assert_eq!(call("POST", "/api/v1/executions/2/restart", restart, body).0, 200);
    ended(3, "COMPLETED");
    // A launch that waits for a worker is withdrawn, once.
    let launch = "/api/v1/jobs/{job}/launch";
    let body = r#"{"parameters": ["day=2"], "queue": "default"}"#;
    let (_, queued) = call("POST", "/api/v1/jobs/nightly/launch", launch, body);
    let stop = format!("/api/v1/launches/{}/stop", queued["launch"]);
    let route = "/api/v1/launches/{launch}/stop";
    let (status, stopped) = call("POST", &stop, route, "{}");
    assert_eq!((status, &stopped["hasStopped"]), (200, &json!(true)));
    assert_eq!(call("POST", &stop, route, "{}").0, 409);
    let notifications = "/api/v1/notifications";
    assert_eq!(
        call("GET", notifications, notifications, ""),
        (200, json!({ "targets": [], "pending": [] }))
    );
    let send = "/api/v1/notifications/send";
    assert_eq!(call("POST", send, send, "{}").0, 200);
    let (status, problem) = call(
        "POST",
        "/api/v1/notifications/targets/ops/test",
        "/api/v1/notifications/targets/{target}/test",
        "{}",
    );
    assert_eq!(status, 404, "{problem}");
    let (_, log) = served.get("/audit");
    for entry in [
        "restart execution 2 fail.at=0",
        "stop launch",
        "send notifications",
    ] {
        assert!(log.contains(entry), "{entry}: {log}");
    }
}

/// Spec: CON-10
#[test]
fn documents_are_files() {
    let scene = Scene::new();
    scene.run(&["launch", "nightly", "day=1", "fail.at=17", "message=<script>"]);
    let served = scene.serve(&[]);
    for (path, kind, name, text) in [
        ("/api/v1/jobs/nightly/graph", "image/svg+xml", "job.svg", "<svg"),
        (
            "/api/v1/jobs/nightly/graph?format=dot",
            "text/vnd.graphviz",
            "job.dot",
            "digraph",
        ),
        (
            "/api/v1/jobs/nightly/graph?format=mermaid&parameter=day%3D1&parameter=count%3D5",
            "text/plain",
            "job.mmd",
            "flowchart",
        ),
        (
            "/api/v1/executions/1/report",
            "text/html",
            "execution-1.html",
            "&lt;script&gt;",
        ),
        (
            "/executions/1/report?format=markdown",
            "text/markdown",
            "execution-1.md",
            "# ",
        ),
    ] {
        let mut response = served.response("GET", path, &[], "");
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let (content, disposition) = (header("content-type"), header("content-disposition"));
        assert!(content.starts_with(kind), "{path}: {content}");
        // A browser saves it: as a page of the console it would have no style.
        assert_eq!(disposition, format!("attachment; filename=\"{name}\""), "{path}");
        let body = response.body_mut().read_to_string().unwrap();
        // In Markdown it is indented, as code.
        let is_safe = !body.contains("<script>") || kind == "text/markdown";
        assert!(body.contains(text) && is_safe, "{path}: {body}");
    }
    for (path, status, problem) in [
        (
            "/api/v1/jobs/nightly/graph?format=png",
            400,
            "expected one of svg, dot, mermaid",
        ),
        (
            "/api/v1/jobs/nightly/graph?parameter=x",
            400,
            "expected NAME=VALUE",
        ),
        ("/api/v1/jobs/nightly/graph?depth=1", 400, "unknown field `depth`"),
        ("/api/v1/jobs/nowhere/graph", 404, "unknown job `nowhere`"),
        (
            "/api/v1/executions/1/report?format=pdf",
            400,
            "expected html or markdown",
        ),
        ("/api/v1/executions/9/report", 404, "unknown job execution 9"),
        ("/api/v1/instances/9/export", 404, "unknown job instance 9"),
        ("/api/v1/instances/x/export", 404, "is not the id of an instance"),
    ] {
        let (found, text) = served.get(path);
        assert_eq!(found, status, "{path}: {text}");
        assert!(
            text.contains(problem) && text.starts_with("{\"error\":"),
            "{path}: {text}"
        );
    }
}

/// What one repository exports, another one imports; lines that cannot be imported are named, and prevent no other.
///
/// Spec: CON-10, CON-12
#[test]
fn instances_move_between_repositories() {
    let (from, to) = (Scene::new(), Scene::new());
    from.run(&["launch", "nightly", "day=1"]);
    from.run(&["launch", "nightly", "day=2", "fail.at=3"]);
    let source = from.serve(&[]);
    let export = |id: u32| {
        let (status, line) = source.get(&format!("/api/v1/instances/{id}/export"));
        assert_eq!((status, line.lines().count()), (200, 1), "{line}");
        line
    };
    let lines = format!("{}\nnonsense\n{}", export(1), export(2));
    let served = to.serve(&[]);
    let description: Value = serde_json::from_str(&served.get("/api/openapi.json").1).unwrap();
    let import = "/api/v1/import";
    let (status, imported) = call(&served, &description, "POST", import, import, &lines);
    assert_eq!(status, 422, "{imported}");
    assert_eq!(
        imported["instances"][1],
        json!({ "line": 4, "instance": 2, "isNew": true })
    );
    assert_eq!(imported["errors"][0]["line"], 3);
    let (status, imported) = call(&served, &description, "POST", import, import, &export(1));
    let unchanged = json!({ "instances": [{ "line": 1, "instance": 1, "isNew": false }], "errors": [] });
    assert_eq!((status, imported), (200, unchanged));
    assert_eq!(served.get("/api/v1/instances/2/export").0, 200);
    let (_, log) = served.get("/audit");
    assert!(
        log.contains("import 3 instances") && log.contains("1 lines cannot be imported"),
        "{log}"
    );
    for (body, status, text) in [
        (" \n", 400, "the body has no instance"),
        // Longer than any other request may be, and too long.
        (&"x".repeat(1_000_000), 422, "1 lines cannot be imported"),
        (&"x".repeat(17 * 1024 * 1024), 413, "an import has at most 16 MiB"),
    ] {
        let (found, response) =
            served.send("POST", import, &[("content-type", "application/x-ndjson")], body);
        assert_eq!(found, status, "{}", response.get(..300).unwrap_or(&response));
        assert!(
            response.contains(text),
            "{}",
            response.get(..300).unwrap_or(&response)
        );
    }
    // A browser could send such a body for another site.
    let text = [("content-type", "text/plain")];
    assert_eq!(served.send("POST", import, &text, &lines).0, 415);
}
