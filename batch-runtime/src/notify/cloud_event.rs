//! A notification as a CloudEvent.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::Notification;
use crate::execution::JobExecution;

impl Notification {
    /// Returns it as an event of CloudEvents 1.0 in JSON: the type is `batch.` and the name of the event, the source `/batch/jobs/` and
    /// the job. The data has the fields of `show --json`, the parameters, and the [detail](Notification::detail).
    // Spec: NOTIFY-05
    pub fn to_cloud_event(&self) -> String {
        let mut data = Map::new();
        data.insert("job".into(), json!(self.job));
        data.insert("instance".into(), json!(self.instance.0));
        data.insert("execution".into(), json!(self.execution.0));
        if let Some(row) = &self.row {
            data.extend(fields(row));
        }
        let names = self.parameters.iter().map(|(name, _)| name);
        let parameters = names.map(|name| (name.to_owned(), json!(self.parameters.get(name))));
        data.insert("parameters".into(), Value::Object(parameters.collect()));
        if let Ok(Value::Object(detail)) = serde_json::to_value(&self.detail) {
            data.extend(detail);
        }
        let job = utf8_percent_encode(&self.job, NON_ALPHANUMERIC);
        let event = json!({
            "specversion": "1.0",
            "id": self.id,
            "source": format!("/batch/jobs/{job}"),
            "type": format!("batch.{}", self.event),
            "subject": self.execution.0.to_string(),
            "time": self.at.to_string(),
            "datacontenttype": "application/json",
            "data": data,
        });
        event.to_string()
    }
}

fn fields(row: &JobExecution) -> Map<String, Value> {
    let fields = json!({
        "name": row.name(),
        "status": row.status.as_str(),
        "exitStatus": row.exit_status,
        "exitMessage": row.exit_message,
        "created": row.created,
        "started": row.started,
        "ended": row.ended,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
