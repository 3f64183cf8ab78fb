//! A model of a path across a wide area, packet by packet: pure and seeded, without sockets, clocks or threads. What
//! drives it owns the time: a relay that moves real packets, or a simulator.
//!
//! A [`PathModel`] says what a path is like, and gives a [`Link`] for each direction. Packets of any kind go in
//! ([`Packet`]), and come out later, or not at all, or twice.
//!
//! ```
//! use ropewalk_netem::PathModel;
//!
//! let model: PathModel = toml::from_str(
//!     r#"
//!     [forward]
//!     rate = "144Mbit"
//!     delay = "20ms"
//!     queue = "0.5bdp"
//!     loss = { bursts = { rate = "0.1%", length = 2.0 } }
//!     cross_traffic = { on_off = { mean = "40Mbit", peak = "144Mbit", alpha = 1.5, burst = "100ms" } }
//!
//!     [[forward.schedule]]
//!     at = "10s"
//!     rate = "72Mbit"
//!     "#,
//! )?;
//! model.validate()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The stages of a link, in the order in which a packet passes them:
//!
//! ```text
//!                               ┌─ parallel path 0 ─────────────────────────────────────────────┐
//!  send ─> MTU ─> cap of the ─┬─┼> queue ──> rate ──> loss ──────> corruption, ──> delay, jitter ┼─┬─> receive
//!                 flow        │ │  ^ │ drop-tail      outages,     duplication     reordering   │ │
//!                 (policer,   │ │  │ │ or CoDel       down                                      │ │
//!                  shaper)    │ └──┼─┼──────────────────────────────────────────────────────────┘ │
//!                             │    │ └> cross traffic leaves again                                │
//!                             │   cross traffic                                                   │
//!                             └─> parallel path 1 … chosen by the flow's hash ────────────────────┘
//! ```
//!
//! * **Time** is whole nanoseconds. A rate is exact over any time: what a division leaves over is carried on.
//! * **Bytes** of rates, bursts and queues are those of IP packets and of [`LinkModel::framing`] for each, so that
//!   "900Mbit" means one thing.
//! * **Loss comes behind the bottleneck**: it stands for a faulty line, so what is lost has taken up its time at the
//!   bottleneck. Congestion's own losses are the queue's.
//! * **A super-packet** (segmentation offload) waits, is sent and arrives as one, with its last bit. Wherever a real
//!   network would lose some of its segments (policer, full queue, `CoDel`, line), only these are cut out of it.
//! * **Order** is kept on each parallel path, with jitter too; only [`Reordering`] changes it.
//! * **Randomness** comes from the seed. Each stage of each path has numbers of its own: what one stage does with them
//!   leaves the others' decisions about the same packets alone.
//! * **A lost packet is counted** by its cause: see [`Counters`] for what always adds up.

#![forbid(unsafe_code)]

mod cap;
mod codel;
mod counters;
mod cross_traffic;
mod delay_line;
mod faults;
mod jitter;
mod link;
mod loss;
mod model;
mod outage;
mod packet;
mod parallel_path;
mod pareto;
mod queue;
mod random;
mod schedule;
mod time;
mod units;
mod virtual_clock;

pub use cap::Cap;
pub use codel::CoDel;
pub use counters::{Counters, CrossTrafficCounters, Drops, Traffic};
pub use cross_traffic::CrossTraffic;
pub use jitter::Jitter;
pub use link::Link;
pub use loss::{GilbertElliott, Loss};
pub use model::{ETHERNET_FRAMING, InvalidModel, LinkModel, MTU, PathModel, Reordering};
pub use outage::Outages;
pub use packet::{Packet, Size};
pub use pareto::Pareto;
pub use schedule::Change;
pub use units::{Bytes, InvalidQuantity, Probability, QueueSize, Rate, Span};
