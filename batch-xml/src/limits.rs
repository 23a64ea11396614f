//! Limits on the size of job files.

/// Limits on the size of a document and on the result of substitution. They protect the process against hostile and
/// broken input; the defaults are far above any real job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file, and of its text in UTF-8. Default 4 MiB.
    pub file_bytes: usize,
    /// Levels of nested elements; the root is level 1. Default 32, at most 256.
    pub depth: usize,
    /// Attributes of one element. Default 64.
    pub attributes: usize,
    /// Bytes of the name of an element or attribute. Default 256.
    pub name_bytes: usize,
    /// Bytes of one attribute value, before and after substitution. Default 64 KiB.
    pub value_bytes: usize,
    /// Elements of one document. Default 100,000.
    pub elements: usize,
    /// Generations of parents above an element. Default 16, at most 256.
    pub parents: usize,
    /// Elements of one job that come from parents. Default 100,000.
    pub inherited_elements: usize,
    /// Bytes of the attribute values of one job that come from parents, as written. Default 16 MiB.
    pub inherited_bytes: usize,
    /// Bytes of all attribute values of one job after substitution. Default 4 MiB.
    pub job_value_bytes: usize,
    /// Bytes of memory for the property lists of artifacts; a property of the job is in each of them. Default 32 MiB.
    pub property_list_bytes: usize,
    /// Symbols `${..}` resolved for one job, including those in values of other symbols. Default 1,000,000.
    pub symbols: usize,
    /// Depth of properties that refer to each other: `a` to `b`, `b` to `c`, and so on. Default 64, at most 256.
    pub symbol_depth: usize,
}

/// Upper bound of `depth`, `parents` and `symbol_depth`, which are walked recursively.
const MAX_RECURSION: usize = 256;

impl Limits {
    pub(crate) fn max_depth(&self) -> usize {
        self.depth.min(MAX_RECURSION)
    }

    pub(crate) fn max_parents(&self) -> usize {
        self.parents.min(MAX_RECURSION)
    }

    pub(crate) fn max_symbol_depth(&self) -> usize {
        self.symbol_depth.min(MAX_RECURSION)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes: 4 << 20,
            depth: 32,
            attributes: 64,
            name_bytes: 256,
            value_bytes: 64 << 10,
            elements: 100_000,
            parents: 16,
            inherited_elements: 100_000,
            inherited_bytes: 16 << 20,
            job_value_bytes: 4 << 20,
            property_list_bytes: 32 << 20,
            symbols: 1_000_000,
            symbol_depth: 64,
        }
    }
}
