//! Item types: what processor, writer and listeners of a chunk take, against what its reader and processor give.
//!
//! Spec: CHUNK-LOOP-17, D-81

use batch_xml::model::{ArtifactRef, Chunk};
use batch_xml::{Diagnostic, Span};

use super::artifacts::place;
use super::bind::Binder;
use crate::artifact::{ArtifactRegistration, Factory, ItemType, ListenerItems};
use crate::engine::{Bound, BoundChunk, BoundListener};

/// Item types do not fit together.
const ITEM_TYPES: &str = "ART0004";

impl Binder<'_> {
    /// The processor takes what the reader gives, the writer what the processor gives; as far as the three are known.
    /// Spec: CHUNK-LOOP-17, D-81
    pub(super) fn check_chunk_items(
        &mut self,
        reader: Option<&Bound>,
        processor: Option<&Bound>,
        writer: Option<&Bound>,
        chunk: &Chunk,
    ) {
        let Some((processor, Factory::ItemProcessor(_, items))) = with_factory(processor) else {
            return;
        };
        let items = items();
        if let Some((reader, Factory::ItemReader(_, item))) = with_factory(reader) {
            let at = &chunk.processor.name.span;
            self.same_items((reader, item()), (processor, items.input), at, "");
        }
        if let Some((writer, Factory::ItemWriter(_, info))) = with_factory(writer) {
            let at = &chunk.writer.name.span;
            self.same_items((processor, items.output), (writer, info().items), at, "");
        }
    }

    /// Each listener that names an item type names that of the chunk. `refs` are the elements of `listeners`.
    pub(super) fn check_listener_items(
        &mut self,
        chunk: &BoundChunk,
        listeners: &[BoundListener],
        refs: &[ArtifactRef],
    ) {
        let (input, output) = (
            gives(chunk.reader.registration),
            gives(chunk.processor.registration),
        );
        for (listener, artifact) in listeners.iter().zip(refs) {
            for role in &listener.roles {
                let takes = takes(role.registration);
                self.listener_fits(role, takes.input, &chunk.reader, input, &artifact.name.span);
                self.listener_fits(role, takes.output, &chunk.processor, output, &artifact.name.span);
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
            let remedy = "; a listener that takes `&dyn Any`, or `Items<'_>` for a list, takes every type";
            self.same_items((from, gives), (listener, takes), at, remedy);
        }
    }

    fn same_items(
        &mut self,
        (from, gives): (&Bound, ItemType),
        (to, takes): (&Bound, ItemType),
        at: &Span,
        remedy: &str,
    ) {
        if gives == takes {
            return;
        }
        let (from_role, to_role) = (from.registration.role(), to.registration.role());
        let message = format!(
            "{to_role} `{}` does not take the items that {from_role} `{}` gives",
            to.name, from.name
        );
        self.diagnostics.push(
            Diagnostic::error(ITEM_TYPES, message, at.clone())
                .label(format!("takes `{}`, is given `{}`", takes.name(), gives.name()))
                .help(format!(
                    "the two are at {} and {}{remedy}",
                    place(to.registration),
                    place(from.registration)
                )),
        );
    }
}

fn with_factory(bound: Option<&Bound>) -> Option<(&Bound, Factory)> {
    bound.map(|bound| (bound, bound.registration.factory))
}

/// The type of what a reader or processor gives.
fn gives(registration: &ArtifactRegistration) -> Option<ItemType> {
    match registration.factory {
        Factory::ItemReader(_, item) => Some(item()),
        Factory::ItemProcessor(_, items) => Some(items().output),
        _ => None,
    }
}

