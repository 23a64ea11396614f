//! Notifications that wait for their delivery.

use axum::Json;
use axum::http::HeaderMap;
use batch_runtime::notify::PendingNotification;
use batch_runtime::{JobOperator, JobOperatorError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, EmptyBody, body};
use crate::app::RequestContext;
use crate::extract::{Body, Path};

fn read(operator: &JobOperator) -> Result<Value, JobOperatorError> {
    let pending = operator.pending_notifications()?;
    Ok(json!({
        "targets": operator.notification_targets(),
        "pending": pending.iter().map(shown).collect::<Vec<_>>(),
    }))
}

/// Returns a notification as `notifications --json` of the command line prints it.
fn shown(one: &PendingNotification) -> Value {
    json!({
        "notification": one.id, "target": one.target, "event": one.event.as_str(), "job": one.job, "execution": one.execution.0,
        "created": one.created.to_string(), "due": one.due.to_string(), "attempts": one.attempts, "lastError": one.last_error,
    })
}

pub(super) async fn list(context: RequestContext) -> Answer {
    context.app.operator.run(read).await.map(Json)
}

/// Sends them, also those that are to be tried again later, and lists those that still wait.
pub(super) async fn send(context: RequestContext, headers: HeaderMap, Body(bytes): Body) -> Answer {
    context.require_operator()?;
    body::<EmptyBody>(&headers, &bytes)?;
    context.send_notifications().await?;
    context.app.operator.run(read).await.map(Json)
}

/// The part of the path of a notification target.
#[derive(Deserialize)]
pub(super) struct TargetPath {
    target: String,
}

pub(super) async fn test(
    context: RequestContext,
    Path(TargetPath { target }): Path<TargetPath>,
    headers: HeaderMap,
    Body(bytes): Body,
) -> Answer {
    context.require_operator()?;
    body::<EmptyBody>(&headers, &bytes)?;
    context.test_notification(target.clone()).await?;
    Ok(Json(json!({ "target": target, "delivered": true })))
}
