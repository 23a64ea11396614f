//! Converts a job into another dialect. Reads the Job XML and the properties that the artifacts declare; starts nothing.

use batch_xml::{Conversion, DeclaredProperty, Dialect, Effective, KnownArtifacts};

use super::definitions::{Wanted, rejecting};
use super::{Definitions, Result, StartError};
use crate::loader::Artifacts;

impl Definitions {
    /// Returns a job as a document of another dialect, with a report of what that dialect cannot express, and of what has a different
    /// meaning there. `None` chooses the dialect that the job does not have. Everything that the job inherits is part of the document,
    /// and symbols are not substituted.
    ///
    /// Spec: JAK-40, JAK-41
    ///
    /// # Errors
    /// `NoSuchJob`, or `JobStart` with everything that is wrong with the job's definition.
    pub fn convert(&self, job: &str, to: Option<Dialect>) -> Result<Conversion> {
        let reject = rejecting(job);
        let document = self.find(Wanted::Id(job), &reject)?;
        let effective = Effective::new(&document, &self.job_path, self.job_path.limits())
            .map_err(|errors| reject(StartError::Definition(errors)))?;
        let to = to.unwrap_or_else(|| effective.dialect().other());
        Ok(effective.convert(to, &*self.artifacts))
    }
}

impl KnownArtifacts for Artifacts {
    fn properties(&self, artifact: &str) -> Option<Vec<DeclaredProperty>> {
        let fields = self.declared(artifact)?.into_iter();
        let declared = fields.map(|field| DeclaredProperty {
            name: field.name,
            default: field.default.map(str::to_owned),
            is_optional: field.optional,
        });
        Some(declared.collect())
    }
}
