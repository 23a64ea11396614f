//! The repository in memory beside one on SQLite: random operations, and the same answers.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use crossbeam::channel::bounded;

use super::{MemoryRepository, Owner};
use crate::checkpoint::CheckpointInfo;
use crate::clock::{Clock, Timestamp};
use crate::deadline::Deadline;
use crate::execution::{JobExecution, StepCounters, StepExecution};
use crate::ids::{JobExecutionId, JobInstanceId, StepExecutionId};
use crate::notify::{NotificationEvent, NotificationRules, NotificationTarget};
use crate::parameters::JobParameters;
use crate::repository::{
    ArchivedInstance, ChunkCommit, ClaimError, ClaimRequest, Concurrency, DataChanges, DeathOutcome,
    ElementBefore, ElementKind, ElementState, EndOfStep, Ending, ExecutionFilter, InsertStep, JobRepository,
    JobStore, Lease, RepositoryConfig, RepositoryFormat, RestartPosition, Result, SideWrites, StepState,
    StepStore, StoredContext, Target, open,
};
use crate::status::BatchStatus;

const RUNS: u64 = 15;
const OPERATIONS: u64 = 400;
/// The operations between two comparisons of everything that is stored.
const BETWEEN_DUMPS: u64 = 20;
/// The time until the deadlines of jobs, which no clock reaches: SQLite has its own.
const FAR: Duration = Duration::from_secs(10_000_000_000);

struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

/// A generator of numbers that are the same in each run of the test.
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }

    fn is_rare(&mut self) -> bool {
        self.below(6) == 0
    }
}

/// A runner of an execution, which may have lost its lease.
struct Runner {
    lease: Lease,
    execution: JobExecution,
    steps: Vec<StepExecution>,
}

/// One of the two repositories, with its runners.
struct Side {
    repository: Arc<dyn JobRepository>,
    runners: Vec<Runner>,
}

const FINAL: [BatchStatus; 3] = [BatchStatus::Completed, BatchStatus::Failed, BatchStatus::Stopped];
const JOBS: [&str; 2] = ["one", "other"];
const STEPS: [&str; 3] = ["load", "sort", "load/sort"];

fn shown<T: Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("error: {error}"),
    }
}

fn state(random: &mut Random) -> StepState {
    let value = random.below(1_000);
    let some = |random: &mut Random| (!random.is_rare()).then(|| CheckpointInfo::encode(&value).unwrap());
    StepState {
        reader: some(random),
        writer: some(random),
        user_data: some(random),
        skips: some(random),
        of_other_program: random.is_rare(),
        ..StepState::default()
    }
}

fn ending(random: &mut Random) -> Ending {
    let status = random.one_of(&FINAL);
    let message = [String::new(), "a\0b".into(), "ü".repeat(3_000)][random.below(3) as usize].clone();
    let mut ending = Ending::of(status, message);
    ending.restart = (status == BatchStatus::Stopped).then(|| RestartPosition {
        element: "sort".into(),
        after: Some(ElementBefore {
            id: "load".into(),
            kind: ElementKind::Step,
            batch_status: "COMPLETED".into(),
            exit_status: "COMPLETED".into(),
        }),
    });
    ending
}

/// The events that a repository queues notifications for.
const EVENTS: [NotificationEvent; 5] = [
    NotificationEvent::Completed,
    NotificationEvent::Stopped,
    NotificationEvent::Failed,
    NotificationEvent::TakenOver,
    NotificationEvent::Overdue,
];

impl Side {
    fn new(url: &str, clock: &Arc<TestClock>) -> Self {
        let lease = Duration::from_secs(3_600);
        let config = RepositoryConfig {
            clock: Arc::<TestClock>::clone(clock),
            notifications: NotificationRules::new(&[
                NotificationTarget::queued("all").on(EVENTS),
                NotificationTarget::queued("one job").on(EVENTS).jobs([JOBS[0]]),
            ]),
            ..RepositoryConfig::with_lease(lease)
        };
        Self {
            repository: open(url, config).unwrap(),
            runners: Vec::new(),
        }
    }

