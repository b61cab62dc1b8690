//! The alert rules and the dashboard's expressions, run by Prometheus' own unit tests (`promtool test rules`).
//!
//! Each runs with the labels of a plain scrape, of a PodMonitor that renames the agent's labels, of the chart's PodMonitor, and of an
//! `instance` that was relabelled. `cargo xtask setup` fetches promtool, and `SHUNT_PROMTOOL` names it. No network is used.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "alerts/cases.rs"]
mod cases;
#[path = "alerts/dashboard.rs"]
mod dashboard;
#[path = "alerts/firing.rs"]
mod firing;
#[path = "alerts/promtool.rs"]
mod promtool;
#[path = "alerts/scrape.rs"]
mod scrape;
