//! The arguments of an artifact attribute, checked: the name, `class` and `buffered`.

use quote::ToTokens;
use syn::{Expr, ExprLit, Lit, LitStr};

use crate::diagnostics::{Errors, nearest};
use crate::parse::Argument;
use crate::role::Role;

/// The arguments without mistakes.
pub(crate) struct Settings {
    pub(crate) name: Option<LitStr>,
    /// `class = "..."`
    pub(crate) class: Option<LitStr>,
    pub(crate) buffered: bool,
}

/// Checks the arguments; a wrong one is an error and left out.
pub(crate) fn settings(role: &Role, arguments: &[Argument], errors: &mut Errors) -> Settings {
    let mut settings = Settings {
        name: None,
        class: None,
        buffered: true,
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
            (Argument::Text(text), _) => settings.name = not_empty("name", text.clone(), errors),
            (Argument::Named { value, .. }, "value") => {
                settings.name = text("name", value, errors).and_then(|text| not_empty("name", text, errors));
            }
            (Argument::Named { value, .. }, "class") => {
                settings.class =
                    text("class", value, errors).and_then(|text| not_empty("class", text, errors));
            }
            (Argument::Named { value, .. }, "buffered") if role.buffered => match value {
                Expr::Lit(ExprLit {
                    lit: Lit::Bool(flag), ..
                }) => settings.buffered = flag.value,
                _ => errors.error(value, "`buffered` is `true` or `false`", &[]),
            },
            (Argument::Named { .. }, "buffered") => errors.error(
                place,
                format!(
                    "`buffered` is an argument of `#[item_writer]`, not of `#[{}]`",
                    role.attribute
                ),
                &[],
            ),
            (Argument::Named { .. }, unknown) => errors.error(
                place,
                format!("`#[{}]` has no argument `{unknown}`", role.attribute),
                &[argument_remedy(role, unknown)],
            ),
        }
        seen.push(key);
    }
    settings
}

fn argument_remedy(role: &Role, unknown: &str) -> String {
    let known: &[&str] = if role.buffered {
        &["value", "class", "buffered"]
    } else {
        &["value", "class"]
    };
    if let Some(near) = nearest(unknown, known.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    if nearest(unknown, ["name"]).is_some() {
        return format!("write the name alone: `#[{}(\"Name\")]`", role.attribute);
    }
    let class = "`class = \"..\"`";
    if role.buffered {
        format!("its arguments are the name in quotes, {class} and `buffered = true` or `false`")
    } else {
        format!("its arguments are the name in quotes and {class}")
    }
}

fn text(what: &str, value: &Expr, errors: &mut Errors) -> Option<LitStr> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text), ..
        }) => Some(text.clone()),
        _ => {
            errors.error(value, format!("the {what} is a string in quotes"), &[]);
            None
        }
    }
}

fn not_empty(what: &str, text: LitStr, errors: &mut Errors) -> Option<LitStr> {
    if text.value().trim().is_empty() {
        errors.error(&text, format!("the {what} of an artifact cannot be empty"), &[]);
    }
    Some(text)
}
