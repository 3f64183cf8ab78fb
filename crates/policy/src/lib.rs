//! Policies over many connections: pure functions of measurements, the same on a socket and in a simulator.

#![forbid(unsafe_code)]

mod arrivals;
mod diagnosis;
mod earliest_delivery;
mod lane_sample;
pub mod law;
mod outlook;
mod placement;
mod rule;
pub mod time_model;
pub mod tuner;

pub use diagnosis::{Change, Diagnosis, Limit, Look, PathEvidence, Remedy, Seen, Tally, ThreadTime};
pub use earliest_delivery::EarliestDelivery;
pub use lane_sample::{LaneLoad, LaneSample, Obstacle, PathCounters, PathMeasurement};
pub use placement::{Choice, Demand, Placement};
pub use rule::{PlacementPolicy, Rule, UnknownPolicy};
pub use tuner::{Tuner, TunerChoice};
