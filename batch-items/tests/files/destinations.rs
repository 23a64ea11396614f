//! Outputs at a restart: files of other runs, files that are published, rejects, and checkpoints that are lost.

use std::fs;
use std::path::PathBuf;

use batch_items::file::FileFrame;
use batch_items::{
    CompositeItemWriter, DelimitedItemWriter, JsonArrayItemWriter, JsonLinesItemWriter, RejectListener,
    XmlItemWriter,
};
use batch_runtime::JobParameters;
use batch_runtime::prelude::*;
use batch_runtime::{BatchException, BatchStatus};
use serde::{Deserialize, Serialize};

use super::disturbance::happen;
use super::stage::{Ended, Stage};

batch_items::iterator_reader!(TwentyNumbers("twentyNumbers"): u64 = 1..=20);

#[derive(Clone, Debug, Serialize)]
struct Entry {
    id: u64,
}

/// At the number `at`, fails or does something to a file. One number in five is rejected if `reject` is set.
#[derive(BatchArtifact)]
struct Disturbing {
    #[batch_property(name = "at", value = "0")]
    at: u64,
    #[batch_property(name = "do", value = "fail")]
    action: String,
    #[batch_property(name = "file", value = "")]
    file: PathBuf,
    #[batch_property(name = "reject", value = "false")]
    reject: bool,
}

#[derive(Debug, BatchException)]
struct Unwanted(u64);

impl std::fmt::Display for Unwanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "number {} is not wanted", self.0)
    }
}

impl std::error::Error for Unwanted {}

#[item_processor("disturbing")]
impl Disturbing {
    #[process_item]
    fn process(&mut self, number: &u64) -> Result<Option<Entry>, BatchError> {
        if *number == self.at {
            happen(&self.action, &self.file)?;
        }
        if self.reject && number.is_multiple_of(5) {
            return Err(Unwanted(*number).into());
        }
        Ok(Some(Entry { id: *number }))
    }
}

/// Ends the file with its sum.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Trailer(u64);

impl FileFrame<Entry> for Trailer {
    fn add(&mut self, entry: &Entry) {
        self.0 += entry.id;
    }
    fn footer(&self) -> Option<String> {
        Some(format!("sum {}\n", self.0))
    }
}

#[item_writer("csvEntries")]
type CsvEntries = DelimitedItemWriter<Entry, Trailer>;
#[item_writer("jsonEntries")]
type JsonEntries = JsonLinesItemWriter<Entry>;
#[item_writer("arrayEntries")]
type ArrayEntries = JsonArrayItemWriter<Entry>;
#[item_writer("xmlEntries")]
type XmlEntries = XmlItemWriter<Entry>;

/// The writers with their properties, and the name of their file, or of the first of several.
const WRITERS: [(&str, &str, &str); 6] = [
    ("csvEntries", "output@writer=${dir}/out/o.csv", "o.csv"),
    (
        "csvEntries",
        "output@writer=${dir}/out/o.csv\nmax.items.per.file=4",
        "o-0001.csv",
    ),
    ("csvEntries", "output@writer=${dir}/out/o.csv.gz", "o.csv.gz"),
    ("jsonEntries", "output@writer=${dir}/out/o.jsonl", "o.jsonl"),
    ("arrayEntries", "output@writer=${dir}/out/o.json", "o.json"),
    (
        "xmlEntries",
        "output@writer=${dir}/out/o.xml\nelement=n\nmax.items.per.file=4",
        "o-0001.xml",
    ),
];

fn stage(writer: &str, properties: &str) -> Stage {
    let chunk = format!(
        "reader=\"twentyNumbers\" processor=\"disturbing\" writer=\"{writer}\" commit-interval=\"3\" chunk-size=\"3\""
    );
    let stage = Stage::new(&chunk, properties);
    fs::create_dir(stage.path().join("out")).unwrap();
    stage
}

