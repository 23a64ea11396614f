//! Partitions in real processes that are killed.

use batch_tests::kill::{Folder, Killer, PARTITIONS, PARTITIONS_WITHOUT_TRANSACTION};
use batch_tests::partitions::{Input, write_job_without_transaction};
use batch_tests::random::Random;
use batch_tests::slow;

/// Kills at random moments of eight partitions, four at a time, within a logical transaction: started work is
/// rolled back before it starts again, every row exists once, and the sum of the collectors is right.
///
/// Spec: LTX-16, LTX-17, LTX-19, LTX-22, RESTART-16, PART-20, PART-30, PART-32, SUBJOB-03, OP-35, DOM-26
#[test]
fn kills_leave_all_months_or_none() {
    let kills = slow::times(20, 100);
    let folder = Folder::new();
    let input = Input::write(folder.path());
    let instances = Killer::new(&folder, PARTITIONS, Random::new("logical transaction")).kill(kills);
    let mut rollbacks = 0;
    for instance in 1..=instances {
        let story = input.verify_logical_tx(&folder.database(), instance);
        rollbacks += story.unwrap_or_else(|problem| panic!("{problem}")).rollbacks;
    }
    let in_the_middle = verify_ends(&folder, kills);
    println!(
        "{kills} kills in {instances} instances, {in_the_middle} in the middle of the load, {rollbacks} rollbacks"
    );
    assert!(rollbacks >= kills as usize / 8, "only {rollbacks} rollbacks");
}

/// The same without a logical transaction: a complete partition does not run again, the others resume from their last
/// commits.
///
/// Spec: PART-29, PART-30, PART-32, RESTART-09, OP-35, DOM-26, DOM-27, CHUNK-LOOP-12, CHUNK-LOOP-16
#[test]
fn without_a_logical_transaction_each_partition_resumes() {
    let kills = slow::times(16, 60);
    let folder = Folder::new();
    let input = Input::write(folder.path());
    write_job_without_transaction(folder.path());
    let random = Random::new("checkpoints of partitions");
    let instances = Killer::new(&folder, PARTITIONS_WITHOUT_TRANSACTION, random).kill(kills);
    let mut continued = 0;
    for instance in 1..=instances {
        let verified = input.verify_checkpoints(&folder.database(), instance);
        continued += verified.unwrap_or_else(|problem| panic!("{problem}"));
    }
    let in_the_middle = verify_ends(&folder, kills);
    // Step executions that skipped a partition because it was already complete.
    let passed_over = folder.count(
        "SELECT COUNT(*) AS n FROM BATCH_STEP_EXECUTION S JOIN BATCH_JOB_EXECUTION E USING (JOB_EXECUTION_ID)
         WHERE S.STEP_NAME = 'load' AND EXISTS (
            SELECT 1 FROM BATCH_STEP_EXECUTION P JOIN BATCH_JOB_EXECUTION F USING (JOB_EXECUTION_ID)
            WHERE F.JOB_INSTANCE_ID = E.JOB_INSTANCE_ID AND P.STEP_NAME LIKE 'load:%' AND P.STATUS = 'COMPLETED'
                AND P.STEP_EXECUTION_ID < S.STEP_EXECUTION_ID)",
    );
    println!(
        "{kills} kills in {instances} instances, {in_the_middle} in the middle of the load; {continued} partitions resumed, \
         {passed_over} times some were complete"
    );
    assert!(continued >= kills as usize / 6 && passed_over >= i64::from(kills / 12));
}

/// Checks that everything has ended, and that exactly four partitions ran at the same time. Returns the number of kills
/// that struck several partitions between two of their commits.
fn verify_ends(folder: &Folder, kills: u32) -> i64 {
    for table in ["BATCH_JOB_EXECUTION", "BATCH_STEP_EXECUTION"] {
        let open = format!("SELECT COUNT(*) AS n FROM {table} WHERE END_TIME IS NULL");
        assert_eq!(folder.count(&open), 0, "{table}");
    }
    // The rows of partitions that waited for a thread have changed only once. Spec: D-105
    let crashed =
        "FROM BATCH_STEP_EXECUTION WHERE STEP_NAME LIKE 'load:%' AND EXIT_CODE = 'CRASHED' AND VERSION > 1";
    let most = format!("SELECT MAX(n) AS n FROM (SELECT COUNT(*) AS n {crashed} GROUP BY JOB_EXECUTION_ID)");
    assert_eq!(folder.count(&most), 4);
    let struck = folder.count(&format!(
        "SELECT COUNT(*) AS n FROM (SELECT 1 {crashed} AND COMMIT_COUNT > 0 GROUP BY JOB_EXECUTION_ID
         HAVING COUNT(*) >= 2)"
    ));
    assert!(
        // On a busy machine many strike before the load or after it.
        struck >= i64::from(kills / 8),
        "only {struck} kills struck in the middle of the load"
    );
    struck
}