/// The types that a listener names.
fn takes(registration: &ArtifactRegistration) -> ListenerItems {
    match registration.factory {
        Factory::ItemReadListener(_, items) => items(),
        Factory::ItemProcessListener(_, items) => items(),
        Factory::ItemWriteListener(_, items) => items(),
        Factory::SkipListener(_, items) => items(),
        Factory::RetryListener(_, items) => items(),
        _ => ListenerItems::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::collections::BTreeMap;

    use batch_xml::{Limits, Source, Values};

    use super::super::{Artifacts, Outside};
    use super::*;
    use crate::artifact::{SkipListener, registry};
    use crate::prelude::*;

    #[derive(BatchArtifact)]
    struct Letters {}

    #[item_reader("items.letters")]
    impl Letters {
        #[open]
        fn open(&mut self, _: Option<()>) {}
        #[read_item]
        fn read(&mut self) -> Option<char> {
            None
        }
        #[get_checkpoint_info]
        fn checkpoint(&mut self) {}
    }

    #[derive(BatchArtifact)]
    struct Codes {}

    #[item_processor("items.codes")]
    impl Codes {
        #[process_item]
        fn process(&mut self, letter: char) -> Option<u32> {
            Some(letter.into())
        }
    }

    #[derive(BatchArtifact)]
    struct Nowhere {}

    #[item_writer("items.nowhere")]
    impl Nowhere {
        #[open]
        fn open(&mut self, _: Option<()>) {}
        #[write_items]
        fn write(&mut self, _: &[u32], _: &mut ChunkTransaction) {}
        #[get_checkpoint_info]
        fn checkpoint(&mut self) {}
    }

    /// A skip listener that names these types.
    macro_rules! listener {
        ($name:ident, $registration:ident, $input:expr, $output:expr) => {
            #[derive(BatchArtifact)]
            struct $name {}

            impl SkipListener for $name {
                fn on_skip_in_read(&mut self, _: &BatchError) -> Result<(), BatchError> {
                    Ok(())
                }
                fn on_skip_in_process(&mut self, _: &BatchError, _: &dyn Any) -> Result<(), BatchError> {
                    Ok(())
                }
                fn on_skip_in_write(&mut self, _: &BatchError, _: &dyn Any) -> Result<(), BatchError> {
                    Ok(())
                }
                fn items() -> ListenerItems {
                    ListenerItems {
                        input: $input,
                        output: $output,
                    }
                }
            }

            static $registration: ArtifactRegistration = ArtifactRegistration::skip_listener::<$name>(
                stringify!($name),
                stringify!($name),
                None,
                "items.rs",
                1,
            );
        };
    }

    listener!(
        Fits,
        FITS,
        Some(ItemType::of::<char>()),
        Some(ItemType::of::<u32>())
    );
    listener!(Any_, ANY, None, None);
    listener!(
        Swapped,
        SWAPPED,
        Some(ItemType::of::<u32>()),
        Some(ItemType::of::<char>())
    );

    /// What is said about the item types of a job with these listeners of the job and of its step.
    fn said(of_job: &str, of_step: &str) -> Vec<String> {
        let text = format!(
            r#"<job id="job"><listeners>{of_job}</listeners><step id="one"><listeners>{of_step}</listeners>
            <chunk reader="items.letters" processor="items.codes" writer="items.nowhere"/></step></job>"#
        );
        let limits = Limits::default();
        let none = BTreeMap::new();
        let values = Values {
            parameters: &none,
            system: &none,
        };
        let document = batch_xml::parse(&Source::new("job.xml", text), &limits).unwrap();
        let job = batch_xml::resolve(&document, &Vec::new(), &values, &limits)
            .unwrap()
            .job;
        let artifacts = Artifacts {
            all: registry::linked().chain([&FITS, &ANY, &SWAPPED]).collect(),
            preferred: None,
            mapped: BTreeMap::new(),
        };
        let errors = artifacts.bind(&job, &Outside::default()).err();
        let errors = errors
            .into_iter()
            .flatten()
            .filter(|error| error.code == ITEM_TYPES);
        errors
            .map(|error| format!("{}: {}", error.message, error.label))
            .collect()
    }

    fn listener(name: &str) -> String {
        format!(r#"<listener ref="{name}"/>"#)
    }

    /// Spec: CHUNK-LOOP-17
    #[test]
    fn listeners_take_the_items_of_their_chunk() {
        assert_eq!(said(&listener("Fits"), &listener("Fits")), [""; 0]);
        assert_eq!(said(&listener("Any_"), &listener("Any_")), [""; 0]);
        let wrong = [
            "skip listener `Swapped` does not take the items that item reader `items.letters` gives: takes `u32`, is \
             given `char`",
            "skip listener `Swapped` does not take the items that item processor `items.codes` gives: takes `char`, is \
             given `u32`",
        ];
        assert_eq!(said("", &(listener("Fits") + &listener("Swapped"))), wrong);
        // One of the job hears of the items of every step.
        assert_eq!(said(&listener("Swapped"), ""), wrong);
    }
}
