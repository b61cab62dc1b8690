//! Nodes and containers made of network namespaces.
