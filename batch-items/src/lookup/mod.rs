//! Look-ups: rows of files, tables and queries, by key.

mod by_key;
mod records;

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::sync::{Mutex, OnceLock, PoisonError};

use batch_runtime::ConfigurationError;
use batch_runtime::prelude::*;
use batch_runtime::xml::suggest::did_you_mean;
use serde::de::DeserializeOwned;

use crate::choices;
use crate::compose::ReadItems;
use crate::delimited::DelimitedItemReader;
use crate::record::{Record, key_of, value_of};
use crate::rows::lacking;

pub use self::by_key::KeyLookup;
pub use self::records::RecordLookupProcessor;

/// The rows of a reader by their key, such as accounts by their number: a field of a processor, with a prefix for its properties.
///
/// `R` reads [`Record`]s: a delimited file by default, or for example `QueryItemReader<Record>`. The look-up has the properties of that
/// reader, and `key`: the columns of the key, separated by commas. Without rows it is an error, unless `if.empty` is `accept`. The rows are read at the first call of [`get`](Self::get) or
/// [`require`](Self::require), and stay in memory for the step; each partition, and each of several processors, has its own. [`KeyLookup`] asks the
/// database for each key instead.
///
/// `K` is the type of the key: a `String`, a number, or a tuple of them for several columns. `V` is a struct with serde, whose fields are found by the names
/// of the columns, or the type of the only column beside the key. An empty field is an error unless its type is an `Option`.
///
/// ```
/// use batch_items::Lookup;
/// use batch_runtime::prelude::*;
/// # #[derive(Clone)]
/// # struct Line { account: String }
/// # struct Posting { customer: String }
///
/// #[derive(serde::Deserialize)]
/// struct Account {
///     customer: String,
/// }
///
/// #[item_processor("Postings")]
/// fn post(
///     line: Line,
///     #[batch_artifact(prefix = "accounts.")] accounts: &Lookup<String, Account>,
/// ) -> Result<Option<Posting>, BatchError> {
///     let account = accounts.require(&line.account)?;
///     Ok(Some(Posting { customer: account.customer.clone() }))
/// }
/// ```
///
/// ```xml
/// <chunk reader="LineReader" processor="Postings" writer="PostingWriter" skip-limit="100">
///   <properties>
///     <property name="accounts.resource" value="accounts.csv"/>
///     <property name="accounts.key" value="account"/>
///   </properties>
///   <skippable-exception-classes><include class="UnknownKey"/></skippable-exception-classes>
/// </chunk>
/// ```
///
/// # Errors
/// A source that cannot be read, a row without a key or with a key that another row has, and a row that is not a `V` fail the step,
/// whatever it skips.
#[derive(BatchArtifact)]
pub struct Lookup<K, V, R = DelimitedItemReader<Record>> {
    #[batch_property(name = "key")]
    key: KeyColumns,
    #[batch_property(name = "if.empty", value = "fail")]
    if_empty: IfEmpty,
    #[batch_artifact]
    source: Mutex<R>,
    #[default(OnceLock::new())]
    rows: OnceLock<Loaded<K, V>>,
}

/// The rows, with the name of their source.
struct Loaded<K, V> {
    of: String,
    rows: HashMap<K, V>,
}

/// What a look-up without rows is: the property `if.empty`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IfEmpty {
    /// `fail`: an error. The default.
    Fail,
    /// `accept`: no key has a row.
    Accept,
}

choices! {
    IfEmpty { "fail" => Fail, "accept" => Accept }
}

/// Checks that no column has nearly the name of a field without a column, which would be `None` in each row. Fails with the cause.
fn check_columns<V: DeserializeOwned>(record: &Record) -> Result<(), String> {
    let columns = record.iter().map(|(name, _)| name);
    match lacking::<V>(columns.clone(), std::iter::empty())[..] {
        [] => Ok(()),
        [first, ..] => Err(format!(
            "there is no column `{first}`{}",
            did_you_mean(first, columns)
        )),
    }
}

/// The columns of a key: at least one.
struct KeyColumns(Vec<String>);