/// Returns the files of the output with their content.
fn output(stage: &Stage) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(stage.path().join("out")).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn undisturbed(writer: &str, properties: &str) -> Vec<(String, Vec<u8>)> {
    let stage = stage(writer, properties);
    stage.completes();
    output(&stage)
}

const FAILS: [(&str, &str); 1] = [("at", "14")];

/// Does something to a file of the output while the job runs.
fn disturbed(stage: &Stage, action: &str, name: &str) -> Ended {
    let file = stage.path().join("out").join(name).display().to_string();
    stage.start([("at", "14"), ("do", action), ("file", &file)])
}

/// A file of an earlier run that resembles the one that was removed is not taken for it.
///
/// Spec: LOSS-01
#[test]
fn yesterdays_file_is_not_taken_for_a_part_that_was_removed() {
    for (writer, properties, name) in WRITERS {
        let stage = stage(writer, properties);
        let failed = stage.start(FAILS);
        let part = stage.path().join("out").join(format!("{name}.part"));
        let mut content = fs::read(&part).unwrap();
        fs::remove_file(&part).unwrap();
        // Of the same length, with the same end.
        content[0] ^= 1;
        fs::write(stage.path().join("out").join(name), &content).unwrap();
        let again = stage.restart(&failed, [("at", "0")]);
        assert_eq!(again.status, BatchStatus::Failed, "{writer} {properties}");
        assert_eq!(fs::read(stage.path().join("out").join(name)).unwrap(), content);
    }
}

/// A process may die after it has published any number of the files.
///
/// Spec: LOSS-01
#[test]
fn files_that_were_published_by_a_dead_process_are_published_again() {
    for (writer, properties, _) in WRITERS {
        let expected = undisturbed(writer, properties);
        let parts = expected.len();
        for published in 1..=parts {
            let stage = stage(writer, properties);
            // The last item fails after the last checkpoint but one.
            let failed = stage.start([("at", "20")]);
            let mut names: Vec<_> = output(&stage).into_iter().map(|(name, _)| name).collect();
            names.truncate(published);
            for name in &names {
                let part = stage.path().join("out").join(name);
                fs::rename(&part, part.with_extension("")).unwrap();
            }
            let again = stage.restart(&failed, [("at", "0")]);
            assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
            assert_eq!(output(&stage), expected, "{writer} {properties} {published}");
        }
    }
}

#[skip_listener("entryRejects")]
#[checkpoint_listener("entryRejects")]
type EntryRejects = RejectListener<u64, Entry>;

/// The user may decide to do without rejects that a restart does not find.
///
/// Spec: LOSS-01
#[test]
fn rejects_that_are_lost_can_be_given_up() {
    let listener = "<listeners><listener ref=\"entryRejects\"><properties>\
         <property name=\"rejects.output\" value=\"${dir}/rejects.csv\"/>\
         <property name=\"rejects.if.exists\" value=\"overwrite\"/></properties></listener></listeners>";
    let stage = Stage::with_listeners(
        listener,
        "reader=\"twentyNumbers\" processor=\"disturbing\" writer=\"jsonEntries\" commit-interval=\"3\"",
        "output@writer=${dir}/o.jsonl\nreject=true",
        "<skippable-exception-classes><include class=\"Unwanted\"/></skippable-exception-classes>",
    );
    let failed = stage.start(FAILS);
    fs::remove_file(stage.path().join("rejects.csv")).unwrap();
    let again = stage.restart(&failed, [("at", "0")]);
    assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
}

