//! What a fuzzer feeds: everything that takes bytes from a peer, as functions of bytes.
//!
//! Each function takes any bytes and panics if the code under it does, or if it breaks a promise that is checked here.
//! `fuzz/` makes a fuzzer of each; the tests of this crate replay the kept corpus, so that every input that ever
//! mattered is tried with every change, by any toolchain.

#![forbid(unsafe_code)]

mod capture;
mod cdb_with_data;
mod initiator;
mod login;
mod nbd;
mod stream;
mod target;
mod text_keys;

pub use capture::capture;
pub use cdb_with_data::cdb_with_data;
pub use initiator::pdu_stream_into_initiator;
pub use login::pdu_stream_before_login;
pub use nbd::nbd_client;
pub use target::{pdu_stream_after_login, two_connections_interleaved};
pub use text_keys::text_keys;

/// A fuzz target: its name, which is also its corpus's, and the function.
pub type FuzzTarget = (&'static str, fn(&[u8]));

/// All of them.
pub const FUZZ_TARGETS: [FuzzTarget; 8] = [
    ("pdu_stream_before_login", pdu_stream_before_login),
    ("pdu_stream_after_login", pdu_stream_after_login),
    ("pdu_stream_into_initiator", pdu_stream_into_initiator),
    ("text_keys", text_keys),
    ("cdb_with_data", cdb_with_data),
    ("two_connections_interleaved", two_connections_interleaved),
    ("capture", capture),
    ("nbd_client", nbd_client),
];