    fn operate(&mut self, random: &mut Random) -> String {
        match random.below(9) {
            0 => self.claim(random),
            1 | 2 => self.run_job(random),
            3..=5 => self.run_step(random),
            6 => self.request(random),
            7 => self.ask(random),
            _ => self.archive(random),
        }
    }

    fn claim(&mut self, random: &mut Random) -> String {
        let id = JobExecutionId(random.below(self.runners.len() as u64 + 2) as i64);
        let key = format!("{:032}", random.below(5));
        let target = match random.below(4) {
            0 => Target::New,
            1 => Target::InstanceOf(id),
            _ => Target::Identified(key),
        };
        let job = self
            .repository
            .job_execution(id)
            .unwrap()
            .map(|execution| execution.job_name);
        let claim = self.repository.claim(&ClaimRequest {
            job_name: job.as_deref().unwrap_or_else(|| random.one_of(&JOBS)),
            target,
            parameters: JobParameters::new().with("day", random.below(2).to_string()),
            restartable: !random.is_rare(),
            location: "job.xml",
            crash_limit: random.one_of(&[None, Some(0), Some(3)]),
            launch: None,
            concurrency: random.one_of(&[
                Concurrency::Any,
                Concurrency::Any,
                Concurrency::One,
                Concurrency::Queue,
            ]),
            deadline: (random.below(2) == 0).then(|| Deadline::After(FAR)),
            traceparent: None,
        });
        match claim {
            Ok(claim) => {
                let text = format!("{claim:?}");
                self.runners.push(Runner {
                    lease: claim.lease,
                    execution: claim.execution,
                    steps: Vec::new(),
                });
                text
            }
            // The owner has another name there.
            Err(ClaimError::Running { execution, .. }) => format!("running {execution}"),
            Err(ClaimError::NotItsTurn { execution }) => {
                let passed = self.repository.pass_turn(execution);
                format!("after {execution}, {}", shown(passed))
            }
            Err(ClaimError::Repository(error)) => error.to_string(),
            Err(other) => format!("{other:?}"),
        }
    }

    /// Returns one of the latest runners.
    fn runner(&mut self, random: &mut Random) -> Option<&mut Runner> {
        let back = random.below(3) as usize;
        self.runners.iter_mut().rev().nth(back)
    }

    fn run_job(&mut self, random: &mut Random) -> String {
        let repository = Arc::clone(&self.repository);
        let Some(Runner { lease, execution, .. }) = self.runner(random) else {
            return String::new();
        };
        let (number, ending) = (random.below(14), ending(random));
        let element = ElementState {
            planned: number as i64,
            ..ElementState::default()
        };
        let result = match number {
            0..=3 => shown(repository.begin_job(lease, execution)),
            4..=7 => shown(repository.end_job(lease, execution, &ending)),
            8 => shown(repository.renew_lease(lease)),
            9 if random.is_rare() => shown(repository.release_lease(lease)),
            10 => shown(repository.kept_state(lease)),
            11 => shown(repository.take_turn(lease, &execution.job_name)),
            12 => shown(repository.save_job_data(lease, &data(random))),
            _ => shown(repository.save_element_state(lease, random.one_of(&STEPS), &element)),
        };
        format!("{result} {execution:?}")
    }

