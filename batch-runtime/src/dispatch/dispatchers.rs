//! The dispatchers of a runtime, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use batch_xml::suggest::nearest;

use super::{PartitionDispatcher, PartitionTransport};

/// Runs partitions on threads of the process that runs their job.
pub(crate) const LOCAL: &str = "local";
/// The transport through tables of the repository.
pub(crate) const REPOSITORY: &str = "repository";
/// The dispatcher of `partition_dispatcher`.
pub(crate) const CUSTOM: &str = "custom";

/// The queue of tickets without another one.
pub(crate) const DEFAULT_QUEUE: &str = "default";

/// The dispatchers of a runtime.
#[derive(Clone, Default)]
pub(crate) struct Dispatchers {
    /// The name of the dispatcher of elements that name none; `None` is `local`.
    pub(crate) default: Option<String>,
    pub(crate) transports: BTreeMap<String, Arc<dyn PartitionTransport>>,
    pub(crate) custom: Option<Arc<dyn PartitionDispatcher>>,
}

impl Dispatchers {
    /// Returns the name of the dispatcher of an element that names this one, or none.
    pub(crate) fn name<'a>(&'a self, wanted: Option<&'a str>) -> &'a str {
        wanted.or(self.default.as_deref()).unwrap_or(LOCAL)
    }

    /// Returns the dispatcher of that name; `None` for local threads and for unknown names.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn PartitionDispatcher>> {
        if name == CUSTOM {
            return self.custom.clone();
        }
        let transport = self.transports.get(name)?;
        Some(Arc::clone(transport) as Arc<dyn PartitionDispatcher>)
    }

    /// Returns a dispatcher that was chosen or added, and that gives work to other processes. The transport `repository` is always
    /// there.
    pub(crate) fn remote(&self) -> Option<&str> {
        let chosen = self.default.as_deref().filter(|name| *name != LOCAL);
        let custom = self.custom.as_ref().map(|_| CUSTOM);
        let mut added = self.transports.keys().map(String::as_str);
        chosen
            .or(custom)
            .or_else(|| added.find(|name| *name != REPOSITORY))
    }

    /// Returns the names. The transport `repository` is added when the repository is open.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut transports: BTreeSet<&str> = self.transports.keys().map(String::as_str).collect();
        transports.insert(REPOSITORY);
        let custom = self.custom.as_ref().map(|_| CUSTOM);
        [LOCAL].into_iter().chain(transports).chain(custom).collect()
    }
}

/// Returns the name of a dispatcher in a message. An address, which was given by mistake, is without user and options.
pub(crate) fn shown_name(name: &str) -> String {
    let shown = match name.split_once("://") {
        Some((scheme, rest)) => {
            let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
            format!("{scheme}://{}", place.split('?').next().unwrap_or_default())
        }
        None => name.to_owned(),
    };
    shown.escape_debug().to_string()
}

/// Returns what to do about an unknown name: the one that was probably meant, or those that there are.
pub(crate) fn choices(name: &str, known: &[String]) -> String {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None if name.contains(':') => format!(
            "expected an address such as `nats://HOST` or `tls://HOST`, or one of {}",
            known.join(", ")
        ),
        None => format!(
            "this runtime has {}; the address of a server, such as `nats://HOST`, in the setting `dispatch` adds its transport",
            known.join(", ")
        ),
    }
}
