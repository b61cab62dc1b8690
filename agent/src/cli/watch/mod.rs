//! What `drops --watch` and `capture` have in common: the packets that are asked for, as they come.

mod addresses;
mod interrupted;
mod output;
mod pcapng;
mod selection;
mod stream;
mod text;
mod unmatched;

pub(super) use self::output::Output;
pub(super) use self::pcapng::Capture as PacketFile;
pub(super) use self::selection::Selection;
pub(super) use self::stream::{Losses, Stream};
pub(super) use self::text::{line, losses};
