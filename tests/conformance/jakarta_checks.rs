//! The messages of a check in the dialect of Jakarta Batch: what a developer who comes from Java misspells.

use batch_runtime::JobParameters;
use batch_runtime::prelude::*;
use batch_testing::JobTest;

use crate::artifacts::{assert_contains, assert_contains_all};

/// Has a property of each kind.
#[batchlet("sendMailOfChecks")]
fn send_mail(
    #[batch_property(name = "recipients")] _recipients: u32,
    #[batch_property(name = "maximum", value = "7")] _maximum: u32,
) -> String {
    "SENT".into()
}

fn job(step: &str, parameters: &[(&str, &str)]) -> (tempfile::TempDir, JobTest) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("job.xml");
    let text = format!(
        "<job id='j' version='2.0' xmlns='https://jakarta.ee/xml/ns/jakartaee'><step id='s'>{step}</step></job>"
    );
    std::fs::write(&file, text).unwrap();
    let parameters: JobParameters = parameters.iter().copied().collect();
    (folder, JobTest::new(file).parameters(parameters))
}

/// Returns the messages of a job that does not start.
fn rejected(step: &str, parameters: &[(&str, &str)]) -> String {
    let (_folder, job) = job(step, parameters);
    job.launch_fails().to_string()
}

/// A parameter does not set a property: the advice is an expression, and only names in expressions are suggested.
///
/// Spec: JAK-12, BPROP-10
#[test]
fn advice_is_what_works_in_the_dialect() {
    let missing = rejected("<batchlet ref='sendMailOfChecks'/>", &[("recipients", "3")]);
    assert_contains(
        &missing,
        "with `#{jobParameters['recipients']}` as the value if it is a job parameter",
    );
    let batchlet = "<batchlet ref='sendMailOfChecks'><properties>
        <property name='recipients' value=\"#{jobParameters['receivers']}\"/></properties></batchlet>";
    let empty = rejected(batchlet, &[]);
    assert_contains(&empty, "`sendMailOfChecks` requires the property `recipients`");
    let help = "`#{jobParameters['receivers']}` is empty: define what it names, or write a default after it";
    assert_contains(&empty, help);
    let literal = rejected(&batchlet.replace("#{jobParameters['receivers']}", ""), &[]);
    assert_contains_all(
        &literal,
        &["requires the property `recipients`", "help: write a value"],
    );
    let batchlet = batchlet.replace("]}", "]}?:5;");
    let near = rejected(&batchlet, &[("recievers", "3")]);
    assert_contains(
        &near,
        "it uses no parameter `recievers`; did you mean `receivers`?",
    );
    // A property of the artifact is no suggestion, because the parameter would not reach it.
    let (_folder, job) = job(&batchlet, &[("maximun", "3")]);
    job.launch().assert_completed();
}

/// Spec: LOADER-01, JSL-JOBLIS-05
#[test]
fn an_unknown_artifact_says_how_to_declare_it() {
    let class = rejected("<batchlet ref='com.bank.SendMailOfChecks'/>", &[]);
    assert_contains(&class, "unknown batchlet `com.bank.SendMailOfChecks`");
    assert_contains(&class, "did you mean `sendMailOfChecks`?");
    let new = rejected("<batchlet ref='prepareTables'/>", &[]);
    assert_contains(&new, "declare it with `#[batchlet(\"prepareTables\")]`");
    let listener = rejected(
        "<listeners><listener ref='skipLog'/></listeners>
         <chunk><reader ref='nothing'/><writer ref='nothing'/></chunk><partition><plan partitions='2'/></partition>",
        &[],
    );
    assert_contains(&listener, "unknown listener `skipLog`");
    assert_eq!(listener.matches("unknown listener").count(), 1, "{listener}");
}
