//! An iSCSI target.

#![forbid(unsafe_code)]
