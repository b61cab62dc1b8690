//! What a fault is.

use anyhow::{Result, bail};

/// One wrong edit of the source.
pub(super) struct Fault {
    /// What one would call the bug.
    pub(super) name: &'static str,
    /// The file, from the checkout's root.
    pub(super) file: &'static str,
    /// The text to replace; it stands in the file exactly once.
    pub(super) find: &'static str,
    pub(super) replace: &'static str,
    /// What a user would suffer.
    pub(super) why: &'static str,
    /// Which tests must notice.
    pub(super) judge: Judge,
}

/// The tests that a fault is shown to.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Judge {
    /// Those of the pure code, in seconds.
    Host,
    /// Those that load the programs; for faults that only the kernel's side has.
    Loaded,
    /// Those that run the programs step by step; for what no test run in the kernel can be given.
    Stepped,
}

impl Fault {
    /// The file's text with the fault in it.
    pub(super) fn apply(&self, text: &str) -> Result<String> {
        match text.matches(self.find).count() {
            1 => Ok(text.replacen(self.find, self.replace, 1)),
            n => bail!(
                "{}: its text is in {} {n} times, not once; has the source changed?",
                self.name,
                self.file
            ),
        }
    }
}
