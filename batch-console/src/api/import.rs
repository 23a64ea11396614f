//! The import of instances.

use std::sync::Arc;

use axum::Json;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{MethodRouter, post};
use serde_json::{Value, json};

use super::require_type;
use crate::app::{App, OperatorContext};
use crate::extract::Body;
use crate::problem::Problem;

/// The longest body of an import, in bytes.
const LONGEST_IMPORT: usize = 16 * 1024 * 1024;

/// Returns the route, with its own limit for the body.
pub(super) fn route() -> MethodRouter<Arc<App>> {
    post(import).layer(DefaultBodyLimit::max(LONGEST_IMPORT))
}

/// Imports instances, one on each line. A line that cannot be imported does not prevent the others.
async fn import(
    // Before the body is read.
    OperatorContext(context): OperatorContext,
    headers: HeaderMap,
    body: Result<Body, Problem>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    require_type(&headers, &["application/json", "application/x-ndjson"])?;
    let Body(bytes) = body.map_err(|problem| match problem.status {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
            problem.status,
            problem.title,
            "an import has at most 16 MiB; send fewer instances, or run `import` of the command line",
        ),
        _ => problem,
    })?;
    let text = String::from_utf8(bytes.to_vec())
        .map_err(|error| Problem::invalid(format!("the body is not UTF-8: {error}")))?;
    if text.trim().is_empty() {
        return Err(Problem::invalid(
            "the body has no instance; send the lines that `export` returns",
        ));
    }
    let lines = context.import(text).await?;
    let (mut instances, mut errors) = (Vec::new(), Vec::new());
    for (line, imported) in lines {
        match imported {
            Ok(imported) => {
                let is_new = matches!(imported, batch_runtime::operator::Imported::New(_));
                instances.push(json!({ "line": line, "instance": imported.id().0, "isNew": is_new }));
            }
            Err(error) => errors.push(json!({ "line": line, "error": error })),
        }
    }
    let count = errors.len();
    let mut response = json!({ "instances": instances, "errors": errors });
    if count == 0 {
        return Ok((StatusCode::OK, Json(response)));
    }
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    response["title"] = json!("Not imported");
    response["status"] = json!(status.as_u16());
    response["error"] = json!(format!(
        "{count} lines cannot be imported; `errors` has their reasons"
    ));
    Ok((status, Json(response)))
}
