//! The command line: what `shunt-agent` is asked, and what its pages in `man` and its completions are written from.

mod account;
mod adopt;
mod answer_text;
mod attachments;
mod bugreport;
mod capacity;
mod capture;
mod check;
mod cni_query;
mod config;
mod config_text;
mod drops;
mod escape;
mod events;
pub mod exit;
mod explain;
mod flows;
mod idle;
mod install_plugin;
mod keyless;
mod mount_bpffs;
mod networks;
mod node_test;
mod on_host;
mod printing;
mod query;
mod run;
mod status;
mod status_text;
mod table;
mod top;
mod uninstall;
mod upgrade;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use shunt_agent_api::Request;

use self::query::Query;

/// The shunt node agent.
#[derive(Debug, Parser)]
#[command(name = "shunt-agent", version, about)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the agent for the network namespace that it is started in.
    Run(run::Run),
    /// Is the agent well, and which programs are attached?
    Status(status::Status),
    /// Attachments with what their containers sent and were sent.
    Ports(Query),
    /// Networks that the CNI service knows, registered or attached to; needs `[api]` in the agent's file.
    Networks(networks::Networks),
    /// Attachments whose results are cached, whoever made them; needs `[api]` in the agent's file.
    Attachments(attachments::Attachments),
    /// Which station is behind which port?
    Fdb(Query),
    /// What of the uplinks' bandwidth can be handed out, what has been, and what is left?
    Capacity(capacity::Capacity),
    /// Translated connections, and what they have come to.
    Flows(flows::Flows),
    /// Which ports of the node lead to which containers?
    Mappings(Query),
    /// What was dropped, where and why, or with --watch what is?
    Drops(drops::Drops),
    /// Write the packets that the fast path delivers or drops, which no tcpdump on the bridge sees.
    Capture(capture::Capture),
    /// What every container sends and is sent now, on a screen that follows it.
    Top(top::Top),
    /// Does what came in at each port add up to what was delivered, passed to the kernel and dropped?
    Account(account::AccountVerb),
    /// What would become of a packet, stage by stage?
    Explain(explain::Explain),
    /// Do containers of this node reach what they should, and by which path? Leaves nothing.
    Test(node_test::NodeTest),
    /// Is everything as it should be, in the kernel and on disk?
    Check(Query),
    /// Is a configuration file good, and what is in force?
    Config(config::Config),
    /// One archive of all that helps to find out what is wrong, without secrets; needs no agent.
    Bugreport(bugreport::Bugreport),
    /// Can this agent take over from the one that runs now, or ran last?
    Upgrade(upgrade::Upgrade),
    /// Take running containers of a bridge that another plugin serves onto the fast path, or give them back.
    Adopt(adopt::Adopt),
    /// Take everything of shunt's off this node; containers go on by the kernel's bridge.
    Uninstall(uninstall::Uninstall),
    /// Put the plugin where a container runtime looks for it.
    InstallPlugin(install_plugin::InstallPlugin),
    /// Make sure that a BPF file system is mounted where the agent pins maps and links.
    MountBpffs(mount_bpffs::MountBpffs),
    /// Do nothing until SIGTERM: what a pod runs whose work is done.
    Idle,
    /// What happens from now on, one JSON object a line.
    Events(Query),
}

impl Cli {
    /// Does what is asked.
    pub fn run(self) -> ExitCode {
        match self.verb {
            Verb::Run(run) => run.run(),
            Verb::Status(status) => status.ask(),
            Verb::Ports(query) => query.ask(Request::Ports),
            Verb::Networks(networks) => networks.ask(),
            Verb::Attachments(attachments) => attachments.ask(),
            Verb::Fdb(query) => query.ask(Request::Fdb),
            Verb::Capacity(capacity) => capacity.ask(),
            Verb::Flows(flows) => flows.ask(),
            Verb::Mappings(query) => query.ask(Request::Mappings),
            Verb::Drops(drops) => drops.ask(),
            Verb::Capture(capture) => capture.run(),
            Verb::Top(top) => top.run(),
            Verb::Account(account) => account.ask(),
            Verb::Explain(explain) => explain.ask(),
            Verb::Test(test) => test.run(),
            Verb::Check(query) => query.check(),
            Verb::Config(config) => config.run(),
            Verb::Bugreport(bugreport) => bugreport.run(),
            Verb::Upgrade(upgrade) => upgrade.run(),
            Verb::Adopt(adopt) => adopt.run(),
            Verb::Uninstall(uninstall) => uninstall.run(),
            Verb::InstallPlugin(install) => install.run(),
            Verb::MountBpffs(mount) => mount.run(),
            Verb::Idle => idle::run(),
            Verb::Events(query) => query.listen(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _};

    use super::*;

    /// The commands that say nothing in JSON, and why.
    const WITHOUT: [(&str, &str); 2] = [
        ("run", "it goes on until it is ended, and its log says what it does: --log-format json"),
        ("idle", "it says nothing"),
    ];

    /// Every command that does something, with its words.
    fn commands(command: &Command, words: &str) -> Vec<(String, bool)> {
        let is_there = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
        let below = command.get_subcommands().flat_map(|verb| {
            let words = format!("{words} {}", verb.get_name());
            commands(verb, words.trim_start())
        });
        let below: Vec<_> = below.collect();
        if below.is_empty() { vec![(words.to_owned(), is_there)] } else { below }
    }

    #[test]
    fn every_command_answers_in_json_but_those_that_have_a_reason() {
        let commands = commands(&Cli::command(), "");
        assert!(commands.contains(&("config check".to_owned(), true)), "{commands:?}");
        let without: Vec<_> =
            commands.iter().filter(|(_, is_there)| !is_there).map(|(words, _)| words).collect();
        assert_eq!(without, WITHOUT.map(|(words, _)| words), "without --json");
    }
}
