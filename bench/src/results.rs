//! `results.json`: what was measured, on what, with the raw rounds. `bench/README.md` documents the schema.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::comparison::Comparison;
use crate::header::Header;

/// The file's schema; raised when a field changes its meaning.
const SCHEMA: u32 = 2;

/// Everything of one run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    schema: u32,
    /// The machine and the versions.
    pub(crate) header: Header,
    /// What was compared.
    pub(crate) comparisons: Vec<Comparison>,
    /// Single figures, of shunt alone.
    pub(crate) facts: Vec<Fact>,
    /// What could not be measured.
    pub(crate) not_measured: Vec<NotMeasured>,
    /// What is not to be had on this machine, and is no failure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<NotMeasured>,
}

/// A figure that is compared with nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fact {
    /// Its name in the file.
    pub(crate) name: String,
    /// What a person reads.
    pub(crate) title: String,
    /// The figure.
    pub(crate) value: f64,
    /// Of the figure.
    pub(crate) unit: String,
    /// What it should be at most; none where nothing is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<f64>,
}

impl Fact {
    /// Whether it is more than it should be.
    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.value > limit)
    }
}

/// A part of the benchmark that did not come to its end; the others went on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NotMeasured {
    /// The part.
    pub(crate) name: String,
    /// Why.
    pub(crate) why: String,
}

impl Results {
    /// Nothing measured yet.
    pub(crate) fn new(header: Header) -> Self {
        Self {
            schema: SCHEMA,
            header,
            comparisons: Vec::new(),
            facts: Vec::new(),
            not_measured: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Reads a file of an earlier run.
    ///
    /// # Errors
    /// When it is none, or one of another schema.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                bail!("{} has schema {schema}; this program reads schema {SCHEMA}", path.display())
            }
            None => bail!("{} is no results file: it has no schema", path.display()),
        }
        serde_json::from_value(value).with_context(|| format!("{} is no results file", path.display()))
    }

    /// Writes `results.json` into `directory`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join("results.json");
        let text = serde_json::to_string_pretty(self).context("write results as JSON")?;
        std::fs::write(&path, text + "\n").with_context(|| format!("write {}", path.display()))
    }
}
