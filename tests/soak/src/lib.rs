//! Many sessions on one target for a long time, while connections break at random.
//!
//! What must hold, and is checked ([`Outcome::complaints`]): no client sees an error, no block that was read holds
//! anything but what was last written to it, neither side's memory grows, every connection that broke is there again in the
//! end, and the target stops when it is told to.
//!
//! * [`Plan`]: how many, how long, how much is broken.
//! * `subject`: the released `ropewalk serve`, stopped and started.
//! * `path`: a TCP relay between clients and target that breaks connections.
//! * `client`, `worker`, `stamp`: sessions, and what they write and read.
//! * `usage`: what both processes take of the machine, second by second.

#![forbid(unsafe_code)]

mod client;
mod course;
mod descriptors;
mod outcome;
mod path;
mod plan;
mod stamp;
mod subject;
mod tally;
mod usage;
mod worker;

pub use course::run;
pub use outcome::{Complaint, Latency, Memory, Outcome, Stop};
pub use plan::Plan;
