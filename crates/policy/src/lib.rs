//! Policies over many connections: pure functions of measurements, the same on a socket and in a simulator.

#![forbid(unsafe_code)]

mod arrivals;
mod earliest_delivery;
mod lane_sample;
mod outlook;
mod placement;
mod rule;
pub mod time_model;

pub use earliest_delivery::EarliestDelivery;
pub use lane_sample::{LaneLoad, LaneSample, Obstacle, PathMeasurement};
pub use placement::{Choice, Demand, Placement};
pub use rule::{PlacementPolicy, Rule, UnknownPolicy};
