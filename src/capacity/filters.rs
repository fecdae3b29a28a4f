//! The scheduler's node filters, node by node.
