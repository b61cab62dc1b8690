//! What an ADD and a DEL cost, exec included: our plugin with the IPAM in it against the reference `bridge` and `host-local`.

use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use shunt_lab::{Interrupt, Lab, Network, Node, Sandbox};

use crate::ratio::{Ratio, median};
use crate::screen::Screen;

/// Times of both sides, pair by pair, in milliseconds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AddDel {
    /// Ours.
    pub(crate) shunt: Times,
    /// The reference plugins'.
    pub(crate) reference: Times,
}

/// One side's times in milliseconds.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Times {
    /// Of ADD.
    pub(crate) add_ms: Vec<f64>,
    /// Of DEL.
    pub(crate) del_ms: Vec<f64>,
}

impl Times {
    /// The medians of ADD and DEL.
    pub(crate) fn medians(&self) -> [f64; 2] {
        [median(&self.add_ms), median(&self.del_ms)]
    }
}

impl AddDel {
    /// Adds and deletes one container on each side, `pairs` times, the side that begins alternating. A container stays on
    /// each bridge, so that neither side makes bridges.
    pub(crate) fn measure(
        screen: &mut Screen,
        interrupt: &Interrupt,
        lab: &Lab,
        pairs: usize,
    ) -> Result<Self> {
        let ours = Side::prepare(lab, Node::start(lab, "adds")?, Node::network)?;
        let theirs = Side::prepare(lab, Node::bare(lab, "adds-reference")?, Node::reference_network)?;
        let mut times = Self::default();
        for pair in 0..pairs {
            interrupt.check()?;
            screen.progress(&format!("ADD and DEL: pair {} of {pairs}", pair + 1));
            if pair % 2 == 0 {
                ours.once(lab, pair, &mut times.shunt)?;
                theirs.once(lab, pair, &mut times.reference)?;
            } else {
                theirs.once(lab, pair, &mut times.reference)?;
                ours.once(lab, pair, &mut times.shunt)?;
            }
        }
        Ok(times)
    }

    /// Ours to theirs, of ADD and DEL.
    pub(crate) fn ratios(&self) -> Result<[Ratio; 2]> {
        let add = Ratio::of(&self.shunt.add_ms, &self.reference.add_ms);
        let del = Ratio::of(&self.shunt.del_ms, &self.reference.del_ms);
        Ok([add, del].map(|ratio| ratio.context("no pairs were measured")))
            .and_then(|[add, del]| Ok([add?, del?]))
    }
}

struct Side {
    network: Network,
    _resident: Sandbox,
    node: Node,
}

impl Side {
    fn prepare(lab: &Lab, node: Node, network: fn(&Node, &str, &str, &[&str]) -> Network) -> Result<Self> {
        let network = network(&node, "adds", "cni0", &["10.78.0.0/16"]);
        let resident = Sandbox::start(lab, &node, &network, &format!("{}-resident", node.name()))?;
        Ok(Self { network, _resident: resident, node })
    }

    fn once(&self, lab: &Lab, pair: usize, times: &mut Times) -> Result<()> {
        let sandbox =
            Sandbox::start(lab, &self.node, &self.network, &format!("{}-{pair}", self.node.name()))?;
        let deleted = sandbox.delete(&self.node, &self.network)?;
        times.add_ms.push(milliseconds(sandbox.attachment().took));
        times.del_ms.push(milliseconds(deleted));
        Ok(())
    }
}

/// A duration as the number that is shown.
pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
