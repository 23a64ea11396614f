//! The jobs of `examples/jobs`, each killed once and compared with what this file computes.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use diesel::prelude::*;
use flate2::Compression;
use flate2::write::GzEncoder;

/// A folder with one job of the gallery, and its input in `in`.
struct Stage {
    folder: tempfile::TempDir,
    job: &'static str,
}

impl Stage {
    fn new(job: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gallery = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/jobs");
        let file = format!("{job}.xml");
        fs::copy(gallery.join(&file), folder.path().join(&file)).unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        Self { folder, job }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    fn write_gz(&self, name: &str, content: &str) {
        let mut packed = GzEncoder::new(File::create(self.path(name)).unwrap(), Compression::fast());
        packed.write_all(content.as_bytes()).unwrap();
        packed.finish().unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn batch(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_batch"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    fn launch(&self, parameters: &[&str]) -> Command {
        self.batch(&[&["launch", self.job], parameters].concat())
    }

    /// Returns the number of records that an execution has written. The file of the repository shows it soon enough to kill a job whose
    /// commits take no time.
    fn writes(&self, execution: usize) -> i64 {
        #[derive(QueryableByName)]
        struct Writes {
            #[diesel(sql_type = diesel::sql_types::BigInt)]
            writes: i64,
        }
        let database = self.path("batch.db");
        // Opening it would create it.
        if !database.exists() {
            return 0;
        }
        let query = format!(
            "SELECT COALESCE(SUM(WRITE_COUNT), 0) AS writes FROM BATCH_STEP_EXECUTION WHERE JOB_EXECUTION_ID = {execution}"
        );
        let connection = SqliteConnection::establish(&database.display().to_string());
        let found = connection.map_err(|_| ()).and_then(|mut connection| {
            diesel::sql_query(query)
                .get_result::<Writes>(&mut connection)
                .map_err(|_| ())
        });
        // The tables may not exist yet.
        found.map_or(0, |found| found.writes)
    }

    /// Launches the job with a commit for each record, and kills it after some records.
    fn kill(&self, execution: usize, records: i64, parameters: &[&str]) {
        let mut running = self
            .launch(&[parameters, &["-commit.interval=1"]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while self.writes(execution) < records {
            assert!(
                running.try_wait().unwrap().is_none(),
                "the job ended before it was killed"
            );
        }
        running.kill().unwrap();
        running.wait().unwrap();
    }

    #[track_caller]
    fn complete(&self, parameters: &[&str]) {
        let output = self.launch(parameters).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
    }

    /// Kills the job once, and completes it.
    #[track_caller]
    fn run(&self, parameters: &[&str]) {
        self.kill(1, 50, parameters);
        self.complete(parameters);
    }

    /// Returns the rows of a query with one column of texts.
    fn rows(&self, query: &str) -> Vec<String> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = diesel::sql_types::Text)]
            row: String,
        }
        let database = self.path("batch.db").display().to_string();
        let rows: Vec<Row> = diesel::sql_query(query)
            .load(&mut SqliteConnection::establish(&database).unwrap())
            .unwrap();
        rows.into_iter().map(|row| row.row).collect()
    }

    fn execute(&self, statements: &str) {
        use diesel::connection::SimpleConnection;
        let database = self.path("batch.db").display().to_string();
        SqliteConnection::establish(&database)
            .unwrap()
            .batch_execute(statements)
            .unwrap();
    }
}

/// A number with a decimal comma and points between thousands.
fn comma(cents: i64) -> String {
    let (sign, cents) = (if cents < 0 { "-" } else { "" }, cents.abs());
    let (thousands, rest) = (cents / 100_000, cents / 100 % 1000);
    match thousands {
        0 => format!("{sign}{rest},{:02}", cents % 100),
        _ => format!("{sign}{thousands}.{rest:03},{:02}", cents % 100),
    }
}

