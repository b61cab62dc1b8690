//! Where rules are read.

use shunt_netlink::NetlinkError;
use shunt_netlink::nf_tables::{self, Element, Expression, TableOf, elements_of, rules_of_chain};

/// Where the rules of a table are read.
pub(in super::super) trait Source {
    /// The rules of a chain in their order.
    fn rules(&mut self, table: &TableOf, chain: &str) -> Result<Vec<Vec<Expression>>, NetlinkError>;

    /// Whether packets write elements of a set.
    fn is_written_by_packets(&mut self, table: &TableOf, set: &str) -> Result<bool, NetlinkError>;

    /// The elements of a set.
    fn elements(&mut self, table: &TableOf, set: &str) -> Result<Vec<Element>, NetlinkError>;
}

/// The kernel's rules.
pub(in super::super) struct Kernel;

impl Source for Kernel {
    fn rules(&mut self, table: &TableOf, chain: &str) -> Result<Vec<Vec<Expression>>, NetlinkError> {
        rules_of_chain(table, chain)
    }

    fn is_written_by_packets(&mut self, table: &TableOf, set: &str) -> Result<bool, NetlinkError> {
        nf_tables::is_written_by_packets(table, set)
    }

    fn elements(&mut self, table: &TableOf, set: &str) -> Result<Vec<Element>, NetlinkError> {
        elements_of(table, set)
    }
}
