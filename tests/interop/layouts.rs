//! The layouts of Spring Batch 4.3, 5 and 6, with the version that each belongs to.

use std::collections::BTreeSet;
use std::thread;

use batch_runtime::parameters::JavaValue;
use batch_runtime::{BatchStatus, JobOperatorError, JobParameters, ParameterValue, Timestamp};
use batch_tests::database::Database;
use batch_tests::random::Random;
use batch_tests::slow::times;
use serde_json::{Value, json};

use super::shared::{On, Shared, TablesOf, assert_same, contexts, parameters, shown_parameters};
use super::spring::Version;

/// What a conversion must not change: everything but the keys, which each version computes in its own way, and the file of the job, which
/// 5 and 6 do not read.
fn without_keys(seen: &[Value]) -> Value {
    let mut seen = seen.to_vec();
    for execution in &mut seen {
        execution["key"] = Value::Null;
        execution["definition"] = Value::Null;
    }
    seen.into()
}

/// Tables with rows of both programs are converted to each layout and back; each version of Spring Batch reads them completely, computes
/// their keys from their parameters, and resumes what failed in another one.
///
/// Spec: REPO-87 to REPO-91
#[test]
fn every_version_reads_what_was_converted() {
    for database in Database::ALL {
        let mut shared = Shared::new(On::of_4_3(database), TablesOf::SpringBatch);
        let failing = |run| parameters(run).with_non_identifying("load", "fail");
        shared.run("prepared", &failing(1)).unwrap();
        shared.run("skips", &parameters(2)).unwrap();
        assert_eq!(shared.launch("prepared", &failing(3)).status, BatchStatus::Failed);
        assert_eq!(shared.launch("prepared", &failing(4)).status, BatchStatus::Failed);
        let before = shared.seen_there();
        for version in [Version::V5, Version::V6, Version::V4, Version::V6] {
            shared.convert(version);
            let after = shared.seen_there();
            assert_same(&without_keys(&after), &without_keys(&before), (database, version));
            for execution in &after {
                let key = json!(["key", execution["parameters"]]);
                let key = shared.spring.done(&shared.place, key);
                assert_eq!(execution["key"], key, "{database:?}, {version:?}");
            }
        }
        // Each program resumes an instance of the other that failed in 4.3.
        let there = shared.run("prepared", &parameters(3)).unwrap();
        assert_eq!(
            there,
            json!({ "execution": 5, "instance": 3, "status": "COMPLETED" }),
            "{database:?}"
        );
        let works = parameters(1).with_non_identifying("load", "");
        let here = shared.launch("prepared", &works);
        assert_eq!(
            (here.id.0, here.instance_id.0, here.status),
            (6, 1, BatchStatus::Completed),
            "{database:?}"
        );
        shared.convert(Version::V4);
        let mut there = shared.seen_there();
        let names = |execution: &Value| -> Vec<String> {
            let steps = execution["steps"].as_array().unwrap().iter();
            steps
                .map(|step| step["step"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(
            (names(&there[4]), names(&there[5])),
            (vec!["load".to_owned()], vec!["load".to_owned()])
        );
        contexts(&mut there);
        assert_same(&there.into(), &shared.seen_here().into(), database);
        let last = shared.run("prepared", &parameters(4)).unwrap();
        assert_eq!(
            last,
            json!({ "execution": 7, "instance": 4, "status": "COMPLETED" }),
            "{database:?}"
        );
        let complete = shared.operator.launch("prepared", parameters(4)).unwrap_err();
        assert!(
            matches!(complete, JobOperatorError::JobInstanceAlreadyComplete { .. }),
            "{database:?}: {complete}"
        );
    }
}

/// Returns a text with characters that keys contain too.
fn random_text(random: &mut Random) -> String {
    let parts = [
        "a", "größer", "漢字", "😀", " ", ",", "=", "{", "}", ";", "'", "\"", "\\", "é", "1", "null", "\n",
    ];
    let count = random.below(6);
    (0..count)
        .map(|_| parts[usize::try_from(random.below(parts.len() as u64)).unwrap()])
        .collect()
}

/// Returns the name of a class of Java, and the text of a value.
fn random_java(random: &mut Random) -> (&'static str, String) {
    let number = i64::try_from(random.below(1 << 50)).unwrap() - (1 << 49);
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    let day = format!(
        "{:04}-{:02}-{:02}",
        1 + random.below(9_998),
        1 + random.below(12),
        1 + random.below(28)
    );
    let fraction = match random.below(4) {
        0 => String::new(),
        1 => format!(".{:03}", random.below(1_000)),
        2 => format!(".{:06}", random.below(1_000_000)),
        _ => format!(".{:09}", random.below(1_000_000_000)),
    };
    // As Spring Batch stores it.
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    let second = if random.below(3) == 0 { 0 } else { second };
    let time = format!("{hour:02}:{minute:02}:{second:02}{fraction}");
    match random.below(10) {
        0 => ("java.lang.Integer", (number % (1 << 31)).to_string()),
        1 => ("java.lang.Short", (number % (1 << 15)).to_string()),
        2 => ("java.lang.Byte", (number % (1 << 7)).to_string()),
        3 => (
            "java.math.BigInteger",
            format!("{number}{}", random.below(1 << 40)),
        ),
        4 => (
            "java.math.BigDecimal",
            format!("{number}.{:03}", random.below(1_000)),
        ),
        5 => ("java.lang.Boolean", (number > 0).to_string()),
        6 => {
            let (high, low) = (random.below(u64::MAX), random.below(u64::MAX));
            let hex = format!("{high:016x}{low:016x}");
            let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
            ("java.util.UUID", parts.join("-"))
        }
        7 => ("java.time.LocalDate", day),
        8 => ("java.time.LocalTime", time),
        _ => ("java.time.LocalDateTime", format!("{day}T{time}")),
    }
}

fn random_value(random: &mut Random, version: Version) -> ParameterValue {
    let number = i64::try_from(random.below(1 << 52)).unwrap() - (1 << 51);
    match random.below(if version == Version::V4 { 4 } else { 6 }) {
        0 => ParameterValue::String(random_text(random)),
        1 => ParameterValue::Long(if random.below(8) == 0 { i64::MIN } else { number }),
        // Exact in few digits: versions of Java spell others differently.
        #[allow(clippy::cast_precision_loss, reason = "the bits are few enough")]
        2 => ParameterValue::Double((number >> 24) as f64 / 8.0),
        3 => ParameterValue::Date(Timestamp(
            1_262_304_000_000 + i64::try_from(random.below(1 << 40)).unwrap(),
        )),
        _ => {
            let (class, text) = random_java(random);
            ParameterValue::Java(JavaValue {
                class: class.into(),
                text,
            })
        }
    }
}

/// Keys of random parameters are those that Spring Batch computes, which reads the same parameters.
///
/// Spec: REPO-26, REPO-88, REPO-89
#[test]
fn random_parameters_have_the_keys_of_each_version() {
    let mut random = Random::new("parameters");
    for version in Version::ALL {
        let on = On {
            version,
            database: Database::Sqlite,
        };
        let mut shared = Shared::new(on, TablesOf::Us);
        for run in 0..times(100, 300) {
            let mut given =
                JobParameters::new().with_parameter("run", ParameterValue::Long(run.into()), true);
            for number in 0..random.below(5) {
                let name = format!("p{number}{}", random_text(&mut random).replace(['\n', ' '], "-"));
                given = given.with_parameter(name, random_value(&mut random, version), random.below(4) > 0);
            }
            let here = shared.launch("prepared", &given);
            let instance = shared.operator.job_instance(here.instance_id).unwrap().unwrap();
            let key = json!(["key", shown_parameters(&given)]);
            let key = shared.spring.done(&shared.place, key);
            assert_eq!(key, instance.job_key, "{version:?}: {given:?}");
            let known = json!(["last", "prepared", shown_parameters(&given)]);
            let known = shared.spring.done(&shared.place, known);
            assert_eq!(known["execution"], here.id.0, "{version:?}: {given:?}");
        }
        let mut there = shared.seen_there();
        contexts(&mut there);
        assert_same(&there.into(), &shared.seen_here().into(), on);
    }
}

/// Both programs launch instances at the same time: ids do not collide, and all of this runtime's complete. Spring Batch creates executions
/// in serializable transactions; the servers roll back some of them.
///
/// Spec: REPO-18 to REPO-22, ID-07
#[test]
fn both_launch_at_the_same_time() {
    const THREADS: u32 = 4;
    let count = times(40, 1_000);
    for (on, tables) in On::with_tables() {
        let mut shared = Shared::new(on, tables);
        let launches = json!(["launches", "prepared", count, THREADS, "there "]);
        shared.spring.send(&shared.place, launches);
        thread::scope(|scope| {
            for first in 0..THREADS {
                let shared = &shared.operator;
                scope.spawn(move || {
                    for run in (first..count).step_by(usize::try_from(THREADS).unwrap()) {
                        let given = JobParameters::from([("run", format!("here {run}"))]);
                        let execution = shared.launch("prepared", given);
                        let execution = execution.unwrap_or_else(|error| panic!("{on:?}: {error}"));
                        assert_eq!(
                            shared.wait(execution).unwrap().status,
                            BatchStatus::Completed,
                            "{on:?}"
                        );
                    }
                });
            }
        });
        let there = shared.spring.answer().unwrap();
        let problems = there["problems"].as_array().unwrap();
        let completed = there["completed"].as_u64().unwrap();
        assert_eq!(
            completed + problems.len() as u64,
            u64::from(count),
            "{on:?}: {there}"
        );
        for problem in problems {
            let problem = problem.as_str().unwrap();
            let is_rolled_back = [
                "could not serialize",
                "Deadlock",
                "deadlock",
                "Record has changed",
            ];
            assert!(
                on.database != Database::Sqlite && is_rolled_back.iter().any(|one| problem.contains(one)),
                "{on:?}: {problem}"
            );
        }
        let seen = shared.seen_here();
        let keys: BTreeSet<&str> = seen.iter().map(|one| one["key"].as_str().unwrap()).collect();
        assert_eq!(keys.len(), seen.len(), "{on:?}");
        let complete = seen.iter().filter(|one| one["status"] == "COMPLETED").count();
        assert_eq!(complete as u64, completed + u64::from(count), "{on:?}");
    }
}

/// A date identifies an instance only in zones, and at times, where every JVM shows it as this runtime does.
///
/// Spec: REPO-89
#[test]
fn dates_in_keys_are_as_java_shows_them_in_every_zone() {
    let on = On {
        version: Version::V5,
        database: Database::Sqlite,
    };
    let mut shared = Shared::new(on, TablesOf::Us);
    let days: Vec<i64> = (0..12)
        .map(|number| 1_262_304_000_000 + number * 45_000_000_123)
        .collect();
    let shown = shared.spring.done(&shared.place, json!(["zones", days]));
    let zones = shown.as_object().unwrap();
    assert!(zones.len() > 500, "{}", zones.len());
    let (mut certain, mut different) = (0, Vec::new());
    for (zone, keys) in zones {
        // Java has names that no other program knows.
        let Some(operator) = shared.operator_if_known(zone) else {
            continue;
        };
        for (day, known) in days.iter().zip(keys.as_array().unwrap()) {
            let date = ParameterValue::Date(Timestamp(*day));
            let given = JobParameters::from([("zone", zone.as_str())]).with_parameter("date", date, true);
            let Ok(execution) = operator.launch("prepared", given) else {
                continue;
            };
            let ended = operator.wait(execution).unwrap();
            let instance = operator.job_instance(ended.instance_id).unwrap().unwrap();
            match *known == instance.job_key {
                true => certain += 1,
                false => different.push(format!("{zone} at {day}")),
            }
        }
    }
    assert!(different.is_empty(), "{different:?}");
    assert!(certain > 300, "{certain}");
}
