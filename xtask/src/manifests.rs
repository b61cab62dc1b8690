//! `cargo xtask manifests`: has `shunt-deploy` render the plain manifests from the chart. A test shows that they are current.

use anyhow::Result;

use crate::{process, setup, workspace};

pub(crate) fn run() -> Result<()> {
    let helm = setup::for_chart()?;
    let mut cargo = workspace::cargo();
    process::run(
        cargo.args(["run", "--quiet", "--package", "shunt-deploy", "--", "manifests", "--helm"]).arg(helm),
    )
}
