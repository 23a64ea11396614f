// Spec: MARK-03
use batch_runtime::destination::DatabaseDestination;
use batch_runtime::prelude::*;

#[derive(BatchArtifact)]
struct Ledger;

#[item_writer]
impl Ledger {
    #[destination]
    fn ledger(&self) -> Result<DatabaseDestination, BatchError> {
        DatabaseDestination::new("sqlite://ledger.db")
    }

    #[write_items]
    fn write(&mut self, _items: &[u64], _tx: &mut String) {}
}

fn main() {}
