//! The `ropewalk` command as its users run it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod analyse;
mod attach;
mod cc;
mod closed_pipe;
mod copy;
mod dead_source;
mod faults;
mod json;
mod lab;
mod lanes;
mod logout;
mod reservations;
mod serve;
mod streams;
mod usage;
mod vulnerability_classes;
mod world;
