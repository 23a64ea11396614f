//! The names of fields: which field of an item goes to which column.

use std::fmt::Display;

use batch_runtime::xml::suggest::did_you_mean;
use serde::ser;

/// The reason why an item is not a row.
#[derive(Debug)]
pub(super) enum Unsupported {
    /// A field is a list or a struct.
    Nested,
    /// The fields of the first item: no item of this form can be written.
    Fields(String),
    Other(String),
}

impl Display for Unsupported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nested => f.write_str("a list or a struct is not a value"),
            Self::Fields(cause) | Self::Other(cause) => f.write_str(cause),
        }
    }
}

impl std::error::Error for Unsupported {}

impl ser::Error for Unsupported {
    fn custom<M: Display>(message: M) -> Self {
        Self::Other(message.to_string())
    }
}

/// The fields of the output: the fields that a property selects, or the fields of the first item. Fields of later items are found by name,
/// in any order; fields of tuples, which have no names, by their order.
#[derive(Default)]
pub struct Names {
    /// The names of the output, in its order.
    names: Vec<String>,
    /// The names that a property selects, and whether the items may lack the field.
    selected: Vec<(String, bool)>,
    /// The fields of items, in the order of the first one.
    pub(super) fields: Vec<ItemField>,
    /// Whether the items are tuples.
    pub(super) is_tuple: bool,
    pub(super) is_complete: bool,
    /// The number of the current item, which marks the fields that it has.
    item: u64,
    /// The number of required fields, and those that the current item has had.
    required: usize,
    found: usize,
}

pub(super) struct ItemField {
    name: String,
    /// Where the name is in memory, if a struct declares it: the name of the next item is usually the same.
    place: Option<(usize, usize)>,
    /// The index in the output; `None` if the field is not selected.
    index: Option<usize>,
    /// Whether every item has to have it.
    is_required: bool,
    /// The last item that has the field.
    last: u64,
}

