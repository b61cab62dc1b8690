//! What a start of this agent would do with what an agent of another version left: looked at, not touched.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use shunt_dataplane::abi::ABI_VERSION;

use crate::config::Config;
use crate::datapath::layout::{self, MAPS};
use crate::datapath::pins::Pins;
use crate::datapath::upgrade::versions;
use crate::state::{Record, RecordError};

/// What `shunt-agent upgrade --check` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UpgradeReport {
    /// This agent's version.
    pub version: &'static str,
    /// The version of the ABI that it speaks with its maps.
    pub abi: u32,
    /// Whether it can take over.
    pub possible: bool,
    /// Why not.
    pub reasons: Vec<String>,
    /// Versions of the ABI of older agents, whose programs would be replaced one by one.
    pub older: Vec<u32>,
    /// Attachments that would be taken over.
    pub attachments: usize,
    /// Maps that would be taken over with what is in them.
    pub kept: Vec<&'static str>,
    /// Maps that would be written anew, while the older agent's go on serving.
    pub rebuilt: Vec<&'static str>,
    /// State files that would be set aside, each with the reason.
    pub aside: Vec<String>,
    /// Why the agent that ran last could not take over again, once this one has started; empty where it could.
    pub lasting: Vec<String>,
}

/// Looks at pins and state files. Needs nothing of a running agent, and disturbs none.
pub fn check(config: &Config) -> UpgradeReport {
    let mut report = UpgradeReport {
        version: env!("CARGO_PKG_VERSION"),
        abi: ABI_VERSION,
        possible: false,
        reasons: Vec::new(),
        older: Vec::new(),
        attachments: 0,
        kept: Vec::new(),
        rebuilt: Vec::new(),
        aside: Vec::new(),
        lasting: Vec::new(),
    };
    report.look_at_pins(&config.bpffs);
    report.look_at_state(&config.state_dir.join("attachments"));
    report.possible = report.reasons.is_empty();
    report
}

impl UpgradeReport {
    fn look_at_pins(&mut self, bpffs: &Path) {
        let ours = Pins::at(bpffs.join(format!("v{ABI_VERSION}")));
        if let Err(error) = layout::check(&ours) {
            self.reasons.push(error.to_string());
        }
        let older = match versions::older(bpffs) {
            Ok(older) => older,
            Err(error) => return self.reasons.push(error.to_string()),
        };
        self.kept = MAPS.iter().map(|(name, _)| *name).filter(|name| ours.map(name).exists()).collect();
        for older in &older {
            self.older.push(older.abi);
            self.lasting.push(older.why_lasting());
            self.kept.extend(older.has_earlier_flows().then_some("FLOWS"));
            match older.carried() {
                Ok(carried) => self.kept.extend(carried),
                Err(error) => self.reasons.push(error.to_string()),
            }
        }
        if !older.is_empty() {
            let names = MAPS.iter().map(|(name, _)| *name);
            self.rebuilt = names.filter(|name| !self.kept.contains(name)).collect();
        }
    }

    fn look_at_state(&mut self, attachments: &Path) {
        let entries = fs::read_dir(attachments).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.sort();
        for path in files {
            match Record::open(&path) {
                Ok(_) => self.attachments += 1,
                Err(error @ (RecordError::Future(_) | RecordError::Io(_))) => {
                    self.reasons.push(format!(
                        "{}: {error}: its port would be left as it is, and not be served",
                        path.display()
                    ));
                }
                Err(error) => self.aside.push(format!("{}: {error}", path.display())),
            }
        }
    }
}
