//! Random cases.

use batch_runtime::repository::RepositoryLayout;
use batch_tests::database::Database;

use crate::case::{Batchlet, Case, Chunk, Element, Fault, FaultKind, FaultTime};
use crate::faults::is_possible;
use crate::random::Random;

/// The most launches with a fault.
const MOST_FAULTS: u64 = 6;

/// Makes the case of a seed.
pub(crate) fn case(seed: u64, database: Database) -> Case {
    let mut maker = Generator {
        random: Random::new(seed),
        ids: 0,
        database,
    };
    let elements = maker.elements(Place::Job, 5);
    let faults = maker.random.within(1, MOST_FAULTS);
    let faults = (0..faults).map(|_| maker.fault()).collect();
    let layouts = RepositoryLayout::ALL;
    let layout = maker.random.within(0, layouts.len() as u64 - 1) as usize;
    Case {
        seed,
        layout: layouts[layout],
        elements,
        faults,
    }
}

/// Where an element is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Job,
    /// In a flow of a split.
    Split,
    /// In a partitioned flow.
    Part,
}

struct Generator {
    random: Random,
    ids: u32,
    database: Database,
}

impl Generator {
    fn id(&mut self, of: &str) -> String {
        self.ids += 1;
        format!("{of}{}", self.ids)
    }

    /// Returns one to `most` elements.
    fn elements(&mut self, place: Place, most: u64) -> Vec<Element> {
        let count = self.random.within(1, most);
        let mut elements: Vec<Element> = Vec::new();
        for _ in 0..count {
            let element = match self.element(place) {
                // A decision comes after a step, and never leads to another decision.
                Element::Decision { step, .. } if !matches!(elements.last(), Some(Element::Chunk(_))) => {
                    Element::Chunk(step)
                }
                element => element,
            };
            elements.push(element);
        }
        // Only the job can end after a decision.
        if let Some(Element::Decision { passes_over, .. }) = elements.last_mut() {
            *passes_over &= place == Place::Job;
        }
        elements
    }

    fn element(&mut self, place: Place) -> Element {
        match (self.random.within(0, 9), place) {
            (0, _) => Element::Batchlet(self.batchlet(place)),
            (1, Place::Job) => {
                let id = self.id("split");
                let flows = self.random.within(2, 3);
                let flows = (0..flows).map(|_| self.elements(Place::Split, 2)).collect();
                Element::Split { id, flows }
            }
            (2, Place::Job) => {
                let (id, parts) = (self.id("flow"), self.random.within(1, 3) as u32);
                let logical_tx = self.random.once_in(3);
                let elements = self.elements(Place::Part, 2);
                Element::Flow {
                    id,
                    parts,
                    logical_tx,
                    elements,
                }
            }
            (3, _) => {
                let (id, passes_over) = (self.id("decision"), self.random.once_in(2));
                let step = Chunk {
                    parts: 0,
                    logical_tx: false,
                    ..self.chunk(place)
                };
                Element::Decision {
                    id,
                    passes_over,
                    step,
                }
            }
            _ => Element::Chunk(self.chunk(place)),
        }
    }

    fn batchlet(&mut self, place: Place) -> Batchlet {
        Batchlet {
            id: self.id("task"),
            parts: if place == Place::Part { 0 } else { self.parts() },
            fails: self.random.once_in(6),
        }
    }

    fn parts(&mut self) -> u32 {
        match self.random.once_in(3) {
            true => self.random.within(1, 5) as u32,
            false => 0,
        }
    }

    fn chunk(&mut self, place: Place) -> Chunk {
        let items = self.random.within(0, 120) as u32;
        let parts = if place == Place::Part { 0 } else { self.parts() };
        let mut items_left: Vec<u32> = (1..=items).collect();
        let mut some = |random: &mut Random, most| {
            let count = random.within(0, most).min(items_left.len() as u64);
            let mut some: Vec<u32> = (0..count)
                .map(|_| items_left.swap_remove(random.within(0, items_left.len() as u64 - 1) as usize))
                .collect();
            some.sort_unstable();
            some
        };
        let random = &mut self.random;
        let (bad_reads, bad_results) = (some(random, 2), some(random, 2));
        let (bad_writes, transient) = (some(random, 2), some(random, 1));
        let fails_at = match random.once_in(4) {
            true => some(random, 1).pop(),
            false => None,
        };
        let (pipeline, processors) = (random.once_in(3), if random.once_in(4) { 2 } else { 1 });
        let (interval, chunk_size) = (random.within(1, 12) as u32, random.within(1, 12) as u32);
        let (filter, logical_tx) = (random.within(2, 9) as u32, parts > 0 && random.once_in(3));
        Chunk {
            id: self.id("load"),
            items,
            interval,
            chunk_size,
            parts,
            logical_tx,
            pipeline,
            processors,
            filter,
            bad_reads,
            bad_results,
            bad_writes,
            transient,
            fails_at,
        }
    }

    fn fault(&mut self) -> Fault {
        let mut kind = *self.random.one_of(&FaultKind::ALL);
        while !is_possible(self.database, kind) {
            kind = *self.random.one_of(&FaultKind::ALL);
        }
        let time = match self.random.once_in(2) {
            true => FaultTime::Call(self.random.within(1, 250) as u32),
            false => FaultTime::Micros(self.random.within(0, 100_000)),
        };
        let killed_after = self.random.once_in(4).then(|| self.random.within(0, 30_000));
        Fault {
            kind,
            time,
            killed_after,
        }
    }
}
