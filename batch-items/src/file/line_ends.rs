//! Line ends.

/// Counts line ends: LF, CRLF, or CR.
#[derive(Default)]
pub(crate) struct LineEnds {
    /// True after a CR, which a LF may complete.
    after_cr: bool,
}

impl LineEnds {
    /// Returns the number of line ends in the next bytes.
    pub(crate) fn count(&mut self, bytes: &[u8]) -> u64 {
        let Some(last) = bytes.last() else { return 0 };
        let completes = self.after_cr && bytes[0] == b'\n';
        self.after_cr = *last == b'\r';
        let mut count = memchr::memchr_iter(b'\n', bytes).count() - usize::from(completes);
        for at in memchr::memchr_iter(b'\r', bytes) {
            count += usize::from(bytes.get(at + 1) != Some(&b'\n'));
        }
        count as u64
    }
}
