//! `shunt-agent check`.

use std::process::ExitCode;

use shunt_agent_api::{AuditReport, Reply, Request};

use super::escape::line;
use super::exit::{INCONSISTENT, UNREACHABLE};
use super::printing::{code_with, print_json, print_text};
use super::query::Query;

impl Query {
    /// Prints what is not as it should be: 0 nothing, 1 not answered, 3 something.
    pub(super) fn check(self) -> ExitCode {
        match self.reply_to(Request::Audit) {
            Ok(Reply::Audited(report)) => {
                let printed = if self.json { print_json(&report) } else { print_text(&audit_text(&report)) };
                code_with(printed, if report.consistent { ExitCode::SUCCESS } else { INCONSISTENT.into() })
            }
            Ok(_) => UNREACHABLE.into(),
            Err(code) => code,
        }
    }
}

fn audit_text(report: &AuditReport) -> String {
    let findings = report.findings.iter().map(|finding| line(finding));
    let warnings = report.warnings.iter().map(|warning| line(&format!("warning: {warning}")));
    let verdict = report.consistent.then(|| "everything is consistent\n".to_owned());
    findings.chain(warnings).chain(verdict).collect()
}
