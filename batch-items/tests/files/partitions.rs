//! Steps that are partitioned by files and by ranges of keys.

use std::fs;

use batch_items::{FlatteningItemWriter, Record, TableItemWriter};
use batch_runtime::execution::JobExecution;
use batch_runtime::prelude::*;
use batch_runtime::{BatchRuntime, BatchStatus};

/// Runs a job of records with this step, which has to complete.
fn run(step: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
    let (folder, ended) = ended(step, files);
    assert_eq!(ended.status, BatchStatus::Completed, "{}", ended.exit_message);
    folder
}

/// Runs a job of records with this step, after one that creates a table `account` with the keys 1 to 23.
fn ended(step: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, JobExecution) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    fs::create_dir(dir.join("jobs")).unwrap();
    let xml = format!(
        r#"<job id="job">
          <step id="work">{step}</step></job>"#
    );
    fs::write(dir.join("jobs/job.xml"), xml).unwrap();
    for (name, content) in files {
        fs::write(dir.join(name), content).unwrap();
    }
    let runtime = BatchRuntime::builder()
        .job_path(dir.join("jobs").display().to_string())
        .repository(format!(
            "sqlite://{}?synchronous=normal",
            dir.join("batch.db").display()
        ))
        .system_property("dir", dir.display().to_string())
        .schema_sql(
            "CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT);
             WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 23)
             INSERT INTO account SELECT id, 'owner ' || id FROM n",
        )
        .build()
        .unwrap();
    let operator = runtime.job_operator();
    let execution = operator
        .start("job", ())
        .unwrap_or_else(|error| panic!("{error}"));
    let ended = operator.wait(execution).unwrap();
    (folder, ended)
}

/// Two partitions with one output fail before any of them runs, whichever property it is, also one after the other.
///
/// Spec: LOSS-03
#[test]
fn partitions_with_the_same_output_do_not_start() {
    let files = "<partition><algorithm ref=\"filePartitions\"><properties>\
                 <property name=\"resource\" value=\"${dir}/in*\"/></properties></algorithm></partition>";
    let two = "<partition instances=\"2\"/>";
    let one_thread = "<properties><property name=\"batch.partition.threads\" value=\"1\"/></properties>";
    let rejects = "<listeners><listener ref=\"recordRejects\"><properties>\
                   <property name=\"rejects.output\" value=\"${dir}/rejects.csv\"/></properties></listener></listeners>";
    let chunk = |output: &str| {
        format!(
            "<chunk reader=\"csvRecordReader\" processor=\"recordProcessor\" writer=\"recordJsonlWriter\"><properties>\
             <property name=\"resource\" value=\"${{dir}}/in.2.csv\"/><property name=\"output\" value=\"{output}\"/>\
             </properties></chunk>"
        )
    };
    let by_name = chunk("${dir}/out-${file.name}.jsonl").replace("${dir}/in.2.csv", "${resource}");
    let by_folder = chunk("${dir}/${file.name}/../out.jsonl").replace("${dir}/in.2.csv", "${resource}");
    for (step, property) in [
        (
            format!("{one_thread}{two}{}", chunk("${dir}/out.jsonl")),
            "output",
        ),
        (format!("{one_thread}{files}{by_folder}"), "output"),
        (format!("{files}{by_name}"), "output"),
        (
            format!("{rejects}{files}{}", chunk("${dir}/${resource}.jsonl")),
            "rejects.output",
        ),
    ] {
        let (folder, ended) = ended(
            &step,
            &[
                ("in.1.csv", "id\n1\n"),
                ("in.2.csv", "id\n2\n"),
                ("in.2.txt", "id\n3\n"),
            ],
        );
        assert_eq!(ended.status, BatchStatus::Failed, "{step}");
        let message = ended.exit_message;
        let is_named = message.contains(&format!("the property `{property}`"))
            && message.contains("the plan of `work` is wrong: partition ");
        assert!(is_named, "{message}");
        let left = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let left = left.filter(|name| {
            name.to_string_lossy().contains("out") || name.to_string_lossy().contains(".part")
        });
        assert_eq!(left.count(), 0, "{step}");
    }
    // Names with several dots tell files apart.
    let by_date = "<partition><algorithm ref=\"filePartitions\"><properties>\
                 <property name=\"resource\" value=\"${dir}/*.csv\"/></properties></algorithm></partition>";
    let folder = run(
        &format!("{one_thread}{by_date}{by_name}"),
        &[("fx.2024-01-10.csv", "id\n1\n"), ("fx.2024-01-11.csv", "id\n2\n")],
    );
    for (day, id) in [(10, 1), (11, 2)] {
        let output = fs::read_to_string(folder.path().join(format!("out-fx.2024-01-{day}.jsonl"))).unwrap();
        assert_eq!(output, format!("{{\"id\":\"{id}\"}}\n"));
    }
}

