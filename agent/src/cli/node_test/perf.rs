//! How fast containers of this node are beside the kernel's bridge, measured in turns.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
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
    family: &'static str,
    unit: &'static str,
    shunt: f64,
    kernel: f64,
}

/// The figures, and what could not be measured: where, and why.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) compared: Vec<Compared>,
    pub(super) errors: Vec<String>,
}

/// Measures all of them until `is_over`, over IPv4 or, where the network has none, over IPv6. One that fails keeps no other one back.
pub(super) fn run(ground: &Ground, is_over: impl Fn() -> bool) -> Measured {
    let mut measured = Measured::default();
    let Some(to) = [false, true].into_iter().find_map(|is_ipv6| ground.two.address(is_ipv6)) else {
        measured.errors.push("the network gives no address".to_owned());
        return measured;
    };
    match KernelBridge::make(ground.directory(), to.is_ipv6()) {
        Ok(kernel) => compare_all(ground, to, &kernel, is_over, &mut measured),
        Err(error) => measured.errors.push(format!("the kernel's bridge cannot be made: {error}")),
    }
    measured
}

fn compare_all(
    ground: &Ground,
    to: IpAddr,
    kernel: &KernelBridge,
    is_over: impl Fn() -> bool,
    measured: &mut Measured,
) {
    let [(left, _), (right, beyond)] = &kernel.ends;
    let ends =
        |client, server, to| Ends { client, server, listens: SocketAddr::new(to, SERVER), through: None };
    let shunt = ("shunt", ends(&ground.one.namespace, &ground.two.namespace, to));
    let places = [shunt, ("the kernel's bridge", ends(left, right, *beyond))];
    let family = if to.is_ipv6() { "IPv6" } else { "IPv4" };
    for (measure, unit, run) in MEASURES {
        match compare(places, run, &is_over) {
            Ok(Some([shunt, kernel])) => {
                measured.compared.push(Compared { measure, family, unit, shunt, kernel });
            }
            Ok(None) => return,
            Err(error) => measured.errors.push(format!("{measure} over {family}: {error}")),
        }
    }
}

/// The median of each place; none if it is over before.
fn compare(
    places: [(&str, Ends<'_>); 2],
    run: Measure,
    is_over: impl Fn() -> bool,
) -> io::Result<Option<[f64; 2]>> {
    let mut figures = [Vec::new(), Vec::new()];
    for _ in 0..TIMES {
        for (figures, (place, ends)) in figures.iter_mut().zip(places) {
            if is_over() {
                return Ok(None);
            }
            let figure = run(ends, TIME);
            figures.push(figure.map_err(|error| io::Error::new(error.kind(), format!("{place}: {error}")))?);
        }
    }
    Ok(Some(figures.map(median)))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// The figures as a table, and a line for each that is missing.
pub(super) fn text(compared: &[Compared], errors: &[String]) -> String {
    let mut text = if compared.is_empty() { String::new() } else { table(compared).to_string() };
    for error in errors {
        // To a string.
        let _never = writeln!(text, "not measured: {error}");
    }
    text
}

fn table(compared: &[Compared]) -> Table<6> {
    let mut table = Table::new([
        ("MEASURED", Left),
        ("FAMILY", Left),
        ("UNIT", Left),
        ("SHUNT", Right),
        ("KERNEL", Right),
        ("RATIO", Right),
    ]);
    for Compared { measure, family, unit, shunt, kernel } in compared {
        let [measure, family, unit] = [measure, family, unit].map(|word| (*word).to_owned());
        let whole = |figure: f64| grouped(figure.round() as u64);
        let ratio = format!("{:.2}", shunt / kernel);
        table.row([measure, family, unit, whole(*shunt), whole(*kernel), ratio]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::namespace::Namespace;
    use super::*;

    #[test]
    fn the_median_is_told_beside_the_kernels_and_what_is_missing_beneath() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(text(&[], &[]), "");
        let compared =
            Compared { measure: "TCP stream", family: "IPv4", unit: "bit/s", shunt: 3e3, kernel: 2e3 };
        let text = text(&[compared], &["UDP round trips over IPv4: shunt: lost".to_owned()]);
        let (table, errors) = text.split_once("not measured: ").unwrap();
        assert!(table.ends_with("TCP stream  IPv4    bit/s  3 000   2 000   1.50\n"), "{table}");
        assert_eq!(errors, "UDP round trips over IPv4: shunt: lost\n");
    }

    #[test]
    fn a_measure_that_fails_says_in_which_of_the_two_places() {
        let node = Namespace::of_node();
        let ends = |port| Ends {
            client: &node,
            server: &node,
            listens: SocketAddr::from(([127, 0, 0, 1], port)),
            through: None,
        };
        let run: Measure = |ends, _| match ends.listens.port() {
            1 => Ok(1.0),
            _ => Err(io::ErrorKind::TimedOut.into()),
        };
        let places = |second| [("shunt", ends(1)), ("the kernel's bridge", ends(second))];
        assert_eq!(compare(places(1), run, || false).unwrap(), Some([1.0, 1.0]));
        assert_eq!(compare(places(1), run, || true).unwrap(), None);
        let error = compare(places(2), run, || false).unwrap_err().to_string();
        assert!(error.starts_with("the kernel's bridge: "), "{error}");
    }
}
