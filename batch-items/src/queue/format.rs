//! The formats of messages.

use std::error::Error;
use std::fmt::Display;
use std::str::FromStr;

use batch_runtime::BatchArtifact;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::added::{Added, AddedValue, from_record};
use crate::json::append_json;
use crate::record::Value;

/// A format of messages that a reader decodes: [`JsonMessages`], [`TextMessages`], [`BinaryMessages`], or one of a program.
///
/// It is an artifact, so it may have properties.
pub trait DecodeMessage<T>: BatchArtifact + Send {
    /// Makes an item of a message. `added` are fields that the item gets in addition, if the format has fields.
    ///
    /// # Errors
    /// The reason why the message is not an item. It becomes a [`RecordError`](crate::RecordError), which a job may skip.
    fn decode(&mut self, payload: &[u8], added: &AddedFields<'_>) -> Result<T, Box<dyn Error + Send + Sync>>;
}

/// A format of messages that a writer encodes: [`JsonMessages`], [`TextMessages`], [`BinaryMessages`], or one of a program.
pub trait EncodeMessage<T>: BatchArtifact + Send {
    /// Appends the message of an item to `payload`, which is empty.
    ///
    /// # Errors
    /// The reason why the item is not a message. It becomes an [`EncodeError`](crate::EncodeError), which a job may skip.
    fn encode(&mut self, item: &T, payload: &mut Vec<u8>) -> Result<(), Box<dyn Error + Send + Sync>>;
}

/// The fields that a reader adds to an item, such as the offset of its message.
#[derive(Default)]
pub struct AddedFields<'a>(Vec<Added<'a>>);

impl<'a> AddedFields<'a> {
    /// Adds a text.
    pub fn text(&mut self, name: &'a str, text: &'a str) {
        let value = AddedValue::Text(text);
        self.0.push(Added { name, value });
    }

    /// Adds a number.
    pub fn number(&mut self, name: &'a str, number: u64) {
        let value = AddedValue::Number(number);
        self.0.push(Added { name, value });
    }

    /// Returns the names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value)> {
        self.0.iter().map(|added| {
            let value = match added.value {
                AddedValue::Text(text) => Value::from(text),
                // Offsets and sequences of messages are below.
                AddedValue::Number(number) => Value::Int(i64::try_from(number).unwrap_or(i64::MAX)),
            };
            (added.name, value)
        })
    }
}

/// Messages that are JSON values.
#[derive(BatchArtifact)]
pub struct JsonMessages;

impl<T: DeserializeOwned> DecodeMessage<T> for JsonMessages {
    fn decode(&mut self, payload: &[u8], added: &AddedFields<'_>) -> Result<T, Box<dyn Error + Send + Sync>> {
        let mut json = serde_json::Deserializer::from_slice(payload);
        let item = from_record(&mut json, &added.0)?;
        json.end()?;
        Ok(item)
    }
}

impl<T: Serialize> EncodeMessage<T> for JsonMessages {
    fn encode(&mut self, item: &T, payload: &mut Vec<u8>) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(append_json(item, payload)?)
    }
}

/// Messages in UTF-8, each an item with `FromStr` or `Display`, such as a `String`. They get no further fields.
#[derive(BatchArtifact)]
pub struct TextMessages;

impl<T: FromStr> DecodeMessage<T> for TextMessages
where
    T::Err: Display,
{
    fn decode(&mut self, payload: &[u8], _: &AddedFields<'_>) -> Result<T, Box<dyn Error + Send + Sync>> {
        let text = std::str::from_utf8(payload)?;
        text.parse().map_err(|error: T::Err| error.to_string().into())
    }
}

impl<T: Display> EncodeMessage<T> for TextMessages {
    fn encode(&mut self, item: &T, payload: &mut Vec<u8>) -> Result<(), Box<dyn Error + Send + Sync>> {
        payload.extend(item.to_string().into_bytes());
        Ok(())
    }
}

/// Messages as they are: items are made of bytes, and are bytes, such as a `Vec<u8>`. They get no further fields.
#[derive(BatchArtifact)]
pub struct BinaryMessages;

impl<T: From<Vec<u8>>> DecodeMessage<T> for BinaryMessages {
    fn decode(&mut self, payload: &[u8], _: &AddedFields<'_>) -> Result<T, Box<dyn Error + Send + Sync>> {
        Ok(payload.to_vec().into())
    }
}

impl<T: AsRef<[u8]>> EncodeMessage<T> for BinaryMessages {
    fn encode(&mut self, item: &T, payload: &mut Vec<u8>) -> Result<(), Box<dyn Error + Send + Sync>> {
        payload.extend_from_slice(item.as_ref());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, PartialEq, Debug)]
    struct Order {
        id: u32,
        offset: Option<u64>,
    }

    #[test]
    fn json_is_an_item_with_further_fields() {
        let added = |name, value| AddedFields(vec![Added { name, value }]);
        let mut json = JsonMessages;
        let order: Order = json
            .decode(br#"{"id": 7}"#, &added("offset", AddedValue::Number(3)))
            .unwrap();
        assert_eq!(
            order,
            Order {
                id: 7,
                offset: Some(3)
            }
        );
        for payload in [
            &b"{\"id\": 7} x"[..],
            b"{}",
            b"",
            b"{\"id\": \"7\"}",
            b"\xff",
            b"[1",
        ] {
            let order: Result<Order, _> = json.decode(payload, &AddedFields(Vec::new()));
            assert!(order.is_err(), "{payload:?}");
        }
    }

    #[test]
    fn texts_and_bytes_are_items() {
        let none = AddedFields(Vec::new());
        assert_eq!(TextMessages.decode(b"5", &none).ok(), Some(5_u8));
        let text: Result<u8, _> = TextMessages.decode(b"300", &none);
        assert!(text.unwrap_err().to_string().contains("too large"));
        assert!(DecodeMessage::<String>::decode(&mut TextMessages, b"\xff", &none).is_err());
        assert_eq!(BinaryMessages.decode(b"\xff", &none).ok(), Some(vec![0xff_u8]));
        let mut payload = Vec::new();
        TextMessages.encode(&5, &mut payload).unwrap();
        BinaryMessages.encode(&[0xff_u8], &mut payload).unwrap();
        assert_eq!(payload, b"5\xff");
    }
}
