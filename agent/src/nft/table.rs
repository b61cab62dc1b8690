//! The one table of ours.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use nix::libc;
use shunt_netlink::netfilter::BaseChain;

use super::attribute::Attributes;
use super::batch::{Batch, Committed, NftError};
use super::class_map;
use super::expression::Expressions;
use super::host_port::HostPortRule;
use super::masquerade::MasqueradeRule;
use super::names::TABLE;
use super::opened::{self, Opened, OpenedPort};
use super::unmasqueraded::{self, UnmasqueradedRule};

const TABLE_NAME: u16 = 1;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const RULE_USERDATA: u16 = 7;
/// In user data, a comment as `nft` shows it: type 0, length, text with a zero behind it.
const COMMENT: u8 = 0;

/// All that the table holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whose packets get the node's address.
    pub masquerade: BTreeSet<MasqueradeRule>,
    /// Whose packets keep their address, and where they go: heeded before `masquerade`.
    pub unmasqueraded: BTreeSet<UnmasqueradedRule>,
    /// Where the node's own sockets are led.
    pub host_ports: BTreeSet<HostPortRule>,
    /// Which host ports the kernel opens.
    pub opened: BTreeSet<OpenedPort>,
    /// Whether the kernel still carries connections to host ports that it has opened, which are translated as long as there is a chain of translations.
    pub carries: bool,
    /// The class in the queues of uplinks, with its major number, of what has one of these sources and is routed.
    pub classes: BTreeMap<IpAddr, u32>,
}

impl Rules {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.translates_nothing() && self.classes.is_empty()
    }

    /// Whether there is none but for classes.
    #[must_use]
    pub fn translates_nothing(&self) -> bool {
        let rules = self.masquerade.len() + self.unmasqueraded.len() + self.host_ports.len();
        rules + self.opened.len() == 0 && !self.carries
    }
}

/// A chain, and where the kernel asks it.
struct Chain {
    name: &'static str,
    kind: &'static str,
    hook: i32,
    priority: i32,
}

/// Before [`POSTROUTING`], where sources are the containers' own. IPVS sends by no hook of forwarded packets, and by this one.
const CLASSES: Chain = Chain {
    name: "classes",
    kind: "filter",
    hook: libc::NF_INET_POST_ROUTING,
    priority: libc::NF_IP_PRI_MANGLE,
};
const POSTROUTING: Chain = Chain {
    name: "postrouting",
    kind: "nat",
    hook: libc::NF_INET_POST_ROUTING,
    priority: libc::NF_IP_PRI_NAT_SRC,
};
/// Behind others' own translations at both hooks, `firewalld`'s too (`-90`): of several chains the first that translates a connection wins, and the others do
/// not meet it (`nf_nat_inet_fn`, net/netfilter/nf_nat_core.c).
pub(crate) const LEADING_PRIORITY: i32 = libc::NF_IP_PRI_NAT_DST + 20;
const PREROUTING: Chain =
    Chain { name: "prerouting", kind: "nat", hook: libc::NF_INET_PRE_ROUTING, priority: LEADING_PRIORITY };
const OUTPUT: Chain =
    Chain { name: "output", kind: "nat", hook: libc::NF_INET_LOCAL_OUT, priority: LEADING_PRIORITY };

/// Every chain of the table.
const CHAINS: [&Chain; 4] = [&CLASSES, &POSTROUTING, &PREROUTING, &OUTPUT];

/// Whether a chain is one of ours. Its rules are ours as well: the table is written anew once it has others ([`super::Watched`]).
pub(crate) fn is_own(chain: &BaseChain) -> bool {
    let is_it = |own: &&Chain| {
        (own.name, own.kind, own.hook.unsigned_abs()) == (&*chain.name, &*chain.kind, chain.hook)
    };
    i32::from(chain.family) == libc::NFPROTO_INET
        && chain.table == TABLE
        && chain.policy != Some(libc::NF_DROP as u32)
        && CHAINS.iter().any(is_it)
}

