//! The import of instances.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::require_type;
use crate::app::{App, OperatorContext};
use crate::problem::Problem;

/// The longest body of an import, in bytes.
const LONGEST_IMPORT: usize = 16 * 1024 * 1024;
/// The bytes of a longer body that are read nevertheless: a client that is still sending when the connection ends does not get the answer.
const DISCARDED: usize = 16 * LONGEST_IMPORT;

/// Returns the route, which limits the body itself.
pub(super) fn route() -> MethodRouter<Arc<App>> {
    post(import).layer(DefaultBodyLimit::disable())
}

/// Reads a body of at most [`LONGEST_IMPORT`] bytes.
async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    let (mut parts, mut bytes, mut length) = (body.into_data_stream(), Vec::new(), 0);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|error| Problem::invalid(format!("the body cannot be read: {error}")))?;
        length += part.len();
        if length > DISCARDED {
            break;
        } else if length > LONGEST_IMPORT {
            bytes.clear();
        } else {
            bytes.extend_from_slice(&part);
        }
    }
    match length {
        ..=LONGEST_IMPORT => Ok(bytes),
        _ => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Too large",
            "an import has at most 16 MiB; send fewer instances, or run `import` of the command line",
        )),
    }
}

/// Imports instances, one on each line. A line that cannot be imported does not prevent the others.
async fn import(
    // Before the body is read.
    OperatorContext(context): OperatorContext,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Problem> {
    require_type(request.headers(), &["application/json", "application/x-ndjson"])?;
    let text = String::from_utf8(read(request.into_body()).await?)
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
