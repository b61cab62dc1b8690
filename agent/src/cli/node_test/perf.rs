//! How fast containers of this node are beside the kernel's bridge, measured in turns.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;

use super::ground::{Ground, SERVER};
use super::kernel_bridge::KernelBridge;
use super::load::{tcp_crr, tcp_rr, udp_rr};
use super::talk::{Ends, rate};
use crate::cli::table::Align::{Left, Right};
use crate::cli::table::{Table, grouped};

/// How often each is measured; the median is told.
const TIMES: usize = 3;

/// How long.
const TIME: Duration = Duration::from_secs(1);

type Measure = fn(Ends<'_>, Duration) -> io::Result<f64>;

/// What is measured, and in what.
const MEASURES: [(&str, &str, Measure); 4] = [
    ("TCP round trips", "1/s", tcp_rr),
    ("TCP connections", "1/s", tcp_crr),
    ("UDP round trips", "1/s", udp_rr),
    ("TCP stream", "bit/s", rate),
];

/// One figure of both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Compared {
    measure: &'static str,
    unit: &'static str,
    shunt: f64,
    kernel: f64,
}

/// Measures all of them until `is_over`.
///
/// # Errors
/// The kernel's bridge cannot be made, or something breaks.
pub(super) fn run(ground: &Ground, is_over: impl Fn() -> bool) -> io::Result<Vec<Compared>> {
    let kernel = KernelBridge::make(ground.directory())?;
    let [(left, _), (right, beyond)] = &kernel.ends;
    let Some(to) = ground.two.address(false) else {
        return Err(io::Error::other("the network gives no IPv4 address"));
    };
    let ends =
        |client, server, to| Ends { client, server, listens: SocketAddr::new(to, SERVER), through: None };
    let shunt = ends(&ground.one.namespace, &ground.two.namespace, to);
    let kernel = ends(left, right, *beyond);
    let mut compared = Vec::new();
    for (measure, unit, run) in MEASURES {
        let mut figures = [Vec::new(), Vec::new()];
        for _ in 0..TIMES {
            for (figures, ends) in figures.iter_mut().zip([shunt, kernel]) {
                if is_over() {
                    return Ok(compared);
                }
                figures.push(run(ends, TIME)?);
            }
        }
        let [shunt, kernel] = figures.map(median);
        compared.push(Compared { measure, unit, shunt, kernel });
    }
    Ok(compared)
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// The figures as a table.
pub(super) fn text(compared: &[Compared]) -> String {
    let mut table = Table::new([
        ("MEASURED", Left),
        ("UNIT", Left),
        ("SHUNT", Right),
        ("KERNEL", Right),
        ("RATIO", Right),
    ]);
    for Compared { measure, unit, shunt, kernel } in compared {
        let whole = |figure: f64| grouped(figure.round() as u64);
        let ratio = format!("{:.2}", shunt / kernel);
        table.row([(*measure).to_owned(), (*unit).to_owned(), whole(*shunt), whole(*kernel), ratio]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_told_beside_the_kernels() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        let compared = Compared { measure: "TCP stream", unit: "bit/s", shunt: 3e3, kernel: 2e3 };
        let text = text(&[compared]);
        assert!(text.ends_with("TCP stream  bit/s  3 000   2 000   1.50\n"), "{text}");
    }
}
