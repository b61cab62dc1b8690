//! `shunt-agent account`: what came in at each port is what was delivered, passed to the kernel or dropped.

mod balance;
mod text;

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use shunt_agent_api::{AccountReport, Reply, Request};

use self::balance::{Account, Key};
use self::text::accounts_text;
use super::exit::{INCONSISTENT, UNREACHABLE};
use super::printing::{code_with, print_json, print_text};
use super::query::Query;

/// How often a port is read whose packets do not add up: one that the kernel has counted may not have reached its program yet.
const READINGS: usize = 4;

/// Between two readings.
const PAUSE: Duration = Duration::from_millis(100);

/// Options of `account`.
#[derive(Args, Debug)]
pub(crate) struct AccountVerb {
    #[command(flatten)]
    query: Query,
    /// Account only for what comes within this time from now on, as 500ms or 10s [default: for all since each port was attached].
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    time: Option<Duration>,
}

impl AccountVerb {
    /// Prints the accounts: 0 every port's add up, 1 not answered, 3 one's do not.
    pub(super) fn ask(self) -> ExitCode {
        match self.accounts() {
            Ok(accounts) => {
                let is_balanced = accounts.iter().all(Account::is_balanced);
                let verdict = if is_balanced { ExitCode::SUCCESS } else { INCONSISTENT.into() };
                code_with(self.print(&accounts), verdict)
            }
            Err(code) => code,
        }
    }

    fn accounts(&self) -> Result<Vec<Account>, ExitCode> {
        let mut earlier = BTreeMap::new();
        if let Some(time) = self.time {
            earlier.extend(self.read()?.into_iter().map(|report| (Key::of(&report), report)));
            sleep(time);
        }
        let mut accounts: BTreeMap<Key, Account> = BTreeMap::new();
        for reading in 0..READINGS {
            if reading > 0 {
                sleep(PAUSE);
            }
            for report in self.read()? {
                let key = Key::of(&report);
                // What has come meanwhile has no earlier reading.
                if self.time.is_some() && !earlier.contains_key(&key) {
                    continue;
                }
                if !accounts.get(&key).is_some_and(Account::is_balanced) {
                    let account = Account::of(&report, earlier.get(&key));
                    accounts.insert(key, account);
                }
            }
            if accounts.values().all(Account::is_balanced) {
                break;
            }
        }
        Ok(accounts.into_values().collect())
    }

    fn read(&self) -> Result<Vec<AccountReport>, ExitCode> {
        match self.query.reply_to(Request::Account)? {
            Reply::Account(reports) => Ok(reports),
            _ => Err(UNREACHABLE.into()),
        }
    }

    fn print(&self, accounts: &Vec<Account>) -> io::Result<()> {
        if self.query.json {
            return print_json(accounts);
        }
        print_text(&accounts_text(accounts))
    }
}