/// Makes these the only rules, as one transaction; without any the table goes. A chain without rules is not there: each
/// of translations has the kernel track connections.
///
/// # Errors
/// [`NftError`]; the rules are as they were.
pub fn replace(rules: &Rules) -> Result<Committed, NftError> {
    let table = Attributes::default().text(TABLE_NAME, TABLE);
    let mut batch = Batch::new();
    // A table that is not there cannot be deleted: it is made first, which changes nothing where it is.
    batch.add("the table", libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE, &table);
    batch.add("the old table's end", libc::NFT_MSG_DELTABLE, 0, &table);
    if !rules.is_empty() {
        batch.add("the new table", libc::NFT_MSG_NEWTABLE, libc::NLM_F_CREATE, &table);
    }
    let sets = unmasqueraded::sets(&rules.unmasqueraded);
    sets.values().for_each(|set| set.add_to(&mut batch));
    let maps = class_map::maps(&rules.classes, u32::try_from(sets.len()).unwrap_or_default() + 1);
    maps.iter().for_each(|map| map.add_to(&mut batch));
    let opened = opened::families(&rules.opened);
    let first = u32::try_from(sets.len() + maps.len()).unwrap_or_default() + 1;
    opened.iter().fold(first, |id, family| family.add_to(&mut batch, id));
    fill(&mut batch, &CLASSES, maps.iter().map(|map| ("claims", map.steps())));
    let kept = rules
        .unmasqueraded
        .iter()
        .filter_map(|rule| Some((&*rule.network, rule.steps(sets.get(&rule.destinations)?))));
    let masqueraded = rules.masquerade.iter().map(|rule| (&*rule.network, rule.steps()));
    let of_ports = |steps: Expressions| ("host ports", steps);
    // A chain of translations has nothing tracked; a rule that asks for a connection has (`nf_ct_netns_get`).
    let carried = (rules.carries && opened.is_empty()).then(|| Expressions::default().redirected());
    let leading = opened.iter().flat_map(Opened::leading_others).chain(carried);
    fill(&mut batch, &PREROUTING, leading.map(of_ports));
    let hiding = opened.iter().flat_map(Opened::hiding).map(of_ports);
    fill(&mut batch, &POSTROUTING, hiding.chain(kept).chain(masqueraded));
    let from_node = opened.iter().flat_map(Opened::leading_own).map(of_ports);
    let by_rules = rules.host_ports.iter().map(|rule| (&*rule.network, rule.steps()));
    fill(&mut batch, &OUTPUT, by_rules.chain(from_node));
    batch.commit()
}

/// Adds a chain and its rules, where there are any: each with its network's name.
fn fill<'a>(batch: &mut Batch, chain: &Chain, rules: impl Iterator<Item = (&'a str, Expressions)>) {
    for (at, (network, steps)) in rules.enumerate() {
        if at == 0 {
            batch.add("a chain", libc::NFT_MSG_NEWCHAIN, libc::NLM_F_CREATE, &chain.attributes());
        }
        let rule = Attributes::default()
            .text(RULE_TABLE, TABLE)
            .text(RULE_CHAIN, chain.name)
            .nest(RULE_EXPRESSIONS, steps.into_attributes())
            .bytes(RULE_USERDATA, &comment(network));
        batch.add("a rule", libc::NFT_MSG_NEWRULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND, &rule);
    }
}

impl Chain {
    fn attributes(&self) -> Attributes {
        // A priority is signed, and travels as the number with the same bits.
        let hook = Attributes::default()
            .number(HOOK_NUMBER, self.hook.unsigned_abs())
            .number(HOOK_PRIORITY, self.priority.cast_unsigned());
        Attributes::default()
            .text(CHAIN_TABLE, TABLE)
            .text(CHAIN_NAME, self.name)
            .nest(CHAIN_HOOK, hook)
            .text(CHAIN_TYPE, self.kind)
    }
}

