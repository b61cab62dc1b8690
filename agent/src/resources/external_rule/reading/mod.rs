//! What single expressions of rules ask and do, and where rules are read.

pub(super) mod attributes;
mod effect;
pub(super) mod expression;
pub(super) mod ip;
pub(super) mod local;
pub(super) mod marks;
pub(super) mod protocol;
pub(super) mod silent;
pub(super) mod source;
pub(super) mod states;
pub(super) mod xtables;
