//! Copying disk images between files, block devices, streams and remote logical units, safely.
//!
//! A [`Job`] is prepared from a [`Source`] and a [`Destination`]: it looks at both, refuses what would destroy data
//! or cannot work, and says what it will do ([`Plan`]). Run, it keeps many requests under way, leaves zeroes out
//! where that is safe, flushes often, writes again what a destination lost, and reads the copy back.
//!
//! Until it ends with success, the destination is garbage ([`DestinationState`]).

#![forbid(unsafe_code)]

mod clock;
mod cutter;
mod disk;
mod end;
mod error;
mod forward;
mod identity;
mod image_format;
mod input;
mod job;
mod local;
mod local_file;
mod mount;
mod outstanding;
mod pipeline;
mod plan;
mod progress;
mod rate;
mod sample;
mod signature;
mod standard_stream;
mod stream;
mod survey;
mod unflushed;
mod verify;
mod watch;
mod worker;
mod zeroes;

pub use clock::Clock;
pub use end::{Destination, Source};
pub use error::{Error, Refusal};
pub use identity::Identity;
pub use image_format::ImageFormat;
pub use job::{DestinationState, Failure, Job, Report};
pub use plan::{Options, Plan};
pub use progress::{Phase, Progress, Snapshot};
pub use rate::{InvalidSchedule, Schedule};
pub use sample::{SAMPLE_DIVISOR, Verify};
pub use stream::{Reader, Writer};
pub use survey::Survey;
pub use worker::Zeroing;
