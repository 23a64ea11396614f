//! The artifacts that a job file can name.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::artifact::{ArtifactRegistration, PropertyInfo, short_type_name};

/// An artifact that a job file can name.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ArtifactDescription {
    /// The name for `ref`.
    pub name: &'static str,
    /// The attributes that registered it, such as `item_reader`.
    pub roles: Vec<&'static str>,
    /// Full path of the Rust type.
    #[serde(rename = "type")]
    pub class: &'static str,
    /// Whether it is of `batch-items` or another crate of this project.
    pub ready_made: bool,
    /// Its properties, in the order of the declaration.
    pub properties: Vec<PropertyDescription>,
}

/// A property of an artifact.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PropertyDescription {
    /// The name.
    pub name: String,
    /// The value if nothing sets it; `None` if it has none.
    pub default: Option<&'static str>,
    /// Whether a job file has to set it.
    pub required: bool,
    /// The type of the value.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The struct that declares it.
    pub declared_by: &'static str,
    /// What it does, from the documentation of the struct or of its field.
    pub description: &'static str,
    /// What holds if nothing sets it and it has no default, such as `by extension`; empty if that is nothing.
    pub if_absent: &'static str,
}

impl ArtifactDescription {
    /// Returns the properties without those of further parts that the first part has, too: without `2.table` if there is `1.table`.
    pub fn distinct_properties(&self) -> impl Iterator<Item = &PropertyDescription> {
        let repeats = |one: &PropertyDescription| {
            let (number, rest) = one.name.split_once('.').unwrap_or_default();
            let of_first = format!("1.{rest}");
            number.parse().is_ok_and(|number: u8| number > 1)
                && self.properties.iter().any(|other| other.name == of_first)
        };
        self.properties.iter().filter(move |one| !repeats(one))
    }

    /// Describes artifacts, ordered by name.
    pub(super) fn all<'r>(registered: impl Iterator<Item = &'r ArtifactRegistration>) -> Vec<Self> {
        let mut all: BTreeMap<_, Self> = BTreeMap::new();
        for registration in registered {
            let artifact = all
                .entry((registration.name, registration.class))
                .or_insert_with(|| Self::of(registration));
            artifact.roles.push(registration.role().attribute());
            artifact.roles.sort_unstable();
        }
        all.into_values().collect()
    }

    fn of(registration: &ArtifactRegistration) -> Self {
        Self {
            name: registration.name,
            roles: Vec::new(),
            class: registration.class,
            ready_made: registration.is_ready_made(),
            properties: described(&(registration.properties)()),
        }
    }
}

/// Returns the descriptions of properties. Of a name that several parts of the artifact have, the first part describes it.
fn described(properties: &[PropertyInfo]) -> Vec<PropertyDescription> {
    let is_first = |at: usize, name: &str| properties[..at].iter().all(|earlier| earlier.name != name);
    let firsts = properties.iter().enumerate();
    firsts
        .filter(|(at, property)| is_first(*at, &property.name))
        .map(|(_, property)| PropertyDescription::of(property))
        .collect()
}

impl PropertyDescription {
    fn of(info: &PropertyInfo) -> Self {
        Self {
            name: info.name.clone(),
            default: info.default,
            required: info.is_required(),
            type_name: short_type_name(info.type_name),
            declared_by: info.declared_by,
            description: info.description,
            // A column of the documentation that repeats the default, or says that there is none.
            if_absent: match (info.default, info.if_absent) {
                (None | Some(""), text) if !["required", "none", "all"].contains(&text) => text,
                _ => "",
            },
        }
    }
}
