//! Look-ups of processors.

use batch_items::prelude::*;
use batch_runtime::BatchStatus;
use batch_runtime::prelude::*;
use serde::Deserialize;

use crate::stage::Stage;

#[derive(Clone, Deserialize)]
struct Account {
    owner: String,
    #[serde(default)]
    limit: Option<i64>,
}

/// Adds the owner of the account.
#[item_processor("withOwner")]
fn with_owner(
    mut item: Record,
    #[batch_artifact(prefix = "accounts.")] accounts: &Lookup<i64, Account>,
) -> Result<Option<Record>, BatchError> {
    let number = item.get("account").and_then(Value::as_i64).unwrap_or_default();
    let account = accounts.require(&number)?;
    item.set("owner", account.owner.as_str());
    item.set("limit", account.limit);
    Ok(Some(item))
}

/// The same from a table, all rows at once.
#[item_processor("withOwnerOfTable")]
fn with_owner_of_table(
    mut item: Record,
    #[batch_artifact(prefix = "accounts.")] accounts: &Lookup<i64, Account, QueryItemReader<Record>>,
) -> Result<Option<Record>, BatchError> {
    let number = item.get("account").and_then(Value::as_i64).unwrap_or_default();
    let account = accounts.get(&number)?;
    item.set("owner", account.map(|account| account.owner.clone()));
    Ok(Some(item))
}

/// The same, by one question for each account.
#[item_processor("withOwnerByKey")]
fn with_owner_by_key(
    mut item: Record,
    #[batch_artifact(prefix = "accounts.")] accounts: &KeyLookup<Account>,
) -> Result<Option<Record>, BatchError> {
    let account = accounts.require(item.get("account").cloned().unwrap_or_default())?;
    item.set("owner", account.owner);
    Ok(Some(item))
}

fn stage(processor: &str, properties: &str) -> Stage {
    let chunk = format!(
        "reader=\"csvRecordReader\" processor=\"{processor}\" writer=\"recordCsvWriter\" commit-interval=\"2\" skip-limit=\"100\""
    );
    let properties = format!("resource@reader=${{dir}}/in.csv\noutput@writer=${{dir}}/out.csv\n{properties}");
    let skipped =
        "<skippable-exception-classes><include class=\"java.lang.Exception\"/></skippable-exception-classes>";
    let stage = Stage::after_step("nothing", &chunk, &properties, skipped);
    stage.write("in.csv", "id,account\n1,7\n2,8\n3,7\n4,9\n5,8\n");
    stage
}

fn of_file(accounts: &str) -> Stage {
    let stage = stage(
        "withOwner",
        "accounts.resource=${dir}/accounts.csv\naccounts.key=account",
    );
    stage.write("accounts.csv", accounts);
    stage
}

fn of_table(processor: &str, query: &str) -> Stage {
    let stage = stage(
        processor,
        &format!("accounts.key=account\naccounts.query={query}"),
    );
    stage.execute("CREATE TABLE account (account INTEGER, owner TEXT, number TEXT); INSERT INTO account VALUES (7, 'Ada', '7'), (8, 'Grace', '8'), (10, 'a', 'x'), (11, 'b', 'x')");
    stage
}

/// Checks that the step fails, although it skips everything.
fn fails_with(stage: Stage, message: &str) {
    let ended = stage.start(());
    assert_eq!(
        (ended.status, ended.skips),
        (BatchStatus::Failed, 0),
        "{message}: {ended:?}"
    );
    assert!(ended.message.contains(message), "{message}: {}", ended.message);
}

/// Spec: ITEM-LOOKUP-01
#[test]
fn items_get_the_row_of_a_file_with_their_key() {
    let stage = of_file("limit,account,owner\n5,7,Ada\n,8,Grace\n");
    let ended = stage.start(());
    assert_eq!(
        (ended.status, ended.skips),
        (BatchStatus::Completed, 1),
        "{ended:?}"
    );
    assert_eq!(
        stage.read("out.csv"),
        "id,account,owner,limit\n1,7,Ada,5\n2,8,Grace,\n3,7,Ada,5\n5,8,Grace,\n"
    );
}

