//! An XML Schema for editors: completion and documentation while a job file is written.

use std::fmt::Write;

use crate::dialect::{Dialect, JAKARTA_NAMESPACES};

/// A value that an editor proposes for an attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proposal {
    /// The value.
    pub value: String,
    /// The text that an editor shows beside the value.
    pub documentation: String,
}

/// Returns an XML Schema of the documents of a dialect. `proposals` are the values for an attribute of an element, such as the names of
/// artifacts for `ref` of `batchlet`.
///
/// The schema accepts any value of an attribute, because it may contain expressions, and leaves to `check` what depends on inheritance.
///
/// ```
/// use batch_xml::Dialect;
/// use batch_xml::suggest::{Proposal, xsd};
///
/// let schema = xsd(Dialect::Draft, |element, attribute| match (element, attribute) {
///     ("batchlet", "ref") => vec![Proposal { value: "Greeting".into(), documentation: "Prints a text.".into() }],
///     _ => Vec::new(),
/// });
/// assert!(schema.contains(r#"<xs:enumeration value="Greeting">"#));
/// ```
pub fn xsd(dialect: Dialect, proposals: impl Fn(&str, &str) -> Vec<Proposal>) -> String {
    let mut schema = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let namespace = match dialect {
        Dialect::Draft => String::new(),
        Dialect::Jakarta => {
            let namespace = JAKARTA_NAMESPACES[0];
            format!(" targetNamespace=\"{namespace}\" xmlns=\"{namespace}\" elementFormDefault=\"qualified\"")
        }
    };
    // A `String` takes everything.
    let _ = writeln!(
        schema,
        "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"{namespace}>"
    );
    let rules = dialect.rules();
    let parents = rules.inheritable.iter().filter(|root| **root != "job");
    for root in std::iter::once(&"job").chain(parents) {
        let _ = writeln!(schema, "  <xs:element name=\"{root}\" type=\"{root}\"/>");
    }
    for rule in rules.elements {
        let _ = writeln!(schema, "  <xs:complexType name=\"{}\">", rule.name);
        if rule.children().next().is_some() {
            schema += "    <xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">\n";
            for child in rule.children() {
                let _ = writeln!(schema, "      <xs:element name=\"{child}\" type=\"{child}\"/>");
            }
            schema += "    </xs:choice>\n";
        }
        for attribute in rule.attributes.iter().filter(|name| !name.contains(':')) {
            write_attribute(&mut schema, attribute, proposals(rule.name, attribute));
        }
        schema += "  </xs:complexType>\n";
    }
    schema + "</xs:schema>\n"
}

fn write_attribute(schema: &mut String, name: &str, mut proposals: Vec<Proposal>) {
    if proposals.is_empty() {
        let _ = writeln!(schema, "    <xs:attribute name=\"{name}\" type=\"xs:string\"/>");
        return;
    }
    proposals.sort();
    proposals.dedup_by(|one, other| one.value == other.value);
    let _ = writeln!(
        schema,
        "    <xs:attribute name=\"{name}\"><xs:simpleType><xs:union memberTypes=\"xs:string\">"
    );
    *schema += "      <xs:simpleType><xs:restriction base=\"xs:string\">\n";
    for Proposal { value, documentation } in proposals {
        let _ = writeln!(
            schema,
            "        <xs:enumeration value=\"{}\"><xs:annotation><xs:documentation>{}</xs:documentation></xs:annotation></xs:enumeration>",
            escaped(&value),
            escaped(&documentation)
        );
    }
    *schema += "      </xs:restriction></xs:simpleType>\n    </xs:union></xs:simpleType></xs:attribute>\n";
}

fn escaped(text: &str) -> String {
    let escaped = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;");
    escaped.replace(|character: char| !crate::xml::is_char(character), "\u{fffd}")
}
