//! Placement of commands on connections, pure functions of measurements.

#![forbid(unsafe_code)]