/// Spec: LOSS-02
#[test]
fn a_lost_checkpoint_of_a_writer_is_not_a_beginning() {
    for (lost, message) in [
        (
            "writer",
            "has no writer checkpoint, so their items would be missing",
        ),
        (
            "reader",
            "has no reader checkpoint, so their items would be processed again",
        ),
    ] {
        let stage = Stage::after_step(
            "nothing",
            "reader=\"twentyNumbers\" processor=\"disturbing\" writer=\"jsonEntries\" commit-interval=\"3\"",
            "output@writer=${dir}/o.jsonl",
            "",
        );
        let failed = stage.start(FAILS);
        assert_eq!(failed.status, BatchStatus::Failed);
        stage.execute(&format!(
            "UPDATE BATCH_STEP_EXECUTION_CONTEXT SET SHORT_CONTEXT = \
             replace(SHORT_CONTEXT, 'batch.{lost}.checkpoint', 'lost'), SERIALIZED_CONTEXT = NULL"
        ));
        let again = stage.restart(&failed, [("at", "0")]);
        assert_eq!(again.status, BatchStatus::Failed);
        assert!(again.message.contains(message), "{}", again.message);
    }
}

#[derive(BatchArtifact)]
struct Nothing;

#[batchlet("nothing")]
impl Nothing {
    #[process]
    fn process(&self) {}
}

/// Rejects the numbers of `bad`.
#[derive(BatchArtifact)]
struct Picky {
    #[batch_property(name = "bad")]
    bad: Vec<u64>,
}

impl batch_items::compose::WriteItems<Entry> for Picky {
    type Position = ();

    fn open(&mut self, _: Option<()>) -> Result<(), BatchError> {
        Ok(())
    }

    fn write(&mut self, items: &[&Entry], _: &mut ChunkTransaction) -> Result<(), BatchError> {
        match items.iter().find(|item| self.bad.contains(&item.id)) {
            Some(item) => Err(Unwanted(item.id).into()),
            None => Ok(()),
        }
    }

    fn position(&mut self) -> Result<(), BatchError> {
        Ok(())
    }
}

#[item_writer("fileAndPicky")]
type FileAndPicky = CompositeItemWriter<Entry, DelimitedItemWriter<Entry, Trailer>, Picky>;

/// A file that cannot be cut back, because it is complete or compressed, is brought back to the checkpoint: items are skipped as exactly as
/// with one writer, and a step whose items cannot be skipped can be restarted.
///
/// Spec: LOSS-12
#[test]
fn a_composite_skips_exactly_whatever_its_files() {
    let skips = "<skippable-exception-classes><include class=\"Unwanted\"/></skippable-exception-classes>";
    for properties in [
        "1.max.items.per.file=7",
        "1.max.items.per.file=1",
        "1.compression=gzip",
        "",
    ] {
        for bad in ["6", "7", "8", "14,15", "1,20", "1,2,3,4,5,6,7,8,9,10"] {
            for (interval, chunk) in [(10, 10), (10, 3), (1, 1)] {
                let chunk = format!(
                    "reader=\"twentyNumbers\" processor=\"disturbing\" writer=\"fileAndPicky\" \
                     commit-interval=\"{interval}\" chunk-size=\"{chunk}\""
                );
                let of = |bad: &str| {
                    let properties = format!("1.output@writer=${{dir}}/out/o.csv\n2.bad={bad}\n{properties}");
                    let stage = Stage::with_children(&chunk, &properties, skips);
                    fs::create_dir(stage.path().join("out")).unwrap();
                    stage
                };
                let stage = of(bad);
                let ended = stage.completes();
                let bad: Vec<u64> = bad.split(',').map(|number| number.parse().unwrap()).collect();
                assert_eq!(ended.skips, bad.len() as i64, "{properties} {bad:?}");
                assert_eq!(numbers(&stage), good(&bad), "{properties} {bad:?} {chunk}");
            }
        }
    }
}

fn good(bad: &[u64]) -> Vec<u64> {
    (1..=20).filter(|number| !bad.contains(number)).collect()
}

/// Returns the text of a file, which may be compressed.
fn text_of(content: &[u8]) -> String {
    if !content.starts_with(&[0x1f, 0x8b]) {
        return String::from_utf8(content.to_vec()).unwrap();
    }
    let mut text = String::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(content);
    std::io::Read::read_to_string(&mut decoder, &mut text).unwrap();
    text
}

