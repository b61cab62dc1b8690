//! Where rules are read.

use shunt_netlink::NetlinkError;
use shunt_netlink::nf_tables::{Element, Expression, TableOf, elements_of, rules_of_chain};

/// Where the rules of a table are read.
pub(in super::super) trait Source {
    /// The rules of a chain in their order.
    fn rules(&mut self, table: &TableOf, chain: &str) -> Result<Vec<Vec<Expression>>, NetlinkError>;

    /// The elements of a set.
    fn elements(&mut self, table: &TableOf, set: &str) -> Result<Vec<Element>, NetlinkError>;
}

/// The kernel's rules.
pub(in super::super) struct Kernel;

impl Source for Kernel {
    fn rules(&mut self, table: &TableOf, chain: &str) -> Result<Vec<Vec<Expression>>, NetlinkError> {
        rules_of_chain(table, chain)
    }

    fn elements(&mut self, table: &TableOf, set: &str) -> Result<Vec<Element>, NetlinkError> {
        elements_of(table, set)
    }
}