    fn run_step(&mut self, random: &mut Random) -> String {
        let repository = Arc::clone(&self.repository);
        let Some(Runner { lease, steps, .. }) = self.runner(random) else {
            return String::new();
        };
        let (number, state, ending) = (random.below(9), state(random), ending(random));
        if number < 2 || steps.is_empty() {
            let created = create_steps(&*repository, lease, random, number, &state);
            steps.extend(created.as_ref().ok().cloned().into_iter().flatten());
            return shown(created);
        }
        let position = random.below(steps.len() as u64) as usize;
        let last = steps.len() - 1;
        steps.swap(position, last);
        let Some((step, others)) = steps.split_last_mut() else {
            return String::new();
        };
        let counters = step.counters.plus(StepCounters {
            reads: 3,
            writes: 2,
            commits: 1,
            ..StepCounters::default()
        });
        let renew = random.is_rare().then_some(&*lease);
        let side_writes = SideWrites {
            data: data(random),
            ..SideWrites::default()
        };
        let end = EndOfStep {
            ending: &ending,
            next: waiting_one(others, random),
        };
        let result = match number {
            2 => shown(repository.begin_step(step)),
            3 => shown(repository.step(step.id)),
            4 => {
                let state = renew.is_none().then_some(&state);
                shown(repository.end_step(lease, step, end, state, &side_writes))
            }
            _ => {
                let mut tx = repository.begin_chunk();
                let end = Some(end).filter(|_| random.below(4) == 0);
                let commit = ChunkCommit {
                    counters,
                    state: &state,
                    side_writes: &side_writes,
                    renew,
                    end,
                };
                shown(repository.commit_chunk(&mut tx, step, commit))
            }
        };
        format!("{result} {step:?}")
    }

    fn request(&mut self, random: &mut Random) -> String {
        let repository = &self.repository;
        let newest = repository
            .find_executions(&ExecutionFilter::default())
            .unwrap()
            .first()
            .map_or(0, |newest| newest.id.0);
        let id = JobExecutionId(newest - random.below(5) as i64);
        match random.below(5) {
            0 => format!(
                "{} {}",
                shown(repository.waits_for(id)),
                shown(repository.request_stop(id))
            ),
            1 if random.below(2) == 0 => shown(repository.abandon(id))
                .split(" {")
                .next()
                .unwrap()
                .to_owned(),
            3 if random.below(2) == 0 => shown(repository.job_state(id)),
            4 if random.below(2) == 0 => shown(repository.accept_unknown(id, "reason")),
            2 => match repository.declare_dead(id) {
                Ok(Some(DeathOutcome::Running { .. })) => "running".into(),
                other => shown(other),
            },
            _ => shown(repository.holder_state(id)),
        }
    }

    fn ask(&mut self, random: &mut Random) -> String {
        let repository = &self.repository;
        let instance = JobInstanceId(random.below(12) as i64);
        let (job, name) = (random.one_of(&JOBS), random.one_of(&STEPS));
        let since = random.is_rare().then(|| random.below(20) as i64);
        let (from, count) = (random.below(4) as i64, random.below(4) as i64);
        let filter = ExecutionFilter {
            job: random.is_rare().then(|| job.to_owned()),
            statuses: vec![random.one_of(&BatchStatus::ALL), BatchStatus::Completed],
            since: random.is_rare().then(|| Timestamp(1_000 + from)),
            until: random.is_rare().then(|| Timestamp(1_200 + from)),
            ended_since: random.is_rare().then(|| Timestamp(1_100 + from)),
            before: random.is_rare().then_some(JobExecutionId(from + 2)),
            after: random.is_rare().then_some(JobExecutionId(from)),
            limit: random.is_rare().then_some(2),
        };
        let ids: Vec<StepExecutionId> = (from..from + count).map(StepExecutionId).collect();
        let executions: Vec<JobExecutionId> = (from..from + 30).map(JobExecutionId).collect();
        [
            shown(repository.step_history(instance, name, since)),
            shown(repository.find_executions(&filter)),
            shown(repository.count_executions(&filter).map(|mut counts| {
                counts.sort_unstable_by_key(|(status, _)| status.as_str());
                counts
            })),
            shown(repository.latest_executions()),
            shown(repository.latest_of_instances(&[instance, JobInstanceId(from)])),
            shown(repository.holders(&[instance]).map(|holders| {
                let shown = holders.into_iter();
                shown
                    .map(|(id, holder)| (id, holder.execution, holder.state))
                    .collect::<Vec<_>>()
            })),
            shown(repository.waiting()),
            shown(repository.steps_of(&executions)),
            shown(repository.counters_of(&executions)),
            shown(repository.size()),
            shown(repository.instances(job, from, count)),
            shown(repository.steps(&ids)),
            shown(repository.signals(&executions, &ids)),
            shown(repository.names_with_history(instance, &STEPS.map(str::to_owned))),
        ]
        .join("\n")
    }

