//! batch.xml: the mapping of artifact ids to classes, and the preferred loader. Several files are merged.
// Spec: LOADER-09 to LOADER-15, D-64

use std::collections::HashMap;
use std::sync::Arc;

use crate::codes;
use crate::diagnostics::{Diagnostic, JobXmlErrors, Sink, quoted};
use crate::limits::Limits;
use crate::reader;
use crate::schema;
use crate::span::{Source, Spanned};
use crate::tree::Element;
use crate::values;

/// The merged content of a program's batch.xml files.
///
/// ```
/// use batch_xml::{BatchXml, Limits, Source};
///
/// let text = r#"<batch-artifacts>
///   <loader classname="com.example.Loader"/>
///   <artifact id="MyReader" classname="my_crate::io::MyReaderImpl"/>
/// </batch-artifacts>"#;
/// let batch_xml = BatchXml::read(&[Source::new("batch.xml", text)], &Limits::default())?;
/// assert_eq!(batch_xml.loader.unwrap().value, "com.example.Loader");
/// assert_eq!(batch_xml.artifacts[0].class.value, "my_crate::io::MyReaderImpl");
/// # Ok::<(), batch_xml::JobXmlErrors>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct BatchXml {
    /// The class of the preferred loader.
    // Spec: LOADER-10
    pub loader: Option<Spanned<String>>,
    /// The artifacts in the order of the texts; each id once.
    // Spec: LOADER-11
    pub artifacts: Vec<ArtifactEntry>,
    /// Warnings, such as a file without entries.
    // Spec: ENV-06
    pub warnings: Vec<Diagnostic>,
}

/// An `artifact` element of the draft, or a `ref` element of Jakarta Batch.
#[derive(Clone, Debug)]
pub struct ArtifactEntry {
    /// The id, as written in `ref`.
    pub id: Spanned<String>,
    /// The class that it maps to: `classname` of an `artifact`, `class` of a `ref`.
    pub class: Spanned<String>,
}

impl BatchXml {
    /// Reads and merges all batch.xml files of a program. The root element may have any name; `batch-artifacts` is
    /// usual. Repeating a mapping, or the loader in another file, is no conflict. Nothing is substituted.
    ///
    /// # Errors
    ///
    /// All mistakes of all files: text that is not well-formed or exceeds a limit, unknown elements and attributes,
    /// missing attributes, an id with two classes, two loaders.
    // Spec: LOADER-10 to LOADER-15, ENV-06
    pub fn read(sources: &[Arc<Source>], limits: &Limits) -> Result<BatchXml, JobXmlErrors> {
        let mut merged = BatchXml::default();
        // Each file is sorted by its own sink: a sink orders the spans of one text only.
        let mut found = Vec::new();
        let mut failed = false;
        let mut ids: HashMap<String, Spanned<String>> = HashMap::new();
        for source in sources {
            let mut sink = Sink::default();
            if let Some(root) = reader::read(source, limits, &mut sink) {
                // In a malformed tag, an attribute that seems to be missing may merely be unreadable.
                let readable = !sink.failed();
                schema::check_batch_xml(&root, &mut sink);
                if readable {
                    merged.add(&root, &mut ids, &mut sink);
                }
            }
            failed |= sink.failed();
            found.extend(sink.into_errors().into_inner());
        }
        if failed {
            return Err(found.into());
        }
        merged.warnings = found;
        Ok(merged)
    }

    fn add(&mut self, root: &Element, ids: &mut HashMap<String, Spanned<String>>, sink: &mut Sink) {
        if root.children.is_empty() && root.text.is_none() {
            sink.warning(codes::NO_ENTRIES, &root.name.span, |d| {
                d.message("the file has no entry")
                    .label("neither `loader` nor `artifact`")
                    .help("artifacts are found by the names of their annotations, so the file can be deleted")
            });
        }
        // A second loader in the same file is reported by the schema check.
        if let Some(class) = root.child("loader").and_then(|e| required(e, "classname", sink)) {
            match &self.loader {
                Some(first) if first.value != class.value => {
                    sink.error(codes::TWO_LOADERS, &class.span, |d| {
                        d.message(format!("{} is a second preferred loader", quoted(&class)))
                            .label("only one is allowed")
                            .related(first.span.clone(), "the first one is here")
                    });
                }
                Some(_) => {}
                None => self.loader = Some(class),
            }
        }
        for entry in &root.children {
            let class = match entry.name.as_str() {
                "artifact" => "classname",
                "ref" => "class",
                _ => continue,
            };
            let (id, class) = (required(entry, "id", sink), required(entry, class, sink));
            let (Some(id), Some(class)) = (id, class) else {
                continue;
            };
            match ids.get(&id.value) {
                Some(first) if first.value != class.value => {
                    sink.error(codes::TWO_CLASSES, &class.span, |d| {
                        d.message(format!("the artifact id {} has two classes", quoted(&id)))
                            .label("mapped to another class before")
                            .related(first.span.clone(), "the first one is here")
                    });
                }
                Some(_) => {}
                None => {
                    ids.insert(id.value.clone(), class.clone());
                    self.artifacts.push(ArtifactEntry { id, class });
                }
            }
        }
    }
}

/// Returns the value of a required attribute, and reports a missing or empty one.
fn required(element: &Element, name: &str, sink: &mut Sink) -> Option<Spanned<String>> {
    match element.attribute(name) {
        None => {
            // A mistyped name has been reported already.
            if !schema::is_mistyped_in_batch_xml(element, name) {
                values::missing_attribute(element, name, sink);
            }
            None
        }
        Some(attribute) if attribute.value.is_empty() => {
            values::empty_value(element, name, &attribute.value.span, sink);
            None
        }
        Some(attribute) => Some(attribute.value.clone()),
    }
}