impl std::str::FromStr for KeyColumns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let columns: Vec<_> = text.split(',').map(|column| column.trim().to_owned()).collect();
        let is_new = |(index, column): (usize, &String)| !columns[..index].contains(column);
        if columns.iter().any(String::is_empty) || !columns.iter().enumerate().all(is_new) {
            return Err("expected the columns of the key, each once, separated by commas".to_owned());
        }
        Ok(Self(columns))
    }
}

impl fmt::Display for KeyColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// No row of a look-up has the key of an item.
#[derive(Debug, BatchException)]
#[batch_exception(class = "batch_items::UnknownKey")]
pub struct UnknownKey {
    of: String,
    columns: String,
    key: String,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, columns, key } = self;
        write!(f, "no row of {of} has the key {key} in `{columns}`")
    }
}

impl std::error::Error for UnknownKey {}

impl<K, V, R> Lookup<K, V, R>
where
    K: DeserializeOwned + Eq + Hash + Debug + 'static,
    V: DeserializeOwned + 'static,
    R: ReadItems<Item = Record>,
{
    /// Returns the row with a key.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn get<Q>(&self, key: &Q) -> Result<Option<&V>, BatchError>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        Ok(self.loaded()?.rows.get(key))
    }

    /// Returns the row with the key of an item.
    ///
    /// # Errors
    /// [`UnknownKey`] if there is none, which a step may skip, and an error that it cannot skip if the rows cannot be read.
    pub fn require<Q>(&self, key: &Q) -> Result<&V, BatchError>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + Debug + ?Sized,
    {
        let loaded = self.loaded()?;
        loaded.rows.get(key).ok_or_else(|| {
            UnknownKey {
                of: loaded.of.clone(),
                columns: self.key.to_string(),
                key: format!("{key:?}"),
            }
            .into()
        })
    }

    fn loaded(&self) -> Result<&Loaded<K, V>, BatchError> {
        match self.rows.get() {
            Some(loaded) => Ok(loaded),
            None => {
                let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
                let loaded = self.load(&mut source)?;
                Ok(self.rows.get_or_init(|| loaded))
            }
        }
    }

    fn load(&self, source: &mut R) -> Result<Loaded<K, V>, BatchError> {
        let mut rows = HashMap::new();
        let of = read_rows(source, self.if_empty, "if.empty", |record, number| {
            if number == 1 {
                check_columns::<V>(&record)?;
            }
            self.add(&record, &mut rows)
        })?;
        Ok(Loaded { of, rows })
    }

    /// Adds a row. Fails with the cause.
    fn add(&self, record: &Record, rows: &mut HashMap<K, V>) -> Result<(), String> {
        let columns = &self.key.0;
        let key = key_of(record, columns)?;
        let value = value_of(record, columns)?;
        match rows.entry(key) {
            Entry::Vacant(free) => {
                free.insert(value);
                Ok(())
            }
            Entry::Occupied(row) => Err(format!("an earlier row has the key {:?}, too", row.key())),
        }
    }
}

/// Passes each row of a reader, with its number, to `add`, which fails with a cause. `property` decides whether there may be no rows. Returns the name
/// of the source.
fn read_rows<R: ReadItems<Item = Record>>(
    source: &mut R,
    if_empty: IfEmpty,
    property: &str,
    mut add: impl FnMut(Record, u64) -> Result<(), String>,
) -> Result<String, BatchError> {
    let wrong = |error: BatchError| match error.is_configuration_error() {
        true => error,
        false => ConfigurationError::new(format!("cannot load a look-up: {}", error.chain())).into(),
    };
    source.open(None).map_err(wrong)?;
    let (mut of, mut number) = ("the look-up".to_owned(), 0_u64);
    while let Some(record) = source.read().map_err(wrong)? {
        number += 1;
        if let Err(cause) = add(record, number) {
            let place = source.place().unwrap_or_else(|| format!("row {number}"));
            return Err(ConfigurationError::new(format!("cannot load a look-up: {place}: {cause}")).into());
        }
        if let Some(origin) = source.origin().filter(|_| number == 1) {
            of = format!("`{}`", origin.resource);
        }
    }
    source.close();
    match (number, if_empty) {
        (0, IfEmpty::Fail) => Err(ConfigurationError::new(format!(
            "cannot load a look-up: it has no rows; set `{property}` to `accept` if that is not an error"
        ))
        .into()),
        _ => Ok(of),
    }
}
