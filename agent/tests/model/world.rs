//! A node with an agent, and what should be true of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use aya::maps::{HashMap, Map, MapData};
use shunt_agent::Agent;
use shunt_agent::config::{Config, Options};
use shunt_agent::failpoints::{self, Fault};
use shunt_agent_api::{AgentError, ErrorKind, Reply, Request};
use shunt_dataplane::abi::{Port, PortKey};
use shunt_lab::{Lab, Namespace};
use shunt_netlink::LinkEvent;

use crate::asked::Asked as _;
use crate::containers::{
    BRIDGE, PATIENCE, delete, host, interface, ip, is_there, is_up, leaves_down, name, port, remove,
};
use crate::steps::{KEYS, RICH, Step, Verb};

/// What the model knows of a container: attached, or not. After a death in the middle of a change it may be either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Attached,
    Absent,
    Either,
}

/// The outcome of a step, or what is wrong.
type Verdict = Result<(), String>;

pub(crate) struct World {
    agent: Option<Agent>,
    config: Config,
    model: BTreeMap<u8, Known>,
    /// Forgotten with a call refused, and no second has passed since: an agent that is killed now may leave a file to the next,
    /// which takes it for an intention, as long as its link is there.
    unsettled: BTreeSet<u8>,
    /// Where the containers' ends are.
    inside: Namespace,
    pub(crate) steps: u32,
    pub(crate) faults: u32,
    pub(crate) deaths: u32,
}

/// An agent with its directories in the lab. What no step needs is not verified at each of its starts.
pub(crate) fn config(lab: &Lab) -> Config {
    let options = Options {
        state_dir: Some(lab.root().join("state")),
        bpffs: Some(lab.bpf_directory("agent")),
        ..Options::default()
    };
    Config { late_programs: true, ..options.into() }
}

impl World {
    /// On a thread inside the node's namespace.
    pub(crate) fn new(lab: &Lab) -> Self {
        ip(&["link", "add", BRIDGE, "type", "bridge"]);
        ip(&["link", "set", BRIDGE, "up"]);
        let config = config(lab);
        let agent = Some(Agent::open(&config).unwrap());
        let model = (0..KEYS).map(|key| (key, Known::Absent)).collect();
        let inside = lab.namespace("inside").unwrap();
        Self { agent, inside, config, model, unsettled: BTreeSet::new(), steps: 0, faults: 0, deaths: 0 }
    }

    /// Takes a step, and looks whether the agent and the model agree.
    pub(crate) fn take(&mut self, step: &Step) -> Verdict {
        // What the node does for itself is done before.
        let port = match step.verb {
            Verb::Add(key) => Some(port(key, &self.inside)),
            Verb::Check(key) if is_there(key) => Some(port(key, &self.inside)),
            _ => None,
        };
        let agent = self.agent.as_mut().ok_or("there is no agent")?;
        if let Some(plan) = step.fault {
            failpoints::plan(plan);
        }
        let mut outcome = Ok(());
        match &step.verb {
            Verb::Add(key) => {
                outcome = agent.attach_as(port.clone().ok_or("no port")?, leaves_down(*key));
                assert!(outcome.is_err() || is_up(*key), "{step:?}");
            }
            Verb::Delete(key) => {
                agent.detach(&name(*key), is_there(*key).then(|| interface(&host(*key))));
            }
            Verb::Check(_) => outcome = port.as_ref().map_or(Ok(()), |port| agent.check(port)),
            Verb::Collect(valid) => {
                agent.collect("net", &valid.iter().map(|key| name(*key)).collect::<Vec<_>>());
            }
            Verb::Wait => {
                failpoints::advance(Duration::from_secs(2));
                agent.tick();
            }
            Verb::Restart => {
                self.agent = None;
                self.agent = Agent::open(&self.config).ok();
            }
        }
        let failed = failpoints::recall();
        let died = failed && step.fault.is_some_and(|plan| plan.fault == Fault::Death);
        if let Err(error) = &outcome
            && !failed
            && !matches!((&step.verb, error), (Verb::Check(_), AgentError { kind: ErrorKind::Altered, .. }))
        {
            return Err(format!("{step:?} without a fault: {error}"));
        }
        self.expect(&step.verb, outcome.is_ok(), died);
        self.unsettle(&step.verb, failed);
        if let Verb::Delete(key) = step.verb {
            delete(key, died);
        }
        self.steps += 1;
        self.faults += u32::from(failed);
        self.deaths += u32::from(died);
        if died || self.agent.is_none() {
            self.restart()?;
        }
        let agent = self.agent.as_mut().ok_or("there is no agent")?;
        agent.follow(&[LinkEvent::Missed]);
        self.compare(&format!("{step:?}, {}", if failed { "with the fault" } else { "undisturbed" }))
    }

    /// What should be true now.
    fn expect(&mut self, verb: &Verb, is_done: bool, died: bool) {
        match verb {
            // One that is attached stays so, whatever becomes of a repeated request.
            Verb::Add(key) => {
                let known = self.model.get_mut(key).unwrap();
                *known = match (*known, is_done, died) {
                    (Known::Attached, ..) | (_, true, false) => Known::Attached,
                    (_, _, true) => Known::Either,
                    (_, false, false) => Known::Absent,
                };
            }
            // The link goes with it, so that even an agent that has died is told.
            Verb::Delete(key) => _ = self.model.insert(*key, Known::Absent),
            Verb::Collect(valid) => {
                for (_, known) in self.model.iter_mut().filter(|(key, _)| !valid.contains(key)) {
                    *known = match (died, *known) {
                        (true, Known::Attached | Known::Either) => Known::Either,
                        _ => Known::Absent,
                    };
                }
            }
            Verb::Check(_) | Verb::Wait | Verb::Restart => {}
        }
    }

