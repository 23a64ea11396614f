//! The example `orders`, with as many rows as a nightly load, killed again and again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use batch_tests::kill::Folder;
use batch_tests::process;
use batch_tests::random::Random;

const ROWS: u64 = 200_000;

/// Returns a row of the file with its customer and cents, `None` if it is not valid.
fn row(number: u64) -> (String, Option<(String, u64)>) {
    let (customer, cents) = (format!("C{}", number % 97), number % 5_000);
    let quantity = match number {
        _ if number.is_multiple_of(1_000) => "twelve".to_owned(),
        _ if number.is_multiple_of(1_777) => "0".to_owned(),
        _ => (number % 9 + 1).to_string(),
    };
    let text = format!(
        "O-{number},{customer},lamp,{quantity},{}.{:02}\n",
        cents / 100,
        cents % 100
    );
    let booked = quantity.parse().ok().filter(|quantity| *quantity > 0);
    (text, booked.map(|quantity: u64| (customer, quantity * cents)))
}

/// Table, report and rejects are exact: each order is booked once, and each bad row is rejected once.
///
/// Spec: CHUNK-LOOP-12, OP-36, REPO-62, SCHEMA-01, DEC-18
#[test]
fn kills_lose_and_double_no_order() {
    let folder = Folder::new();
    let mut text = "order,customer,item,quantity,price\n".to_owned();
    let (mut bad, mut customers) = (Vec::new(), BTreeMap::<String, (u64, u64)>::new());
    for number in 1..=ROWS {
        let (line, booked) = row(number);
        text.push_str(&line);
        match booked {
            Some((customer, cents)) => {
                let of_customer = customers.entry(customer).or_default();
                *of_customer = (of_customer.0 + 1, of_customer.1 + cents);
            }
            None => bad.push(format!("O-{number},")),
        }
    }
    fs::write(folder.path().join("orders.csv"), text).unwrap();
    let launch = ["launch", "orders", "file=orders.csv", "commit.interval=100"];
    let booked = || folder.count("SELECT COALESCE(MAX(rowid), 0) AS n FROM booking");
    let mut random = Random::new("orders");
    let start = || process::spawn_until(process::command("orders", folder.path(), &launch), "step book");
    let (mut program, mut kills) = (start(), 0);
    // A test that the machine holds up misses the moments of some kills.
    while kills < 10 && program.try_wait().unwrap().is_none() {
        let enough = booked() + i64::try_from(random.below(80)).unwrap() * 100;
        while booked() <= enough && program.try_wait().unwrap().is_none() {}
        program.kill().unwrap();
        if !program.wait().unwrap().success() {
            kills += 1;
            program = start();
        }
    }
    assert!(program.wait().unwrap().success() && kills >= 3, "{kills} kills");
    assert_eq!(
        folder.count("SELECT COUNT(*) AS n FROM BATCH_JOB_EXECUTION"),
        kills + 1
    );

    let all: (u64, u64) = customers
        .values()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(booked(), i64::try_from(all.0).unwrap());
    assert_eq!(
        folder.count("SELECT COUNT(DISTINCT order_number) AS n FROM booking"),
        booked()
    );
    assert_eq!(
        folder.count("SELECT SUM(cents) AS n FROM booking"),
        i64::try_from(all.1).unwrap()
    );
    let mut report = "customer,orders,cents\n".to_owned();
    for (customer, (orders, cents)) in &customers {
        writeln!(report, "{customer},{orders},{cents}").unwrap();
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("customers.csv")).unwrap(),
        report
    );
    let rejects = fs::read_to_string(folder.path().join("rejected-orders.csv")).unwrap();
    assert_eq!(rejects.lines().count(), bad.len() + 1);
    for order in &bad {
        assert_eq!(rejects.matches(&format!("\"{order}")).count(), 1, "{order}");
    }
    let (shown, _) = process::run_expecting(0, "orders", folder.path(), &["show", "--last"]);
    let decision = format!("\ndecision     quality: {} REJECTS\n", bad.len());
    assert!(shown.contains(&decision), "{shown}");
}