fn comment(text: &str) -> Vec<u8> {
    // The length is one byte; a longer name is shown in part.
    let shown: String = text.chars().take(60).collect();
    let length = u8::try_from(shown.len() + 1).unwrap_or(u8::MAX);
    [&[COMMENT, length], shown.as_bytes(), &[0]].concat()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sched::{CloneFlags, unshare};

    use super::super::Watched;
    use super::*;

    /// What `act` finds in a namespace that goes with its thread.
    fn in_namespace<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let actor = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("root may make a network namespace");
                act()
            });
            actor.join().unwrap()
        })
    }

    fn nft(command: &[&str]) -> String {
        let said = Command::new("nft").args(command).output().expect("nft runs");
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap()
    }

    /// The rules as `nft` reads them.
    fn listed_after(steps: &[Rules]) -> String {
        in_namespace(|| {
            steps.iter().for_each(|step| drop(replace(step).unwrap()));
            nft(&["list", "ruleset"])
        })
    }

    fn masquerading(rules: &[(&str, &str)]) -> Rules {
        let rules = rules.iter().map(|(network, prefix)| MasqueradeRule {
            network: (*network).to_owned(),
            prefix: prefix.parse().unwrap(),
        });
        Rules { masquerade: rules.collect(), ..Rules::default() }
    }

    fn leading(host_ip: Option<&str>, host_port: u16, to: &str) -> HostPortRule {
        let host_ip = host_ip.map(|ip| ip.parse().unwrap());
        HostPortRule { network: "one".to_owned(), host_ip, host_port, to: to.parse().unwrap() }
    }

    #[test]
    fn nft_reads_back_what_was_meant() {
        let rules = masquerading(&[("one", "10.77.0.9/24"), ("one", "fd77::/64"), ("two", "10.78.0.0/16")]);
        let host_ports =
            [leading(None, 8132, "10.77.0.2:7132"), leading(Some("2001:db8::1"), 9899, "[fd77::2]:9899")];
        let listed = listed_after(&[Rules { host_ports: host_ports.into(), ..rules }]);
        for line in [
            "type nat hook postrouting priority srcnat; policy accept;",
            "ip saddr 10.77.0.0/24 ip daddr != 10.77.0.0/24 ip daddr != 224.0.0.0/4 masquerade comment \"one\"",
            "ip6 saddr fd77::/64 ip6 daddr != fd77::/64 ip6 daddr != ff00::/8 masquerade comment \"one\"",
            "ip saddr 10.78.0.0/16 ip daddr != 10.78.0.0/16 ip daddr != 224.0.0.0/4 masquerade comment \"two\"",
            "type nat hook output priority -80; policy accept;",
            "sctp dport 8132 ip saddr != 127.0.0.0/8 ip daddr != 127.0.0.0/8 fib daddr type local dnat ip to \
             10.77.0.2:7132 comment \"one\"",
            "sctp dport 9899 ip6 saddr != ::1 ip6 daddr != ::1 ip6 daddr 2001:db8::1 dnat ip6 to [fd77::2]:9899 comment \"one\"",
        ] {
            assert!(listed.contains(line), "{line} in {listed}");
        }
    }

    #[test]
    fn what_keeps_its_address_is_asked_for_first() {
        let rule = |source: &str, destinations: &[&str]| UnmasqueradedRule {
            network: "one".to_owned(),
            source: source.parse().unwrap(),
            destinations: destinations.iter().map(|text| text.parse().unwrap()).collect(),
        };
        let unmasqueraded = [
            rule("10.77.0.0/24", &["10.78.0.0/24", "10.79.0.0/16"]),
            rule("10.76.0.9/32", &["10.78.0.0/24", "10.79.0.0/16"]),
            rule("fd77::/64", &["fd78::/16", "::/1"]),
        ];
        let masquerade = masquerading(&[("one", "10.77.0.0/24"), ("one", "fd77::/64")]).masquerade;
        let listed =
            listed_after(&[Rules { masquerade, unmasqueraded: unmasqueraded.into(), ..Rules::default() }]);
        for line in [
            "elements = { 10.78.0.0/24, 10.79.0.0/16 }",
            "elements = { ::/1,",
            "fd78::/16 }",
            "ip saddr 10.77.0.0/24 ip daddr @unmasqueraded-1 accept comment \"one\"",
            "ip saddr 10.76.0.9 ip daddr @unmasqueraded-1 accept comment \"one\"",
            "ip6 saddr fd77::/64 ip6 daddr @unmasqueraded-2 accept comment \"one\"",
        ] {
            assert!(listed.contains(line), "{line} in {listed}");
        }
        assert!(listed.rfind("accept comment") < listed.find("masquerade comment"), "{listed}");
        assert_eq!(listed.matches("set unmasqueraded-").count(), 2, "shared: {listed}");
    }

    #[test]
    fn classes_are_looked_up_in_one_map_of_each_family_before_sources_are_translated() {
        let classes = [("10.77.0.9", 9), ("10.77.0.10", 10), ("fd77::9", 9)];
        let classes = classes.map(|(ip, minor)| (ip.parse().unwrap(), 0x5347_0000 | minor)).into();
        let listed = listed_after(&[Rules { classes, ..masquerading(&[("one", "10.77.0.0/24")]) }]);
        for line in [
            "type filter hook postrouting priority mangle; policy accept;",
            "10.77.0.9 : 5347:9",
            "fd77::9 : 5347:9",
            "meta priority set ip saddr map @classes-v4 comment \"claims\"",
            "meta priority set ip6 saddr map @classes-v6 comment \"claims\"",
        ] {
            assert!(listed.contains(line), "{line} in {listed}");
        }
    }

    #[test]
    fn thousands_of_classes_are_set_at_once() {
        let of = |number: u16| IpAddr::from([10, 77, number.to_be_bytes()[0], number.to_be_bytes()[1]]);
        let classes: BTreeMap<_, _> = (0..3500).map(|number| (of(number), number.into())).collect();
        let listed = listed_after(&[Rules { classes, ..Rules::default() }]);
        assert_eq!(listed.matches("10.77.").count(), 3500);
    }

    #[test]
    fn replacing_leaves_nothing_of_what_was() {
        let one = masquerading(&[("one", "10.77.0.0/24")]);
        let host_port = Rules { host_ports: [leading(None, 80, "10.79.0.2:80")].into(), ..Rules::default() };
        let listed = listed_after(&[one.clone(), host_port, masquerading(&[("two", "10.78.0.0/24")])]);
        let gone = !listed.contains("10.77") && !listed.contains("output");
        assert!(gone && listed.contains("10.78"), "{listed}");
        assert_eq!(listed_after(&[one, Rules::default()]), "");
        assert_eq!(listed_after(&[Rules::default()]), "");
    }

    #[test]
    fn a_table_that_somebody_flushes_at_once_is_not_taken_for_what_was_set() {
        in_namespace(|| {
            let rules = masquerading(&[("one", "10.77.0.0/24"), ("two", "10.78.0.0/24")]);
            let set = replace(&rules).unwrap().contents();
            let is_unchanged = || Watched::of(set).unwrap().is_unchanged().unwrap();
            assert!(is_unchanged());
            for change in [&["flush", "chain", "inet", TABLE, "postrouting"][..], &["flush", "ruleset"]] {
                nft(change);
                assert!(!is_unchanged(), "{change:?}");
            }
        });
    }
}
