//! Input and output in a real object store, Ceph.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

#[path = "../files/disturbance.rs"]
mod disturbance;
mod environment;
mod errors;
mod happenings;
mod partitions;
mod proxy;
mod read;
mod server;
#[path = "../files/stage.rs"]
#[expect(dead_code, reason = "the tests of files use the rest of it")]
mod stage;
mod write;

use std::path::PathBuf;

use batch_items::{
    DelimitedItemReader, DelimitedItemWriter, JsonLinesItemReader, LineItemReader, LineItemWriter,
};
use batch_runtime::prelude::*;
use batch_test_servers::{ACCESS_KEY, SECRET_KEY};
use serde::{Deserialize, Serialize};

use self::proxy::Proxy;
use self::stage::{Stage, pass};

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Row {
    id: u64,
    text: String,
    file: String,
}

#[item_reader("RowReader")]
type RowReader = DelimitedItemReader<Row>;
#[item_reader("JsonRowReader")]
type JsonRowReader = JsonLinesItemReader<Row>;
#[item_writer("RowWriter")]
type RowWriter = DelimitedItemWriter<Row>;
#[item_reader("TextReader")]
type TextReader = LineItemReader<String>;
#[item_writer("TextWriter")]
type TextWriter = LineItemWriter<String>;

pass!(PassRow: Row);

/// Makes each text longer. At the item of this number it fails, or something happens to the file in the spool.
#[derive(BatchArtifact)]
struct Repeat {
    #[batch_property(name = "fail.at", value = "0")]
    fail_at: u64,
    #[batch_property(name = "repeat", value = "1")]
    times: usize,
    #[batch_property(name = "do", value = "fail")]
    action: String,
    #[batch_property(name = "spool", value = "")]
    spool: PathBuf,
    items: u64,
}

#[item_processor("Repeat")]
impl Repeat {
    #[process_item]
    fn process(&mut self, text: String) -> Result<Option<String>, BatchError> {
        self.items += 1;
        if self.items == self.fail_at {
            happenings::happen(&self.action, &self.spool)?;
        }
        Ok(Some(text.repeat(self.times)))
    }
}

/// Returns the properties of a client of the proxy.
fn client(proxy: &Proxy) -> String {
    format!(
        "store.options=endpoint={}, allow_http=true, access_key_id={ACCESS_KEY}, secret_access_key={SECRET_KEY}, retries=1",
        proxy.endpoint()
    )
}

/// Returns a stage that copies rows from the object store to the file `out`.
fn reading(reader: &str, commit_interval: u32, properties: &str, proxy: &Proxy) -> Stage {
    let chunk = format!(
        "reader=\"{reader}\" processor=\"PassRow\" writer=\"RowWriter\" commit-interval=\"{commit_interval}\""
    );
    let client = client(proxy);
    Stage::new(
        &chunk,
        &format!("{client}\nfile.field=file\noutput=${{dir}}/out\n{properties}"),
    )
}

/// Returns a stage that copies lines from the file `in` to an object.
fn writing(properties: &str, proxy: &Proxy) -> Stage {
    let client = client(proxy);
    Stage::new(
        "reader=\"TextReader\" processor=\"Repeat\" writer=\"TextWriter\" commit-interval=\"3\" chunk-size=\"2\"",
        &format!("{client}\nresource=${{dir}}/in\nspool=${{dir}}/spool\n{properties}"),
    )
}