/// Keep the file under 70 lines: it is the first job of the gallery. Its result is exact after 30 kills.
///
/// Spec: ITEM-ROUTE-01, ITEM-LOOKUP-03, ITEM-FORMAT-02, RESTART-07
#[test]
fn postings() {
    let stage = Stage::new("postings");
    assert!(stage.read("postings.xml").lines().count() <= 70);
    let mut accounts = "account,customer,rate\n".to_owned();
    for account in 0..20 {
        writeln!(accounts, "A-{account},Customer {account},0.00{}", account % 4).unwrap();
    }
    stage.write("in/accounts.csv", accounts);
    let (mut rejected, mut count, mut sums) = (0, 0, (0, 0));
    let mut balances: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for file in 0..3 {
        let mut rows = "number;account;day;amount\n".to_owned();
        for number in (1..=10_000_i64).filter(|number| number % 3 == file) {
            let (account, cents) = (number % 21, (number * 7919) % 400_000 - 150_000);
            let day = if number % 97 == 0 {
                "31.02.2026".to_owned()
            } else {
                format!("{:02}.11.2026", number % 28 + 1)
            };
            writeln!(rows, "P{number};A-{account};{day};{}", comma(cents)).unwrap();
            if account == 20 || number % 97 == 0 {
                rejected += 1;
                continue;
            }
            // Of a half cent, the account holder pays a whole one.
            let fee = (cents.abs() * (account % 4) + 500) / 1000;
            let balance = balances.entry(format!("A-{account}")).or_default();
            (balance.0, balance.1) = (balance.0 + cents - fee, balance.1 + 1);
            (count, sums) = (count + 1, (sums.0 + cents, sums.1 + fee));
        }
        writeln!(rows, "P{};A-1;01.11.2026;1,00", if file == 0 { 3 } else { file }).unwrap();
        rejected += 1;
        stage.write_gz(&format!("in/postings-{file}.csv.gz"), &rows);
    }
    for execution in 1..=30 {
        stage.kill(execution, 20, &[]);
    }
    stage.complete(&[]);
    let summary: serde_json::Value = serde_json::from_str(&stage.read("out/summary.json")).unwrap();
    let expected = serde_json::json!([{"postings": count, "cents": sums.0, "fee_cents": sums.1}]);
    assert_eq!(summary, expected);
    let expected: Vec<_> = balances
        .iter()
        .map(|(account, (cents, postings))| format!("{account} {cents} {postings}"))
        .collect();
    let found =
        stage.rows("SELECT account || ' ' || cents || ' ' || postings AS row FROM balance ORDER BY account");
    assert_eq!(found, expected);
    assert_eq!(stage.read("out/rejects.jsonl").lines().count(), rejected);
}

fn statement(bookings: i64, declared: i64) -> String {
    let (mut lines, mut sum) = ("H20261130\n".to_owned(), 0);
    for number in 1..=bookings {
        let cents = number * 37 % 10_000;
        sum += cents;
        writeln!(
            lines,
            "B{number:08}ACC{:<7}202611{:02}{cents:012}",
            number % 50,
            number % 28 + 1
        )
        .unwrap();
    }
    writeln!(lines, "T{declared:08}{:18}{sum:012}", "").unwrap();
    lines
}

/// Spec: ITEM-EXPECT-01, ITEM-EXPECT-02
#[test]
fn a_statement_with_a_trailer() {
    let stage = Stage::new("statement");
    // The header has no account, day or amount.
    stage.write(
        "in/statement.txt",
        statement(600, 600).replace("H20261130", &format!("H{:38}", "00000000")),
    );
    stage.run(&[]);
    let found = stage.rows("SELECT COUNT(*) || ' ' || SUM(cents) || ' ' || MIN(day) AS row FROM booking");
    let sum: i64 = (1..=600).map(|number| number * 37 % 10_000).sum();
    assert_eq!(found, [format!("600 {sum} 2026-11-01")]);

    // A line is missing.
    let stage = Stage::new("statement");
    stage.write(
        "in/statement.txt",
        statement(599, 600).replace("H20261130", &format!("H{:38}", "00000000")),
    );
    let output = stage.launch(&[]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && errors.contains("is \"599\""),
        "{errors}"
    );
    assert_eq!(stage.rows("SELECT COUNT(*) || '' AS row FROM booking"), ["0"]);
}

/// Spec: EXPR-06
#[test]
fn transfers_of_a_payment_file() {
    let stage = Stage::new("transfers");
    let (mut transfers, mut expected) = (String::new(), Vec::new());
    for number in 1..=500 {
        let purpose = match number % 3 {
            0 => String::new(),
            _ if number == 7 => "<RmtInf><Strd/></RmtInf>".to_owned(),
            1 => format!("<RmtInf><Ustrd>Invoice</Ustrd><Ustrd>{number}</Ustrd></RmtInf>"),
            _ => format!("<RmtInf><Ustrd>Part &amp; {number}</Ustrd></RmtInf>"),
        };
        writeln!(
            transfers,
            "<CdtTrfTxInf><PmtId><EndToEndId>E{number:04}</EndToEndId></PmtId><Amt><InstdAmt Ccy=\"EUR\">{}.{:02}</InstdAmt></Amt>\
             <Cdtr><Nm>Creditor {number}</Nm></Cdtr><CdtrAcct><Id><IBAN>DE02 1203 {number:04}</IBAN></Id></CdtrAcct>{purpose}</CdtTrfTxInf>",
            number, number % 100
        )
        .unwrap();
        let purpose = match number % 3 {
            _ if number == 7 => "-".to_owned(),
            0 => "-".to_owned(),
            1 => format!("Invoice {number}"),
            _ => format!("Part & {number}"),
        };
        let cents = number * 100 + number % 100;
        expected.push(format!(
            "E{number:04} Creditor {number} DE021203{number:04} EUR {cents} {purpose}"
        ));
    }
    let document = format!(
        "<?xml version=\"1.0\"?>\n<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.001.001.09\"><CstmrCdtTrfInitn><PmtInf>\n{transfers}\
         </PmtInf></CstmrCdtTrfInitn></Document>"
    );
    stage.write("in/pain.001.xml", document);
    stage.run(&[]);
    let found = stage.rows(
        "SELECT end_to_end_id || ' ' || creditor || ' ' || iban || ' ' || currency || ' ' || cents || ' ' || coalesce(purpose, '-') AS row
         FROM transfer ORDER BY end_to_end_id",
    );
    assert_eq!(found, expected);
}

