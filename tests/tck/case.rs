//! The words of the table: a case is a list of actions and assertions, in the order of the test method.

use batch_runtime::BatchStatus;
use batch_runtime::execution::MetricName;

use crate::run::Run;

/// A test method of the TCK.
pub(crate) struct Case {
    /// The class and the method.
    pub(crate) method: &'static str,
    /// The file of the job, without `.xml`.
    pub(crate) file: &'static str,
    pub(crate) actions: Vec<Action>,
    /// True if it takes several seconds.
    pub(crate) is_slow: bool,
    /// System properties.
    pub(crate) system: Vec<(&'static str, &'static str)>,
}

/// An action or an assertion. Parameters are written as `name=value, name=value`.
#[derive(Debug)]
pub(crate) enum Action {
    /// Executes an SQL statement.
    Sql(&'static str),
    /// Starts the job, and waits for its end.
    Start(String),
    /// Starts the job, and does not wait.
    Begin(String),
    /// Starts the job, which has to be rejected with this diagnostic, or to fail.
    StartFails(&'static str),
    /// Restarts the last execution with these parameters only, and waits.
    Restart(String),
    /// Restarts the last execution with its parameters and changes to them, and waits.
    RestartWith(String),
    /// Restarts the last execution, and does not wait.
    BeginRestart(String),
    /// Restarts the execution of this number, from 1, which has to be rejected with one of these errors.
    RestartFails(usize, String, &'static [&'static str]),
    /// Waits until batchlets wait for a stop request.
    UntilRunning(i64),
    /// Stops the last execution, and waits for its end.
    Stop,
    /// Abandons the last execution.
    Abandon,
    /// Abandons the last execution, which has to be rejected with this error.
    AbandonFails(&'static str),
    /// The last execution has this status.
    Is(BatchStatus),
    /// The last execution has one of these exit statuses.
    ExitStatus(Vec<String>),
    /// All executions are of one instance.
    SameInstance,
    /// The last execution has this number of step executions.
    Steps(usize),
    /// Every step execution has this status.
    EveryStep(BatchStatus),
    /// Every step execution has this exit status.
    EveryStepExit(&'static str),
    /// The only step execution of this name has this status.
    Step(&'static str, BatchStatus),
    /// Every step execution has this value of a metric.
    Metric(MetricName, i64),
    /// The only step execution of this name has this value of a metric.
    StepMetric(&'static str, MetricName, i64),
    /// A step execution has persistent user data with this field.
    UserData(&'static str, &'static str, i64),
    /// The exit status of a step execution lists this value of a property.
    Property(&'static str, &'static str),
    /// Another assertion, or another action.
    Check(Check),
}

/// A special assertion.
pub(crate) struct Check {
    pub(crate) what: &'static str,
    pub(crate) check: fn(&mut Run) -> Result<(), String>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Check({})", self.what)
    }
}

/// Creates a case without actions.
pub(crate) fn case(method: &'static str, file: &'static str) -> Case {
    Case {
        method,
        file,
        actions: Vec::new(),
        is_slow: false,
        system: Vec::new(),
    }
}

impl Case {
    fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// It takes several seconds.
    pub(crate) fn slow(mut self) -> Self {
        self.is_slow = true;
        self
    }

    /// Sets a system property.
    pub(crate) fn system(mut self, name: &'static str, value: &'static str) -> Self {
        self.system.push((name, value));
        self
    }

    /// Executes SQL statements before the job.
    pub(crate) fn sql(self, statements: &[&'static str]) -> Self {
        statements
            .iter()
            .fold(self, |case, statement| case.then(Action::Sql(statement)))
    }

    /// Starts the job, and waits for its end.
    pub(crate) fn start(self, parameters: impl Into<String>) -> Self {
        self.then(Action::Start(parameters.into()))
    }

    /// Starts the job, and does not wait.
    pub(crate) fn begin(self, parameters: impl Into<String>) -> Self {
        self.then(Action::Begin(parameters.into()))
    }

    /// Starts the job, which has to be rejected with this diagnostic, or to fail.
    pub(crate) fn start_fails(self, code: &'static str) -> Self {
        self.then(Action::StartFails(code))
    }

    /// Restarts the last execution with these parameters only, and waits.
    pub(crate) fn restart(self, parameters: impl Into<String>) -> Self {
        self.then(Action::Restart(parameters.into()))
    }

    /// Restarts the last execution with the parameters of the test so far and changes to them, and waits.
    pub(crate) fn restart_with(self, changes: impl Into<String>) -> Self {
        self.then(Action::RestartWith(changes.into()))
    }

    /// Restarts the last execution, and does not wait.
    pub(crate) fn begin_restart(self, parameters: impl Into<String>) -> Self {
        self.then(Action::BeginRestart(parameters.into()))
    }

    /// Restarts the execution of this number, from 1, which has to be rejected with one of these errors.
    pub(crate) fn restart_fails(
        self,
        execution: usize,
        parameters: impl Into<String>,
        errors: &'static [&'static str],
    ) -> Self {
        self.then(Action::RestartFails(execution, parameters.into(), errors))
    }

    /// Waits until this number of batchlets wait for a stop request, then stops the execution and waits for its end.
    pub(crate) fn stop_when_running(self, batchlets: i64) -> Self {
        self.then(Action::UntilRunning(batchlets)).then(Action::Stop)
    }

    /// Abandons the last execution.
    pub(crate) fn abandon(self) -> Self {
        self.then(Action::Abandon)
    }

    /// Abandons the last execution, which has to be rejected with this error.
    pub(crate) fn abandon_fails(self, error: &'static str) -> Self {
        self.then(Action::AbandonFails(error))
    }

    /// The last execution has this status.
    pub(crate) fn is(self, status: BatchStatus) -> Self {
        self.then(Action::Is(status))
    }

    /// The last execution has this exit status.
    pub(crate) fn exit(self, exit_status: impl Into<String>) -> Self {
        self.then(Action::ExitStatus(vec![exit_status.into()]))
    }

    /// The last execution has one of these exit statuses.
    pub(crate) fn exit_of(self, exit_statuses: &[&str]) -> Self {
        let exit_statuses = exit_statuses.iter().map(|one| (*one).to_owned());
        self.then(Action::ExitStatus(exit_statuses.collect()))
    }

    /// The last execution has this status and exit status.
    pub(crate) fn ends(self, status: BatchStatus, exit_status: impl Into<String>) -> Self {
        self.is(status).exit(exit_status)
    }

    /// All executions are of one instance.
    pub(crate) fn same_instance(self) -> Self {
        self.then(Action::SameInstance)
    }

    /// The last execution has this number of step executions.
    pub(crate) fn steps(self, count: usize) -> Self {
        self.then(Action::Steps(count))
    }

    /// Every step execution has this status.
    pub(crate) fn every_step(self, status: BatchStatus) -> Self {
        self.then(Action::EveryStep(status))
    }

    /// Every step execution has this exit status.
    pub(crate) fn every_step_exit(self, exit_status: &'static str) -> Self {
        self.then(Action::EveryStepExit(exit_status))
    }

    /// The only step execution of this name has this status.
    pub(crate) fn step(self, name: &'static str, status: BatchStatus) -> Self {
        self.then(Action::Step(name, status))
    }

    /// Every step execution has this value of a metric.
    pub(crate) fn metric(self, name: MetricName, value: i64) -> Self {
        self.then(Action::Metric(name, value))
    }

    /// The only step execution of this name has this value of a metric.
    pub(crate) fn step_metric(self, step: &'static str, name: MetricName, value: i64) -> Self {
        self.then(Action::StepMetric(step, name, value))
    }

    /// The step execution of this name has persistent user data with this field.
    pub(crate) fn user_data(self, step: &'static str, field: &'static str, value: i64) -> Self {
        self.then(Action::UserData(step, field, value))
    }

    /// The batchlet of the job completed, and got this value of a property.
    pub(crate) fn property(self, name: &'static str, value: &'static str) -> Self {
        self.then(Action::Property(name, value))
    }

    /// Another assertion, or another action.
    pub(crate) fn check(self, what: &'static str, check: fn(&mut Run) -> Result<(), String>) -> Self {
        self.then(Action::Check(Check { what, check }))
    }
}