    fn archive(&mut self, random: &mut Random) -> String {
        let repository = &self.repository;
        let instance = JobInstanceId(random.below(12) as i64);
        if random.is_rare() && random.is_rare() {
            let mut states = repository.instance_states(None, instance, 3).unwrap();
            for state in states.iter_mut().filter(|_| random.below(2) == 0) {
                // It has run again since.
                state.last.0 -= 1;
            }
            return shown(repository.delete_instances(&states));
        }
        let Some(mut archived) = repository.export_instance(instance).unwrap() else {
            return String::new();
        };
        archived.job_key = format!("{:032}", random.below(20));
        archived.job = random.one_of(&JOBS).to_owned();
        damage(&mut archived, random);
        let imported = repository.import_instance(&archived);
        format!(
            "{} {}",
            shown(imported),
            shown(repository.find_instance(&archived.job, &archived.job_key))
        )
    }

    /// Returns everything that is stored.
    fn dump(&self) -> String {
        let repository = &self.repository;
        let executions = repository.find_executions(&ExecutionFilter::default()).unwrap();
        let mut lines = vec![format!("{:?}", repository.job_names().unwrap())];
        for job in JOBS {
            lines.push(shown(repository.instance_count(job)));
        }
        for execution in executions {
            let id = execution.id;
            lines.push(format!("{execution:?}"));
            lines.push(shown(repository.parameters(id)));
            lines.push(shown(repository.step_executions(id)));
            lines.push(shown(repository.user_data(id)));
            lines.push(shown(repository.latest_step(id)));
        }
        for state in repository.instance_states(None, JobInstanceId(0), 100).unwrap() {
            let id = state.instance.id;
            lines.push(format!("{state:?}"));
            lines.push(shown(repository.original_parameters(id)));
            lines.push(shown(repository.export_instance(id)));
        }
        lines.join("\n")
    }
}

/// Returns the queued notifications in no order, without their ids and the times, which SQLite takes from its own clock.
fn notifications(repository: &dyn JobRepository) -> BTreeSet<String> {
    let all = repository.notifications().unwrap().into_iter();
    let shown = all.map(|one| {
        format!(
            "{} {} {} {} {:?}",
            one.target, one.event, one.job, one.execution, one.detail
        )
    });
    shown.collect()
}

/// Inserts two partitions for the number 1, else a step.
fn create_steps(
    repository: &dyn JobRepository,
    lease: &Lease,
    random: &mut Random,
    number: u64,
    state: &StepState,
) -> Result<Vec<StepExecution>> {
    if number == 1 {
        let names = ["load:1".to_owned(), format!("load:{}", random.below(9) + 2)];
        return repository.create_partitions(lease, &names);
    }
    let status = random.one_of(&[BatchStatus::Starting, BatchStatus::Started]);
    let created = repository.insert_with_status(lease, random.one_of(&STEPS), state, status);
    created.map(|step| vec![step])
}

/// Returns a step execution that waits for its begin, in half of the cases where there is one.
fn waiting_one<'s>(steps: &'s mut [StepExecution], random: &mut Random) -> Option<&'s mut StepExecution> {
    let mut waiting = steps
        .iter_mut()
        .filter(|step| step.status == BatchStatus::Starting);
    waiting.next().filter(|_| random.below(2) == 0)
}

