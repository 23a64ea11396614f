//! Authentication, roles, and requests from elsewhere.

use diesel::prelude::*;

use crate::program::{Scene, form_token};

const ALICE: &str = "alice-knows-a-long-token";
const BOB: &str = "bob-knows-another-token";

const USERS: &str = r#"
[console]
hosts = ["batch.example.com"]

[console.users.alice]
token = "env:ALICE"
role = "operate"

[console.users.bob]
token = "file:bob.token"
role = "read"
"#;

/// Returns a scene with two users.
fn with_users() -> Scene {
    let scene = Scene::new();
    scene.configure(USERS);
    std::fs::write(scene.path().join("bob.token"), format!("{BOB}\n")).unwrap();
    scene
}

/// Every route that shows or changes something.
const ROUTES: [(&str, &str); 36] = [
    ("GET", "/"),
    ("GET", "/jobs"),
    ("GET", "/jobs/nightly"),
    ("POST", "/jobs/nightly/launch"),
    ("GET", "/executions"),
    ("GET", "/executions/1"),
    ("GET", "/executions/1/steps/1"),
    ("GET", "/executions/1/rejects"),
    ("GET", "/executions/1/do/stop"),
    ("POST", "/executions/1/do/stop"),
    ("GET", "/recover"),
    ("POST", "/recover"),
    ("GET", "/workers"),
    ("GET", "/repository"),
    ("GET", "/repository/purge"),
    ("POST", "/repository/purge"),
    ("GET", "/audit"),
    ("GET", "/events"),
    ("GET", "/metrics"),
    ("GET", "/api/openapi.json"),
    ("GET", "/api/v1/jobs"),
    ("POST", "/api/v1/jobs/nightly/launch"),
    ("POST", "/api/v1/jobs/nightly/start"),
    ("GET", "/api/v1/executions"),
    ("POST", "/api/v1/executions/1/restart"),
    ("POST", "/api/v1/recover"),
    ("POST", "/api/v1/repository/purge"),
    ("GET", "/executions/1/report"),
    ("GET", "/api/v1/executions/1/report"),
    ("GET", "/api/v1/jobs/nightly/graph"),
    ("GET", "/api/v1/instances/1/export"),
    ("POST", "/api/v1/import"),
    ("GET", "/api/v1/notifications"),
    ("POST", "/api/v1/notifications/send"),
    ("POST", "/api/v1/notifications/targets/ops/test"),
    ("POST", "/api/v1/launches/1/stop"),
];

