//! The layouts of a repository's tables, and the formats that depend on them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time_zone::TimeZone;

/// The layout of a repository's tables, as defined by a version of Spring Batch.
///
/// A new repository gets the layout that the option `layout` of its URL names; the default is 4.3. The layout of an existing repository is
/// detected from its columns and sequences.
// Spec: REPO-05, REPO-87
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RepositoryLayout {
    /// 4.3, the layout of the specification's schema.
    #[default]
    #[serde(rename = "4.3")]
    V4_3,
    /// 5: stores parameters of any Java type as text.
    #[serde(rename = "5")]
    V5,
    /// 6: as 5; the sequence of instances has another name.
    #[serde(rename = "6")]
    V6,
}

impl RepositoryLayout {
    /// All layouts, the oldest first.
    pub const ALL: [Self; 3] = [Self::V4_3, Self::V5, Self::V6];

    /// Returns whether parameters are stored as text with the class of their type, and the creation of step executions is stored.
    pub(crate) fn has_typed_parameters(self) -> bool {
        self >= Self::V5
    }

    /// Returns whether the objects of contexts contain their classes.
    pub(crate) fn has_classes_in_objects(self) -> bool {
        self <= Self::V5
    }

    /// Returns whether Spring Batch stores the bytes of UTF-8 as characters.
    pub(crate) fn has_bytes_as_characters(self) -> bool {
        self == Self::V4_3
    }

    /// Returns the length of a text parameter, in characters.
    pub(crate) fn max_parameter(self) -> usize {
        match self {
            Self::V4_3 => 250,
            Self::V5 | Self::V6 => 2_500,
        }
    }
}

/// The version of Spring Batch.
impl fmt::Display for RepositoryLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4_3 => "4.3",
            Self::V5 => "5",
            Self::V6 => "6",
        })
    }
}

impl FromStr for RepositoryLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|layout| layout.to_string() == text);
        found.ok_or_else(|| format!("unknown layout `{text}`: expected 4.3, 5 or 6"))
    }
}

/// The width of SHORT_CONTEXT and EXIT_MESSAGE, in characters. Longer contexts go to SERIALIZED_CONTEXT.
pub(crate) const MAX_VARCHAR: usize = 2_500;

/// The settings that determine job keys, contexts and the length of texts.
#[derive(Clone, Debug)]
pub(crate) struct RepositoryFormat {
    pub(crate) layout: RepositoryLayout,
    /// The time zone of the JVMs that share the repository. Since Spring Batch 5, JOB_KEY contains dates as `Date.toString` formats them
    /// there.
    pub(crate) zone: TimeZone,
    /// The length that texts are cut to.
    // Spec: REPO-76
    pub(crate) max_varchar: usize,
}

impl Default for RepositoryFormat {
    fn default() -> Self {
        Self {
            layout: RepositoryLayout::default(),
            zone: TimeZone::UTC,
            max_varchar: MAX_VARCHAR,
        }
    }
}
