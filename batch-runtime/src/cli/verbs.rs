//! What each verb does.

use std::process::ExitCode;
use std::time::Duration;

use super::args::{ConfigVerb, Verb};
use super::config::{Config, Origin, Setting};
use super::output::{Began, Output};
use super::shutdown::Shutdown;
use super::{USAGE, archive, check, explain, graph, metrics, print, progress, recover, report, tables};
use crate::execution::JobExecution;
use crate::exit_codes::ExitCodes;
use crate::ids::JobExecutionId;
use crate::loader::Additions;
use crate::operator::{JobOperator, JobOperatorError, Purge};
use crate::repository::{self, ExecutionFilter};
use crate::runtime::{BatchRuntime, BatchRuntimeBuilder};

const IN_MEMORY: &str = "sqlite://:memory:";

/// Does what `verb` says.
pub(super) fn run(config: &Config, additions: Additions, verb: Verb) -> Result<ExitCode, String> {
    let (url, origin) = config.get(Setting::Repository);
    let is_named = !matches!(origin, Origin::Program | Origin::Default);
    let exists = || {
        let missing = repository::missing_migrations(url).map_err(|error| error.to_string())?;
        Ok::<bool, String>(missing.is_some())
    };
    let url = match &verb {
        Verb::Start { .. } | Verb::Launch { .. } | Verb::Import { .. } => url,
        // These open none.
        Verb::Check { .. }
        | Verb::Explain { .. }
        | Verb::Graph { .. }
        | Verb::Config { .. }
        | Verb::Db { .. }
        | Verb::Completions { .. } => url,
        // The others look at what there is, and make nothing.
        Verb::List { .. } if !is_named && !exists()? => IN_MEMORY,
        _ if exists()? => url,
        _ => {
            return Err(format!("there is no repository `{}`", repository::shown_url(url)));
        }
    };
    let mut builder = BatchRuntime::builder()
        .additions(additions)
        .repository(url)
        .repository_time_zone(config.time_zone()?)
        .stop_timeout(config.seconds(Setting::StopTimeout)?)
        .lease_time(config.seconds(Setting::LeaseTime)?)
        .crash_limit(config.count(Setting::CrashLimit)?);
    if let Some(threads) = config.number(Setting::PartitionThreads)? {
        builder = builder.partition_threads(threads);
    }
    for (name, value) in config.system() {
        builder = builder.system_property(name, value);
    }
    if let (directories, Origin::Argument(_) | Origin::Environment(_) | Origin::File(_) | Origin::Program) =
        config.get(Setting::JobPath)
    {
        builder = builder.job_path(directories);
    }
    execute(config, builder, verb)
}