/// No token, a wrong token, another host, another site, a form without its token: every route rejects them.
///
/// Spec: CON-04, CON-07
#[test]
fn every_route_is_guarded() {
    let scene = with_users();
    scene.run(&["launch", "nightly", "day=1"]);
    let served = with_alice(&scene);
    let bearer = format!("Bearer {ALICE}");
    let port = served.url.rsplit_once(':').unwrap().1.to_owned();
    let host = format!("evil.example.com:{port}");
    for (method, path) in ROUTES {
        let send = |headers: &[(&str, &str)]| served.send(method, path, headers, "{}").0;
        // A browser gets the login page instead of a page; a program, and the streams of pages, a status.
        let is_page = method == "GET" && !path.starts_with("/api");
        let anonymous = if is_page { 303 } else { 401 };
        assert_eq!(send(&[("accept", "text/html")]), anonymous, "{method} {path}");
        assert_eq!(send(&[]), 401, "{method} {path}");
        let wrong = [("authorization", "Bearer wrong-token-of-some-length")];
        assert_eq!(send(&wrong), 401, "{method} {path}");
        let foreign_host = [("authorization", bearer.as_str()), ("host", host.as_str())];
        assert_eq!(send(&foreign_host), 421, "{method} {path}");
        if method == "POST" {
            for foreign in [
                ("origin", "http://evil.example.com"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-site", "same-site"),
            ] {
                let headers = [("authorization", bearer.as_str()), foreign];
                assert_eq!(send(&headers), 403, "{method} {path} {foreign:?}");
            }
            let form = [
                ("authorization", bearer.as_str()),
                ("content-type", "application/x-www-form-urlencoded"),
            ];
            let expected = if path.starts_with("/api") { 415 } else { 403 };
            let status = served.send(method, path, &form, "form=wrong").0;
            assert_eq!(status, expected, "{method} {path}");
        }
    }
    let (status, executions) = served.send("GET", "/api/v1/executions", &[("authorization", &bearer)], "");
    assert_eq!(
        (status, executions.matches("\"job\":").count()),
        (200, 1),
        "nothing was done: {executions}"
    );
}

/// Starts the console with the token of alice.
fn with_alice(scene: &Scene) -> crate::program::Served {
    scene.serve_with(&[], &[("ALICE", ALICE)])
}

/// Spec: CON-05
#[test]
fn a_reader_changes_nothing() {
    let scene = with_users();
    scene.run(&["launch", "nightly", "day=1"]);
    let served = with_alice(&scene);
    let bearer = format!("Bearer {BOB}");
    for (method, path) in ROUTES {
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        if path == "/events" {
            continue;
        }
        let (status, text) = served.send(method, path, &headers, "{}");
        let changes = method == "POST" || path.contains("/do/") || path == "/recover";
        assert_eq!(
            status,
            if changes {
                if path.starts_with("/api") || method == "GET" {
                    403
                } else {
                    415
                }
            } else {
                200
            },
            "{method} {path}: {text}"
        );
    }
    let (_, page) = served.send("GET", "/jobs/nightly", &[("authorization", &bearer)], "");
    assert!(
        page.contains("read only") && !page.contains("name=\"form\""),
        "{page}"
    );
}

/// Spec: CON-04, CON-12
#[test]
fn a_session_begins_and_ends() {
    let scene = with_users();
    let served = with_alice(&scene);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let response = served.response("GET", "/jobs?x=1", &[("accept", "text/html")], "");
    assert_eq!(response.headers()["location"], "/login?next=%2Fjobs%3Fx%3D1");
    let (status, page) = served.send("POST", "/login", &form, "token=wrong&next=/jobs");
    assert_eq!(status, 401);
    assert!(page.contains("No user has this token"), "{page}");
    // Many wrong tokens fill neither the disk nor the page.
    for _ in 0..5 {
        served.send("POST", "/login", &form, "token=wrong");
    }
    for (next, expected) in [
        ("/jobs", "/jobs"),
        ("//evil.example.com", "/"),
        ("/\\evil.example.com", "/"),
        ("/%09/evil.example.com", "/"),
        ("https://evil.example.com", "/"),
    ] {
        let response = served.response("POST", "/login", &form, &format!("token={ALICE}&next={next}"));
        assert_eq!(response.headers()["location"], expected);
    }
    let response = served.response("POST", "/login", &form, &format!("token={ALICE}"));
    let cookie = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let (status, page) = served.send("GET", "/audit", &[("cookie", &cookie)], "");
    assert_eq!(status, 200);
    assert!(page.contains("alice"), "{page}");
    assert_eq!(page.matches("wrong token").count(), 1, "{page}");
    // The API takes no cookies, which a browser sends by itself.
    assert_eq!(
        served.send("GET", "/api/v1/jobs", &[("cookie", &cookie)], "").0,
        401
    );
    // The token of one session is not valid for another.
    let other = served.response("POST", "/login", &form, &format!("token={ALICE}"));
    let other = other.headers()["set-cookie"]
        .to_str()
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let body = format!("form={}", form_token(&page));
    let headers = [("cookie", other.as_str()), form[0]];
    assert_eq!(served.send("POST", "/recover", &headers, &body).0, 403);
    let headers = [("cookie", cookie.as_str()), form[0]];
    assert_eq!(served.send("POST", "/recover", &headers, &body).0, 303);
    assert_eq!(served.send("POST", "/logout", &headers, "form=wrong").0, 403);
    assert_eq!(served.send("POST", "/logout", &headers, &body).0, 303);
    assert_eq!(served.send("GET", "/audit", &[("cookie", &cookie)], "").0, 401);
}

/// Spec: CON-04
#[test]
fn without_users_only_this_computer_is_served() {
    let scene = Scene::new();
    let output = scene
        .command(&["console", "--port", "0.0.0.0:0"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("without authentication: other computers reach it"),
        "{text}"
    );
    let served = scene.serve(&[]);
    assert_eq!(served.get("/").0, 200);
    // A name that another site has given the address of this computer.
    let (status, page) = served.send("GET", "/", &[("host", "evil.example.com")], "");
    assert_eq!(status, 421, "{page}");
    assert!(
        page.contains("the host of this request is not configured"),
        "{page}"
    );
}

/// Spec: CON-04
#[test]
fn a_proxy_names_the_user() {
    let scene = Scene::new();
    scene.configure(
        "[console.proxy]\nheader = \"X-Forwarded-User\"\naddresses = [\"127.0.0.1\"]\noperators = [\"alice\"]\n",
    );
    let served = scene.serve(&[]);
    assert_eq!(served.get("/").0, 401);
    let (status, page) = served.send("GET", "/jobs/nightly", &[("x-forwarded-user", "bob")], "");
    assert_eq!(status, 200);
    assert!(page.contains("bob") && page.contains("read only"), "{page}");
    let (_, page) = served.send("GET", "/jobs/nightly", &[("x-forwarded-user", "alice")], "");
    assert!(page.contains("name=\"form\""), "{page}");
    // A proxy that adds its header to its client's: the first would be the client's choice.
    let both = [("x-forwarded-user", "alice"), ("x-forwarded-user", "bob")];
    assert_eq!(served.send("GET", "/jobs/nightly", &both, "").0, 401);
    let elsewhere = Scene::new();
    elsewhere.configure(
        "[console.proxy]\nheader = \"X-Forwarded-User\"\naddresses = [\"10.0.0.9\"]\noperators = [\"*\"]\n",
    );
    let served = elsewhere.serve(&[]);
    let (status, _) = served.send("GET", "/", &[("x-forwarded-user", "alice")], "");
    assert_eq!(status, 401, "the request is not from the proxy");
}

/// Spec: CON-04
#[test]
fn wrong_settings_are_reported_at_once() {
    let scene = Scene::new();
    scene.configure(
        "[console]\nadress = 5\naddress = \"x\"\nhosts = [\"https://a:7070/\"]\nbase-path = \"batch\"\n[console.users.alice]\ntoken = \"a token\"\nrole = \"admin\"\n[console.users.bob]\n\
         role = \"read\"\n[console.proxy]\nheader = \"X\"\naddresses = [\"proxy\"]\n",
    );
    let output = scene.command(&["console"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for problem in [
        "batch.toml:2: unknown setting `adress` of `console`; did you mean `address`?",
        "batch.toml:3: invalid value `x` for `address`",
        "batch.toml:4: invalid value `https://a:7070/` for `hosts`: expected names without scheme and port",
        "batch.toml:5: invalid value `batch` for `base-path`: expected a path such as `/batch`",
        "batch.toml:8: invalid value `admin` for `role`: expected `read` or `operate`",
        "batch.toml:9: user `bob` of the console needs a `token`",
        "batch.toml:13: invalid value for `addresses`: expected IP addresses",
    ] {
        assert!(text.contains(problem), "{problem}\n{text}");
    }
    let short = Scene::new();
    short.configure("[console.users.alice]\ntoken = \"env:ALICE\"\nrole = \"read\"\n[console.users.bob]\ntoken = \"in clear\"\nrole = \"read\"\n");
    let output = short
        .command(&["console"])
        .env("ALICE", "short")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("the token of user `alice` is too short"), "{text}");
    assert!(
        text.contains("user `bob` of the console: its `token` is not a reference"),
        "{text}"
    );
    assert!(!text.contains("in clear"), "{text}");
}

/// A reverse proxy may pass on another host than the browser's; the browser itself reports where a request comes from.
///
/// Spec: CON-07
#[test]
fn forms_are_accepted_behind_a_proxy() {
    let scene = Scene::new();
    let served = scene.serve(&[]);
    let (_, page) = served.get("/jobs/nightly");
    let body = format!("form={}", form_token(&page));
    let send = |site: &str| {
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("origin", "https://batch.example.com"),
            ("sec-fetch-site", site),
        ];
        served.send("POST", "/recover", &headers, &body).0
    };
    assert_eq!(send("same-origin"), 303);
    assert_eq!(send("cross-site"), 403);
}

/// Spec: CON-05
#[test]
fn everyone_is_a_reader_if_it_is_read_only() {
    let scene = Scene::new();
    scene.configure("[console]\nread-only = true\n");
    let served = scene.serve(&[]);
    let (_, page) = served.get("/jobs/nightly");
    assert!(
        page.contains("read only") && !page.contains("name=\"form\""),
        "{page}"
    );
    let json = [("content-type", "application/json")];
    assert_eq!(
        served.send("POST", "/api/v1/jobs/nightly/launch", &json, "{}").0,
        403
    );
}

/// A wrong token of a program is recorded as one of the login page is, and an action of the command line.
///
/// Spec: CON-12, REPO-92
#[test]
fn the_audit_file_has_every_operation() {
    let scene = Scene::new();
    scene.configure("[console]\naudit-file = \"audit.jsonl\"\n[console.users.alice]\ntoken = \"env:ALICE\"\nrole = \"operate\"\n");
    let served = with_alice(&scene);
    served.send(
        "GET",
        "/api/v1/jobs",
        &[("authorization", "Bearer wrong-token")],
        "",
    );
    let headers = [
        ("authorization", format!("Bearer {ALICE}")),
        ("content-type", "application/json".to_owned()),
    ];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let body = r#"{"parameters": ["day=1"]}"#;
    assert_eq!(
        served
            .send("POST", "/api/v1/jobs/nightly/launch", &headers, body)
            .0,
        201
    );
    drop(served);
    let unknown = "UPDATE BATCH_JOB_EXECUTION SET STATUS = 'UNKNOWN' WHERE JOB_EXECUTION_ID = 1";
    diesel::sql_query(unknown).execute(&mut scene.connect()).unwrap();
    scene.run(&["recover", "--accept-unknown", "1", "--reason", "checked"]);
    let file = scene.path().join("audit.jsonl");
    let entries = std::fs::read_to_string(&file).unwrap();
    let entries: Vec<serde_json::Value> = entries
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let shown: Vec<String> = entries
        .iter()
        .map(|entry| format!("{} {} {}", entry["user"], entry["action"], entry["outcome"]).replace('"', ""))
        .collect();
    let user = std::env::var("USER").unwrap_or_else(|_| "command line".into());
    assert_eq!(
        shown,
        [
            "- log in wrong token".to_owned(),
            "alice launch nightly day=1 execution 1".into(),
            format!("{user} accept-unknown execution 1: checked accepted"),
        ]
    );
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::MetadataExt::mode(&file.metadata().unwrap()) & 0o777,
        0o600
    );
}
