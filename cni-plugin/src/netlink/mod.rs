//! rtnetlink, blocking: what ADD, DEL and CHECK ask of the kernel, in as few system calls as it allows.

mod address;
mod connection;
mod error;
mod link;
mod netconf;
mod request;
mod route;
mod station;

pub(crate) use address::InterfaceAddress;
pub(crate) use connection::Connection;
pub(crate) use error::NetlinkError;
pub(crate) use link::{Link, PortFlags, Selector, VlanDevice};
pub(crate) use netconf::forwards;
pub(crate) use request::Request;
pub(crate) use route::InstalledRoute;

pub(crate) mod requests {
    //! Every request that the plugin makes, by what it is about.
    pub(crate) use super::address::{add_address, add_gateway, delete_address, list_addresses};
    pub(crate) use super::link::{
        Veth, add_bridge, add_veth, add_vlan, delete_link, enslave, get_link, list_links, set_address,
        set_alias, set_down, set_port_flags, set_promiscuous, set_up,
    };
    pub(crate) use super::netconf::get_settings;
    pub(crate) use super::route::{add_route, list_routes};
    pub(crate) use super::station::add_station;
}
