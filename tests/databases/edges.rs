//! Each column at its width and one over it, with characters of four bytes, and with NUL: the same on each database.

use batch_runtime::prelude::*;
use batch_runtime::{
    BatchRuntime, BatchStatus, JobExecutionId, JobOperatorError, JobParameters, ParameterValue, Timestamp,
    operator::StartError,
};
use batch_tests::database::{Database, Place};
use batch_tests::stage::Stage;

/// Ends with this exit status, or with this error; keeps this much user data.
#[derive(BatchArtifact)]
struct Says {
    #[batch_property(name = "exit")]
    exit: Option<String>,
    #[batch_property(name = "failure")]
    failure: Option<String>,
    #[batch_property(name = "data", value = "0")]
    data: usize,
    #[batch_context]
    step: StepContext,
}

#[batchlet("Says")]
impl Says {
    #[process]
    fn process(&self) -> Result<String, BatchError> {
        let repeated = |text: &str| match text.split_once(':') {
            Some((count, text)) => Ok::<_, BatchError>(unescaped(text).repeat(count.parse()?)),
            None => Ok(text.to_owned()),
        };
        self.step.set_persistent_user_data(&FACE.repeat(self.data))?;
        if let Some(exit) = &self.exit {
            self.step.set_exit_status(Some(&repeated(exit)?));
        }
        match &self.failure {
            Some(failure) => Err(BatchError::msg(repeated(failure)?)),
            None => Ok("DONE".into()),
        }
    }
    #[cancel]
    fn cancel(&self) {}
}

/// Four bytes in UTF-8, two units in UTF-16.
const FACE: &str = "\u{1f600}";

fn unescaped(text: &str) -> String {
    text.replace("FACE", FACE).replace("NUL", "\0")
}

