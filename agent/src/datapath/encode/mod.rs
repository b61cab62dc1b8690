//! What each resource looks like in the maps: plain data in, keys and values out.

mod host_port;
mod limit;
mod masquerade;
mod port;
mod tuple;

pub use self::host_port::{mapping_key, mappings, protocol_number};
pub use self::limit::{Subnets as SubnetEntries, is_policed, policers, subnets};
pub use self::masquerade::masquerades;
pub use self::port::{
    address_keys, addresses, as_written, bridge_port, bridge_station, bridge_station_key, every_vlan,
    foreign_port, gateway_node, in_place, port, port_key, station, station_key, station_key_of, tagged_vlans,
    uplink_port,
};
pub use self::tuple::tuple_key;