/// Returns the numbers in all files of the output.
fn numbers(stage: &Stage) -> Vec<u64> {
    let files = output(stage).into_iter().map(|(_, content)| content);
    let texts = files.map(|content| text_of(&content));
    let lines: Vec<String> = texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.iter().filter_map(|line| line.parse().ok()).collect()
}

#[item_writer("plainCsv")]
type PlainCsv = DelimitedItemWriter<Entry>;

/// What is appended begins on a new line, below the same header.
///
/// Spec: LOSS-01
#[test]
fn an_appended_file_stays_well_formed() {
    let gz = |text: &str| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let rows: String = (1..=20).map(|id| format!("{id}\n")).collect();
    let objects: String = (1..=20).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    let header = "\u{feff}\"id\"\r\n98\n99";
    for (writer, name, before, after) in [
        ("plainCsv", "o.csv", "id\n99", format!("id\n99\n{rows}")),
        ("plainCsv", "o.csv", "id\n99\n", format!("id\n99\n{rows}")),
        ("plainCsv", "o.csv", "id", format!("id\n{rows}")),
        ("plainCsv", "o.csv", "", format!("id\n{rows}")),
        ("plainCsv", "o.csv.gz", "id\n99", format!("id\n99\n{rows}")),
        ("plainCsv", "o.csv", header, format!("{header}\n{rows}")),
        ("plainCsv", "o.csv", "id\r99\r", format!("id\r99\r{rows}")),
        (
            "jsonEntries",
            "o.jsonl",
            "{\"id\":99}",
            format!("{{\"id\":99}}\n{objects}"),
        ),
    ] {
        let stage = stage(
            writer,
            &format!("output@writer=${{dir}}/out/{name}\nif.exists=append"),
        );
        let bytes = if name.ends_with("gz") {
            gz(before)
        } else {
            before.as_bytes().to_vec()
        };
        stage.write(&format!("out/{name}"), bytes);
        let failed = stage.start(FAILS);
        assert_eq!(failed.status, BatchStatus::Failed);
        let again = stage.restart(&failed, [("at", "0")]);
        assert_eq!(again.status, BatchStatus::Completed, "{}", again.message);
        assert_eq!(text_of(&output(&stage)[0].1), after, "{name} {before}");
    }
    for before in ["name,id\n", "1\n2\n", "\"i\"\"d\"\n", "\"id"] {
        let stage = stage("plainCsv", "output@writer=${dir}/out/o.csv\nif.exists=append");
        stage.write("out/o.csv", before);
        let message = stage.fails();
        assert!(
            message.contains("and the header of the items would be `id`"),
            "{message}"
        );
        assert_eq!(stage.read("out/o.csv"), before);
    }
}

/// A header that differs is noticed when the first item is written, also if chunks without items were committed before, and in each restart.
///
/// Spec: LOSS-01
#[test]
fn an_appended_file_has_the_same_header_after_a_restart() {
    let chunk = "reader=\"csvRecordReader\" processor=\"recordProcessor\" writer=\"recordCsvWriter\" commit-interval=\"1\"";
    let properties = "resource@reader=${dir}/in\noutput=${dir}/o.csv\nif.exists=append\nwhere=id > 2";
    let stage = Stage::new(chunk, properties);
    stage.write("in", "id,a\n1,x\n2,x\n3,x\n");
    stage.write("o.csv", "a,id\nx,0\n");
    let mut ended = stage.start(JobParameters::new());
    for _ in 0..2 {
        assert_eq!(ended.status, BatchStatus::Failed);
        let expected = "the existing file begins with `a,id`, and the header of the items would be `id,a`";
        assert!(ended.message.contains(expected), "{}", ended.message);
        ended = stage.restart(&ended, JobParameters::new());
    }
    assert_eq!(stage.read("o.csv"), "a,id\nx,0\n");
}