    /// What a killed agent may not have seen to.
    fn unsettle(&mut self, verb: &Verb, failed: bool) {
        match verb {
            Verb::Collect(valid) if failed => {
                self.unsettled.extend((0..KEYS).filter(|key| !valid.contains(key)));
            }
            Verb::Add(key) if self.model[key] == Known::Attached => _ = self.unsettled.remove(key),
            Verb::Delete(key) => _ = self.unsettled.remove(key),
            Verb::Wait if !failed => self.unsettled.clear(),
            Verb::Restart => self.forget_unsettled(),
            Verb::Add(_) | Verb::Collect(_) | Verb::Check(_) | Verb::Wait => {}
        }
    }

    fn forget_unsettled(&mut self) {
        for key in std::mem::take(&mut self.unsettled) {
            self.model.insert(key, Known::Either);
        }
    }

    fn restart(&mut self) -> Verdict {
        self.forget_unsettled();
        self.agent = None;
        self.agent = Some(Agent::open(&self.config).map_err(|error| format!("no start: {error}"))?);
        Ok(())
    }

    /// The agent's list is the model's; of what may be either, it is the agent that knows.
    fn compare(&mut self, when: &str) -> Verdict {
        let agent = self.agent.as_mut().ok_or("there is no agent")?;
        let ports = match agent.answer(Request::Ports) {
            Reply::Ports(ports) => ports,
            other => return Err(format!("{when}: {other:?}")),
        };
        for (key, known) in &mut self.model {
            let is_attached = ports.iter().any(|port| port.container == name(*key).container);
            match known {
                Known::Either => *known = if is_attached { Known::Attached } else { Known::Absent },
                Known::Attached if !is_attached => return Err(format!("{when}: {key} is lost")),
                Known::Absent if is_attached => return Err(format!("{when}: {key} is still there")),
                Known::Attached | Known::Absent => {}
            }
        }
        Ok(())
    }

    /// Whatever has happened, an undisturbed start and a second are enough for everything to be as it should be.
    pub(crate) fn settle(&mut self) -> Verdict {
        self.restart()?;
        self.settle_started()
    }

    /// The same where the last agent died, and another one has been started.
    pub(crate) fn settle_started(&mut self) -> Verdict {
        let agent = self.agent.as_mut().ok_or("there is no agent")?;
        failpoints::advance(Duration::from_secs(2));
        agent.tick();
        match agent.answer(Request::Audit) {
            Reply::Audited(audit) if audit.consistent => {}
            other => return Err(format!("at the end: {other:?}")),
        }
        self.compare("at the end")?;
        self.assert_left(&self.attached())
    }

    fn attached(&self) -> Vec<u8> {
        let attached = self.model.iter().filter(|(_, known)| **known == Known::Attached);
        attached.map(|(key, _)| *key).collect()
    }

    /// When all are gone, nothing is left.
    pub(crate) fn clear(&mut self) -> Verdict {
        let agent = self.agent.as_mut().ok_or("there is no agent")?;
        agent.collect("net", &[]);
        self.assert_left(&[])?;
        for (key, known) in &mut self.model {
            *known = Known::Absent;
            remove(*key);
        }
        self.unsettled.clear();
        Ok(())
    }

    /// Files, pins and entries are those of these containers and their bridge, once pins of deleted links are gone.
    fn assert_left(&self, attached: &[u8]) -> Verdict {
        let begun = Instant::now();
        loop {
            let verdict = self.compare_left(attached);
            if verdict.is_ok() || begun.elapsed() > PATIENCE {
                return verdict;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn compare_left(&self, attached: &[u8]) -> Verdict {
        let entries = |path: PathBuf| fs::read_dir(path).map(Iterator::count).unwrap_or_default();
        let files = entries(self.config.state_dir.join("attachments"));
        let pins = self.config.bpffs.join("v2");
        let links = entries(pins.join("links"));
        let ports = MapData::from_pin(pins.join("maps/PORTS")).map_err(|error| error.to_string())?;
        let ports: HashMap<_, PortKey, Port> =
            HashMap::try_from(Map::from_map_data(ports).map_err(|error| error.to_string())?)
                .map_err(|error| error.to_string())?;
        let strangers = |port: &Port| port.flags & shunt_dataplane::abi::PORT_FOREIGN != 0;
        let ports = ports.iter().filter_map(Result::ok).filter(|(_, port)| !strangers(port)).count();
        let found = (files, links, ports);
        let bridges = usize::from(!attached.is_empty());
        let programs: usize = attached.iter().map(|key| if *key == RICH { 6 } else { 2 }).sum();
        let expected = (attached.len(), programs + bridges, attached.len() + bridges);
        if found == expected {
            Ok(())
        } else {
            let names = fs::read_dir(pins.join("links")).into_iter().flatten().flatten();
            let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
            Err(format!("files, links and ports are {found:?}, not {expected:?}: {names:?}"))
        }
    }
}
