//! The iSCSI protocol as pure state machines, both roles.

#![forbid(unsafe_code)]
