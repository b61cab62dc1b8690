//! The stages by name.

/// A stage of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// [`crate::stages::port`].
    Port,
    /// [`crate::stages::parse`].
    Parse,
    /// [`crate::stages::police`].
    Police,
    /// [`crate::stages::source_guard`].
    SourceGuard,
    /// [`crate::stages::mac_filter`].
    MacFilter,
    /// [`crate::stages::classify`].
    Classify,
    /// [`crate::stages::neighbor_proxy`].
    NeighborProxy,
    /// [`crate::nat`].
    Translate,
    /// [`crate::stages::find`].
    Find,
    /// [`crate::stages::isolate`].
    Isolate,
    /// [`crate::stages::flow_affinity`].
    FlowAffinity,
    /// [`crate::stages::accept`].
    Accept,
    /// [`crate::stages::origin_check`].
    OriginCheck,
    /// [`crate::stages::track_kernel_flow`].
    TrackKernelFlow,
    /// [`crate::stages::retag`].
    Retag,
    /// [`crate::stages::guard`].
    Guard,
    /// [`crate::stages::deliver`].
    Deliver,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Self; 17] = [
        Self::Port,
        Self::Parse,
        Self::Police,
        Self::SourceGuard,
        Self::MacFilter,
        Self::Classify,
        Self::NeighborProxy,
        Self::Translate,
        Self::Find,
        Self::Isolate,
        Self::FlowAffinity,
        Self::Accept,
        Self::OriginCheck,
        Self::TrackKernelFlow,
        Self::Retag,
        Self::Guard,
        Self::Deliver,
    ];

    /// Its name in the documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SourceGuard => "source guard",
            Self::MacFilter => "mac filter",
            Self::NeighborProxy => "neighbour proxy",
            Self::FlowAffinity => "flow affinity",
            Self::OriginCheck => "origin check",
            Self::TrackKernelFlow => "track kernel flow",
            Self::Retag => "retag",
            other => other.name(),
        }
    }

    /// Its name in reports, a contract with operators: some names are older than the modules'.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Parse => "parse",
            Self::Police => "police",
            Self::SourceGuard => "vouch",
            Self::MacFilter => "admit",
            Self::Classify => "classify",
            Self::NeighborProxy => "answer",
            Self::Translate => "translate",
            Self::Find => "find",
            Self::Isolate => "isolate",
            Self::FlowAffinity => "path",
            Self::Accept => "accept",
            Self::OriginCheck => "reach",
            Self::TrackKernelFlow => "notice",
            Self::Retag => "form",
            Self::Guard => "guard",
            Self::Deliver => "deliver",
        }
    }
}
