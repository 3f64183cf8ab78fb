//! An asynchronous iSCSI initiator with many connections.

#![forbid(unsafe_code)]
