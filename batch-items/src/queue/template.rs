//! Keys, subjects and headers of messages that are written: texts with fields of the item.

use std::str::FromStr;

use batch_runtime::xml::suggest::did_you_mean;
use serde_json::Value;

/// A text with fields of an item, `orders.{region}`. `{{` and `}}` are braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(String),
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '{' | '}' if characters.peek() == Some(&character) => {
                    characters.next();
                    plain.push(character);
                }
                '{' => {
                    let mut field = String::new();
                    loop {
                        match characters.next() {
                            Some('}') => break,
                            Some('{') | None => return Err(format!("`{{` in `{text}` has no `}}`")),
                            Some(character) => field.push(character),
                        }
                    }
                    if field.trim().is_empty() {
                        return Err(format!("`{{}}` in `{text}` names no field"));
                    }
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(Part::Field(field.trim().to_owned()));
                }
                '}' => return Err(format!("`}}` in `{text}` has no `{{`; a brace is `}}}}`")),
                character => plain.push(character),
            }
        }
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Self(parts))
    }
}

impl Template {
    /// Returns whether the text depends on the item.
    pub fn has_fields(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Field(_)))
    }

    /// Returns the text with `any` in place of each field.
    pub fn pattern(&self, any: &str) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(plain) => plain.as_str(),
            Part::Field(_) => any,
        });
        parts.collect()
    }

    /// Returns the text for an item; `None` if one of its fields is null.
    pub fn text(&self, item: &Value) -> Result<Option<String>, String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Field(name) => match field(item, name)? {
                    Value::Null => return Ok(None),
                    Value::String(value) => text.push_str(value),
                    value => text.push_str(&value.to_string()),
                },
            }
        }
        Ok(Some(text))
    }
}

fn field<'v>(item: &'v Value, name: &str) -> Result<&'v Value, String> {
    let Value::Object(fields) = item else {
        return Err(format!(
            "there is no field `{name}`, because the item has no fields"
        ));
    };
    fields.get(name).ok_or_else(|| {
        let hint = did_you_mean(name, fields.keys().map(String::as_str));
        format!("there is no field `{name}`{hint}")
    })
}

/// The headers of messages: `source=batch; region={region}`. A header whose field is null is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, Template)>);

impl FromStr for Headers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let headers = parts.map(|part| match part.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().parse()?))
            }
            _ => Err(format!("expected `name=value`, separated by `;`, found `{part}`")),
        });
        Ok(Self(headers.collect::<Result<_, String>>()?))
    }
}

impl Headers {
    /// Returns whether a header depends on the item.
    pub fn has_fields(&self) -> bool {
        self.0.iter().any(|(_, value)| value.has_fields())
    }

    /// Returns the names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the headers for an item.
    pub fn values(&self, item: &Value) -> Result<Vec<(&str, String)>, String> {
        let mut headers = Vec::new();
        for (name, value) in &self.0 {
            if let Some(value) = value.text(item)? {
                headers.push((name.as_str(), value));
            }
        }
        Ok(headers)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // Spec: LIN-02
    #[test]
    fn a_pattern_has_no_fields() {
        let template: Template = "orders.{region}.new".parse().unwrap();
        assert_eq!(template.pattern("*"), "orders.*.new");
    }

    #[test]
    fn fields_are_part_of_a_text() {
        let item = json!({"id": 7, "region": "EU", "paid": true, "note": null});
        let text = |template: &str| template.parse::<Template>().unwrap().text(&item);
        for (template, expected) in [
            ("orders.{region}.{ id }", Some("orders.EU.7")),
            ("{{{id}}}", Some("{7}")),
            ("{paid}", Some("true")),
            ("plain", Some("plain")),
            ("", Some("")),
            ("a{note}", None),
        ] {
            assert_eq!(text(template), Ok(expected.map(str::to_owned)), "{template}");
        }
        assert_eq!(
            text("{regoin}"),
            Err("there is no field `regoin`; did you mean `region`?".to_owned())
        );
        let no_fields = "{id}".parse::<Template>().unwrap().text(&json!("x"));
        assert!(no_fields.unwrap_err().contains("has no fields"));
        for template in ["{id", "id}", "{}", "{a{b}"] {
            assert!(template.parse::<Template>().is_err(), "{template}");
        }
    }

    #[test]
    fn headers_without_a_value_are_left_out() {
        let headers: Headers = "source = batch; region={region}; note={note};".parse().unwrap();
        assert!(headers.has_fields());
        let item = json!({"region": "EU", "note": null});
        let expected = vec![("source", "batch".to_owned()), ("region", "EU".to_owned())];
        assert_eq!(headers.values(&item), Ok(expected));
        assert!("source".parse::<Headers>().is_err());
        assert!("=x".parse::<Headers>().is_err());
    }
}
