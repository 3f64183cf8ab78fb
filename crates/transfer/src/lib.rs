//! Copying disk images between files, block devices, streams and remote logical units, safely.
//!
//! A [`Job`] is prepared from a [`Source`] and a [`Destination`]: it checks both, refuses a copy that would destroy
//! data or cannot work, and says what it will do ([`Plan`]). A running job keeps many requests under way, omits zeroes
//! where that is safe, flushes often, writes again what a destination lost, and reads the copy back.
//!
//! Until the job has succeeded, the destination is garbage ([`DestinationState`]).
//!
//! Without the feature `local`, this crate knows neither paths nor standard streams and does no I/O by itself: it
//! copies between [`block::Backend`]s, uses the [`Clock`] that it is given, and runs on any executor, including a
//! simulated one.

#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "local"), expect(dead_code, reason = "only local ends are opened late or watched"))]

mod clock;
mod cutter;
mod depth;
mod disk;
mod end;
mod error;
mod forward;
mod identity;
mod image_format;
mod input;
mod job;
#[cfg(feature = "local")]
mod local;
mod outstanding;
mod pipeline;
mod place;
mod plan;
mod progress;
mod rate;
mod sample;
mod signature;
mod stream;
mod survey;
mod unflushed;
mod verify;
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
pub use sample::{Original, Verify};
pub use stream::{Look, Reader, StreamRequest, Writer};
pub use survey::Survey;
pub use worker::Zeroing;
