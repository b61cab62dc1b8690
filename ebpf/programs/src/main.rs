//! The kernel programs: each wraps its context, travels the journey, and says the verdict in the kernel's words.
//!
//! They are named from the packet's point of view, because "ingress" and "egress" turn round on a host veth.

#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(asm_experimental_arch))]

mod action;
mod context;
#[cfg(feature = "decisions")]
mod decisions;
mod enclosing;
mod halves;
mod kernel_tables;
mod looping;
mod maps;
mod neighbor;
mod nic;
mod ports_note;
mod sockets;
mod sockets_of_node;

use aya_ebpf::Global;
use aya_ebpf::macros::{classifier, xdp};
use aya_ebpf::programs::{TcContext, XdpContext};
use shunt_dataplane::stages::guard;
use shunt_dataplane::stages::port::Missing;
use shunt_dataplane::{PassReason, Verdict, journey, vlan};

use crate::context::{BARE, FRAMED, Skb};
use crate::kernel_tables::KernelTables;

/// For which ports these programs are: 0 open, 1 restricted, 2 in VLANs. All but the open ones are shut while their entry
/// is missing. The agent loads the programs up to three times, each time with another number here.
#[unsafe(no_mangle)]
static RESTRICTED: Global<u32> = Global::new(0);

#[inline(always)]
fn missing() -> Missing {
    if RESTRICTED.load() == 0 { Missing::Pass } else { Missing::Drop }
}

#[inline(always)]
fn is_member() -> bool {
    RESTRICTED.load() == 2
}

/// tc ingress of a host veth end.
#[classifier]
pub(crate) fn from_container(ctx: TcContext) -> i32 {
    let skb = ctx.skb.skb;
    let action = match RESTRICTED.load() {
        // Most ports are open, and pay for no call.
        0 => {
            let mut packet = Skb::new(ctx);
            let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
            match journey::from_container(&mut packet, here, Missing::Pass, &tables) {
                Verdict::Pass(PassReason::MayAsk) => halves::answer_container(skb),
                verdict => action::take_silently(&packet, verdict),
            }
        }
        1 => halves::from_restricted(skb),
        _ => halves::from_member(skb),
    };
    action::said(skb, action)
}

/// tc ingress of a host veth end, behind [`from_container`], where host ports lead to the container or it is masqueraded.
#[classifier]
pub(crate) fn from_mapped(ctx: TcContext) -> i32 {
    halves::from_mapped(ctx.skb.skb)
}

/// tc egress of a host veth end.
#[classifier]
pub(crate) fn to_container(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = if is_member() {
        vlan::to_member(&mut packet, here, &tables)
    } else {
        journey::to_container(&mut packet, here, missing(), &tables)
    };
    action::take(&packet, verdict)
}

/// tc egress of the bridge device.
#[classifier]
pub(crate) fn from_host(ctx: TcContext) -> i32 {
    let skb = ctx.skb.skb;
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let action = match journey::from_host(&mut packet, here, &tables) {
        Verdict::Pass(PassReason::MayAsk) => halves::answer_host(skb),
        verdict => action::take_silently(&packet, verdict),
    };
    action::said(skb, action)
}

/// tc ingress of an uplink, or of a bridge device.
#[classifier]
pub(crate) fn from_wire(ctx: TcContext) -> i32 {
    halves::from_wire::<FRAMED>(ctx.skb.skb)
}

/// tc ingress of an uplink without a link layer, whose packets have no Ethernet header.
#[classifier]
pub(crate) fn from_tunnel(ctx: TcContext) -> i32 {
    halves::from_wire::<BARE>(ctx.skb.skb)
}

/// The same, for a test run.
#[cfg(feature = "decisions")]
#[classifier]
pub(crate) fn tested_tunnel(ctx: TcContext) -> i32 {
    halves::from_wire::<{ context::TESTED }>(ctx.skb.skb)
}

/// tc ingress of the host end of a VLAN interface.
#[classifier]
pub(crate) fn from_vlan(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = vlan::from_interface(&mut packet, here, &tables);
    action::take(&packet, verdict)
}

/// tc ingress of a VLAN interface's master.
#[classifier]
pub(crate) fn from_trunk(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = vlan::from_trunk(&mut packet, here, &tables);
    action::take(&packet, verdict)
}

/// tc egress of a host veth end whose container has VLAN interfaces on the other end.
#[classifier]
pub(crate) fn to_trunk(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = vlan::to_trunk(&mut packet, here, &tables);
    action::take(&packet, verdict)
}

/// XDP of a bridge's uplink, in its driver.
#[xdp]
pub(crate) fn from_nic(ctx: XdpContext) -> u32 {
    let frame = nic::Frame::new(ctx);
    let here = frame.ifindex();
    nic::action(vlan::from_nic(&frame, here, &KernelTables::without_packet()))
}

/// tc ingress of a bridge's uplink.
#[classifier]
pub(crate) fn from_uplink(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = vlan::from_uplink(&mut packet, here, &tables);
    action::take(&packet, verdict)
}

/// tc egress of a bridge's uplink.
#[classifier]
pub(crate) fn to_uplink(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = vlan::to_uplink(&mut packet, here, &tables);
    action::take(&packet, verdict)
}

/// tc ingress of a restricted port, behind all of ours.
#[classifier]
pub(crate) fn guard_from(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = guard::from_container(&mut packet, here, &tables);
    action::take(&packet, verdict)
}

/// tc egress of a restricted port, behind all of ours.
#[classifier]
pub(crate) fn guard_to(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = guard::to_container(&mut packet, here, &tables);
    action::take(&packet, verdict)
}

/// On the host the programs are only linted.
#[cfg(not(target_arch = "bpf"))]
fn main() {}

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Some helpers are for programs under a GPL-compatible licence only.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
