#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::*;

fn written() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path()).unwrap();
    directory
}

/// Every command by the name of its page.
fn names(command: &Command, name: &str) -> Vec<String> {
    let below =
        command.get_subcommands().flat_map(|verb| names(verb, &format!("{name}-{}", verb.get_name())));
    std::iter::once(name.to_owned()).chain(below).collect()
}

#[test]
fn every_command_has_a_page_with_all_of_its_flags() {
    let directory = written();
    let agent = Cli::command().disable_help_subcommand(true);
    let names = names(&agent, "shunt-agent");
    assert!(names.contains(&"shunt-agent-config-check".to_owned()), "{names:?}");
    for name in names {
        let path = directory.path().join(PAGES).join(format!("{name}.8"));
        let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(page.contains(&format!(".TH {name} 8")), "{name}: {page}");
        let words = name.strip_prefix("shunt-agent").unwrap().replace("config-", "config ");
        let mut command = &agent;
        for verb in words.trim_start_matches('-').split(' ').filter(|verb| !verb.is_empty()) {
            command = command.find_subcommand(verb).unwrap();
        }
        let flags = command.get_arguments().filter(|flag| !flag.is_hide_set());
        for flag in flags.filter_map(|flag| flag.get_long()) {
            assert!(page.contains(&format!("\\-\\-{}", flag.replace('-', "\\-"))), "{name}: --{flag}");
        }
    }
}

#[test]
fn a_page_names_those_of_its_verbs_and_none_says_when_it_was_written() {
    let directory = written();
    let page = fs::read_to_string(directory.path().join("man8/shunt-agent.8")).unwrap();
    assert!(page.contains("shunt\\-agent\\-status(8)"), "{page}");
    let heading = page.lines().find(|line| line.starts_with(".TH")).unwrap();
    assert!(heading.starts_with(".TH shunt-agent 8  "), "{heading}");
    let again = written();
    let again = fs::read_to_string(again.path().join("man8/shunt-agent.8")).unwrap();
    assert_eq!(page, again);
}

#[test]
fn the_plugins_page_names_every_name_that_it_is_called_under() {
    let directory = written();
    let page = fs::read_to_string(directory.path().join("man8/shunt.8")).unwrap();
    for name in PERSONALITIES {
        assert!(page.contains(&name.replace('-', "\\-")), "{name}");
    }
}

#[test]
fn completions_know_the_verbs() {
    let directory = written();
    for (_, file) in COMPLETIONS {
        let text = fs::read_to_string(directory.path().join(file)).unwrap();
        for verb in Cli::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            assert!(text.contains(verb.get_name()), "{file}: {}", verb.get_name());
        }
    }
}
