//! The chart as Helm renders it.

use std::path::PathBuf;

use shunt_deploy::{Chart, MANIFESTS};
use shunt_lab::{Lacking, skip};

use crate::kept::{checkout, text};

/// None, having said so, where there is no Helm.
pub(crate) fn chart() -> Option<Chart> {
    let Some(helm) = std::env::var_os("SHUNT_HELM").map(PathBuf::from) else {
        skip(Lacking::Package("helm (cargo xtask setup fetches it, SHUNT_HELM names it)"));
        return None;
    };
    Some(Chart { helm, checkout: checkout().to_path_buf() })
}

#[test]
fn the_manifests_are_what_the_chart_renders() {
    let Some(chart) = chart() else { return };
    for (n, manifest) in MANIFESTS.iter().enumerate() {
        let rendered = chart.manifest(manifest).unwrap();
        assert!(text(n) == rendered, "{} is old: run `cargo xtask manifests`", manifest.path);
    }
}

#[test]
fn helm_finds_nothing_wrong_and_the_versions_are_the_workspaces() {
    let Some(chart) = chart() else { return };
    let said = chart.lint().unwrap();
    assert!(said.contains("0 chart(s) failed"), "{said}");
    let rendered = chart.render(&[]).unwrap();
    let image = format!("image: {}:{}\n", shunt_deploy::NAME, env!("CARGO_PKG_VERSION"));
    assert_eq!(rendered.matches(&image).count(), 3, "{rendered}");
    let file = std::fs::read_to_string(checkout().join("deploy/helm/shunt/Chart.yaml")).unwrap();
    for key in ["version", "appVersion"] {
        assert!(file.contains(&format!("\n{key}: {}\n", env!("CARGO_PKG_VERSION"))), "{key}");
    }
}
