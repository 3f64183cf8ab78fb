//! PDUs as bytes: their layout, what is parsed, what is refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod codes;
mod digest;
mod hostile_bytes;
mod layout;
mod round_trip;
mod strictness;
mod text;
mod value;
