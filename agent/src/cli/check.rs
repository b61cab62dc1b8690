//! `shunt-agent check`.

use std::io::{self, Write as _};
use std::process::ExitCode;

use shunt_agent_api::{AuditReport, Reply, Request};

use super::exit::{INCONSISTENT, UNREACHABLE};
use super::query::Query;

impl Query {
    /// Prints what is not as it should be: 0 nothing, 1 not answered, 3 something.
    pub(super) fn check(self) -> ExitCode {
        match self.reply_to(Request::Audit) {
            Ok(Reply::Audited(report)) => {
                // The exit code says it to a reader that has heard enough.
                let _closed = self.print_audit(&report);
                if report.consistent { ExitCode::SUCCESS } else { INCONSISTENT.into() }
            }
            Ok(_) => UNREACHABLE.into(),
            Err(code) => code,
        }
    }

    fn print_audit(&self, report: &AuditReport) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, report)?;
            return writeln!(out);
        }
        for finding in &report.findings {
            writeln!(out, "{finding}")?;
        }
        for warning in &report.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        if report.consistent { writeln!(out, "everything is consistent") } else { Ok(()) }
    }
}
