//! Of each alert: series with which it fires, and such with which it does not.

/// Series with their values, in promtool's notation, a value a minute.
pub(crate) type Series = &'static [(&'static str, &'static str)];

/// An alert with what makes it fire and what does not.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) alert: &'static str,
    pub(crate) fires: Series,
    /// Just below, too short, or all well.
    pub(crate) silent: &'static [Series],
}

const fn case(alert: &'static str, fires: Series, silent: &'static [Series]) -> Case {
    Case { alert, fires, silent }
}

/// The series of a drop reason.
macro_rules! drops {
    ($reason:literal, $values:literal) => {
        (
            concat!(
                r#"shunt_dropped_packets_total{host_interface="veth1",stage="s",reason=""#,
                $reason,
                r#"",namespace="team",pod="web"}"#
            ),
            $values,
        )
    };
}

const FREE: &str = r#"shunt_uplink_free_bytes_per_second{uplink="eth1",direction="egress"}"#;
const CAPACITY: &str = r#"shunt_uplink_capacity_bytes_per_second{uplink="eth1",direction="egress"}"#;
const UNLEARNED: &str = r#"shunt_bridge_uplink_unlearned_stations_total{uplink="eth1",bridge="cni0"}"#;
const WANTED: &str =
    r#"kube_daemonset_status_desired_number_scheduled{namespace="kube-system",daemonset="shunt"}"#;
const AVAILABLE: &str =
    r#"kube_daemonset_status_number_available{namespace="kube-system",daemonset="shunt"}"#;
const OTHERS: &str = r#"kube_daemonset_status_number_available{namespace="kube-system",daemonset="proxy"}"#;
const OTHERS_WANTED: &str =
    r#"kube_daemonset_status_desired_number_scheduled{namespace="kube-system",daemonset="proxy"}"#;
const BUILD: &str = r#"shunt_build_info{version="1.2.3",abi="2"}"#;

pub(crate) const CASES: [Case; 14] = [
    case(
        "ShuntAgentDown",
        &[("up", "1x5 0x60"), (BUILD, "1x5 stale")],
        &[
            // It answers; it is away for the time of a restart; and a target of nobody's that is down is not the agent.
            &[("up", "1x60"), (BUILD, "1x60")],
            &[("up", "1x40 0x3 1x20"), (BUILD, "1x60")],
        ],
    ),
    case(
        "ShuntAgentMissing",
        &[(WANTED, "3x60"), (AVAILABLE, "3x10 2x50")],
        &[
            // All are there; one is away for the time of an upgrade; and another DaemonSet's is.
            &[(WANTED, "3x60"), (AVAILABLE, "3x60")],
            &[(WANTED, "3x60"), (AVAILABLE, "3x40 2x10 3x10")],
            &[(OTHERS_WANTED, "3x60"), (OTHERS, "2x60")],
        ],
    ),
    case("ShuntAgentNotReady", &[("shunt_agent_ready", "0x60")], &[&[("shunt_agent_ready", "1x60")]]),
    case(
        "ShuntAgentUnhealthy",
        &[("shunt_agent_healthy", "0x60"), ("shunt_agent_ready", "1x60")],
        &[
            &[("shunt_agent_healthy", "1x60"), ("shunt_agent_ready", "1x60")],
            // One page is enough.
            &[("shunt_agent_healthy", "0x60"), ("shunt_agent_ready", "0x60")],
        ],
    ),
    case(
        "ShuntRepairsFail",
        &[("shunt_unrepaired", "0x10 1x50")],
        &[&[("shunt_unrepaired", "0x60")], &[("shunt_unrepaired", "0x50 1x5 0x5")]],
    ),
    case(
        "ShuntRepairsRepeat",
        &[("shunt_repairs_total", "0+2x60")],
        &[&[("shunt_repairs_total", "0+1x60")], &[("shunt_repairs_total", "0x30 30x30")]],
    ),
    case(
        "ShuntFlowTableNearlyFull",
        &[("shunt_flow_room_used_ratio", "0.8x60")],
        &[&[("shunt_flow_room_used_ratio", "0.79x60")]],
    ),
    case(
        "ShuntFlowsEvicted",
        &[("shunt_flow_evictions_total", "0+120x60")],
        &[&[("shunt_flow_evictions_total", "0+30x60")], &[("shunt_flow_evictions_total", "9000x60")]],
    ),
    case(
        "ShuntDropsByFault",
        &[drops!("unchecked", "0+120x60")],
        &[&[drops!("unchecked", "0+30x60")], &[drops!("isolated", "0+120000x60")]],
    ),
    case(
        "ShuntDropsByLimit",
        &[drops!("rate_exceeded", "0+6100x60")],
        &[&[drops!("rate_exceeded", "0+5900x60")], &[drops!("ingress_policy", "0+120000x60")]],
    ),
    case(
        "ShuntSpoofing",
        &[drops!("address_spoofed", "0+120x60")],
        &[&[drops!("address_spoofed", "0+30x60")], &[drops!("stranger", "0+120x60")]],
    ),
    case(
        "ShuntCapacitySoldOut",
        &[(FREE, "0x60"), (CAPACITY, "100x60")],
        &[
            &[(FREE, "1x60"), (CAPACITY, "100x60")],
            // An uplink whose speed nobody knows.
            &[(FREE, "0x60"), (CAPACITY, "0x60")],
        ],
    ),
    case(
        "ShuntPlacesNearlyGone",
        &[("shunt_slots_free", "9x60"), ("shunt_slots", "100x60")],
        &[&[("shunt_slots_free", "10x60"), ("shunt_slots", "100x60")]],
    ),
    case("ShuntStationsNotLearned", &[(UNLEARNED, "0+1x60")], &[&[(UNLEARNED, "5x60")]]),
];
