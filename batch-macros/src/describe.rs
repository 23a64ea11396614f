//! What the documentation of a struct says about its properties: a table with the rows ``| `name` | default | text |``, or the documentation
//! of the fields.

use std::collections::HashMap;

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// What the documentation says about a property.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Described {
    /// The column of the default, such as `by extension`; empty in the documentation of a field.
    pub(crate) default: String,
    /// What the property does, without links.
    pub(crate) text: String,
}

/// Returns the rows of the tables in the documentation of a struct, by the names of their properties.
pub(crate) fn table(attributes: &[Attribute]) -> HashMap<String, Described> {
    lines(attributes).iter().flat_map(|line| row(line)).collect()
}

/// Returns the documentation of a field, if it has one.
pub(crate) fn field(attributes: &[Attribute]) -> Option<Described> {
    let text = plain(&lines(attributes).join(" "));
    (!text.is_empty()).then(|| Described {
        default: String::new(),
        text: as_cell(text.trim_end_matches('.')),
    })
}

/// Returns a sentence as the cell of a table: without a capital, unless that is a name.
fn as_cell(sentence: &str) -> String {
    let mut characters = sentence.chars();
    match (characters.next(), characters.clone().next()) {
        (Some(first), Some(' ' | 'a'..='z')) => first.to_lowercase().chain(characters).collect(),
        _ => sentence.to_owned(),
    }
}

fn lines(attributes: &[Attribute]) -> Vec<String> {
    let text = |attribute: &Attribute| match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text), ..
            }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    };
    let texts = attributes.iter().filter_map(text);
    texts
        .flat_map(|text| {
            text.lines()
                .map(|line| line.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the properties of a row, which may name several.
fn row(line: &str) -> Vec<(String, Described)> {
    let Some(rest) = line.strip_prefix("| `") else {
        return Vec::new();
    };
    let cells: Vec<&str> = rest.trim_end_matches('|').splitn(3, " | ").collect();
    let [names, default, text] = cells[..] else {
        return Vec::new();
    };
    let described = Described {
        default: default.to_owned(),
        text: plain(text.trim()).replace("\\|", "|"),
    };
    let names = names.split(", ").map(|name| name.trim_matches('`').to_owned());
    names.map(|name| (name, described.clone())).collect()
}

/// Returns a text without the links, which lead to items of Rust: ``[`Item`]`` and `[text](link)`.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        plain.push_str(before);
        match link.split_once(']') {
            Some((shown, after)) if after.starts_with('(') => {
                plain.push_str(shown);
                rest = after.split_once(')').map_or("", |(_, after)| after);
            }
            Some((shown, after)) if shown.starts_with('`') => {
                plain.push_str(shown);
                rest = after;
            }
            _ => {
                plain.push('[');
                rest = link;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use syn::{DeriveInput, parse_quote};

    use super::*;

    #[test]
    fn tables_and_fields_describe_properties() {
        let input: DeriveInput = parse_quote! {
            /// Copies.
            ///
            /// | property | default | |
            /// |---|---|---|
            /// | `target` | beside each file | a folder, as of [`Copy`] or [this](link), `[a\|z]` |
            /// | `a`, `b` | `1`, `2` | two |
            struct Copy;
        };
        let table = table(&input.attrs);
        let described = |default: &str, text: &str| Described {
            default: default.to_owned(),
            text: text.to_owned(),
        };
        assert_eq!(
            table["target"],
            described("beside each file", "a folder, as of `Copy` or this, `[a|z]`")
        );
        assert_eq!(table["a"], described("`1`, `2`", "two"));
        assert_eq!(table["a"], table["b"]);
        assert_eq!(table.len(), 3);

        let of_field: DeriveInput = parse_quote! {
            /// The path,
            /// or a pattern.
            #[other]
            struct Field;
        };
        assert_eq!(
            field(&of_field.attrs),
            Some(described("", "the path, or a pattern"))
        );
        assert_eq!(field(&[]), None);
    }
}
