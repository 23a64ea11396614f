//! Rows as items.

use std::any::Any;
use std::sync::Arc;

use batch_items::Record;
use batch_items::record::{Value, from_record};
use serde::de::DeserializeOwned;

/// Returns a row as an item.
pub(crate) fn item_of<T: DeserializeOwned + 'static>(
    names: &Arc<Vec<String>>,
    values: Vec<Value>,
) -> Result<T, String> {
    let record = Record::of(names, values);
    let mut item: Option<T> = None;
    // A record keeps the types of the values, which serde does not know.
    match (&mut item as &mut dyn Any).downcast_mut::<Option<Record>>() {
        Some(same) => *same = Some(record),
        None => item = Some(from_record(&record)?),
    }
    item.ok_or_else(|| "the row became no record".to_owned())
}