/// Takes the record whose id is the number of the partition, after 30.
#[derive(BatchArtifact)]
struct Share {
    #[batch_context]
    step: StepContext,
}

#[item_processor("share")]
impl Share {
    #[process_item]
    fn process(&self, record: &Record) -> Option<Record> {
        let (_, partition) = self.step.execution_name().split_once(':')?;
        (record.get("id")?.to_string() == format!("3{partition}")).then(|| record.clone())
    }
}

/// A row of the program, which a writer of the crate writes.
#[derive(Clone, serde::Serialize)]
struct Account {
    id: String,
}

batch_items::function_processor!(Accounts("accounts"): |group: &Vec<Record>| -> Option<Vec<Account>> {
    Some(group.iter().map(|record| Account { id: record.get("id").unwrap().to_string() }).collect())
});

#[item_writer("accountWriter")]
type AccountWriter = FlatteningItemWriter<Account, TableItemWriter<Account>>;

/// Partitions without any difference would each write all rows, so none of them starts. An artifact of the program may make them differ
/// by its step context.
///
/// Spec: LOSS-03
#[test]
fn partitions_with_the_same_input_do_not_start() {
    let step = |attributes: &str, input: &str, plan: &str| {
        format!(
            "<chunk writer=\"recordTableWriter\" {attributes}><properties>{input}<property name=\"table\" value=\"account\"/></properties>\
             </chunk><partition instances=\"2\">{plan}</partition>"
        )
    };
    let plan = |second: &str| {
        format!(
            "<properties><property name=\"part.1\" value=\"in.1\"/><property name=\"part.2\" value=\"{second}\"/></properties>"
        )
    };
    let file = |name: &str| format!("<property name=\"resource\" value=\"${{dir}}/{name}.csv\"/>");
    let query = "<property name=\"query\" value=\"SELECT 31 AS id\"/><property name=\"key\" value=\"id\" target=\"reader\"/>";
    let files = [
        ("in.1.csv", "id\n31\n"),
        ("in.2.csv", "id\n32\n"),
        ("both.csv", "id\n31\n32\n"),
    ];
    let (csv, groups) = ("csvRecordReader", "csvRecordGroupReader");
    for (reader, processor, input, second) in [
        (csv, "", file("both"), "in.2"),
        (csv, "processor=\"recordProcessor\"", file("${part}"), "in.1"),
        (
            groups,
            "",
            file("both") + "<property name=\"group\" value=\"key id\"/>",
            "in.2",
        ),
        (
            groups,
            "processor=\"accounts\"",
            file("both") + "<property name=\"group\" value=\"key id\"/>",
            "in.2",
        ),
        ("queryRecordReader", "", query.to_owned(), "in.2"),
    ] {
        // A property that nothing uses is an error already.
        let plan = if input.contains("${part}") {
            plan(second)
        } else {
            String::new()
        };
        let mut step = step(&format!("reader=\"{reader}\" {processor}"), &input, &plan);
        // The type of the items is not an artifact of the program that sees its step.
        match (reader == groups, processor) {
            (false, _) => {}
            (true, "") => step = step.replace("recordTableWriter", "recordGroupTableWriter"),
            (true, _) => step = step.replace("recordTableWriter", "accountWriter"),
        }
        let (_folder, ended) = ended(&step, &files);
        assert_eq!(ended.status, BatchStatus::Failed, "{step}");
        let shared = format!("partition 1 and partition 2 would both read the whole input of `{reader}`");
        assert!(ended.exit_message.contains(&shared), "{}", ended.exit_message);
    }
    // Unique keys show that each row is there once.
    run(
        &step("reader=\"csvRecordReader\"", &file("${part}"), &plan("in.2")),
        &files,
    );
    run(
        &step(
            "reader=\"csvRecordReader\" processor=\"share\"",
            &file("both"),
            "",
        ),
        &files,
    );
}

