//! Stations that the programs learned behind uplinks: their expiry, the limit of their number, and what the kernel's bridge hears of them.

mod ageing;
mod state;
mod swept;

pub(crate) use self::state::Learning;
