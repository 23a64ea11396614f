//! The notification targets of `batch.toml`. Processes that run jobs deliver, with the feature `notify`; all others only store notifications.

use std::collections::BTreeSet;

use batch_runtime::BatchRuntimeBuilder;
#[cfg(feature = "notify")]
use batch_runtime::notify::NotificationChannel;
use batch_runtime::notify::NotificationTarget;
#[cfg(feature = "notify")]
use batch_runtime::parameters::SecretReference;
use batch_runtime::xml::suggest::nearest;

#[cfg(feature = "notify")]
use crate::databases::{revealed, secret};
use crate::error::CliError;
use crate::settings::TargetSettings;

/// Adds the targets to a runtime that only stores notifications. It needs no keys and no secrets.
pub(crate) fn queue(runtime: BatchRuntimeBuilder, targets: &[TargetSettings]) -> BatchRuntimeBuilder {
    targets.iter().fold(runtime, |runtime, settings| {
        runtime.notify(configured(NotificationTarget::queued(&settings.name), settings))
    })
}

/// Sets the events and jobs of a target.
fn configured(target: NotificationTarget, settings: &TargetSettings) -> NotificationTarget {
    let target = target.on(settings.events.iter().copied()).jobs(&settings.jobs);
    match settings.skipped_more_than {
        Some(items) => target.skipped_more_than(items),
        None => target,
    }
}

/// Returns warnings about jobs of targets that are none of the program's jobs.
pub(crate) fn unknown_jobs(targets: &[TargetSettings], known: &BTreeSet<String>) -> Vec<String> {
    let known = || known.iter().map(String::as_str);
    let warnings = |settings: &TargetSettings| {
        let target = configured(NotificationTarget::queued(&settings.name), settings);
        let unknown = target.jobs_without_match(known()).into_iter().map(|jobs| {
            let help = match nearest(jobs, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`check` lists the jobs".to_owned(),
            };
            settings.problem_of(&format!("no job matches `{}`; {help}", jobs.escape_debug()))
        });
        unknown.collect::<Vec<_>>()
    };
    targets.iter().flat_map(warnings).collect()
}

/// Adds the targets to a runtime that delivers.
///
/// # Errors
/// Everything that is wrong with them: URLs, keys, secrets that cannot be read.
#[cfg(feature = "notify")]
pub(crate) fn add(
    runtime: BatchRuntimeBuilder,
    targets: &[TargetSettings],
) -> Result<BatchRuntimeBuilder, CliError> {
    let mut runtime = runtime;
    let mut problems = Vec::new();
    for settings in targets {
        match target(settings) {
            Ok(target) => runtime = runtime.notify(target),
            Err(found) => problems.extend(found.iter().map(|problem| settings.problem_of(problem))),
        }
    }
    match problems.is_empty() {
        true => Ok(runtime),
        false => Err(CliError::Settings(problems)),
    }
}

#[cfg(feature = "notify")]
fn target(settings: &TargetSettings) -> Result<NotificationTarget, Vec<String>> {
    match (&settings.webhook, &settings.command) {
        (Some(url), _) => {
            let webhook = revealed(url)
                .and_then(|url| batch_notify::Webhook::new(&url).map_err(|error| error.to_string()));
            let key = settings.key.as_deref().map(key).transpose();
            match (webhook, key) {
                (Ok(webhook), Ok(None)) => Ok(through(webhook, settings)),
                (Ok(webhook), Ok(Some(key))) => match webhook.signed(&key) {
                    Ok(webhook) => Ok(through(webhook, settings)),
                    Err(error) => Err(vec![error.to_string()]),
                },
                (webhook, key) => Err(webhook.err().into_iter().chain(key.err()).collect()),
            }
        }
        (None, command) => {
            let words = command.iter().flatten();
            let command = batch_notify::Command::new(words).map_err(|error| vec![error.to_string()])?;
            Ok(through(command, settings))
        }
    }
}

/// Returns the key that a text refers to.
#[cfg(feature = "notify")]
fn key(text: &str) -> Result<String, String> {
    let reference: SecretReference = text.parse().map_err(|_| {
        "its `key` is not a reference; write the key into an environment variable or a file, and set `key` to `env:NAME` or `file:PATH`"
            .to_owned()
    })?;
    secret(&reference)
}

#[cfg(feature = "notify")]
fn through(channel: impl NotificationChannel + 'static, settings: &TargetSettings) -> NotificationTarget {
    configured(NotificationTarget::new(&settings.name, channel), settings)
}

#[cfg(not(feature = "notify"))]
pub(crate) fn add(
    runtime: BatchRuntimeBuilder,
    targets: &[TargetSettings],
) -> Result<BatchRuntimeBuilder, CliError> {
    match targets.first() {
        None => Ok(runtime),
        Some(first) => Err(CliError::Settings(vec![format!(
            "{}: this program sends no notifications; build it with the feature `notify` of batch-cli",
            first.origin
        )])),
    }
}
