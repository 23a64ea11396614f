//! Reads Job XML into a checked model.
//!
//! This crate reads the Job XML of the JSR 352 draft and performs every check that needs no artifact, thread or database:
//!
//! 1. [`Source`] holds the text; every later value remembers its place in it as a [`Span`].
//! 2. [`parse`] returns a [`Document`]: well-formed XML whose root is a job, step, flow or split with an id.
//! 3. [`resolve`] returns a [`model::Job`]: it combines the document with what it inherits from a [`Library`] (the
//!    [`Effective`] document), substitutes `${..}`, and checks the result.
//! 4. Some values of a partitioned step or flow are known only in a partition: [`Effective::resolve_partition`]
//!    resolves it for one.
//!
//! The job's [`Dialect`] answers every question that dialects answer differently, such as which of several transitions
//! is taken ([`Dialect::select`]). A job can be written as XML again, before substitution ([`Effective::to_xml`]) or
//! after it ([`model::Job::to_xml`]), built in Rust ([`builder::JobBuilder`]), and drawn ([`graph::JobGraph`]).
//!
//! [`BatchXml`] reads batch.xml, which maps artifact ids to classes.
//!
//! Mistakes are collected: [`JobXmlErrors`] is a list of [`Diagnostic`]s that render like a compiler's.
//!
//! ```
//! use std::collections::BTreeMap;
//! use batch_xml::{Limits, Source, Values, parse, resolve};
//!
//! let text = r#"<job id="payroll">
//!   <step id="load" next="lod2">
//!     <batchlet ref="Load"><properties><property name="file" value="${dir}/in.csv"/></properties></batchlet>
//!   </step>
//!   <step id="load2"><batchlet ref="Load2"/></step>
//! </job>"#;
//!
//! let parameters = BTreeMap::from([("dir".to_owned(), "/data".to_owned())]);
//! let values = Values { parameters: &parameters, system: &BTreeMap::new() };
//! let limits = Limits::default();
//! let library = Vec::new(); // no document to inherit from
//!
//! let document = parse(&Source::new("payroll.xml", text), &limits)?;
//! let errors = resolve(&document, &library, &values, &limits).unwrap_err();
//! assert_eq!(errors.to_string(), "\
//! error[JSL0012]: `next` refers to an unknown element `lod2`
//!  --> payroll.xml:2:25
//!   |
//! 2 |   <step id=\"load\" next=\"lod2\">
//!   |                         ^^^^ no step, flow, split or decision has this id
//!   = help: did you mean `load2`?");
//!
//! let document = parse(&Source::new("payroll.xml", text.replace("lod2", "load2")), &limits)?;
//! let job = resolve(&document, &library, &values, &limits)?.job;
//! let batch_xml::model::ExecutionElement::Step(step) = &job.elements[0] else { unreachable!() };
//! let batch_xml::model::StepBody::Batchlet(batchlet) = &step.body else { unreachable!() };
//! assert_eq!(batchlet.property("file").unwrap().value, "/data/in.csv");
//! # Ok::<(), batch_xml::JobXmlErrors>(())
//! ```

#![forbid(unsafe_code)]

mod artifacts;
mod budget;
pub mod builder;
mod codes;
mod decode;
mod deferral;
mod diagnostics;
mod dialect;
mod document;
mod dominators;
mod effective;
mod generic;
pub mod graph;
mod inherit;
mod library;
mod limits;
mod lower;
pub mod model;
mod origins;
mod outline;
mod pattern;
mod properties;
mod reader;
mod render;
mod resolve;
mod schema;
mod search;
mod span;
mod substitute;
pub mod suggest;
mod symbols;
mod tree;
mod validate;
mod values;
mod write;
mod xml;
mod xsd;

pub use artifacts::{ArtifactEntry, BatchXml};
pub use codes::{CODES, explain};
pub use diagnostics::{Diagnostic, JobXmlErrors, Severity};
pub use dialect::{Dialect, UnknownDialect, ValueSource};
pub use document::{Document, RootKind, parse, parse_as};
pub use effective::Effective;
pub use library::Library;
pub use limits::Limits;
pub use lower::PartitionView;
pub use reader::sniff_root;
pub use render::is_unprintable;
pub use resolve::{Resolved, Unresolved, resolve, resolve_or_part};
pub use substitute::Values;
pub use values::id_problem;

// Documented in the model.
#[doc(hidden)]
pub use model::{Pattern, Source, Span, Spanned, Specificity};

/// Used by tests to compare with other parsers. Not a public API.
#[doc(hidden)]
pub mod __private {
    pub use crate::generic::{Seen, read};
}
