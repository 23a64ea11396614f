//! Arguments that all are `key = "text"`, of `#[batch_property]`, `#[batch_artifact]`,
//! `#[batch_exception]` and `#[artifact_loader]`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::LitStr;

use crate::diagnostics::{Errors, nearest};
use crate::parse::{Argument, arguments, string};

/// The known arguments of an attribute, and the values found so far.
pub(crate) struct Strings<const N: usize> {
    attribute: &'static str,
    keys: [&'static str; N],
    values: [Option<LitStr>; N],
}

impl<const N: usize> Strings<N> {
    pub(crate) fn new(attribute: &'static str, keys: [&'static str; N]) -> Self {
        Self {
            attribute,
            keys,
            values: [const { None }; N],
        }
    }

    /// Takes the values of a list of arguments, and reports what is wrong. Returns the number of arguments; `None` if the
    /// tokens are no list of arguments.
    pub(crate) fn read(&mut self, list: TokenStream, errors: &mut Errors) -> Option<usize> {
        match arguments(list) {
            Ok(list) => {
                list.iter().for_each(|argument| self.take(argument, errors));
                Some(list.len())
            }
            Err(error) => {
                errors.syntax(error);
                None
            }
        }
    }

    fn take(&mut self, argument: &Argument, errors: &mut Errors) {
        let Self { attribute, keys, .. } = self;
        let (key, value) = match argument {
            Argument::Named { key, value } => (key, value),
            Argument::Text(text) => {
                let remedy = format!("write `{} = {}`", keys[0], text.to_token_stream());
                let message = format!("the arguments of `#[{attribute}]` need names");
                return errors.error(text, message, &[&remedy]);
            }
        };
        let name = key.to_string();
        let Some(position) = keys.iter().position(|known| *known == name) else {
            let remedy = match nearest(&name, *keys) {
                Some(near) => format!("did you mean `{near}`?"),
                None if name == "default" && keys.contains(&"value") => {
                    "the default is `value = \"..\"`".to_owned()
                }
                None => format!("its arguments are `{}`", keys.join("`, `")),
            };
            let message = format!("`#[{attribute}]` has no argument `{name}`");
            return errors.error(key, message, &[&remedy]);
        };
        if self.values[position].is_some() {
            return errors.error(key, format!("`{name}` is given twice"), &[]);
        }
        match string(value) {
            // Only the value of a property may be empty.
            Some(text) if name != "value" && text.value().trim().is_empty() => {
                errors.error(text, format!("`{name}` cannot be empty"), &[]);
            }
            Some(text) => self.values[position] = Some(text.clone()),
            None => {
                let remedy = format!("write `{name} = \"..\"`");
                errors.error(value, format!("`{name}` must be a string in quotes"), &[&remedy]);
            }
        }
    }

    /// Returns the values, in the order of the keys.
    pub(crate) fn into_values(self) -> [Option<LitStr>; N] {
        self.values
    }
}
