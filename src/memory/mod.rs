//! What one request of a warp costs.
