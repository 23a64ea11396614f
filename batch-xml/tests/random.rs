//! Random texts: words, and edits of documents.

use proptest::prelude::*;
use proptest::sample::Index;

/// Generates one of the words, or with a weight of 1 any character.
pub(crate) fn word(words: &[&'static str], weight: u32) -> impl Strategy<Value = String> + use<> {
    prop_oneof![
        weight => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}

/// Removes fragments of a text, each a position and a length, and inserts others.
pub(crate) fn edited(mut text: String, edits: Vec<(Index, usize, String)>) -> String {
    for (place, length, piece) in edits {
        let start = text.floor_char_boundary(place.index(text.len() + 1));
        let end = text.ceil_char_boundary((start + length).min(text.len()));
        text.replace_range(start..end, &piece);
    }
    text
}
