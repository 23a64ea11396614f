//! The fields that an item takes, known without an item.

use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

/// Returns the names of the fields that a type deserializes as a struct, with their aliases; `None` if it takes any others too.
pub fn fields_of<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut fields = None;
    // The probe always fails, after it has recorded the fields.
    let _ = T::deserialize(Probe { fields: &mut fields });
    fields
}

/// Returns the fields that lack a column, probably by mistake: an `Option` would be `None` in each item. If there are columns, but none is
/// a field, returns all these fields. Otherwise returns at most one: its name is similar to an unused column or added field.
pub fn lacking<'n, T: DeserializeOwned>(
    columns: impl Iterator<Item = &'n str> + Clone,
    added: impl Iterator<Item = &'n str> + Clone,
) -> Vec<&'static str> {
    let fields = fields_of::<T>().unwrap_or_default();
    let is_taken = |column: &&str| fields.contains(column);
    let names = columns.clone().chain(added);
    let is_without = |field: &&&str| names.clone().all(|name| name != **field);
    let mut without: Vec<_> = fields.iter().filter(is_without).copied().collect();
    if columns.clone().next().is_none() || columns.clone().any(|column| is_taken(&column)) {
        let others = names.clone().filter(|name| !is_taken(name));
        without.retain(|field| others.clone().any(|name| is_similar(field, name)));
        without.truncate(1);
    }
    without
}

/// Returns whether two names are equal, ignoring case and surrounding blanks.
pub(crate) fn is_same_name(name: &str, other: &str) -> bool {
    name.trim().to_lowercase() == other.trim().to_lowercase()
}

/// Returns whether two names differ in one letter at most, in case, or in characters that are neither letters nor digits.
fn is_similar(name: &str, other: &str) -> bool {
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    let letters = |name: &str| {
        let letters = name.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    let (one, two) = (letters(name), letters(other));
    let most = usize::from(one.chars().count() >= 4);
    digits(name) == digits(other) && !one.is_empty() && strsim::damerau_levenshtein(&one, &two) <= most
}

struct Probe<'a> {
    fields: &'a mut Option<&'static [&'static str]>,
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a struct"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.fields = Some(fields);
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{is_same_name, lacking};

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only the names count")]
    struct Posting {
        id: u32,
        #[serde(rename = "valueDate")]
        value_date: Option<String>,
        note1: Option<String>,
    }

    // Spec: INPUT-23
    #[test]
    fn a_misspelt_column_is_found() {
        for (columns, expected) in [
            (["id", "valueDate", "note1", "other"].as_slice(), None),
            (&["id", "note1", "vat"], None),
            (&["id", "valueDate", "note2"], None),
            (&["id", "valueDate", "node11"], None),
            (&["it", "valueDate", "note1"], None),
            (&[], None),
            (&["id", "value_date", "note1"], Some("valueDate")),
            (&["id", "ValueDate", "note1"], Some("valueDate")),
            (&["id", "valueDat", "note1"], Some("valueDate")),
            (&["id", "valueDate", "nots1"], Some("note1")),
            (&["ID", "valueDate", "note1"], Some("id")),
        ] {
            let found = lacking::<Posting>(columns.iter().copied(), ["file"].into_iter());
            assert_eq!(found, Vec::from_iter(expected), "{columns:?}");
        }
        let lacking =
            |added: &[&'static str]| lacking::<Posting>(["1", "x"].into_iter(), added.iter().copied());
        assert_eq!(lacking(&[]), ["id", "valueDate", "note1"]);
        assert_eq!(lacking(&["id"]), ["valueDate", "note1"]);
    }

    #[test]
    fn case_and_blanks_make_no_other_name() {
        assert!(is_same_name(" Größe", "GRÖßE "));
        assert!(!is_same_name("id", "i d"));
    }
}