/// Spec: ITEM-LOOKUP-01, ITEM-LOOKUP-02
#[test]
fn items_get_the_row_of_a_table_with_their_key() {
    let query = "SELECT account, owner FROM account WHERE account < 10";
    let stage = of_table("withOwnerOfTable", query);
    assert_eq!(stage.start(()).status, BatchStatus::Completed);
    assert_eq!(
        stage.read("out.csv"),
        "id,account,owner\n1,7,Ada\n2,8,Grace\n3,7,Ada\n4,9,\n5,8,Grace\n"
    );
    let stage = of_table("withOwnerByKey", "SELECT number AS account, owner FROM account");
    let ended = stage.start(());
    assert_eq!(
        (ended.status, ended.skips),
        (BatchStatus::Completed, 1),
        "{ended:?}"
    );
    assert_eq!(
        stage.read("out.csv"),
        "id,account,owner\n1,7,Ada\n2,8,Grace\n3,7,Ada\n5,8,Grace\n"
    );
}

/// A source that cannot be read, or has a row that is not one, fails the step although it skips everything.
///
/// Spec: ITEM-LOOKUP-01
#[test]
fn a_wrong_source_fails_the_step_whatever_it_skips() {
    for (accounts, message) in [
        (
            "account,owner\n7,Ada\n8,Grace\n7,Eve\n",
            "an earlier row has the key 7, too",
        ),
        (
            "account,owner\n7,Ada\n,Grace\n",
            "the column `account` of the key is empty",
        ),
        (
            "account,owner\nseven,Ada\n",
            "the key cannot be read: column `account`: expected i64",
        ),
        (
            "account,owner\n7,\n",
            "column `owner`: it is empty; the type `Option` accepts that",
        ),
        ("account,name\n7,Ada\n", "there is no column `owner`"),
        (
            "number,owner\n7,Ada\n",
            "there is no column `account`, which `key` names",
        ),
        ("account,owner\n7,\"Ada\n", "accounts.csv"),
    ] {
        fails_with(of_file(accounts), message);
    }
    let missing = stage(
        "withOwner",
        "accounts.resource=${dir}/none.csv\naccounts.key=account",
    );
    fails_with(missing, "none.csv");
    fails_with(
        of_table("withOwnerByKey", "SELECT nothing FROM account"),
        "nothing",
    );
    fails_with(of_table("withOwnerByKey", "SELECT owner FROM account"), "account");
    fails_with(
        of_table("withOwnerOfTable", "SELECT owner FROM account"),
        "account",
    );
}

/// Two rows with one key are an error of the item that asks.
///
/// Spec: ITEM-LOOKUP-02
#[test]
fn a_key_of_two_rows_is_an_error() {
    let stage = of_table("withOwnerByKey", "SELECT number AS account, owner FROM account");
    stage.write("in.csv", "id,account\n1,7\n2,x\n");
    let ended = stage.start(());
    assert_eq!(
        (ended.status, ended.skips),
        (BatchStatus::Completed, 1),
        "{ended:?}"
    );
    assert_eq!(stage.read("out.csv"), "id,account,owner\n1,7,Ada\n");
}

/// A misspelt column, a look-up without rows, and a text that the database takes for a number would be wrong in silence.
///
/// Spec: ITEM-LOOKUP-01, ITEM-LOOKUP-02
#[test]
fn a_look_up_confuses_no_columns_and_no_keys() {
    fails_with(
        of_file("account,owner,Limit\n7,Ada,5\n"),
        "there is no column `limit`; did you mean `Limit`?",
    );
    fails_with(
        of_file("account,owner\n"),
        "it has no rows; set `if.empty` to `accept`",
    );
    let twice = stage(
        "withOwner",
        "accounts.resource=${dir}/accounts.csv\naccounts.key=account,account",
    );
    assert!(twice.rejected().contains("each once"));
    let empty = stage(
        "withOwner",
        "accounts.resource=${dir}/accounts.csv\naccounts.key=account\naccounts.if.empty=accept",
    );
    empty.write("accounts.csv", "account,owner\n");
    assert_eq!(empty.start(()).skips, 5);
    // A number of a table is no other text.
    let stage = of_table("withOwnerByKey", "SELECT account, owner FROM account");
    stage.write("in.csv", "id,account\n1,007\n2,7\n3,7.0\n4,\n");
    let ended = stage.start(());
    assert_eq!(
        (ended.status, ended.skips),
        (BatchStatus::Completed, 3),
        "{ended:?}"
    );
    assert_eq!(stage.read("out.csv"), "id,account,owner\n2,7,Ada\n");
}

