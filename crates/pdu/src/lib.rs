//! iSCSI protocol data units and text keys (RFC 7143), parsed and emitted.

#![forbid(unsafe_code)]