/// Another program adds a line to the file that the output appends to, or creates the file that must not exist.
///
/// Spec: LOSS-01
#[test]
fn a_file_that_appears_or_grows_at_the_final_name_fails_the_step() {
    for (if_exists, before, after) in [
        ("append", Some("id\n98\n"), "id\n98\n99\n"),
        ("append", None, "id\n99\n"),
        ("fail", None, "id\n99\n"),
    ] {
        let properties = format!("output@writer=${{dir}}/out/o.csv\nif.exists={if_exists}");
        let stage = stage("plainCsv", &properties);
        let file = stage.path().join("out/o.csv");
        if let Some(before) = before {
            fs::write(&file, before).unwrap();
        }
        let failed = stage.start(FAILS);
        fs::write(&file, after).unwrap();
        let again = stage.restart(&failed, [("at", "0")]);
        assert_eq!(again.status, BatchStatus::Failed, "{if_exists} {before:?}");
        assert_eq!(stage.read("out/o.csv"), after);
    }
    // The same without a restart.
    let stage = stage("plainCsv", "output@writer=${dir}/out/o.csv\nif.exists=append");
    stage.write("out/o.csv", "id\n98\n");
    let ended = disturbed(&stage, "extend", "o.csv");
    assert_eq!(ended.status, BatchStatus::Failed, "{}", ended.message);
    assert_eq!(stage.read("out/o.csv"), "id\n98\n99\n");
}

/// Files of an earlier, longer run do not stay beside the new ones. Other files keep their place, whatever number their name has.
///
/// Spec: LOSS-01
#[test]
fn a_shorter_run_replaces_all_files_of_a_longer_one() {
    let properties = "output@writer=${dir}/out/o.csv\nmax.items.per.file=4";
    let expected = undisturbed("plainCsv", properties);
    let next = |distance| format!("out/o-{:04}.csv", expected.len() + distance);
    let others = [
        "out/o-6.csv",
        "out/o-2025.csv",
        "out/o-12345.csv",
        "out/o-000006.csv",
        "out/o-0006.csv.bak",
        "out/p-0006.csv",
        &next(4),
    ];
    let stage = stage("plainCsv", properties);
    let longer = ["out/o-0001.csv".to_owned(), next(1), next(2)];
    for name in longer.iter().map(String::as_str).chain(others) {
        stage.write(name, "id\n99\n");
    }
    stage.completes();
    for name in others {
        assert_eq!(stage.read(name), "id\n99\n", "{name}");
        fs::remove_file(stage.path().join(name)).unwrap();
    }
    assert_eq!(output(&stage), expected);

    let failing = format!("{properties}\nif.exists=fail");
    let stage = super::destinations::stage("plainCsv", &failing);
    stage.write(&next(1), "id\n99\n");
    assert!(stage.fails().contains("exists already"));
    let stage = super::destinations::stage("plainCsv", &failing);
    stage.write("out/o-2025.csv", "id\n99\n");
    stage.completes();
}

/// Content that another program has changed is not continued, even if the length and the end are the same.
///
/// Spec: LOSS-01
#[test]
fn content_of_the_same_length_is_not_taken_for_the_written_one() {
    for (writer, properties, name) in WRITERS {
        let stage = stage(writer, properties);
        let failed = stage.start(FAILS);
        let part = stage.path().join("out").join(format!("{name}.part"));
        let mut content = fs::read(&part).unwrap();
        content[2] ^= 1;
        fs::write(&part, &content).unwrap();
        let again = stage.restart(&failed, [("at", "0")]);
        assert_eq!(again.status, BatchStatus::Failed, "{writer} {properties}");
    }
    // Complete files that are exchanged or changed, before a restart and while the step runs.
    let properties = "output@writer=${dir}/out/o.csv\nmax.items.per.file=2";
    let stage = stage("plainCsv", properties);
    let failed = stage.start(FAILS);
    let [first, second, third] =
        [1, 2, 3].map(|number| stage.path().join(format!("out/o-000{number}.csv.part")));
    fs::rename(&first, third.with_extension("x")).unwrap();
    fs::rename(&second, &first).unwrap();
    fs::rename(third.with_extension("x"), &second).unwrap();
    let again = stage.restart(&failed, [("at", "0")]);
    assert!(
        again.message.contains("are not those that were complete"),
        "{}",
        again.message
    );
    let stage = super::destinations::stage("plainCsv", properties);
    let ended = disturbed(&stage, "change a byte", "o-0001.csv.part");
    assert!(
        ended.message.contains("another program changed it"),
        "{}",
        ended.message
    );
}

