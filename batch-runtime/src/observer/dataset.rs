//! The datasets of a step: what its artifacts read and write.

use crate::secret::Secrets;

/// A dataset that a step reads or writes: a file, an object, a table, a topic.
///
/// Artifacts report it by [`StepContext::report_dataset`](crate::context::StepContext::report_dataset). Its name should follow the [naming
/// conventions of OpenLineage](https://openlineage.io/docs/spec/naming), so that other programs name it alike: `file` and `/data/in.csv`,
/// `s3://bucket` and `in.csv`, `postgres://host:5432` and `shop.public.payment`. It must not contain passwords or tokens.
// Spec: LIN-02
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dataset {
    /// Input or output.
    pub role: DatasetRole,
    /// The source that it belongs to.
    pub namespace: String,
    /// Its name, unique within the source.
    pub name: String,
    /// Its fields in their order; empty if they are not known.
    pub fields: Vec<DatasetField>,
    /// True if the rows that the step reads or writes are rows of it, unless others of its role are too. False for rejects.
    pub is_counted: bool,
}

/// The role of a dataset in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetRole {
    /// The step reads it.
    Input,
    /// The step writes it.
    Output,
}

/// A field of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatasetField {
    /// Its name.
    pub name: String,
    /// Its type as the source names it; `None` if it is not known.
    pub kind: Option<String>,
}

impl Dataset {
    /// Creates a dataset without known fields.
    pub fn new(role: DatasetRole, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            role,
            namespace: namespace.into(),
            name: name.into(),
            fields: Vec::new(),
            is_counted: true,
        }
    }

    /// Makes it a dataset beside the one that has the rows which the step reads or writes, such as a file of rejects.
    #[must_use]
    pub fn uncounted(self) -> Self {
        Self {
            is_counted: false,
            ..self
        }
    }

    /// Sets the fields with their types.
    #[must_use]
    pub fn with_fields(mut self, fields: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        let fields = fields.into_iter();
        self.fields = fields.map(|(name, kind)| DatasetField { name, kind }).collect();
        self
    }

    pub(super) fn hide(&mut self, secrets: &Secrets) {
        for text in [&mut self.namespace, &mut self.name] {
            *text = secrets.hidden(std::mem::take(text));
        }
    }
}
