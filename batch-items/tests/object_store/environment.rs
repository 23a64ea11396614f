//! The environment as the configuration of the client.

use std::env;
use std::process::Command;

use batch_test_servers::{ACCESS_KEY, ObjectServer, SECRET_KEY};

use super::stage::Stage;

/// The variable that holds the bucket, in the process whose environment has the credentials.
const BUCKET: &str = "BATCH_ITEMS_BUCKET";

const NAME: &str = "environment::credentials_and_endpoint_are_in_the_environment";

/// A job without `store.options` copies an object. It runs in a separate process, because all of a process has one environment.
#[test]
fn credentials_and_endpoint_are_in_the_environment() {
    if let Ok(bucket) = env::var(BUCKET) {
        return copy(&bucket);
    }
    let server = ObjectServer::shared();
    let bucket = server.new_bucket();
    server.put(&format!("{bucket}/in"), "a\nb\n");
    let run = |secret_key: &str| {
        let mut process = Command::new(env::current_exe().unwrap());
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("AWS_") {
                process.env_remove(name);
            }
        }
        process
            .args(["--exact", NAME, "--nocapture"])
            .env(BUCKET, &bucket)
            .env("AWS_ENDPOINT", server.endpoint())
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", secret_key);
        let output = process.output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let printed = run("another-secret-key");
    let expected = format!("access to `{bucket}` is denied; check the credentials and their permissions");
    assert!(printed.contains(&expected), "{printed}");
    assert!(!printed.contains("another-secret-key"), "{printed}");
    assert_eq!(server.get(&format!("{bucket}/out")), None);

    let printed = run(SECRET_KEY);
    assert!(printed.contains("1 passed"), "{printed}");
    assert_eq!(server.get(&format!("{bucket}/out")).unwrap(), b"a\nb\n");
}

fn copy(bucket: &str) {
    let chunk = "reader=\"TextReader\" processor=\"Repeat\" writer=\"TextWriter\"";
    let properties = format!("resource=s3://{bucket}/in\noutput=s3://{bucket}/out\nspool=${{dir}}/spool");
    Stage::new(chunk, &properties).completes();
}
