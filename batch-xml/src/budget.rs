//! Limits that a whole resolution uses up.

/// A limit on an amount, used up over one resolution.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) what: &'static str,
    pub(crate) limit: usize,
    pub(crate) left: usize,
}

impl Budget {
    pub(crate) fn new(what: &'static str, limit: usize) -> Budget {
        Budget {
            what,
            limit,
            left: limit,
        }
    }
}
