//! The arguments of an artifact attribute, checked: the name, `class`, `buffered`, `pipelined` and `rewindable`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, Ident, Lit, LitStr};

use crate::diagnostics::{Errors, nearest};
use crate::parse::{Argument, literal, string};
use crate::role::Role;

/// The item that an artifact attribute is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The impl block of a concrete type: implements and registers.
    Block,
    /// A generic impl block: implements, registers nothing.
    GenericBlock,
    /// A type alias: registers a type that another block gives the role.
    Alias,
}

/// The arguments without mistakes.
pub(crate) struct Settings {
    pub(crate) name: Option<LitStr>,
    /// `class = "..."`
    pub(crate) class: Option<LitStr>,
    pub(crate) buffered: bool,
    /// False if no step with the artifact may be pipelined.
    pub(crate) pipelined: bool,
    /// True if the artifact can be opened at any of its checkpoints, not only at the last one.
    pub(crate) rewindable: bool,
}

/// The registered names of a concrete type.
pub(crate) struct Registration {
    pub(crate) name: String,
    /// `class = "..."`
    pub(crate) class: Option<LitStr>,
    pub(crate) pipelined: bool,
    /// The identifier of the type or alias, last part of its path.
    pub(crate) type_name: String,
}

impl Settings {
    /// Returns the registration of the type or alias `ident`, whose name is the default.
    pub(crate) fn registration(self, ident: &Ident) -> Registration {
        let type_name = ident.unraw().to_string();
        let name = self.name.map(|name| name.value());
        Registration {
            name: name.unwrap_or_else(|| type_name.clone()),
            class: self.class,
            pipelined: self.pipelined,
            type_name,
        }
    }
}

/// Checks the arguments. Reports and drops each wrong one.
pub(crate) fn settings(role: &Role, target: Target, arguments: &[Argument], errors: &mut Errors) -> Settings {
    let mut settings = Settings {
        name: None,
        class: None,
        buffered: true,
        pipelined: true,
        rewindable: false,
    };
    let mut seen: Vec<String> = Vec::new();
    for argument in arguments {
        let (key, place) = match argument {
            Argument::Text(text) => ("value".to_owned(), text.to_token_stream()),
            Argument::Named { key, .. } => (key.to_string(), key.to_token_stream()),
        };
        if seen.contains(&key) {
            let what = if key == "value" {
                "the name".to_owned()
            } else {
                format!("`{key}`")
            };
            errors.error(place, format!("{what} is given twice"), &[]);
            continue;
        }
        match (argument, key.as_str()) {
            (_, "value" | "class" | "pipelined") if target == Target::GenericBlock => {
                registers_nothing(role, &key, place, errors);
            }
            (Argument::Text(text), _) => settings.name = not_empty("name", text, errors),
            (Argument::Named { value, .. }, "value") => settings.name = text("name", value, errors),
            (Argument::Named { value, .. }, "class") => settings.class = text("class", value, errors),
            (Argument::Named { value, .. }, "buffered") if role.buffered && target != Target::Alias => {
                settings.buffered = flag(&key, value, errors);
            }
            (Argument::Named { value, .. }, "rewindable") if role.rewindable && target != Target::Alias => {
                settings.rewindable = flag(&key, value, errors);
            }
            (Argument::Named { .. }, "buffered") if role.buffered => of_methods(&key, place, errors),
            (Argument::Named { .. }, "rewindable") if role.rewindable => of_methods(&key, place, errors),
            (Argument::Named { .. }, "buffered") => errors.error(
                place,
                format!(
                    "`buffered` is an argument of `#[item_writer]`, not of `#[{}]`",
                    role.attribute
                ),
                &[],
            ),
            (Argument::Named { value, .. }, "pipelined") if role.pipelined => {
                settings.pipelined = flag(&key, value, errors);
            }
            (Argument::Named { .. }, unknown) => errors.error(
                place,
                format!("`#[{}]` has no argument `{unknown}`", role.attribute),
                &[&argument_remedy(role, unknown)],
            ),
        }
        seen.push(key);
    }
    settings
}

/// Reports a flag on an alias that describes the methods.
fn of_methods(flag: &str, place: TokenStream, errors: &mut Errors) {
    errors.error(
        place,
        format!("`{flag}` cannot be set on a type alias"),
        &[&"set it on the impl block that holds the methods"],
    );
}

/// Returns the value of a flag.
fn flag(name: &str, value: &Expr, errors: &mut Errors) -> bool {
    if let Some(Lit::Bool(flag)) = literal(value) {
        return flag.value;
    }
    errors.error(value, format!("`{name}` must be `true` or `false`"), &[]);
    true
}

fn registers_nothing(role: &Role, key: &str, place: TokenStream, errors: &mut Errors) {
    let what = match key {
        "value" => "name".to_owned(),
        "class" => key.to_owned(),
        flag => format!("argument `{flag}`"),
    };
    errors.error(
        place,
        format!("a generic impl block registers no artifact, so it has no {what}"),
        &[&format!(
            "register a concrete type by an alias: `#[{}(\"Name\")] type Name = Type<Concrete>;`",
            role.attribute
        )],
    );
}

fn argument_remedy(role: &Role, unknown: &str) -> String {
    let flags = [
        ("buffered", role.buffered),
        ("pipelined", role.pipelined),
        ("rewindable", role.rewindable),
    ];
    let flags: Vec<&str> = flags
        .iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| *name)
        .collect();
    if let Some(near) = nearest(
        unknown,
        ["value", "class"].into_iter().chain(flags.iter().copied()),
    ) {
        return format!("did you mean `{near}`?");
    }
    if nearest(unknown, ["name"]).is_some() {
        return format!("write the name alone: `#[{}(\"Name\")]`", role.attribute);
    }
    let class = "`class = \"..\"`";
    let flags: String = flags
        .iter()
        .map(|flag| format!(", `{flag} = true` or `false`"))
        .collect();
    let separator = if flags.is_empty() { " and" } else { "," };
    format!("its arguments are the name in quotes{separator} {class}{flags}")
}

fn text(what: &str, value: &Expr, errors: &mut Errors) -> Option<LitStr> {
    match string(value) {
        Some(text) => not_empty(what, text, errors),
        None => {
            errors.error(value, format!("the {what} must be a string in quotes"), &[]);
            None
        }
    }
}

fn not_empty(what: &str, text: &LitStr, errors: &mut Errors) -> Option<LitStr> {
    if text.value().trim().is_empty() {
        errors.error(text, format!("the {what} of an artifact cannot be empty"), &[]);
    }
    Some(text.clone())
}
