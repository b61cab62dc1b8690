//! Translated connections: pairs of entries in `FLOWS`, their sweep and their volumes.

pub(crate) mod pairs;
mod state;
mod sweep;
pub(crate) mod volumes;

pub(crate) use self::state::{Sweeping, lock};
pub(crate) use self::sweep::read;
