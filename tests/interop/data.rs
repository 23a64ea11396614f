//! Data of jobs, as the other program reads it.

use std::collections::BTreeMap;

use batch_runtime::JobExecutionId;
use serde_json::{Value, json};

use super::artifacts::message;
use super::shared::{On, Shared, TablesOf, parameters};
use super::spring::Version;

/// Spring Batch reads data of this runtime with its Java types, and this runtime reads Spring Batch's data.
///
/// Spec: DATA-01, DATA-02, DATA-03
#[test]
fn data_of_jobs_is_read_on_either_side() {
    for on in On::ALL {
        let mut shared = Shared::new(on, TablesOf::SpringBatch);
        shared.launch("keeps", &parameters(1));
        let there = shared.seen_with_classes().remove(0);
        let expected = json!({
            "text": "größer 漢字 😀", "long": 5, "int": 7, "double": 0.5, "flag": true, "list": ["a", 2, [0.5]],
            "map": {"größe": 1, "none": null}, "much": message(),
        });
        assert_eq!(there["context"], expected, "{on:?}");
        let classes = json!({
            "text": "String", "long": "Long", "int": "Integer", "double": "Double", "flag": "Boolean", "list": "ArrayList",
            "map": "HashMap", "much": "String",
        });
        assert_eq!(there["classes"], classes, "{on:?}");

        let written = shared.run("prepared", &parameters(2)).unwrap();
        assert_eq!(written["status"], "COMPLETED", "{on:?}");
        let data = shared.operator.persistent_data(JobExecutionId(2)).unwrap();
        let read: BTreeMap<&str, Value> = data
            .iter()
            .map(|(name, json)| (name, serde_json::from_str(&json).unwrap()))
            .collect();
        // Its JSON changed.
        let date = match on.version {
            Version::V6 => json!("2024-01-01T00:00:00.123Z"),
            _ => json!(1_704_067_200_123_i64),
        };
        let expected = json!({
            "text": "größer 漢字 😀", "long": 5_000_000_000_i64, "int": 7, "double": 0.5, "date": date,
            "list": ["a", "b"], "map": {"key": 1}, "much": message(),
        });
        assert_eq!(json!(read), expected, "{on:?}");
        assert_eq!(
            data.get::<Vec<String>>("list").unwrap().unwrap(),
            ["a", "b"],
            "{on:?}"
        );
        let shown = shared.json(&["show", "2", "--json"]);
        assert_eq!(shown["data"], expected, "{on:?}");
    }
}
