//! How a case is tried, and what becomes of one that cannot be.

use std::fs;
use std::io;

use super::ground::Ground;
use super::row::{Outcome, Row};
use super::sandbox::Sandbox;

/// Whether it is IPv6, and its name.
pub(super) type Family = (bool, &'static str);

/// Does the work, and counts the packets of these containers meanwhile.
pub(super) fn tried(
    ground: &Ground,
    case: &'static str,
    family: Family,
    containers: &[&Sandbox],
    work: impl FnOnce() -> io::Result<()>,
) -> Row {
    let counted = || ground.counted(containers).map_err(io::Error::other);
    let done = counted().and_then(|before| {
        let said = work();
        Ok((before, said, counted()?))
    });
    match done {
        Ok(([fast, kernel], said, [more_fast, more_kernel])) => Row {
            case,
            family: family.1,
            outcome: if said.is_ok() { Outcome::Passed } else { Outcome::Failed },
            fast: more_fast.saturating_sub(fast),
            kernel: more_kernel.saturating_sub(kernel),
            detail: said.err().map_or_else(String::new, |error| error.to_string()),
        },
        Err(error) => failed(case, family, &error),
    }
}

/// A case that could not be tried.
pub(super) fn failed(case: &'static str, family: Family, error: &impl ToString) -> Row {
    Row { outcome: Outcome::Failed, ..Row::skipped(case, family.1, error.to_string()) }
}

/// A case of a family that the network does not have.
pub(super) fn no_address(case: &'static str, (_, family): Family) -> Row {
    Row::skipped(case, family, format!("the network gives no {family} address"))
}

/// Why what comes from elsewhere reaches no container.
pub(super) fn does_not_forward((is_ipv6, family): Family) -> Option<String> {
    let setting = if is_ipv6 { "ipv6/conf/all/forwarding" } else { "ipv4/ip_forward" };
    let value = fs::read_to_string(format!("/proc/sys/net/{setting}")).unwrap_or_default();
    let forwards = !matches!(value.trim(), "" | "0");
    (!forwards).then(|| format!("the node does not forward {family}: net.{}", setting.replace('/', ".")))
}
