//! What others' rules have let through.

use shunt_dataplane::abi::{AcceptedFlow, FlowKey, Heeding, QUESTION_TRANSLATION, Question};
use shunt_dataplane::tables::AcceptedFlows;

use super::super::asked::Asked;
use super::{LiveTables, flow_name};

/// Nanoseconds in a millisecond.
const MILLISECOND: u64 = 1_000_000;

impl AcceptedFlows for LiveTables<'_> {
    fn heeding(&self) -> Option<Heeding> {
        self.maps.heeding.read().ok()
    }

    fn accepted_flow(&self, key: &FlowKey) -> Option<AcceptedFlow> {
        let now = self.times.boot;
        let ago = |seen: u64| match seen {
            0 => "never".to_owned(),
            seen => format!("{} ms ago", now.saturating_sub(seen) / MILLISECOND),
        };
        let heeding = self.heeding().unwrap_or_default();
        let found = |flow: &AcceptedFlow| {
            let [low, high] = flow.seen.map(ago);
            let rules = match flow.generation == heeding.generation {
                false => ", by earlier rules",
                true if heeding.lease == 0 => {
                    ", and each of its packets is asked for: `status` names the rule"
                }
                true => "",
            };
            format!("let through from its lower end {low}, from its higher {high}{rules}")
        };
        self.look((Asked::Accepted, "ACCEPTED"), &self.maps.accepted, (key, flow_name(key)), found)
    }

    fn accept_flow(&self, _key: &FlowKey, _value: &AcceptedFlow) {
        let kept = if self.heeding().unwrap_or_default().lease == 0 {
            ", and each of its packets is asked for: `status` names the rule"
        } else {
            ""
        };
        self.note(Asked::Accepted, format!("its flow would be noted as let through by others' rules{kept}"));
    }

    fn count_checked(&self, key: &FlowKey) -> Option<u16> {
        let flow = self.maps.accepted.get(key, 0).ok()?;
        Some(flow.checked.saturating_add(1))
    }

    fn ask_agent(&self, question: &Question) {
        let what = if question.wanted == QUESTION_TRANSLATION {
            "connection tracking would be asked what becomes of it"
        } else {
            "connection tracking would be told to be liberal of it"
        };
        self.note(Asked::Accepted, what.to_owned());
    }

    fn forget_accepted_flow(&self, _key: &FlowKey) {
        self.note(
            Asked::Accepted,
            "it begins or ends a connection, which others' rules are asked for".to_owned(),
        );
    }
}