/// `check` warns of a step that replaces the output of one that may run before it.
///
/// Spec: LOSS-03
#[test]
fn a_step_that_replaces_an_output_is_noticed() {
    let step = |id: &str, next: &str, output: &str, properties: &str| {
        format!(
            "<step id=\"{id}\"{next}><listeners><listener ref=\"recordRejects\"><properties>\
             <property name=\"rejects.output\" value=\"{id}.rejects\"/></properties></listener></listeners>\
             <chunk reader=\"csvRecordReader\" writer=\"recordJsonlWriter\"><properties>{properties}\
             <property name=\"resource\" value=\"in.csv\"/><property name=\"output\" value=\"{output}\"/></properties></chunk>"
        )
    };
    let end = "</step>";
    let append = "<property name=\"if.exists\" value=\"append\"/>";
    let next = " next=\"b\"";
    let a = |output: &str| step("a", next, output, "") + end;
    let b = |output: &str, properties: &str| step("b", "", output, properties) + end;
    let choice = "<next on=\"X\" to=\"a\"/><next on=\"*\" to=\"b\"/></step>";
    for (elements, problem) in [
        (
            a("o.jsonl") + &b("./o.jsonl", ""),
            "`a` and then `b` both write `./o.jsonl`",
        ),
        (a("o.jsonl") + &b("o.jsonl", append), ""),
        (a("o.jsonl") + &b("p.jsonl", ""), ""),
        (
            a("o.jsonl") + &b("o.jsonl", "").replace("b.rejects", "a.rejects"),
            "both write",
        ),
        (
            a("o.jsonl") + &b("p.jsonl", "").replace("b.rejects", "a.rejects"),
            "`rejects.output`",
        ),
        (
            format!(
                "<flow id=\"f\" next=\"b\">{}</flow>",
                a("o.jsonl").replace(next, "")
            ) + &b("o.jsonl", ""),
            "`f` and then `b`",
        ),
        // Only one of the two runs.
        (
            step("s", "", "s.jsonl", "") + choice + &a("o.jsonl").replace(next, "") + &b("o.jsonl", ""),
            "",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(
            folder.path().join("job.xml"),
            format!("<job id=\"job\">{elements}</job>"),
        )
        .unwrap();
        let runtime = BatchRuntime::builder()
            .job_path(folder.path().display().to_string())
            .repository("memory:")
            .build()
            .unwrap();
        let mut found = runtime.job_operator().check("job", ()).unwrap();
        found.retain(|one| one.code == "ART0029");
        assert_eq!(
            found.len(),
            usize::from(!problem.is_empty()),
            "{elements}: {found:?}"
        );
        assert!(found.iter().all(|one| one.message.contains(problem)), "{found:?}");
    }
}

/// Two artifacts of a step do not write one file.
///
/// Spec: LOSS-03
#[test]
fn an_output_belongs_to_one_artifact() {
    let step = |rejects: &str| {
        format!(
            "<listeners><listener ref=\"recordRejects\"><properties><property name=\"rejects.output\" value=\"{rejects}\"/>\
             </properties></listener></listeners><chunk reader=\"csvRecordReader\" writer=\"recordJsonlWriter\"><properties>\
             <property name=\"resource\" value=\"${{dir}}/in.csv\"/><property name=\"output\" value=\"${{dir}}/out.jsonl\"/>\
             </properties></chunk>"
        )
    };
    let problem = std::panic::catch_unwind(|| ended(&step("${dir}/./out.jsonl"), &[("in.csv", "id\n1\n")]));
    let problem = problem.unwrap_err().downcast::<String>().unwrap();
    assert!(
        problem.contains("the property `rejects.output` of `recordRejects` and the property `output` of `recordJsonlWriter` both write"),
        "{problem}"
    );
    run(&step("${dir}/other.jsonl"), &[("in.csv", "id\n1\n")]);
}

/// A key between two ranges would be in none, and each partition is in memory.
///
/// Spec: ITEM-SETTING-04
#[test]
fn ranges_are_of_integers_and_not_too_many() {
    let step = |query: &str, partitions: &str, page: &str| {
        format!(
            "<partition><algorithm ref=\"keyRangePartitions\"><properties><property name=\"query\" value=\"{query}\"/>\
             <property name=\"partitions\" value=\"{partitions}\"/></properties></algorithm></partition>\
             <chunk reader=\"queryRecordReader\" writer=\"recordCsvWriter\"><properties>\
             <property name=\"query\" value=\"SELECT id FROM account\" target=\"reader\"/><property name=\"key\" value=\"id\" target=\"reader\"/>\
             <property name=\"page.size\" value=\"{page}\" target=\"reader\"/>\
             <property name=\"output\" value=\"${{dir}}/out-${{low}}.csv\"/></properties></chunk>"
        )
    };
    for keys in ["1.0, 20", "1, 1.5", "'1', '20'", "NULL, 20", "1, x'20'"] {
        let (_, ended) = ended(&step(&format!("SELECT {keys}"), "4", "10"), &[]);
        assert_eq!(ended.status, BatchStatus::Failed, "{keys}");
        let message = ended.exit_message;
        assert!(
            message.contains("are not of an integer type"),
            "{keys}: {message}"
        );
    }
    for (partitions, page, most) in [
        ("10001", "1", 10_000),
        ("4000000000", "1", 10_000),
        ("1", "4294967295", 1_000_000),
    ] {
        let step = step("SELECT 1, 23", partitions, page);
        let problem = std::panic::catch_unwind(|| ended(&step, &[]).1.exit_message);
        let problem = problem.map_or_else(
            |panic| *panic.downcast::<String>().unwrap(),
            |message| message.to_string(),
        );
        let expected = format!("expected a number from 1 to {most}");
        assert!(problem.contains(&expected), "{problem}");
    }
}

#[test]
fn each_file_is_a_partition() {
    let step = r#"<partition><algorithm ref="filePartitions"><properties>
          <property name="resource" value="${dir}/in-*.csv"/></properties></algorithm></partition>
        <chunk reader="csvRecordReader" processor="recordProcessor" writer="recordJsonlWriter">
          <properties><property name="output" value="${dir}/out-${file.name}.jsonl"/></properties></chunk>"#;
    // The last name would be a pattern for the first one.
    let files = [
        ("in-a.csv", "id\n1\n2\n"),
        ("in-b.csv", "id\n3\n"),
        ("in-[a].csv", "id\n4\n"),
    ];
    let folder = run(step, &files);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("out-in-a.jsonl"), "{\"id\":\"1\"}\n{\"id\":\"2\"}\n");
    assert_eq!(read("out-in-b.jsonl"), "{\"id\":\"3\"}\n");
    assert_eq!(read("out-in-[a].jsonl"), "{\"id\":\"4\"}\n");
}

#[test]
fn each_range_of_keys_is_a_partition() {
    let step = r#"<partition><algorithm ref="keyRangePartitions"><properties>
          <property name="query" value="SELECT MIN(id), MAX(id) FROM account"/>
          <property name="partitions" value="4"/></properties></algorithm></partition>
        <chunk reader="queryRecordReader" processor="recordProcessor" writer="recordCsvWriter">
          <properties>
            <property name="query" value="SELECT id, owner FROM account WHERE id BETWEEN :low AND :high" target="reader"/>
            <property name="parameters" value="low=${low}; high=${high}" target="reader"/>
            <property name="key" value="id" target="reader"/>
            <property name="output" value="${dir}/out-${low}.csv"/>
          </properties></chunk>"#;
    let folder = run(step, &[]);
    let mut ids = Vec::new();
    for low in [1, 6, 12, 18] {
        let text = fs::read_to_string(folder.path().join(format!("out-{low}.csv"))).unwrap();
        ids.extend(
            text.lines()
                .skip(1)
                .map(|line| line.split(',').next().unwrap().parse::<u32>().unwrap()),
        );
    }
    assert_eq!(ids, (1..=23).collect::<Vec<_>>());
}