/// A writer replaces regular files only, and keeps their permissions.
///
/// Spec: LOSS-01
#[test]
#[cfg(unix)]
fn links_and_pipes_are_not_replaced() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    for if_exists in ["overwrite", "append", "fail"] {
        for name in ["o.csv", "o.csv.part"] {
            let properties = format!("output@writer=${{dir}}/out/o.csv\nif.exists={if_exists}");
            let stage = stage("plainCsv", &properties);
            let (path, other) = (stage.path().join("out").join(name), stage.path().join("other"));
            fs::write(&other, "id\n99\n").unwrap();
            symlink(&other, &path).unwrap();
            assert!(stage.fails().contains("it is a link"), "{if_exists} {name}");
            assert_eq!(fs::read_to_string(&other).unwrap(), "id\n99\n");
            fs::remove_file(&path).unwrap();
            let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
            assert!(made.success());
            assert!(
                stage.fails().contains("it is a pipe or device"),
                "{if_exists} {name}"
            );
        }
        let stage = stage("plainCsv", "output@writer=${dir}/out/o.csv");
        stage.write("out/o.csv", "id\n99\n");
        let path = stage.path().join("out/o.csv");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        stage.completes();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}

/// A file is not continued in another form.
///
/// Spec: LOSS-01
#[test]
fn a_restart_with_another_format_fails() {
    for (setting, first, second) in [
        ("delimiter", ",", ";"),
        ("columns", "id", "id,id?"),
        ("quotes", "necessary", "always"),
        ("line.end", "lf", "crlf"),
        ("encoding", "utf-8", "windows-1252"),
        ("compression", "none", "gzip"),
        ("header", "true", "false"),
    ] {
        let properties = format!("output@writer=${{dir}}/out/o.csv\n{setting}=${{form}}");
        let stage = stage("plainCsv", &properties);
        let failed = stage.start([("at", "14"), ("form", first)]);
        assert_eq!(failed.status, BatchStatus::Failed);
        let again = stage.restart(&failed, [("at", "0"), ("form", second)]);
        assert!(
            again.message.contains("the properties of the format"),
            "{setting}: {}",
            again.message
        );
        let again = stage.restart(&again, [("at", "0"), ("form", first)]);
        assert_eq!(
            again.status,
            BatchStatus::Completed,
            "{setting}: {}",
            again.message
        );
    }
}

/// An output never replaces a file that the step reads.
///
/// Spec: LOSS-03
#[test]
fn an_input_is_no_output() {
    for (resource, output) in [
        ("in.csv", "in.csv"),
        ("./in.csv", "in.csv"),
        ("in*", "in.csv"),
        ("in.csv", "link/in.csv"),
        ("other.csv", "in.csv"),
    ] {
        let chunk = "reader=\"csvRecordReader\" writer=\"recordCsvWriter\"";
        let properties = format!("resource@reader=${{dir}}/{resource}\noutput@writer=${{dir}}/{output}");
        let stage = Stage::new(chunk, &properties);
        stage.write("in.csv", "id\n1\n");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(stage.path(), stage.path().join("link")).unwrap();
            std::os::unix::fs::symlink("in.csv", stage.path().join("other.csv")).unwrap();
        }
        let ended = stage.start(());
        let is_found = ended.message.contains("the step reads this file");
        assert!(
            is_found || cfg!(not(unix)),
            "{resource} {output}: {}",
            ended.message
        );
        assert_eq!(stage.read("in.csv"), "id\n1\n");
        assert!(!stage.path().join("in.csv.part").exists());
    }
    for read in ["o-0001.csv", "o-0002.csv", "o-*.csv"] {
        let rolling =
            format!("resource@reader=${{dir}}/{read}\noutput@writer=${{dir}}/o.csv\nmax.items.per.file=5");
        let stage = Stage::new("reader=\"csvRecordReader\" writer=\"recordCsvWriter\"", &rolling);
        for name in ["o-0001.csv", "o-0002.csv"] {
            stage.write(name, "id\n1\n2\n");
        }
        let ended = stage.start(());
        assert!(
            ended.message.contains("the step reads this file"),
            "{read} {}",
            ended.message
        );
        assert_eq!(stage.read("o-0002.csv"), "id\n1\n2\n");
    }
}

