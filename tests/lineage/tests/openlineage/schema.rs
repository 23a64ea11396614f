//! Validates events against the published schemas.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

/// All schemas, under their `$id`.
static SCHEMAS: LazyLock<Vec<(String, Value)>> = LazyLock::new(|| {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openlineage/spec");
    let facets = fs::read_dir(spec.join("facets")).unwrap();
    let mut files = vec![spec.join("OpenLineage.json")];
    files.extend(facets.map(|file| file.unwrap().path()));
    let schemas = files.iter().map(|file| {
        let schema: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        (schema["$id"].as_str().unwrap().to_owned(), schema)
    });
    schemas.collect()
});

fn validator(url: &str) -> Validator {
    let schemas = SCHEMAS.iter().map(|(id, schema)| (id.as_str(), schema));
    let registry = Registry::new().extend(schemas).unwrap().prepare().unwrap();
    let options = jsonschema::options()
        .with_registry(&registry)
        .should_validate_formats(true);
    options.build(&json!({"$ref": url})).expect(url)
}

fn check(url: &str, value: &Value) {
    let errors: Vec<_> = validator(url)
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{url}: {errors:?}\n{value:#}");
}

/// Validates an event by the schema that it names, and each facet by its own.
pub(crate) fn validate(event: &Value) {
    check(event["schemaURL"].as_str().unwrap(), event);
    check_facets(event);
}

fn check_facets(value: &Value) {
    if let Some(url) = value.get("_schemaURL") {
        let url = url.as_str().unwrap();
        let (id, _) = url.split_once('#').unwrap();
        assert!(SCHEMAS.iter().any(|(known, _)| known == id), "{url}");
        check(url, value);
    }
    match value {
        Value::Object(fields) => fields.values().for_each(check_facets),
        Value::Array(values) => values.iter().for_each(check_facets),
        _ => {}
    }
}

/// The validation finds what is missing or malformed.
///
/// Spec: LIN-07
#[test]
fn the_schemas_reject() {
    let run = json!({"runId": "not a UUID", "facets": {}});
    let url = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
    let event = json!({
        "eventTime": "2026-11-01T00:00:00.000Z", "producer": "https://host/x", "schemaURL": url,
        "run": run, "job": {"name": "job"}
    });
    assert_eq!(validator(url).iter_errors(&event).count(), 2);
    let facet = "https://openlineage.io/spec/facets/1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet";
    assert!(!validator(facet).is_valid(&json!({"_producer": "https://host/x", "_schemaURL": facet})));
}