/// Spec: RESTART-07
#[test]
fn drops_are_archived() {
    let stage = Stage::new("drops");
    let mut sum = 0;
    for shop in 0..3 {
        let mut rows = "id,shop,cents\n".to_owned();
        for id in 0..200 {
            sum += shop * id;
            writeln!(rows, "{},Shop {shop},{}", shop * 1000 + id, shop * id).unwrap();
        }
        stage.write(&format!("in/2026-11-30/shop-{shop}.csv"), rows);
    }
    stage.run(&["day=2026-11-30"]);
    let found = stage.rows("SELECT COUNT(*) || ' ' || SUM(cents) || ' ' || COUNT(DISTINCT source) || ' ' || MAX(day) AS row FROM sale");
    assert_eq!(found, [format!("600 {sum} 3 2026-11-30")]);
    for shop in 0..3 {
        let packed = File::open(stage.path(&format!("archive/2026-11-30/shop-{shop}.csv.gz"))).unwrap();
        let rows = std::io::read_to_string(flate2::read::MultiGzDecoder::new(packed)).unwrap();
        assert_eq!(rows.lines().count(), 201);
    }
    assert_eq!(fs::read_dir(stage.path("in/2026-11-30")).unwrap().count(), 0);
}

/// Spec: ITEM-VALUE-10
#[test]
fn a_partition_of_a_lake() {
    let stage = Stage::new("lake");
    let mut events = String::new();
    for id in 1..=400 {
        let kind = if id % 5 == 0 { "heartbeat" } else { "order" };
        let amount = if id % 2 == 0 {
            format!(",\"amount\":{id}.25")
        } else {
            String::new()
        };
        writeln!(
            events,
            "{{\"id\":{id},\"at\":\"2026-11-30T08:00:00.{id:03}\",\"user\":\"user {id}\",\"kind\":\"{kind}\"{amount}}}"
        )
        .unwrap();
    }
    stage.write("in/events-2026-11-30-a.jsonl", events);
    stage.run(&["day=2026-11-30"]);
    let back = r#"<job id="back"><step id="read">
        <chunk reader="parquetRecordReader" writer="recordJsonlWriter"><properties>
          <property name="resource" value="lake/day=2026-11-30/events.parquet"/>
          <property name="output" value="back.jsonl"/>
        </properties></chunk></step></job>"#;
    stage.write("back.xml", back);
    assert!(
        stage
            .batch(&["launch", "back"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let rows = stage.read("back.jsonl");
    assert_eq!(rows.lines().count(), 320);
    let first: serde_json::Value = serde_json::from_str(rows.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&first["id"], &first["amount"]), (&2.into(), &"2.25".into()));
    assert_eq!(first["user_key"].as_str().unwrap().len(), 64);
}

/// Spec: ITEM-VALUE-13
#[test]
fn a_report_for_excel() {
    let stage = Stage::new("report");
    stage.execute(
        "CREATE TABLE sale (shop TEXT NOT NULL, day TEXT NOT NULL, cents INTEGER NOT NULL);
         INSERT INTO sale WITH RECURSIVE number (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM number WHERE id < 9000)
           SELECT 'Shop ' || (id % 89 + 10), '2026-' || (10 + id % 3) || '-' || (10 + id % 18), id FROM number",
    );
    stage.run(&["month=2026-11"]);
    let back = r#"<job id="back"><step id="read">
        <chunk reader="xlsxRecordReader" writer="recordCsvWriter"><properties>
          <property name="resource" value="out/sales-2026-11.xlsx"/>
          <property name="output" value="back.csv"/>
        </properties></chunk></step></job>"#;
    stage.write("back.xml", back);
    assert!(
        stage
            .batch(&["launch", "back"])
            .output()
            .unwrap()
            .status
            .success()
    );
    let mut expected = BTreeMap::new();
    for id in (1..=9000).filter(|id| id % 3 == 1) {
        let shop = format!("Shop {},2026-11-{}", id % 89 + 10, 10 + id % 18);
        let sums: &mut (i64, i64) = expected.entry(shop).or_default();
        (sums.0, sums.1) = (sums.0 + 1, sums.1 + id);
    }
    let mut rows = "shop,day,sales,amount\n".to_owned();
    for (shop, (sales, cents)) in expected {
        let amount = format!("{}.{:02}", cents / 100, cents % 100);
        let amount = amount
            .strip_suffix(".00")
            .or(amount.strip_suffix('0'))
            .unwrap_or(&amount);
        writeln!(rows, "{shop},{sales},{amount}").unwrap();
    }
    assert_eq!(stage.read("back.csv"), rows);
}

/// Spec: RESTART-07
#[test]
fn the_history_of_a_dimension() {
    let stage = Stage::new("dimension");
    let customers = |day: usize| {
        let mut rows = "id,name,city\n".to_owned();
        for id in (1..=300).filter(|id| day == 1 || id % 10 != 0) {
            let city = if day == 2 && id % 7 == 0 { "Rome" } else { "Oslo" };
            writeln!(rows, "{id}, Customer {id} ,{city}").unwrap();
        }
        rows
    };
    stage.write("in/customers-2026-11-01.csv", customers(1));
    stage.write("in/customers-2026-11-02.csv", customers(2));
    stage.run(&["day=2026-11-01"]);
    stage.kill(3, 50, &["day=2026-11-02"]);
    stage.complete(&["day=2026-11-02"]);
    let found = stage.rows(
        "SELECT valid_from || ' ' || coalesce(valid_to, 'now') || ' ' || city || ' ' || COUNT(*) AS row
         FROM customer GROUP BY valid_from, valid_to, city ORDER BY 1",
    );
    let (moved, gone) = ((1..=300).filter(|id| id % 7 == 0 && id % 10 != 0).count(), 30);
    let expected = [
        format!("2026-11-01 2026-11-02 Oslo {}", moved + gone),
        format!("2026-11-01 now Oslo {}", 300 - moved - gone),
        format!("2026-11-02 now Rome {moved}"),
    ];
    assert_eq!(found, expected);
}

/// Spec: RESTART-07
#[test]
fn contacts_are_sorted_without_repeats() {
    let stage = Stage::new("dedupe");
    let (mut rows, mut last) = ("mail,name\n".to_owned(), BTreeMap::new());
    for line in 0..800_u32 {
        let key = line.wrapping_mul(2_654_435_761) % 300;
        let mail = format!("user{key:03}@example.org");
        let written = if line % 2 == 0 {
            mail.to_uppercase()
        } else {
            format!("{mail} ")
        };
        writeln!(rows, "{written},Name {line}").unwrap();
        last.insert(mail, format!("Name {line}"));
    }
    stage.write("in/contacts.csv", rows);
    stage.run(&[]);
    let expected: String = last
        .iter()
        .map(|(mail, name)| format!("{mail},{name}\n"))
        .collect();
    assert_eq!(stage.read("out/contacts.csv"), format!("mail,name\n{expected}"));
}

/// Spec: RESTART-07
#[test]
fn personal_data_are_removed() {
    let stage = Stage::new("privacy");
    stage.execute(
        "CREATE TABLE member (id INTEGER PRIMARY KEY, name TEXT NOT NULL, mail TEXT, left_on TEXT);
         INSERT INTO member WITH RECURSIVE number (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM number WHERE id < 900)
           SELECT id, 'Member ' || id, 'm' || id || '@example.org', CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN '2019-05-01' ELSE '2024-01-01' END
           FROM number",
    );
    stage.run(&["before=2020-01-01"]);
    let found =
        stage.rows("SELECT name || ' ' || coalesce(mail, '-') AS row FROM member WHERE id <= 3 ORDER BY id");
    assert_eq!(
        found,
        ["removed -", "Member 2 m2@example.org", "Member 3 m3@example.org"]
    );
    assert_eq!(
        stage.rows("SELECT COUNT(*) || '' AS row FROM member WHERE mail IS NULL AND name = 'removed'"),
        ["300"]
    );
    let list = stage.read("out/removed-before-2020-01-01.csv");
    assert_eq!(list.lines().count(), 301);
    assert!(!list.contains("example.org"));
}

/// Every job of the folder is in a test here, and in its README.
#[test]
fn all_jobs_are_run() {
    let gallery = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/jobs");
    let readme = fs::read_to_string(gallery.join("README.md")).unwrap();
    let tests = include_str!("gallery.rs");
    for file in fs::read_dir(&gallery).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if let Some(job) = name.strip_suffix(".xml") {
            assert!(readme.contains(&format!("({name})")), "{name}");
            assert!(tests.contains(&format!("Stage::new(\"{job}\")")), "{name}");
        }
    }
}