/// Numbered files neither replace nor delete what the step reads, or another part or the listener of rejects writes.
///
/// Spec: LOSS-03
#[test]
fn numbered_files_take_no_file_of_the_step() {
    let routing =
        "reader=\"csvRecordReader\" writer=\"recordRoutingWriter\" commit-interval=\"3\" skip-limit=\"5\"";
    let rejects = r#"<listeners><listener ref="recordRejects"><properties>
        <property name="rejects.output" value="${dir}/o-0002.csv"/></properties></listener></listeners>"#;
    let skip = r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;
    for (listeners, properties, kept) in [
        (
            "",
            "1.output=${dir}/o-0003.csv\n2.output=${dir}/o.csv\n2.max.items.per.file=6",
            "",
        ),
        (
            "",
            "1.output=${dir}/o.csv\n1.max.items.per.file=6\n2.output=${dir}/o-0002.csv",
            "",
        ),
        (rejects, "1.output=${dir}/o.csv\n1.max.items.per.file=6", ""),
        (
            "",
            "1.output=${dir}/in.csv\n1.max.items.per.file=600",
            "in-0002.csv",
        ),
    ] {
        let all = format!("resource=${{dir}}/in*.csv\n{properties}");
        let stage = Stage::with_listeners(listeners, routing, &all, skip);
        stage.write("in-0002.csv", format!("id\n{}x,y\n", "7\n".repeat(10)));
        let ended = stage.start(());
        assert_eq!(ended.status, BatchStatus::Failed, "{properties}");
        assert!(
            ended.message.contains("the step reads this file, or writes it"),
            "{properties}: {}",
            ended.message
        );
        assert!(
            kept.is_empty() || stage.path().join(kept).exists(),
            "{properties}"
        );
    }
}

/// An output never replaces a database, such as that of the repository, or a job.
///
/// Spec: LOSS-03
#[test]
fn an_output_never_replaces_a_database_or_a_job() {
    const JOB: &str = r#"<?xml version="1.0"?><job id="nightly" xmlns="https://jakarta.ee/xml/ns/jakartaee" version="2.0"/>"#;
    const DRAFT: &str = "\u{feff}\n<job\n id=\"nightly\"><step\n id=\"load\"/></job>";
    let run = |content: &[u8], properties: &str| {
        let properties = format!("resource=${{dir}}/in.csv\noutput=${{dir}}/nightly\n{properties}");
        let stage = Stage::new(
            "reader=\"csvRecordReader\" writer=\"recordCsvWriter\"",
            &properties,
        );
        stage.write("in.csv", "id\n1\n");
        stage.write("nightly", content);
        let ended = stage.start(());
        let left = std::fs::read(stage.path().join("nightly")).unwrap();
        (ended, left == content)
    };
    let database = [b"SQLite format 3\0".as_slice(), &[0; 100]].concat();
    let licensed = format!(
        "<!-- {} --><b:job xmlns:b=\"x\"\tid=\"nightly\"/>",
        "licence ".repeat(2000)
    );
    for properties in ["", "if.exists=append"] {
        for (content, kind) in [
            (database.as_slice(), "nightly` is a SQLite database"),
            (JOB.as_bytes(), "nightly` is a job"),
            (DRAFT.as_bytes(), "nightly` is a job"),
            (licensed.as_bytes(), "nightly` is a job"),
        ] {
            let (ended, is_left) = run(content, properties);
            assert!(ended.message.contains(kind), "{}", ended.message);
            assert!(is_left, "{kind}");
        }
    }
    let (ended, is_left) = run(b"<jobs><job id=\"7\"/></jobs>", "");
    assert_eq!(
        (ended.status, is_left),
        (BatchStatus::Completed, false),
        "{}",
        ended.message
    );
}

