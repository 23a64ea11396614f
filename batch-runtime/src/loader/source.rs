//! The text that the elements of a job are resolved from.

use std::sync::Arc;

use batch_xml::model::ExecutionElement;
use batch_xml::{Dialect, Effective, JobXmlErrors, Limits, PartitionView, Values};

use super::ExternalValues;
use super::artifacts::Artifacts;
use crate::engine::PartitionKey;

/// The source of the elements of a job.
pub(super) struct Source {
    pub(super) dialect: Dialect,
    pub(super) artifacts: Arc<Artifacts>,
    pub(super) external: ExternalValues,
    /// `None` if the job is incomplete.
    pub(super) text: Option<(Effective, Limits)>,
}

impl Source {
    /// Resolves a partitioned step or flow for the partition at `path`. The inner `None`: there is no text.
    pub(super) fn resolve(&self, path: &[PartitionKey]) -> Result<Option<ExecutionElement>, JobXmlErrors> {
        let Some((effective, limits)) = &self.text else {
            return Ok(None);
        };
        let views: Vec<PartitionView<'_>> = path
            .iter()
            .map(|key| PartitionView {
                element: &key.element,
                number: key.number,
                plan: key.properties.as_deref(),
            })
            .collect();
        let values = Values {
            parameters: &self.external.parameters,
            system: &self.external.system,
        };
        effective.resolve_partition(&views, &values, limits).map(Some)
    }
}
