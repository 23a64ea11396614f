//! Checks the item types of processor, writer and listeners against the types that reader and processor return.
// Spec: CHUNK-LOOP-17, D-81

use batch_xml::model::Chunk;
use batch_xml::{Diagnostic, Span};

use super::binder::{Binder, ListenerAt};
use crate::artifact::{ArtifactRegistration, ItemType, short_type_name};
use crate::engine::{Bound, BoundChunk};
use crate::role::{Factory, Role};

/// Item types do not match.
const ITEM_TYPES: &str = "ART0004";

/// The items that an artifact passes on or takes.
#[derive(Clone, Copy)]
struct Passed<'b> {
    artifact: &'b Bound,
    items: ItemType,
}

impl Binder<'_> {
    /// Checks that the processor accepts the reader's items, and the writer the processor's, as far as the types are
    /// known.
    // Spec: CHUNK-LOOP-17, D-81
    pub(super) fn check_chunk_items(
        &mut self,
        reader: Option<&Bound>,
        processor: Option<&Bound>,
        writer: Option<&Bound>,
        chunk: &Chunk,
    ) {
        let reader = match with_factory(reader) {
            Some((reader, Factory::ItemReader(_, info))) => Some(Passed {
                artifact: reader,
                items: info().items,
            }),
            _ => None,
        };
        let written = match &chunk.processor {
            None => reader,
            Some(named) => match with_factory(processor) {
                Some((processor, Factory::ItemProcessor(_, items))) => {
                    let items = items();
                    if let Some(reader) = reader {
                        let takes = Passed {
                            artifact: processor,
                            items: items.input,
                        };
                        self.same_items(reader, takes, &named.name.span, "");
                    }
                    Some(Passed {
                        artifact: processor,
                        items: items.output,
                    })
                }
                _ => None,
            },
        };
        if let (Some(written), Some((writer, Factory::ItemWriter(_, info)))) = (written, with_factory(writer))
        {
            let takes = Passed {
                artifact: writer,
                items: info().items,
            };
            self.same_items(written, takes, &chunk.writer.name.span, "");
        }
    }

    /// Checks that each typed listener accepts the items of the chunk.
    pub(super) fn check_listener_items(&mut self, chunk: &BoundChunk, listeners: &[ListenerAt]) {
        let (input, output) = (
            item_type(chunk.reader.registration),
            item_type(chunk.last_input().registration),
        );
        for (listener, at) in listeners {
            for role in &listener.roles {
                let takes = role.registration.factory.listener_items();
                self.listener_fits(role, takes.input, &chunk.reader, input, at);
                self.listener_fits(role, takes.output, chunk.last_input(), output, at);
            }
        }
    }

    fn listener_fits(
        &mut self,
        listener: &Bound,
        takes: Option<ItemType>,
        from: &Bound,
        gives: Option<ItemType>,
        at: &Span,
    ) {
        if let (Some(takes), Some(gives)) = (takes, gives) {
            let remedy = "; a listener with `&dyn Any`, or `ChunkItems<'_>` for a list, accepts every type";
            let from = Passed {
                artifact: from,
                items: gives,
            };
            let to = Passed {
                artifact: listener,
                items: takes,
            };
            self.same_items(from, to, at, remedy);
        }
    }

    // Spec: PALG-11, D-81
    pub(super) fn check_payload(&mut self, collector: &Bound, analyzer: &Bound, at: &Span) {
        if let (Factory::SubJobCollector(_, gives), Factory::SubJobAnalyzer(_, takes)) =
            (collector.registration.factory, analyzer.registration.factory)
            && let Some(takes) = takes()
        {
            let from = Passed {
                artifact: collector,
                items: gives(),
            };
            let to = Passed {
                artifact: analyzer,
                items: takes,
            };
            self.same_items(from, to, at, "");
        }
    }

    fn same_items(&mut self, from: Passed<'_>, to: Passed<'_>, at: &Span, remedy: &str) {
        let (gives, takes) = (from.items, to.items);
        if gives == takes {
            return;
        }
        let (from, to) = (from.artifact, to.artifact);
        let (from_role, to_role) = (from.registration.role(), to.registration.role());
        let what = if to.registration.role() == Role::SubJobAnalyzer {
            "data"
        } else {
            "items"
        };
        let message = format!(
            "{to_role} `{}` does not accept the {what} of {from_role} `{}`",
            to.name, from.name
        );
        self.diagnostics.push(
            Diagnostic::error(ITEM_TYPES, message, at.clone())
                .label(format!(
                    "expected `{}`, found `{}`",
                    short_type_name(takes.name()),
                    short_type_name(gives.name())
                ))
                .help(format!(
                    "they are defined at {} and {}{remedy}",
                    to.registration.place(),
                    from.registration.place()
                )),
        );
    }
}

fn with_factory(bound: Option<&Bound>) -> Option<(&Bound, Factory)> {
    bound.map(|bound| (bound, bound.registration.factory))
}

/// Returns the type of a reader's or processor's items.
fn item_type(registration: &ArtifactRegistration) -> Option<ItemType> {
    match registration.factory {
        Factory::ItemReader(_, info) => Some(info().items),
        Factory::ItemProcessor(_, items) => Some(items().output),
        _ => None,
    }
}