impl Names {
    /// Selects fields by name; items may lack a field whose name ends with `?`.
    pub fn select<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        if !self.is_complete {
            self.selected = names.map(selected).collect();
            self.names = self.selected.iter().map(|(name, _)| name.clone()).collect();
        }
    }

    /// Begins an item. What is known of the fields is forgotten until an item had all that are selected.
    pub(super) fn begin(&mut self) {
        if !self.is_complete {
            self.fields.clear();
            self.is_tuple = false;
            if self.selected.is_empty() {
                self.names.clear();
            }
        }
        self.item += 1;
        self.found = 0;
    }

    /// Fails if the item lacks a field that `columns` requires.
    #[inline]
    pub(super) fn end(&self) -> Result<(), String> {
        match self.found >= self.required || !self.is_complete {
            true => Ok(()),
            false => Err(self.lacking()),
        }
    }

    #[cold]
    fn lacking(&self) -> String {
        let lacking = |field: &&ItemField| field.is_required && field.last != self.item;
        let name = self.fields.iter().find(lacking).map_or("", |field| &field.name);
        format!(
            "the item has no field `{name}`; if items may lack it, write `{name}?` in the property `columns`"
        )
    }

    /// Returns the index of a field in the output, if it is selected, by its position in the item.
    #[inline]
    pub(super) fn index(
        &mut self,
        position: usize,
        name: &str,
        place: Option<(usize, usize)>,
    ) -> Result<Option<usize>, Unsupported> {
        if self.is_complete
            && let Some(field) = self.fields.get_mut(position)
            && ((place.is_some() && field.place == place) || field.name == name)
        {
            let is_first = std::mem::replace(&mut field.last, self.item) != self.item;
            self.found += usize::from(field.is_required);
            return if is_first {
                Ok(field.index)
            } else {
                Err(named_twice(name))
            };
        }
        self.find(position, name, place)
    }

    /// Finds a field that is not where the first item has it.
    #[cold]
    fn find(
        &mut self,
        position: usize,
        name: &str,
        place: Option<(usize, usize)>,
    ) -> Result<Option<usize>, Unsupported> {
        if self.is_tuple && self.is_complete {
            return Err(Unsupported::Other(format!(
                "the item has more fields than the first one, which has {}",
                self.fields.len()
            )));
        }
        let known = match self.is_tuple {
            true => None,
            false => self.fields.iter_mut().find(|field| field.name == name),
        };
        if let Some(known) = known {
            if std::mem::replace(&mut known.last, self.item) != self.item {
                self.found += usize::from(known.is_required);
                return Ok(known.index);
            }
            return Err(named_twice(name));
        }
        let index = match (self.selected.is_empty(), self.is_complete) {
            (false, _) if self.is_tuple => Some(position),
            (false, _) => self.names.iter().position(|selected| selected == name),
            (true, false) => {
                self.names.push(name.to_owned());
                Some(position)
            }
            (true, true) => {
                return Err(Unsupported::Other(format!(
                    "the item has a field `{name}`, which the first item does not have; name the fields by the property \
                     `columns`, and those that an item may lack with a `?`, such as `{name}?`"
                )));
            }
        };
        let is_required = !self.is_tuple
            && index
                .and_then(|index| self.selected.get(index))
                .is_some_and(|(_, may_lack)| !may_lack);
        self.found += usize::from(is_required);
        self.fields.push(ItemField {
            name: name.to_owned(),
            place,
            index,
            is_required,
            last: self.item,
        });
        Ok(index)
    }

    /// Returns the names of the output, in its order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the names that a record has shown, whose fields the next one may have in another order; none of other items.
    pub fn shown_by_record(&self) -> &[String] {
        let is_record = self.selected.is_empty()
            && !self.is_tuple
            && self.fields.iter().all(|field| field.place.is_none());
        if is_record { &self.names } else { &[] }
    }

    /// Takes the names that a record has shown before a restart.
    pub fn resume(&mut self, names: Vec<String>) {
        if self.is_complete || names.is_empty() {
            return;
        }
        let field = |(index, name): (usize, &String)| ItemField {
            name: name.clone(),
            place: None,
            index: Some(index),
            is_required: false,
            last: 0,
        };
        self.fields = names.iter().enumerate().map(field).collect();
        self.names = names;
        self.is_complete = true;
    }

    pub(super) fn check_selected(&mut self) -> Result<(), String> {
        let (fields, columns) = (self.fields.len(), self.selected.len());
        let has = |name: &str| self.fields.iter().any(|field| field.name == name);
        let missing = |(name, may_lack): &&(String, bool)| !may_lack && !has(name);
        let has_mark =
            |(name, may_lack): &&(String, bool)| *may_lack && !has(name) && has(&format!("{name}?"));
        let failure = if columns == 0 {
            None
        } else if let Some(name) = self.selected_twice() {
            Some(format!("`columns` has the name `{name}` twice"))
        } else if self.is_tuple {
            (fields != columns)
                .then(|| format!("the items have {fields} fields, but `columns` names {columns}"))
        } else if let Some((name, _)) = self.selected.iter().find(has_mark) {
            Some(format!(
                "the items have no field `{name}`, but one named `{name}?`; write `{name}??` for it"
            ))
        } else {
            self.selected.iter().find(missing).map(|(name, _)| {
                let hint = did_you_mean(name, self.fields.iter().map(|field| field.name.as_str()));
                format!("the items have no field `{name}`{hint}")
            })
        };
        self.is_complete = failure.is_none();
        self.required = self.fields.iter().filter(|field| field.is_required).count();
        failure.map_or(Ok(()), Err)
    }

    fn selected_twice(&self) -> Option<&String> {
        let names = self
            .selected
            .iter()
            .map(|(name, _)| name)
            .filter(|name| !name.is_empty());
        let mut seen = std::collections::HashSet::new();
        names.into_iter().find(|name| !seen.insert(*name))
    }
}

/// Returns a name of the property `columns` without its `?`, and whether it had one.
fn selected(name: &str) -> (String, bool) {
    match name.strip_suffix('?') {
        Some(name) => (name.to_owned(), true),
        None => (name.to_owned(), false),
    }
}

#[cold]
fn named_twice(name: &str) -> Unsupported {
    Unsupported::Fields(match name {
        "" => "several fields of the item have no name; name all columns of the input".to_owned(),
        name => format!("two fields of the item have the name `{name}`; rename one of them"),
    })
}
