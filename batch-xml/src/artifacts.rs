//! batch.xml: which class an artifact id stands for, and which loader is asked first. Several files are one.
//!
//! Spec: LOADER-09 to LOADER-15, D-64

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

/// What the batch.xml files of a program say, all together.
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
    /// The class of the preferred loader. Spec: LOADER-10
    pub loader: Option<Spanned<String>>,
    /// The artifacts in the order of the texts; each id once. Spec: LOADER-11
    pub artifacts: Vec<ArtifactEntry>,
    /// What is strange, though not wrong: a file with no entry. Spec: ENV-06
    pub warnings: Vec<Diagnostic>,
}

/// An `artifact` element.
#[derive(Clone, Debug)]
pub struct ArtifactEntry {
    /// What a `ref` says.
    pub id: Spanned<String>,
    /// The class that it means: `classname`.
    pub class: Spanned<String>,
}

impl BatchXml {
    /// Reads all files of a program and merges them. The root element may have any name; `batch-artifacts` is usual. An
    /// id that is mapped to the same class again is no conflict, nor is the same loader in another file. Nothing is
    /// substituted.
    ///
    /// # Errors
    ///
    /// All that is wrong in all files: text that is not well-formed or passes a limit, unknown elements and attributes,
    /// missing attributes, an id with two classes, two loaders.
    ///
    /// Spec: LOADER-10 to LOADER-15, ENV-06
    pub fn read(sources: &[Arc<Source>], limits: &Limits) -> Result<BatchXml, JobXmlErrors> {
        let mut merged = BatchXml::default();
        // What one text says stays together: of several texts a sink knows no order.
        let mut found = Vec::new();
        let mut failed = false;
        let mut ids: HashMap<String, Spanned<String>> = HashMap::new();
        for source in sources {
            let mut sink = Sink::default();
            if let Some(root) = reader::read(source, limits, &mut sink) {
                // Where a tag is not well-formed, what seems to be missing may be there and only not readable.
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
                    .help("artifacts are found by the names of their annotations; the file may be deleted")
            });
        }
        // A second one in the same file is reported as such.
        if let Some(class) = root.child("loader").and_then(|e| required(e, "classname", sink)) {
            match &self.loader {
                Some(first) if first.value != class.value => {
                    sink.error(codes::TWO_LOADERS, &class.span, |d| {
                        d.message(format!("{} would be a second preferred loader", quoted(&class)))
                            .label("only one is asked")
                            .related(first.span.clone(), "the first one is here")
                    });
                }
                Some(_) => {}
                None => self.loader = Some(class),
            }
        }
        for artifact in root.children("artifact") {
            let (id, class) = (
                required(artifact, "id", sink),
                required(artifact, "classname", sink),
            );
            let (Some(id), Some(class)) = (id, class) else {
                continue;
            };
            match ids.get(&id.value) {
                Some(first) if first.value != class.value => {
                    sink.error(codes::TWO_CLASSES, &class.span, |d| {
                        d.message(format!("the artifact id {} has two classes", quoted(&id)))
                            .label("another class than before")
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

/// The value of an attribute that names something.
fn required(element: &Element, name: &str, sink: &mut Sink) -> Option<Spanned<String>> {
    match element.attribute(name) {
        None => {
            // A mistyped name was reported as such.
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