fn of_records(processor: &str, properties: &str) -> Stage {
    let stage = stage(
        processor,
        &format!("lookup.key=account\n{properties}").replace("FILE", "lookup.resource=${dir}/accounts.csv"),
    );
    stage.write("accounts.csv", "account,owner,rate\n7,Ada,0.10\n8,Grace,0.25\n");
    stage
}

/// Spec: ITEM-LOOKUP-03
#[test]
fn records_get_the_fields_of_a_row() {
    let written = |processor: &str, properties: &str| {
        let stage = of_records(processor, properties);
        stage.execute(
            "CREATE TABLE account (account INTEGER, owner TEXT, rate TEXT); INSERT INTO account VALUES (7, 'Ada', '0.10'), (8, 'Grace', '0.25')",
        );
        let ended = stage.completes();
        (stage.read("out.csv"), ended.skips)
    };
    let rows = "id,account,owner,rate\n1,7,Ada,0.10\n2,8,Grace,0.25\n3,7,Ada,0.10\n5,8,Grace,0.25\n";
    assert_eq!(written("recordLookupProcessor", "FILE"), (rows.to_owned(), 1));
    let of_table = "lookup.query=SELECT * FROM account";
    assert_eq!(
        written("recordQueryLookupProcessor", of_table),
        (rows.to_owned(), 1)
    );
    assert_eq!(
        written(
            "recordLookupProcessor",
            "FILE\nif.unknown=null\nlookup.fields=name=owner\nkey=replace(account, '9', '7')\nset=known=name is not null\nfields=id, name"
        ),
        (
            "id,name,known\n1,Ada,true\n2,Grace,true\n3,Ada,true\n4,Ada,true\n5,Grace,true\n".to_owned(),
            0
        )
    );
    assert_eq!(
        written(
            "recordLookupProcessor",
            "FILE\nif.unknown=null\nlookup.fields=owner\nwhere=owner is null"
        ),
        ("id,account,owner\n4,9,\n".to_owned(), 0)
    );
}

/// Spec: ITEM-LOOKUP-03
#[test]
fn a_look_up_of_records_that_is_wrong_fails_the_step() {
    let fails = |properties: &str, accounts: &str| {
        let stage = of_records("recordLookupProcessor", properties);
        stage.write("accounts.csv", accounts);
        stage.fails()
    };
    for (properties, accounts, expected) in [
        (
            "FILE",
            "account,owner\n7,Ada\n7,Grace\n",
            "an earlier row has the key \"7\", too",
        ),
        (
            "FILE",
            "account,owner\n,Ada\n",
            "the column `account` of the key is empty",
        ),
        (
            "FILE",
            "number,owner\n7,Ada\n",
            "there is no column `account`, which `lookup.key` names",
        ),
        ("FILE", "account,owner\n", "it has no rows; set `lookup.if.empty`"),
        (
            "FILE\nlookup.if.empty=accept",
            "account,owner\n",
            "without rows, `lookup.fields` has to name",
        ),
        (
            "FILE\nkey=id, account",
            "account,owner\n7,Ada\n",
            "`key` has 2 parts, and `lookup.key` has 1",
        ),
        (
            "FILE\nlookup.fields=name",
            "account,owner\n7,Ada\n",
            "the record has no field `name`",
        ),
    ] {
        let message = fails(properties, accounts);
        assert!(message.contains(expected), "{properties}: {message}");
    }
}
