//! What may be asked of the maps.

/// Which map was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Asked {
    /// `PORTS`, of the interface that the program runs on.
    Here,
    /// `PORTS`, of another.
    Port,
    /// `FDB`.
    Station,
    /// `LEARNED`, of a frame's sender or destination, and `UPLINKS`.
    Learned,
    /// `ADDRESSES`.
    Owner,
    /// `ADDRESSES`, `PORTS` and `FDB`, for the address that a neighbour asks for.
    Resident,
    /// What would be written of an announcement.
    Announced,
    /// `TAGGED`, of the interface that the program runs on.
    TaggedHere,
    /// `TAGGED`, of another.
    Tagged,
    /// `MEMBERS`.
    Member,
    /// `KERNEL_FLOWS`.
    KernelFlow,
    /// `ACCEPTED` and `HEEDING`.
    Accepted,
    /// `INCOMING_FLOWS`.
    IncomingFlow,
    /// `POLICERS`.
    Policer,
    /// `MAPPINGS`, `MASQUERADES`, `LOCALS`, `REVERSE_PATHS`, `FLOWS` and `FRAGMENTS`.
    Translation,
    /// `OUTLETS` and `SOURCES`.
    Outlet,
    /// The kernel's routes.
    Route,
}
