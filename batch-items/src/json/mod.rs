//! Files of JSON values.

mod array;
mod finite;
mod lines;

use serde::de::DeserializeOwned;

pub use self::array::{JsonArrayItemReader, JsonArrayItemWriter};
pub(crate) use self::finite::{append_json, json_to_show};
pub use self::lines::{JsonLinesItemReader, JsonLinesItemWriter};
use crate::added::{Added, from_record};

/// Parses an item, whose object has these fields in addition.
fn parse<T: DeserializeOwned>(json: &str, added: &[Added<'_>]) -> Result<T, serde_json::Error> {
    if added.is_empty() {
        return serde_json::from_str(json);
    }
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let item = from_record(&mut deserializer, added)?;
    deserializer.end()?;
    Ok(item)
}
