//! What a person who runs the plugin by hand is told.

/// The text for standard error.
pub const ABOUT: &str = concat!(
    "CNI plugin shunt v",
    env!("CARGO_PKG_VERSION"),
    "\n",
    "CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n",
    "\n",
    "A container runtime runs this program with CNI_COMMAND in its environment and a network\n",
    "configuration on standard input. Its `type` chooses what the program stands in for:\n",
    "    shunt                     interface, addresses and fast path in one call\n",
    "    shunt-bridge, bridge      the reference bridge plugin\n",
    "    shunt-ipam                an IPAM plugin with host-local's keys and files\n",
    "    shunt-portmap, portmap    the reference portmap plugin\n",
    "    shunt-bandwidth, bandwidth  the reference bandwidth plugin\n",
    "\n",
    "netavark (podman 5) runs it as a plugin, with create, setup, teardown or info as its argument.\n",
    "\n",
    "Verbs of the specification: ADD, DEL, CHECK, GC, STATUS, VERSION\n",
    "Verbs beyond it: VALIDATE (checks a configuration, changes nothing), INIT and DEINIT (make a\n",
    "network ready, take it down when no attachment uses it), FINALIZE (puts an attachment right),\n",
    "CAPACITY (what bandwidth can be handed out, and what is left)\n",
);
