//! Policies over many connections: pure functions of measurements, the same on a socket and in a simulator.

#![forbid(unsafe_code)]

mod lane_sample;
mod least_loaded;
mod placement;
pub mod time_model;

pub use lane_sample::{LaneLoad, LaneSample, Obstacle, PathMeasurement};
pub use least_loaded::LeastLoaded;
pub use placement::{Demand, Placement};
