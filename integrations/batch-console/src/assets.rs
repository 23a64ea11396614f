//! The files that pages need, inside the program.

use crate::digest;

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

    /// Returns the type and the text of an asset. Another version of it has another name.
    pub(crate) fn find(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let all = [
            (&self.style, "text/css; charset=utf-8", STYLE),
            (&self.script, "text/javascript; charset=utf-8", SCRIPT),
            (&self.icon, "image/svg+xml", ICON),
        ];
        let found = all.into_iter().find(|(known, ..)| *known == name);
        found.map(|(_, kind, text)| (kind, text))
    }
}
