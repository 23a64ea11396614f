//! Errors of object stores: each names the place and what to do, and no secret.

use batch_test_servers::{ObjectServer, SECRET_KEY};

use super::proxy::Proxy;
use super::stage::Stage;

/// Returns the first line of the message of a job that copies lines and fails.
fn message(properties: &str) -> String {
    let stage = Stage::new(
        "reader=\"TextReader\" processor=\"Repeat\" writer=\"TextWriter\"",
        &format!("spool=${{dir}}/spool\n{properties}"),
    );
    stage.write("in", "1\n");
    let message = stage.fails();
    assert!(
        !message.contains(SECRET_KEY) && !message.contains("hidden"),
        "{message}"
    );
    message.lines().next().unwrap().to_owned()
}

fn check(properties: &str, expected: &[&str]) {
    let message = message(properties);
    for expected in expected {
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let (bucket, client) = (server.new_bucket(), super::client(&proxy));
    let input = |url: &str| format!("resource={url}\noutput=${{dir}}/out\n{client}");
    let output = |url: &str| format!("resource=${{dir}}/in\noutput={url}\n{client}");
    check(
        &input(&format!("s3://{bucket}/none")),
        &[&format!(
            "cannot read `s3://{bucket}/none`: it does not exist, or there is no bucket `{bucket}`"
        )],
    );
    check(
        &input("s3://no-bucket/a*"),
        &[
            "cannot read `s3://no-bucket/a*`: the bucket `no-bucket` does not exist; create it, or correct the URL",
        ],
    );
    check(
        &output("s3://no-bucket/a"),
        &[
            "cannot write `s3://no-bucket/a`: the bucket `no-bucket` does not exist; create it, or correct the URL",
        ],
    );
    check(
        &input(&format!("s3://{bucket}/none*")),
        &["no file matches; set `if.missing` to `empty`"],
    );
    check(
        &input("s3://bucket"),
        &["cannot read `s3://bucket`: expected a URL such as `s3://bucket/key`"],
    );
    check(
        &output("s3://bucket/a/"),
        &["cannot write `s3://bucket/a/`: the URL ends with `/`; name an object"],
    );
}

/// The output is checked before the first item is processed.
#[test]
fn access_that_is_denied_is_an_error_with_the_remedy() {
    let (server, proxy) = (ObjectServer::shared(), Proxy::new());
    let bucket = server.new_bucket();
    let client = |keys: &str| {
        format!(
            "store.options=endpoint={}, allow_http=true, retries=0{keys}",
            proxy.endpoint()
        )
    };
    let (input, output) = (
        format!("resource=s3://{bucket}/in\noutput=${{dir}}/out\n"),
        format!("resource=${{dir}}/in\noutput=s3://{bucket}/out\n"),
    );
    for keys in [
        ", access_key_id=test-access-key, secret_access_key=hidden",
        ", access_key_id=other, secret_access_key=hidden",
    ] {
        let expected = format!("access to `{bucket}` is denied");
        check(
            &(input.clone() + &client(keys)),
            &[&expected, "; check the credentials and their permissions"],
        );
        check(
            &(output.clone() + &client(keys)),
            &[
                &expected,
                "(",
                ")",
                "; check the credentials and their permissions",
            ],
        );
    }
    // No one listens there: as on a host without credentials of its own.
    let closed = client(", metadata_endpoint=http://127.0.0.1:1");
    for properties in [input.clone(), output] {
        check(
            &(properties + &closed),
            &["no credentials are set: set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"],
        );
    }
    check(&(input + &client(", skip_signature=true")), &["is denied"]);
}

#[test]
fn a_wrong_endpoint_is_named() {
    let keys = "access_key_id=test, secret_access_key=hidden, retries=1";
    let input = "resource=s3://bucket/in\noutput=${dir}/out\nstore.options=";
    check(
        &format!("{input}endpoint=http://127.0.0.1:1, allow_http=true, {keys}"),
        &[
            "cannot read `s3://bucket/in`: ",
            "http://127.0.0.1:1/bucket/in",
            "Connection refused",
            "; check the endpoint",
        ],
    );
    check(
        &format!("{input}endpoint=http://127.0.0.1:1, {keys}"),
        &["cannot read `s3://bucket/in`: ", "URL scheme is not allowed"],
    );
}

#[test]
fn urls_and_options_that_are_not_valid_are_rejected() {
    let message = |url: &str, options: &str| {
        message(&format!(
            "resource={url}\noutput=${{dir}}/out\nstore.options={options}"
        ))
    };
    for (url, options, expected) in [
        (
            "s3://me:hidden@bucket/in",
            "",
            "cannot read `s3://bucket/in`: `s3://` URLs have no user and no query; set credentials in the environment or in \
             `store.options`",
        ),
        (
            "az://bucket/in?sig=hidden",
            "",
            "cannot read `az://bucket/in`: `az://` URLs have no user and no query; set credentials in the environment or in \
             `store.options`",
        ),
        (
            "ftp://me:hidden@host/in?x=hidden",
            "",
            "cannot read `ftp://host/in`: the URL scheme `ftp` is not supported; use a path, `file://`, `s3://`, `gs://`, \
             `az://`, `http://` or `https://`",
        ),
        (
            "s3://bucket/in",
            "endpont=hidden",
            "cannot read `s3://bucket/in`: `store.options` has an unknown option `endpont`; the options are those of \
             object_store, such as `endpoint`, `region` or `allow_http`, and `retries`",
        ),
        (
            "s3://bucket/in",
            "hidden",
            "cannot read `s3://bucket/in`: an option in `store.options` has no `=`; expected `name=value, name=value`",
        ),
        (
            "s3://bucket/in",
            "retries=hidden",
            "cannot read `s3://bucket/in`: the option `retries` in `store.options` is not a number",
        ),
    ] {
        assert_eq!(message(url, options), expected);
    }
    check(
        "resource=az://container/in\noutput=${dir}/out",
        &[
            "cannot read `az://container/in`: ",
            "; set it in the environment or in `store.options`",
        ],
    );
}

#[test]
fn an_output_that_cannot_be_written_is_rejected() {
    for (properties, expected) in [
        (
            "output=https://me:hidden@host/out?a=hidden",
            "cannot write `https://host/out`: an HTTP server can only be read; write to a file, `s3://`, `gs://` or `az://`",
        ),
        (
            "output=s3://bucket/out\nspool=",
            "cannot write `s3://bucket/out`: the property `spool` is missing; set it to a local directory, which holds the \
             data until the step completes",
        ),
    ] {
        let stage = Stage::new(
            "reader=\"TextReader\" processor=\"Repeat\" writer=\"TextWriter\"",
            &format!("resource=${{dir}}/in\n{properties}"),
        );
        stage.write("in", "1\n");
        let message = stage.fails();
        assert_eq!(message.lines().next().unwrap(), expected);
    }
}
