//! Pages for `man`, and shells' completions, written from the agent's command line: neither can differ from what it takes.
//!
//! Out: `man8/` with a page of the agent, one of each verb (`shunt-agent-VERB.8`) and those of the plugin; and a completion for each shell.
//! A crate of its own: neither the agent nor the plugin carries what writes them.
#![forbid(unsafe_code)]

use std::path::Path;
use std::{fs, io};

use clap::{Command, CommandFactory as _};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;
use shunt_agent::cli::Cli;
use shunt_agent::install::PERSONALITIES;

/// Programs of an administrator (man-pages(7)).
const SECTION: &str = "8";

/// The directory of the pages in what is written.
pub const PAGES: &str = "man8";

/// The page of the plugin, which has no command line: its runtime speaks to it.
const PLUGIN: &str = include_str!("shunt.8");

/// The shells that have completions, and the file of each in what is written.
pub const COMPLETIONS: [(Shell, &str); 3] =
    [(Shell::Bash, "shunt-agent.bash"), (Shell::Zsh, "_shunt-agent"), (Shell::Fish, "shunt-agent.fish")];

/// Writes the pages and the completions into a directory, which is made.
///
/// # Errors
/// The file system's.
pub fn write(directory: &Path) -> io::Result<()> {
    let pages = directory.join(PAGES);
    fs::create_dir_all(&pages)?;
    fs::write(pages.join("shunt.8"), PLUGIN)?;
    for name in PERSONALITIES {
        fs::write(pages.join(format!("{name}.{SECTION}")), ".so man8/shunt.8\n")?;
    }
    let mut agent = Cli::command().disable_help_subcommand(true);
    for (shell, _) in COMPLETIONS {
        generate_to(shell, &mut agent, "shunt-agent", directory)?;
    }
    // Gives each verb the name of its page.
    agent.build();
    write_page(&agent, &pages)
}

/// Writes the page of a command, and those of its verbs.
fn write_page(command: &Command, pages: &Path) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_page(verb, pages)?;
    }
    let page = Man::new(command.clone()).section(SECTION).manual("shunt");
    page.source(concat!("shunt ", env!("CARGO_PKG_VERSION"))).generate_to(pages).map(drop)
}

#[cfg(test)]
mod tests;