fn execute(config: &Config, builder: BatchRuntimeBuilder, verb: Verb) -> Result<ExitCode, String> {
    let shutdown_timeout = config.seconds(Setting::ShutdownTimeout)?;
    let interval = config.seconds(Setting::ProgressInterval)?;
    let listen = || metrics::serve(config).map(|()| Shutdown::listen(shutdown_timeout));
    match verb {
        Verb::Start { job, parameters } => {
            let parameters = parameters.into_parameters()?;
            let shutdown = listen()?;
            let operator = open(builder)?;
            started(
                &operator,
                operator.start(&job, parameters),
                Began::Otherwise,
                interval,
                shutdown,
            )
        }
        Verb::Launch { job, parameters } => {
            let parameters = parameters.into_parameters()?;
            let shutdown = listen()?;
            let operator = open(builder)?;
            started(
                &operator,
                operator.launch(&job, parameters),
                Began::ByParameters,
                interval,
                shutdown,
            )
        }
        Verb::Restart {
            execution,
            parameters,
        } => {
            let parameters = parameters.into_parameters()?;
            let shutdown = listen()?;
            let operator = open(builder)?;
            started(
                &operator,
                operator.restart(execution, parameters),
                Began::Otherwise,
                interval,
                shutdown,
            )
        }
        Verb::Stop { execution } => stop(&open(builder)?, execution).map_err(|error| error.to_string()),
        Verb::List { job: None, json } => shown(Output::new(json).jobs(&open(builder)?)),
        Verb::List { job: Some(job), json } => shown(Output::new(json).executions(&open(builder)?, &job)),
        Verb::Show {
            execution,
            report: Some(file),
            ..
        } => report::write(&open(builder)?, execution, &file).map(|()| ExitCode::SUCCESS),
        Verb::Show { execution, json, .. } => shown(Output::new(json).execution(&open(builder)?, execution)),
        Verb::Executions {
            job,
            status,
            since,
            until,
            limit,
            json,
        } => {
            let filter = ExecutionFilter {
                job,
                statuses: status,
                since,
                until,
                limit: Some(limit),
            };
            shown(Output::new(json).found(&open(builder)?, &filter))
        }
        Verb::Recover {
            declare_dead: Some(execution),
            ..
        } => {
            open(builder)?
                .declare_dead(execution)
                .map_err(|error| error.to_string())?;
            print::out(format_args!(
                "execution {execution} is closed: its instance can go on"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Verb::Recover { dry_run, .. } => {
            let shutdown = listen()?;
            recover::run(&open(builder)?, dry_run, interval, shutdown).map_err(|error| error.to_string())
        }
        Verb::Abandon { execution } => {
            open(builder)?
                .abandon(execution)
                .map_err(|error| error.to_string())?;
            print::out(format_args!(
                "execution {execution} is abandoned: nothing continues its instance"
            ));
            Ok(ExitCode::SUCCESS)
        }
        Verb::Purge {
            job,
            before,
            older_than,
            keep,
            force,
            dry_run,
            archive,
        } => {
            let what = Purge {
                job,
                before: before.or(older_than.map(archive::days_ago)),
                keep: keep.unwrap_or(0),
                force,
            };
            archive::purge(&open(builder)?, &what, dry_run, archive.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Verb::Export { instance } => archive::export(&open(builder)?, instance).map(|()| ExitCode::SUCCESS),
        Verb::Import { file } => archive::import(&open(builder)?, &file),
        Verb::Params { execution, json } => shown(Output::new(json).parameters(&open(builder)?, execution)),
        Verb::Explain {
            job,
            parameters,
            json,
        } => {
            let parameters = parameters.into_parameters()?;
            let definitions = builder.definitions().map_err(|errors| errors.to_string())?;
            shown(explain::run(&definitions, &job, &parameters, json))
        }
        Verb::Graph {
            job,
            parameters,
            format,
            output,
        } => {
            let parameters = parameters.into_parameters()?;
            let definitions = builder.definitions().map_err(|errors| errors.to_string())?;
            graph::run(&definitions, &job, &parameters, format, output.as_deref()).map(|()| ExitCode::SUCCESS)
        }
        Verb::Db { verb } => tables::run(config.get(Setting::Repository).0, builder, verb),
        Verb::Config {
            verb: ConfigVerb::Show { json },
        } => {
            config.show(json);
            Ok(ExitCode::SUCCESS)
        }
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut super::command(), super::program(), &mut script);
            print::out(String::from_utf8_lossy(&script).trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Verb::Check {
            job,
            json,
            parameters,
            deny_warnings,
        } => {
            let mut report = builder.check_only(job.as_deref(), &parameters.into_parameters()?);
            if deny_warnings {
                report = report.deny_warnings();
            }
            let right = check::print(&report, json);
            Ok(if right {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(USAGE)
            })
        }
    }
}

fn open(builder: BatchRuntimeBuilder) -> Result<JobOperator, String> {
    let runtime = builder.build().map_err(|error| error.to_string())?;
    Ok(runtime.job_operator())
}

fn shown(result: Result<(), JobOperatorError>) -> Result<ExitCode, String> {
    result
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| error.to_string())
}

fn started(
    operator: &JobOperator,
    execution: Result<JobExecutionId, JobOperatorError>,
    began: Began,
    interval: Duration,
    shutdown: Shutdown,
) -> Result<ExitCode, String> {
    execution
        .map(|execution| follow(operator, execution, began, interval, shutdown))
        .map_err(|error| error.to_string())
}

fn stop(operator: &JobOperator, execution: JobExecutionId) -> Result<ExitCode, JobOperatorError> {
    let stopped = operator.stop(execution)?;
    let state = if stopped {
        "has stopped"
    } else {
        "has been asked to stop, and is still running"
    };
    print::out(format_args!("execution {execution} {state}"));
    let ended = operator
        .job_execution(execution)?
        .filter(|ended| !ended.exit_message.is_empty());
    ended.into_iter().for_each(|ended| print::out(ended.exit_message));
    Ok(if stopped {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Waits for an execution that was started here, and shows how it goes on and ends. It ran, so whatever goes wrong now is
/// no wrong usage.
fn follow(
    operator: &JobOperator,
    execution: JobExecutionId,
    began: Began,
    interval: Duration,
    mut shutdown: Shutdown,
) -> ExitCode {
    let complain = |error: JobOperatorError| print::err(format_args!("error: {error}"));
    match progress::watch(operator, execution, &[execution], interval, &mut shutdown) {
        Ok(Some(ended)) => {
            Output::new(false)
                .summary(operator, &ended, began)
                .unwrap_or_else(complain);
            operator.exit_code(&ended).map_or_else(
                |error| {
                    complain(error);
                    exit_code(&ended)
                },
                ExitCode::from,
            )
        }
        Ok(None) => ExitCode::FAILURE,
        Err(error) => {
            complain(error);
            ExitCode::FAILURE
        }
    }
}

fn exit_code(ended: &JobExecution) -> ExitCode {
    ExitCode::from(ExitCodes::defaults().of(ended.status, &ended.exit_status))
}