/// Returns changes of the data of a job, mostly none.
fn data(random: &mut Random) -> DataChanges {
    if random.below(3) > 0 {
        return DataChanges::new();
    }
    let name = random.one_of(&["a", "b"]).to_owned();
    let value = random.one_of(&[None, Some("1"), Some(r#"["java.lang.Long",2]"#)]);
    DataChanges::from([(name, value.map(str::to_owned))])
}

/// Changes an instance as if another program had exported it.
fn damage(archived: &mut ArchivedInstance, random: &mut Random) {
    let context = |text: &str| StoredContext {
        short: text.to_owned(),
        serialized: None,
    };
    let damaged = [
        None,
        Some(context("no JSON")),
        Some(context(
            r#"{"@class":"java.util.HashMap","batch.stepType":"a","note":"b"}"#,
        )),
    ];
    for execution in &mut archived.executions {
        if random.below(2) == 0 {
            execution.context = damaged[random.below(3) as usize].clone();
        }
        if random.is_rare() {
            execution.status = random.one_of(&BatchStatus::ALL);
        }
        for step in &mut execution.steps {
            if random.below(2) == 0 {
                step.context = damaged[random.below(3) as usize].clone();
            }
        }
    }
}

// Spec: MEM-01
#[test]
fn it_answers_as_one_on_sqlite() {
    for seed in 0..RUNS {
        let clock = Arc::new(TestClock(AtomicI64::new(1_000)));
        let mut sqlite = Side::new("sqlite://:memory:", &clock);
        let mut memory = Side::new("memory:", &clock);
        let mut random = Random(seed);
        for number in 0..OPERATIONS {
            let mut same = random.clone();
            let expected = sqlite.operate(&mut random);
            let actual = memory.operate(&mut same);
            assert_eq!(actual, expected, "seed {seed}, operation {number}");
            if number % BETWEEN_DUMPS == 0 {
                assert_eq!(
                    notifications(&*memory.repository),
                    notifications(&*sqlite.repository),
                    "seed {seed}, after operation {number}"
                );
                assert_eq!(
                    memory.dump(),
                    sqlite.dump(),
                    "seed {seed}, after operation {number}"
                );
            }
            // The clock of the host is set back now and then.
            let step = if number % 7 == 6 { -3 } else { 1 };
            clock.0.fetch_add(step, Ordering::Relaxed);
        }
    }
}

/// The deadline of a thread that must not wait.
const DEADLINE: Duration = Duration::from_secs(60);

/// While one thread writes a step and another reads.
// Spec: MEM-06
#[test]
fn commits_of_different_steps_do_not_wait_for_each_other() {
    let repository = Arc::new(MemoryRepository {
        tables: RwLock::default(),
        owner: Owner::new(None, 0),
        clock: Arc::new(TestClock(AtomicI64::new(1))),
        lease_time: DEADLINE,
        notifications: NotificationRules::default(),
        format: RepositoryFormat::default(),
    });
    let claim = repository.claim(&ClaimRequest::of_new_instance());
    let lease = claim.unwrap().lease;
    let create = |name: &str| {
        repository
            .create_step(&lease, name, &StepState::default())
            .unwrap()
    };
    let (other, mut step) = (create("one"), create("other"));
    let tables = repository.shared();
    let _written = tables.step(other.id).unwrap();
    let (ended, end) = bounded(1);
    let of_thread = Arc::clone(&repository);
    std::thread::spawn(move || {
        let mut tx = of_thread.begin_chunk();
        let (counters, state) = (StepCounters::default(), StepState::default());
        let commit = ChunkCommit {
            counters,
            state: &state,
            side_writes: &SideWrites::default(),
            renew: Some(&lease),
            end: None,
        };
        let committed = of_thread.commit_chunk(&mut tx, &mut step, commit);
        ended.send((committed.is_ok(), step.version)).unwrap();
    });
    assert_eq!(end.recv_timeout(DEADLINE), Ok((true, 1)));
}
