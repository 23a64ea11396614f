//! Generic artifacts, as another crate offers them, for the cases in `ui`. They register nothing.
//!
//! The package depends on `batch-runtime` alone, because trybuild compiles the dependencies again.

use std::marker::PhantomData;

use batch_runtime::prelude::*;

/// An item reader that a program may name by an alias.
#[derive(BatchArtifact)]
pub struct Items<T> {
    item: PhantomData<fn() -> T>,
}

#[item_reader]
impl<T: Send + 'static> Items<T> {
    #[read_item]
    fn read(&mut self) -> Option<T> {
        None
    }
}

/// A generic artifact without a role, so that an alias of it registers nothing.
#[derive(BatchArtifact)]
pub struct NoRole<T> {
    item: PhantomData<fn() -> T>,
}
