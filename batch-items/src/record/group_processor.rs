//! Mapping and filtering of groups of records.

use batch_runtime::prelude::*;

use super::field::MappingError;
use super::processor::{RecordProcessor, Renamed};
use super::value::{Record, Value};

/// Maps and filters the records of groups by properties; registered as `recordGroupProcessor`.
///
/// | property | default | |
/// |---|---|---|
/// | `header.fields` | none | fields of the first record, which the others get, separated by commas; `number=order` renames |
/// | `raw.field` | none | the field with the text of a record, as of the reader |
///
/// With `header.fields`, the first record itself is not in the result. With `raw.field` too, its text precedes that of the first one in the result,
/// so that a group that the writer rejects is whole among the rejects.
/// It has the other properties of a [`RecordProcessor`], which is applied to each record of the result. A group without records in its
/// result is filtered.
///
/// ```xml
/// <chunk reader="csvRecordGroupReader" processor="recordGroupProcessor" writer="recordGroupTableWriter">
///   <properties>
///     <property name="group" value="header kind = 'H'"/>
///     <property name="header.fields" value="order"/>
///     <property name="fields" value="order, article, count"/>
///   </properties>
/// </chunk>
/// ```
#[derive(BatchArtifact)]
pub struct RecordGroupProcessor {
    #[batch_property(name = "header.fields")]
    header_fields: Vec<Renamed>,
    #[batch_property(name = "raw.field")]
    raw_field: String,
    #[batch_artifact]
    each: RecordProcessor,
}

#[item_processor("recordGroupProcessor")]
impl RecordGroupProcessor {
    /// Maps a group, or filters it.
    #[process_item]
    pub fn process(&mut self, mut group: Vec<Record>) -> Result<Option<Vec<Record>>, BatchError> {
        let mut header_text = None;
        if !self.header_fields.is_empty() && !group.is_empty() {
            let header = group.remove(0);
            header_text = header.get(&self.raw_field).map(ToString::to_string);
            let fields: Vec<(&str, &Value)> = self
                .header_fields
                .iter()
                .map(|Renamed { name, from }| Ok((name.as_str(), from.of(&header)?)))
                .collect::<Result<_, MappingError>>()?;
            for record in &mut group {
                for (name, value) in &fields {
                    if record.get(name).is_some() {
                        return Err(MappingError::new(format!(
                            "`header.fields` would replace the field `{name}` of a record; rename it, such as `header_{name}={name}`"
                        ))
                        .into());
                    }
                    record.set(name, (*value).clone());
                }
            }
        }
        let mut result = Vec::with_capacity(group.len());
        for record in group {
            result.extend(self.each.process(record)?);
        }
        if let (Some(header), Some(first)) = (header_text, result.first_mut())
            && let Some(text) = first.get(&self.raw_field)
        {
            let texts = format!("{header}\n{text}");
            first.set(&self.raw_field, texts);
        }
        Ok(Some(result).filter(|result| !result.is_empty()))
    }
}