/// A log of a database is a part of it.
///
/// Spec: LOSS-03
#[test]
fn an_output_is_no_log_of_a_database() {
    for suffix in ["-wal", "-shm", "-journal"] {
        let properties = format!("resource=${{dir}}/in.csv\noutput=${{dir}}/other.db{suffix}");
        let stage = Stage::new(
            "reader=\"csvRecordReader\" writer=\"recordCsvWriter\"",
            &properties,
        );
        stage.write("in.csv", "id\n1\n");
        stage.write("other.db", [b"SQLite format 3\0".as_slice(), &[0; 100]].concat());
        let message = stage.fails();
        assert!(message.contains("is a log of a SQLite database"), "{message}");
    }
}

/// Rejects replace neither what the step reads, nor a database, nor a file that is no report, whatever its settings.
///
/// Spec: LOSS-03
#[test]
fn rejects_replace_no_other_file() {
    let database = [b"SQLite format 3\0".as_slice(), &[0; 100]].concat();
    for (name, if_exists, content, expected) in [
        (
            "nightly.db",
            "overwrite",
            database.as_slice(),
            "is a SQLite database",
        ),
        ("nightly.db", "fail", &database, "is a SQLite database"),
        ("in.csv", "overwrite", b"id\n1,2\n", "the step reads"),
        (
            "notes.txt",
            "fail",
            b"precious without a line end",
            "does not belong to step",
        ),
        ("notes.csv", "fail", b"precious", "does not belong to step"),
        ("notes.json", "fail", b"{\"a\":1}", "does not belong to step"),
    ] {
        for input in ["id\n1,2\n", "id\n1\n"] {
            let listeners = format!(
                r#"<listeners><listener ref="recordRejects"><properties>
                <property name="rejects.output" value="${{dir}}/{name}"/><property name="rejects.if.exists" value="{if_exists}"/>
                </properties></listener></listeners>"#
            );
            let skip = r#"<skippable-exception-classes><include class="RecordError"/></skippable-exception-classes>"#;
            let stage = Stage::with_listeners(
                &listeners,
                "reader=\"csvRecordReader\" writer=\"recordCsvWriter\" skip-limit=\"9\"",
                "resource=${dir}/in.csv\noutput=${dir}/out.csv",
                skip,
            );
            stage.write("in.csv", input);
            if name != "in.csv" {
                stage.write(name, content);
            }
            let before = std::fs::read(stage.path().join(name)).unwrap();
            let message = stage.fails();
            assert!(message.contains(expected), "{name}: {message}");
            assert_eq!(std::fs::read(stage.path().join(name)).unwrap(), before, "{name}");
        }
    }
}

/// The file of a look-up is read by the step, too.
///
/// Spec: LOSS-03
#[test]
fn a_look_up_is_no_output() {
    let chunk = "reader=\"csvRecordReader\" processor=\"recordLookupProcessor\" writer=\"recordCsvWriter\"";
    let properties = "resource@reader=${dir}/in.csv\nlookup.resource=${dir}/names.csv\nlookup.key=id\noutput=${dir}/names.csv";
    let stage = Stage::new(chunk, properties);
    stage.write("in.csv", "id\n1\n");
    stage.write("names.csv", "id,name\n1,Ada\n");
    let ended = stage.start(());
    assert!(
        ended.message.contains("the step reads this file"),
        "{}",
        ended.message
    );
    assert_eq!(stage.read("names.csv"), "id,name\n1,Ada\n");
}
