//! What the tests with real programs stand on: start them, wait until they are ready, break what is between them.
//!
//! * [`Program`]: any program, under a deadline; ended when the test ends.
//! * [`Ropewalk`], [`Tgt`], [`Istgt`]: targets on free ports of this machine.
//! * [`Relay`]: a TCP relay that cuts the connection it is told to, after the bytes it is told, or damages those.
//! * [`dice`]: randomness that is the same in every run of one seed.
//! * [`Image`]: files with contents that are the same in every run.
//! * [`require`]: what a test needs of the machine, and whether doing without is allowed.

#![forbid(unsafe_code)]

pub mod dice;
mod image;
mod istgt;
mod port;
mod program;
mod relay;
mod ropewalk;
mod tgt;

pub use ::requirement::{Requirement, require};
pub use image::{Image, assert_same};
pub use istgt::{Istgt, Tuning};
pub use port::free_port;
pub use program::{Line, Program, Stream};
pub use relay::{Cut, Damage, Recorded, Relay, Way};
pub use ropewalk::{IQN, Ropewalk, binary, objects, ropewalk, summary};
pub use tgt::Tgt;

use std::time::Duration;

/// How long a program may take before a test calls it stuck: ten times what the slowest takes on a slow machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