fn job(id: &str, step: &str) -> String {
    format!(r#"<job id="{id}"><step id="{step}"><batchlet ref="Says"/></step></job>"#)
}

/// Runs the same on each database, and compares the results.
fn check(xml: &str, same: impl Fn(&Stage) -> String) -> String {
    let outcomes = Database::ALL.map(|database| same(&Stage::on(database, xml)));
    for (database, outcome) in Database::ALL.into_iter().zip(&outcomes) {
        assert_eq!(*outcome, outcomes[0], "{database:?} and {:?}", Database::ALL[0]);
    }
    let [outcome, ..] = outcomes;
    outcome
}

fn ended(stage: &Stage, execution: JobExecutionId) -> String {
    let job = stage.operator().job_execution(execution).unwrap().unwrap();
    let step = &stage.operator().step_executions(execution).unwrap()[0];
    let lengths = |text: &str| {
        format!(
            "{} of {}",
            text.chars().count(),
            text.chars().next().unwrap_or(' ')
        )
    };
    format!(
        "{} {}, {}; {} {}, {}",
        job.status,
        lengths(&job.exit_status),
        lengths(&job.exit_message),
        step.status,
        lengths(&step.exit_status),
        lengths(&step.exit_message)
    )
}

/// EXIT_CODE and EXIT_MESSAGE: a value too long for the former fails the step, one too long for the latter is
/// truncated.
///
/// Spec: REPO-46, REPO-61, REPO-75, REPO-76, D-69
#[test]
fn exit_statuses_and_messages() {
    let xml = job("job", "one");
    let end = |name: &'static str, text: &'static str| {
        check(&xml, move |stage| {
            ended(stage, stage.start("job", [(name, text)]))
        })
    };
    for text in ["2500:x", "2500:é", "2500:FACE"] {
        let ended = end("exit", text);
        let shown = unescaped(text.split_once(':').unwrap().1);
        assert_eq!(
            ended,
            format!("COMPLETED 9 of C, 0 of  ; COMPLETED 2500 of {shown}, 0 of  ")
        );
    }
    for text in ["2501:x", "2501:FACE", "1:NUL"] {
        assert!(end("exit", text).starts_with("FAILED 6 of F"), "{text}");
    }
    for text in ["3000:é", "3000:FACE"] {
        let shown = unescaped(text.split_once(':').unwrap().1);
        let expected = format!("FAILED 6 of F, 2500 of {shown}; FAILED 6 of F, 2500 of {shown}");
        assert_eq!(end("failure", text), expected);
    }
    assert!(end("failure", "3:aNUL").starts_with("FAILED 6 of F"));
}

/// JOB_NAME and STEP_NAME: names that differ in case or accents only are different names.
///
/// Spec: REPO-25, REPO-27, REPO-51, REPO-53, REPO-75
#[test]
fn names() {
    let (job_name, step) = ("j".repeat(100), "é".repeat(100));
    let all = check(&job(&job_name, &step), |stage| {
        let execution = stage.start(&job_name, JobParameters::new());
        let operator = stage.operator();
        let steps = operator.step_executions(execution).unwrap();
        assert_eq!(steps[0].step_name, step);
        let names = operator.job_names().unwrap();
        assert_eq!(operator.job_instance_count(&job_name).unwrap(), 1);
        format!("{names:?}")
    });
    assert_eq!(
        all,
        format!("{:?}", [&job_name]).replace('[', "{").replace(']', "}")
    );

    let xml = r#"<job id="job"><step id="one" next="One"><batchlet ref="Says"/></step>
        <step id="One" next="öne"><batchlet ref="Says"/></step><step id="öne"><batchlet ref="Says"/></step></job>"#;
    let all = check(xml, |stage| {
        let execution = stage.start("job", JobParameters::new());
        let steps = stage.operator().step_executions(execution).unwrap();
        let ended = stage.operator().job_execution(execution).unwrap().unwrap();
        assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
        steps
            .iter()
            .map(|step| step.step_name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    });
    assert_eq!(all, "one One öne");
}

/// KEY_NAME, STRING_VAL, LONG_VAL, DOUBLE_VAL and DATE_VAL.
///
/// Spec: REPO-31, REPO-32, REPO-33, REPO-34, REPO-35, REPO-75, D-69
#[test]
fn parameters() {
    let xml = job("job", "one");
    let kept = [
        ParameterValue::String(FACE.repeat(250)),
        ParameterValue::String(" é ".into()),
        ParameterValue::Long(i64::MAX),
        ParameterValue::Long(i64::MIN),
        ParameterValue::Double(f64::MAX),
        ParameterValue::Double(-0.1),
        ParameterValue::Double(f64::MIN_POSITIVE),
        ParameterValue::Date(Timestamp(-1)),
        ParameterValue::Date(Timestamp(1_704_067_200_123)),
        // 1000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z.
        ParameterValue::Date(Timestamp(-30_609_619_200_000)),
        ParameterValue::Date(Timestamp(253_402_300_799_999)),
    ];
    check(&xml, |stage| {
        for value in &kept {
            for name in ["n".repeat(100), FACE.repeat(100)] {
                let parameters = JobParameters::new().with_parameter(name, value.clone(), true);
                let execution = stage.launch("job", parameters.clone());
                assert_eq!(stage.operator().parameters(execution).unwrap(), parameters);
                // The same parameters identify the same instance.
                let again = stage.operator().launch("job", parameters).unwrap_err();
                assert!(
                    matches!(again, JobOperatorError::JobInstanceAlreadyComplete { .. }),
                    "{again}"
                );
            }
        }
        String::new()
    });
    let refused = [
        ("x".repeat(101), ParameterValue::Long(1)),
        ("x\0".into(), ParameterValue::Long(1)),
        ("text".into(), ParameterValue::String(FACE.repeat(251))),
        ("text".into(), ParameterValue::String("\0".into())),
        ("date".into(), ParameterValue::Date(Timestamp(i64::MAX))),
        ("date".into(), ParameterValue::Date(Timestamp(i64::MIN))),
        (
            "date".into(),
            ParameterValue::Date(Timestamp(-30_610_224_000_001)),
        ),
        (
            "date".into(),
            ParameterValue::Date(Timestamp(253_402_300_800_000)),
        ),
    ];
    check(&xml, |stage| {
        let mut text = String::new();
        for (name, value) in &refused {
            let parameters = JobParameters::new().with_parameter(name.clone(), value.clone(), true);
            let error = stage.operator().start("job", parameters).unwrap_err();
            assert!(
                matches!(
                    &error,
                    JobOperatorError::JobStart {
                        cause: StartError::Parameter(_),
                        ..
                    }
                ),
                "{error}"
            );
            text.push_str(&error.to_string());
        }
        assert_eq!(stage.operator().job_instance_count("job").unwrap(), 0);
        text
    });
}

/// SHORT_CONTEXT and SERIALIZED_CONTEXT: persistent data of any length is restored.
///
/// Spec: REPO-66, REPO-68, REPO-69, REPO-75
#[test]
fn contexts() {
    let xml = job("job", "one");
    for data in ["0", "1", "200", "300", "20000"] {
        check(&xml, |stage| {
            stage.start("job", [("data", data)]);
            let context = "SELECT COALESCE(SERIALIZED_CONTEXT, SHORT_CONTEXT) AS text FROM BATCH_STEP_EXECUTION_CONTEXT";
            let context = stage.outside().rows(context).remove(0);
            assert!(context.is_ascii());
            context
        });
    }
}

/// Each table in place of a sequence has one row, the last id: 0 at first, later any value that another program has set, and one more
/// for each key, also if the threads of many launches need keys at once.
///
/// Spec: REPO-18, REPO-19, REPO-20, REPO-22
#[test]
fn a_sequence_is_a_row_that_counts() {
    const TABLES: [&str; 3] = [
        "BATCH_JOB_SEQ",
        "BATCH_JOB_EXECUTION_SEQ",
        "BATCH_STEP_EXECUTION_SEQ",
    ];
    let without_sequences = |database: &Database| *database != Database::Postgres;
    for database in Database::ALL.into_iter().filter(without_sequences) {
        let stage = Stage::on(database, &job("job", "one"));
        let mut outside = stage.outside();
        let mut ids =
            || TABLES.map(|table| outside.rows(&format!("SELECT CONCAT(ID, '') AS text FROM {table}")));
        let all = |id: &str| [(); 3].map(|()| vec![id.to_owned()]);
        if database == Database::Mariadb {
            assert_eq!(ids(), all("0"));
        }
        stage.start("job", JobParameters::new());
        assert_eq!(ids(), all("1"), "{database:?}");
        for table in TABLES {
            let last = format!("UPDATE {table} SET ID = 40");
            stage.outside().execute(&last).unwrap();
        }
        let executions: Vec<_> = std::thread::scope(|scope| {
            let start = || stage.start("job", JobParameters::new());
            let threads = [(); 8].map(|()| scope.spawn(start));
            threads.map(|thread| thread.join().unwrap().0).into()
        });
        let mut sorted = executions.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (41..=48).collect::<Vec<i64>>(), "{database:?}");
        assert_eq!(ids(), all("48"), "{database:?}");
    }
}

/// Columns that an administrator made narrower: messages and contexts are cut to the length of the URL.
///
/// Spec: REPO-76
#[test]
fn texts_are_cut_to_the_length_of_the_columns() {
    for database in Database::ALL {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::new(database, folder.path());
        std::fs::write(folder.path().join("job.xml"), job("job", "one")).unwrap();
        let open = |option: &str| {
            let sign = if place.url().contains('?') { '&' } else { '?' };
            BatchRuntime::builder()
                .repository(format!("{}{sign}{option}", place.url()))
                .job_path(folder.path().display().to_string())
                .system_property("log", "narrow")
                .build()
        };
        let operator = open("max_varchar_length=100").unwrap().job_operator();
        let alter = |table: &str, column: &str| match database {
            Database::Sqlite => "SELECT 1".to_owned(),
            Database::Postgres => format!("ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR(100)"),
            Database::Mariadb => format!("ALTER TABLE {table} MODIFY COLUMN {column} VARCHAR(100)"),
        };
        for (table, column) in [
            ("BATCH_JOB_EXECUTION", "EXIT_MESSAGE"),
            ("BATCH_STEP_EXECUTION", "EXIT_MESSAGE"),
            ("BATCH_STEP_EXECUTION_CONTEXT", "SHORT_CONTEXT"),
        ] {
            place.connect().execute(&alter(table, column)).unwrap();
        }
        let failing = JobParameters::from([("run", "1")])
            .with_non_identifying("failure", "3000:FACE")
            .with_non_identifying("data", "500");
        let execution = operator.launch("job", failing).unwrap();
        let ended = operator.wait(execution).unwrap();
        assert_eq!(ended.exit_message, FACE.repeat(100), "{database:?}");
        let works = JobParameters::new().with_non_identifying("failure", "");
        let context = "SELECT SHORT_CONTEXT AS text FROM BATCH_STEP_EXECUTION_CONTEXT";
        let short = place.connect().rows(context).remove(0);
        assert!(
            short.len() <= 100 && short.ends_with(" ..."),
            "{database:?}: {short}"
        );
        let again = operator.restart(execution, works).unwrap();
        let step = operator.wait(again).unwrap();
        assert_eq!(
            step.status,
            BatchStatus::Failed,
            "{database:?}: {}",
            step.exit_message
        );
        for (wrong, problem) in [
            ("max_varchar_length=99", "expected a number from 100 to 2500"),
            ("max_varchar_length=x", "expected a number"),
        ] {
            let error = open(wrong).err().unwrap().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
