//! Compiles the programs of the guide about queues.

#[cfg(doctest)]
pub mod guide {
    #[doc = include_str!("../../docs/guide/queues.md")]
    pub struct Queues;
}
