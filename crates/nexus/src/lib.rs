//! State that spans iSCSI sessions: path rules, write fences, a logical unit's shared state.

#![forbid(unsafe_code)]

pub mod initiator;
pub mod target;
