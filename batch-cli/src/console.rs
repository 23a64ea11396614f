//! The console as `batch.toml` configures it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use batch_console::{Access, Console, ReportFormat, Role, StartError};
use batch_runtime::parameters::SecretReference;
use batch_runtime::{BatchRuntime, JobExecutionId, JobOperator, JobOperatorError};

use crate::error::CliError;
use crate::report;
use crate::settings::{ConsoleSettings, UserSettings};

/// The port, unless another one is configured.
const PORT: u16 = 7070;

/// Returns the address of the console.
pub(crate) fn address(argument: Option<SocketAddr>, settings: &ConsoleSettings) -> SocketAddr {
    let configured = settings.address.map(|address| address.0);
    argument
        .or(configured)
        .unwrap_or_else(|| (Ipv4Addr::LOCALHOST, PORT).into())
}

/// Checks that the console can be served there, before it opens a repository that does not exist yet.
// Spec: CLI-01
pub(crate) fn check_address(access: &Access, address: SocketAddr) -> Result<(), StartError> {
    if !address.ip().is_loopback() && !access.requires_authentication() {
        return Err(StartError::Open(address));
    }
    let bound = TcpListener::bind(address);
    bound
        .map(drop)
        .map_err(|source| StartError::Bind { address, source })
}

/// Returns who may use it.
///
/// # Errors
/// Everything that is wrong with the users and the proxy.
pub(crate) fn access(settings: &ConsoleSettings) -> Result<Access, CliError> {
    let mut access = Access::new();
    let mut problems = Vec::new();
    for user in &settings.users {
        let role = if user.operates { Role::Operate } else { Role::Read };
        let added = token(user).and_then(|token| {
            let added = access.clone().token(&user.name, role, &token);
            added.map_err(|error| error.to_string())
        });
        match added {
            Ok(added) => access = added,
            Err(problem) => problems.push(format!(
                "{}: user `{}` of the console: {problem}",
                user.origin, user.name
            )),
        }
    }
    if let Some(proxy) = &settings.proxy {
        let added = access.clone().proxy(
            &proxy.header,
            proxy.addresses.iter().copied(),
            proxy.operators.iter().cloned(),
        );
        match added {
            Ok(added) => access = added,
            Err(error) => problems.push(format!("{}: {error}", proxy.origin)),
        }
    }
    for host in &settings.hosts {
        access = access.host(host);
    }
    match (problems.is_empty(), settings.is_read_only) {
        (false, _) => Err(CliError::Settings(problems)),
        (true, true) => Ok(access.read_only()),
        (true, false) => Ok(access),
    }
}

fn token(user: &UserSettings) -> Result<String, String> {
    let reference: SecretReference = user.token.parse().map_err(|_| {
        "its `token` is not a reference; write the token into an environment variable or a file, and set `token` to `env:NAME` or `file:PATH`"
            .to_owned()
    })?;
    let token = reference
        .read()
        .map_err(|problem| format!("cannot read the secret {reference}: {problem}"))?;
    Ok(token.trim_end().to_owned())
}

/// Returns the report of an execution, as `show --report` writes it.
fn report(
    operator: &JobOperator,
    id: JobExecutionId,
    format: ReportFormat,
) -> Result<String, JobOperatorError> {
    match format {
        ReportFormat::Markdown => report::markdown(operator, id),
        _ => report::html(operator, id),
    }
}

/// Records an action of this user in the audit log, if it is a file. The action is done, so an error is a warning.
pub(crate) fn record(settings: &ConsoleSettings, action: &str) {
    let Some(file) = &settings.audit_file else { return };
    let user = std::env::var("USER").unwrap_or_else(|_| "command line".into());
    if let Err(error) = batch_console::record_action(file, &user, action, "accepted") {
        tracing::warn!(%error, file, "cannot write the audit log");
    }
}

/// Returns the console of a runtime.
///
/// # Errors
/// When the audit log cannot be opened, or [`access`] fails.
pub(crate) fn configured(runtime: &BatchRuntime, settings: &ConsoleSettings) -> Result<Console, CliError> {
    let mut console = Console::new(runtime).access(access(settings)?).reports(report);
    if let Some(path) = &settings.base_path {
        console = console.base_path(path);
    }
    if let Some(file) = &settings.audit_file {
        let opened = console.audit_file(file);
        console = opened.map_err(CliError::file("open the audit log", Path::new(file)))?;
    }
    Ok(console)
}
