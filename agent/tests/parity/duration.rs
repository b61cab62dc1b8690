//! Nanoseconds of the hot path, beside the instructions that the stepper counts: what a look-up or a helper takes is in no count
//! of instructions.
//!
//! A packet's time is the least of many short runs: whatever else the machine does only adds to some of them. It is compared with that of
//! a packet of which the same program reads no more than the Ethernet header, on the same processor, so that neither its
//! speed nor a change of it matters; and with a bound that only says that it is no other order of magnitude.

use std::time::Duration;

use shunt_lab::{measured, patience};

use crate::golden::case::{Case, all};
use crate::kernel::{Kernel, boot_time};
use crate::world_namespace::in_world_namespace;
use crate::{TC_ACT_REDIRECT, TC_ACT_SHOT};

/// Known unicast between unrestricted ports: four look-ups, 181 instructions.
const HOT: &str = "alpha_to_beta_tcp_v4";

/// Dropped by its source address: a hundred instructions, and a look-up in a hash map that counts it.
const LEAST: &str = "alpha_source_zero";

/// How many times longer the hot path may take. It takes 1.1 to 1.4 times as long.
const RATIO: f64 = 2.5;

/// What it may take at most; it takes some hundred.
const MOST: Duration = Duration::from_nanos(1500);

/// Runs, of as many packets each: less than a time slice together.
const RUNS: usize = 200;
const PACKETS: u32 = 500;

#[allow(clippy::print_stdout, reason = "a figure")]
#[test]
fn a_packet_on_the_hot_path_takes_no_more_than_its_budget_of_nanoseconds() {
    in_world_namespace(|| {
        let mut kernel = Kernel::shipped();
        kernel.fill(boot_time());
        let cases = all();
        let mut least = |name: &str, action: u32| {
            let case = cases.iter().find(|case| case.name == name).unwrap();
            let Case { entry, here, packet, .. } = case;
            let runs = (0..RUNS).map(|_| kernel.time(entry.program(), *here, packet, PACKETS));
            let times = runs.map(|(answer, time)| (answer == action).then_some(time));
            times.min().unwrap().unwrap_or_else(|| panic!("{name} is not what it was"))
        };
        let mut hot = Duration::MAX;
        let ratio = measured(&(0.0..RATIO), || {
            hot = hot.min(least(HOT, TC_ACT_REDIRECT));
            // A clock of whole nanoseconds may say none.
            hot.as_secs_f64() / least(LEAST, TC_ACT_SHOT).max(Duration::from_nanos(1)).as_secs_f64()
        });
        println!("{hot:?} a packet, {ratio:.2} times the least");
        assert!(ratio < RATIO, "{ratio:.2} times as long as {LEAST}");
        // An emulated processor is another order of magnitude.
        assert!(hot < MOST || patience(MOST) > MOST, "{hot:?} a packet");
    });
}
