//! What fails of a removal, every step of which runs.

use crate::kernel::KernelError;

/// The failures of a removal's steps.
#[derive(Debug, Default)]
pub(crate) struct Failures(Vec<KernelError>);

impl Failures {
    /// Notes whether a step failed.
    pub(crate) fn note<T, E: Into<KernelError>>(&mut self, step: Result<T, E>) {
        self.0.extend(step.err().map(Into::into));
    }

    /// Notes the failures of several steps.
    pub(crate) fn extend<E: Into<KernelError>>(&mut self, failures: impl IntoIterator<Item = E>) {
        self.0.extend(failures.into_iter().map(Into::into));
    }

    /// Whether every step succeeded.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl IntoIterator for Failures {
    type Item = KernelError;
    type IntoIter = std::vec::IntoIter<KernelError>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
