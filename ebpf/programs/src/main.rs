//! The kernel programs: each wraps its context, runs its pipeline of [`shunt_dataplane::programs`], and returns the verdict as the
//! kernel's action.

#![cfg_attr(target_arch = "bpf", no_std, no_main, feature(asm_experimental_arch))]

mod action;
mod bpf_loop;
#[cfg(feature = "decisions")]
mod decisions;
mod embed;
mod kernel_tables;
mod maps;
mod nic;
mod node_sockets;
mod peers;
mod route;
mod sctp_note;
mod skb;
mod sockets;
mod subprograms;
#[cfg(feature = "watched")]
mod watch;

use aya_ebpf::Global;
use aya_ebpf::macros::{classifier, xdp};
use aya_ebpf::programs::{TcContext, XdpContext};
use shunt_dataplane::Verdict;
use shunt_dataplane::abi::watch::WatchedProgram;
use shunt_dataplane::programs;
use shunt_dataplane::stages::port::Missing;

use crate::kernel_tables::KernelTables;
use crate::skb::{BARE, FRAMED, Skb};

/// The ports that these programs are for: 0 open, 1 restricted, 2 in VLANs. All but the open ones drop while their entry
/// is missing. The agent loads the programs up to three times, each time with another value.
///
/// Compiler: `used`, or a constant of the same bytes is made one with it, and changes with it (LLVM's `constmerge`). So is every word that the agent sets.
#[used]
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

/// Runs a pipeline on the packet and carries out its verdict.
#[inline(always)]
fn run(
    ctx: TcContext,
    program: WatchedProgram,
    pipeline: impl FnOnce(&mut Skb, u32, &KernelTables) -> Verdict,
) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = pipeline(&mut packet, here, &tables);
    action::take(&packet, verdict, program)
}

/// tc ingress of a host veth end.
#[classifier]
pub(crate) fn from_container(ctx: TcContext) -> i32 {
    subprograms::from_container(ctx.skb.skb)
}

/// tc ingress of a host veth end with host ports or masquerading, behind [`from_container`].
#[classifier]
pub(crate) fn from_mapped(ctx: TcContext) -> i32 {
    subprograms::from_mapped(ctx.skb.skb)
}

/// tc egress of a host veth end.
#[classifier]
pub(crate) fn to_container(ctx: TcContext) -> i32 {
    let mut packet = Skb::new(ctx);
    let (here, tables) = (packet.ifindex(), KernelTables::new(&packet));
    let verdict = if is_member() {
        programs::to_member::run(&mut packet, here, &tables)
    } else {
        programs::to_container::run(&mut packet, here, missing(), &tables)
    };
    action::take(&packet, verdict, WatchedProgram::ToContainer)
}

/// tc egress of the bridge device.
#[classifier]
pub(crate) fn from_host(ctx: TcContext) -> i32 {
    subprograms::from_host(ctx.skb.skb)
}

/// tc ingress of an uplink, or of a bridge device.
#[classifier]
pub(crate) fn from_wire(ctx: TcContext) -> i32 {
    subprograms::from_wire::<FRAMED>(ctx.skb.skb)
}

/// tc ingress of an uplink without a link layer, whose packets have no Ethernet header.
#[classifier]
pub(crate) fn from_tunnel(ctx: TcContext) -> i32 {
    subprograms::from_wire::<BARE>(ctx.skb.skb)
}

/// tc egress of an uplink.
#[classifier]
pub(crate) fn to_wire(ctx: TcContext) -> i32 {
    subprograms::to_wire::<FRAMED>(ctx.skb.skb)
}

/// tc egress of an uplink without a link layer.
#[classifier]
pub(crate) fn to_tunnel(ctx: TcContext) -> i32 {
    subprograms::to_wire::<BARE>(ctx.skb.skb)
}

/// [`from_tunnel`], for a test run.
#[cfg(feature = "decisions")]
#[classifier]
pub(crate) fn tested_tunnel(ctx: TcContext) -> i32 {
    subprograms::from_wire::<{ skb::TESTED }>(ctx.skb.skb)
}

/// [`to_tunnel`], for a test run.
#[cfg(feature = "decisions")]
#[classifier]
pub(crate) fn tested_way_out(ctx: TcContext) -> i32 {
    subprograms::to_wire::<{ skb::TESTED }>(ctx.skb.skb)
}

/// tc ingress of the host end of a VLAN interface.
#[classifier]
pub(crate) fn from_vlan(ctx: TcContext) -> i32 {
    run(ctx, WatchedProgram::FromVlan, programs::from_vlan::run)
}

/// tc ingress of a VLAN interface's master.
#[classifier]
pub(crate) fn from_trunk(ctx: TcContext) -> i32 {
    run(ctx, WatchedProgram::FromTrunk, programs::from_trunk::run)
}

/// tc egress of a host veth end with VLAN interfaces behind it.
#[classifier]
pub(crate) fn to_trunk(ctx: TcContext) -> i32 {
    run(ctx, WatchedProgram::ToTrunk, programs::to_trunk::run)
}

/// XDP of a bridge's uplink, in its driver.
#[xdp]
pub(crate) fn from_nic(ctx: XdpContext) -> u32 {
    let frame = nic::Frame::new(ctx);
    let here = frame.ifindex();
    let verdict = programs::from_nic::run(&frame, here, &KernelTables::without_packet());
    nic::action(&frame, verdict)
}

/// tc ingress of a bridge's uplink.
#[classifier]
pub(crate) fn from_uplink(ctx: TcContext) -> i32 {
    run(ctx, WatchedProgram::FromUplink, programs::from_uplink::run)
}

/// tc egress of a bridge's uplink.
#[classifier]
pub(crate) fn to_uplink(ctx: TcContext) -> i32 {
    run(ctx, WatchedProgram::ToUplink, programs::to_uplink::run)
}

/// tc ingress of a restricted port, behind all of ours.
#[classifier]
pub(crate) fn guard_from(ctx: TcContext) -> i32 {
    run(ctx, WatchedProgram::GuardFrom, programs::guard_from::run)
}

/// tc egress of a restricted port, behind all of ours.
#[classifier]
pub(crate) fn guard_to(ctx: TcContext) -> i32 {
    run(ctx, WatchedProgram::GuardTo, programs::guard_to::run)
}

/// On the host the programs are only linted.
#[cfg(not(target_arch = "bpf"))]
fn main() {}

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_info: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Some helpers require a GPL-compatible licence.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
