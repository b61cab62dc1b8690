//! The documentation has the order of stages that the code has.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use shunt_dataplane::programs::order::Pipeline;
use shunt_dataplane::{DropReason, PassReason, Stage};

/// Set, it has the page written anew.
const RENEW: &str = "SHUNT_RENEW_DOCS";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/dataplane/stages.md")
}

/// A pipeline's row in the table of the page that it belongs to.
fn row(pipeline: Pipeline) -> String {
    let titles: Vec<_> = pipeline.stages().iter().map(|stage| stage.title()).collect();
    format!("| `{}` | {} | {} |", pipeline.program(), pipeline.hook(), titles.join(" → "))
}

/// Names in code style, one after the other.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn written() -> String {
    let mut text = String::from(
        "# Stages\n\n\
         Written by `SHUNT_RENEW_DOCS=1 cargo test --package shunt-dataplane --test stage_order` from the code. A stage is a file in\n\
         `ebpf/src/stages` (`translate`: `ebpf/src/nat`); which programs have it, and in which order, is in `ebpf/src/programs/order.rs`,\n\
         which `shunt-agent explain` reads as well. `drops` and `explain` show a stage by its second name.\n\n\
         | stage | in reports | passes | drops |\n|---|---|---|---|\n",
    );
    for stage in Stage::ALL {
        let passes = PassReason::ALL.iter().filter(|reason| reason.stage() == stage);
        let drops = DropReason::ALL.iter().filter(|reason| reason.stage() == stage);
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {} |",
            stage.title(),
            stage.name(),
            listed(passes.map(|reason| reason.name())),
            listed(drops.map(|reason| reason.name()))
        );
    }
    text
}

#[test]
fn every_pipeline_has_its_row_in_one_page_and_no_other_is_there() {
    let folder = page().parent().expect("a folder").to_owned();
    let pages: Vec<_> =
        std::fs::read_dir(&folder).expect("the pages").map(|page| page.unwrap().path()).collect();
    let text: String = pages.iter().map(|page| std::fs::read_to_string(page).unwrap()).collect();
    let is_programs =
        |line: &&str| Pipeline::ALL.iter().any(|p| line.starts_with(&format!("| `{}` |", p.program())));
    let mut found: Vec<_> = text.lines().filter(is_programs).filter(|line| line.contains('→')).collect();
    let mut wanted: Vec<_> = Pipeline::ALL.into_iter().map(row).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "{}", folder.display());
}

#[test]
fn the_page_of_stages_is_what_the_table_says() {
    let (page, wanted) = (page(), written());
    if std::env::var_os(RENEW).is_some() {
        std::fs::create_dir_all(page.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(&page, wanted).expect("the page can be written");
        return;
    }
    let found = std::fs::read_to_string(&page).unwrap_or_default();
    assert_eq!(found, wanted, "{RENEW}=1 writes {}", page.display());
}

#[test]
fn every_stage_is_in_a_pipeline_and_once_in_each() {
    for stage in Stage::ALL {
        let is_in = |pipeline: &Pipeline| pipeline.stages().contains(&stage);
        assert!(Pipeline::ALL.iter().any(is_in), "{stage:?}");
        for pipeline in Pipeline::ALL {
            let times = pipeline.stages().iter().filter(|known| **known == stage).count();
            assert!(times <= 1, "{stage:?} in {pipeline:?}");
        }
    }
}
