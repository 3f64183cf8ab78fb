//! What a connection did over time, in at most so many points whatever the length of the capture.

use pdu::Instant;
use serde::Serialize;

/// More are not drawn apart. An even number: pairs become one when the time between points doubles.
const POINTS_MAX: usize = 512;
const WIDTH_NS_MIN: u64 = 1_000_000;

/// One stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// New payload that the initiator sent.
    pub bytes_to_target: u64,
    /// New payload that the target sent.
    pub bytes_to_initiator: u64,
    /// The most that the initiator had sent and that was not acknowledged (TCP).
    pub in_flight_to_target_bytes_max: u64,
    /// The most that the target had.
    pub in_flight_to_initiator_bytes_max: u64,
    /// The most commands without a status.
    pub outstanding_commands_max: u64,
    /// The most data that those are to move, in either direction.
    pub outstanding_bytes_max: u64,
}

impl Point {
    fn join(&mut self, later: &Self) {
        self.bytes_to_target += later.bytes_to_target;
        self.bytes_to_initiator += later.bytes_to_initiator;
        for (most, other) in [
            (&mut self.in_flight_to_target_bytes_max, later.in_flight_to_target_bytes_max),
            (&mut self.in_flight_to_initiator_bytes_max, later.in_flight_to_initiator_bytes_max),
            (&mut self.outstanding_commands_max, later.outstanding_commands_max),
            (&mut self.outstanding_bytes_max, later.outstanding_bytes_max),
        ] {
            *most = (*most).max(other);
        }
    }
}

/// Points of equal width, from the first segment of the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// When the first point begins, in nanoseconds since 1970-01-01 UTC.
    pub start_ns: u64,
    /// How long each is.
    pub width_ns: u64,
    /// One after the other.
    pub points: Vec<Point>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { start_ns: 0, width_ns: WIDTH_NS_MIN, points: Vec::new() }
    }
}

impl Timeline {
    /// Adds what happened at one instant. What is before the first counts as at the first.
    pub(crate) fn add(&mut self, at: Instant, what: &Point) {
        if self.points.is_empty() {
            self.start_ns = at.0;
        }
        let since_ns = at.0.saturating_sub(self.start_ns);
        while since_ns / self.width_ns >= POINTS_MAX as u64 {
            self.widen();
        }
        let index = usize::try_from(since_ns / self.width_ns).unwrap_or(POINTS_MAX - 1);
        if self.points.len() <= index {
            self.points.resize(index + 1, Point::default());
        }
        self.points[index].join(what);
    }

    fn widen(&mut self) {
        self.width_ns = self.width_ns.saturating_mul(2);
        let pairs = self.points.chunks(2).map(|pair| {
            let mut joined = pair[0];
            pair[1..].iter().for_each(|later| joined.join(later));
            joined
        });
        self.points = pairs.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_capture_has_wider_points_and_not_more() {
        let mut timeline = Timeline::default();
        for second in 0..1000 {
            let what = Point { bytes_to_target: 1, outstanding_commands_max: second, ..Point::default() };
            timeline.add(Instant(second * 1_000_000_000), &what);
        }
        assert!(timeline.points.len() <= POINTS_MAX);
        assert_eq!(timeline.points.iter().map(|point| point.bytes_to_target).sum::<u64>(), 1000);
        assert_eq!(timeline.points.iter().map(|point| point.outstanding_commands_max).max(), Some(999));
    }

    #[test]
    fn a_time_at_the_end_of_all_time_is_a_point_too() {
        let mut timeline = Timeline::default();
        timeline.add(Instant(0), &Point::default());
        timeline.add(Instant(u64::MAX), &Point::default());
        assert!(timeline.points.len() <= POINTS_MAX);
    }
}
