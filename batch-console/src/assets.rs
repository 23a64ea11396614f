//! The files that pages need, inside the program.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use serde::Deserialize;

use crate::app::App;
use crate::digest;
use crate::extract::Path;
use crate::problem::Problem;

const STYLE: &str = include_str!("../assets/console.css");
const SCRIPT: &str = include_str!("../assets/console.js");
const ICON: &str = include_str!("../assets/icon.svg");

/// The names of the assets, which change with their contents, so that browsers keep them.
#[derive(Clone, Debug)]
pub(crate) struct Assets {
    pub(crate) style: String,
    pub(crate) script: String,
    pub(crate) icon: String,
}

impl Assets {
    pub(crate) fn new() -> Self {
        let name = |text: &str, extension: &str| format!("{}.{extension}", &digest::fingerprint(text)[..16]);
        Self {
            style: name(STYLE, "css"),
            script: name(SCRIPT, "js"),
            icon: name(ICON, "svg"),
        }
    }
}

/// The part of the path of an asset.
#[derive(Deserialize)]
pub(crate) struct AssetPath {
    name: String,
}

/// Serves an asset. Another version of it has another name.
pub(crate) async fn serve(
    State(app): State<Arc<App>>,
    Path(AssetPath { name }): Path<AssetPath>,
) -> Result<Response, Problem> {
    let assets = &app.assets;
    let (kind, text) = match name {
        name if name == assets.style => ("text/css; charset=utf-8", STYLE),
        name if name == assets.script => ("text/javascript; charset=utf-8", SCRIPT),
        name if name == assets.icon => ("image/svg+xml", ICON),
        _ => return Err(Problem::not_found("there is no such file")),
    };
    let headers = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    Ok((headers, text).into_response())
}
