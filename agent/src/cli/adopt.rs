//! `shunt-agent adopt`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use shunt_agent::adoption::{AdoptError, Adopted, adopt, give_back};
use shunt_agent_api::{Client, socket_path};

use super::escape::line;
use super::exit::{INCONSISTENT, UNREACHABLE};
use super::printing::{self, code_with, print_json, print_text};
use super::query::complain;

/// Run it in the node's network namespace. Containers keep their interfaces, addresses and connections.
#[derive(Args, Debug)]
pub(crate) struct Adopt {
    /// Only the containers of this bridge.
    #[arg(long, value_name = "NAME")]
    bridge: Option<String>,
    /// Give the containers that shunt did not make back to the kernel's bridge.
    #[arg(long)]
    back: bool,
    /// Where the runtime's libcni remembers its ADDs.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/cni")]
    cache_dir: PathBuf,
    /// The agent's socket [default: $SHUNT_AGENT_SOCKET, else /run/shunt/agent.sock].
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Say in JSON what was done.
    #[arg(long)]
    json: bool,
}

impl Adopt {
    /// 0 all, 1 not answered, 3 some were left.
    pub(crate) fn run(self) -> ExitCode {
        let bridge = self.bridge.as_deref();
        let done = Client::connect(&socket_path(self.socket.as_deref())).map_err(AdoptError::from).and_then(
            |mut client| match self.back {
                true => give_back(&mut client, bridge),
                false => adopt(&mut client, &self.cache_dir, bridge),
            },
        );
        match done {
            Ok(adopted) => self.say(&adopted),
            Err(AdoptError::Agent(error)) => complain(&error),
            Err(error) => {
                printing::complain(error);
                UNREACHABLE.into()
            }
        }
    }

    fn say(&self, adopted: &Adopted) -> ExitCode {
        let printed = match self.json {
            true => print_json(&report(adopted, self.back)),
            false => print_text(&text(adopted, self.back)),
        };
        code_with(printed, if adopted.left.is_empty() { ExitCode::SUCCESS } else { INCONSISTENT.into() })
    }
}

/// The contract of `--json`.
fn report(Adopted { done, left }: &Adopted, back: bool) -> Value {
    let left: Vec<_> = left.iter().map(|(key, reason)| json!({ "key": key, "reason": reason })).collect();
    json!({ "back": back, "done": done, "left": left })
}

fn text(adopted: &Adopted, back: bool) -> String {
    let what = if back { "given back" } else { "on the fast path" };
    let done = adopted.done.iter().map(|key| line(&format!("{key}: {what}")));
    let left = adopted.left.iter().map(|(key, why)| line(&format!("{key}: left as it is: {why}")));
    let lines: String = done.chain(left).collect();
    if lines.is_empty() { line("no container") } else { lines }
}

#[cfg(test)]
mod tests {
    use shunt_agent_api::AttachmentKey;

    use super::*;

    #[test]
    fn json_says_of_each_container_what_became_of_it_and_why() {
        let key = |container: &str| AttachmentKey {
            network: "pods".to_owned(),
            container: container.to_owned(),
            ifname: "eth0".to_owned(),
        };
        let adopted =
            Adopted { done: vec![key("one")], left: vec![(key("two"), "it is isolated".to_owned())] };
        let wanted = json!({
            "back": false,
            "done": [{ "network": "pods", "container": "one", "ifname": "eth0" }],
            "left": [{ "key": { "network": "pods", "container": "two", "ifname": "eth0" }, "reason": "it is isolated" }],
        });
        assert_eq!(report(&adopted, false), wanted);
        let said = "pods/one/eth0: on the fast path\npods/two/eth0: left as it is: it is isolated\n";
        assert_eq!(text(&adopted, false), said);
        assert_eq!(text(&Adopted::default(), true), "no container\n");
    }
}
