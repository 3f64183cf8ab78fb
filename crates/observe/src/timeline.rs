//! A connection over time, in a bounded number of points for any length of the capture.

use pdu::Instant;
use serde::Serialize;

/// The first width of a point: shorter than any round trip that matters.
const WIDTH_NS_MIN: u64 = 100_000;

/// One interval. Without segments it only shows that nothing was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Segments of both directions, including acknowledgements.
    pub segments: u64,
    /// The initiator's data.
    pub to_target: Flow,
    /// The target's data.
    pub to_initiator: Flow,
    /// The most commands without a status.
    pub outstanding_commands_max: u64,
    /// The most data that those commands were to move, in both directions.
    pub outstanding_bytes_max: u64,
}

/// One direction in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flow {
    /// Payload that was sent for the first time.
    pub bytes: u64,
    /// Payload seen before.
    pub sent_again_bytes: u64,
    /// The most data in flight (TCP).
    pub in_flight_bytes_max: u64,
    /// The smallest window that the receiver offered, if it did, and its scale is known.
    pub window_bytes_min: Option<u64>,
    /// The shortest measured round trip from the point of capture to the receiver.
    pub rtt_ns_min: Option<u64>,
    /// The longest such round trip.
    pub rtt_ns_max: Option<u64>,
}

impl Point {
    fn join(&mut self, later: &Self) {
        self.segments += later.segments;
        self.to_target.join(&later.to_target);
        self.to_initiator.join(&later.to_initiator);
        self.outstanding_commands_max = self.outstanding_commands_max.max(later.outstanding_commands_max);
        self.outstanding_bytes_max = self.outstanding_bytes_max.max(later.outstanding_bytes_max);
    }
}

impl Flow {
    fn join(&mut self, later: &Self) {
        self.bytes += later.bytes;
        self.sent_again_bytes += later.sent_again_bytes;
        self.in_flight_bytes_max = self.in_flight_bytes_max.max(later.in_flight_bytes_max);
        self.window_bytes_min = least(self.window_bytes_min, later.window_bytes_min);
        self.rtt_ns_min = least(self.rtt_ns_min, later.rtt_ns_min);
        self.rtt_ns_max = self.rtt_ns_max.max(later.rtt_ns_max);
    }
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// The limits on points.
#[derive(Debug)]
pub(crate) struct PointRoom {
    /// The most in one timeline.
    pub(crate) of_one: usize,
    /// The rest for all timelines; each always has one point.
    pub(crate) left: usize,
}

/// Points of equal width, from the first segment of the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// The start of the first point, in nanoseconds since 1970-01-01 UTC.
    pub start_ns: u64,
    /// The width of each.
    pub width_ns: u64,
    /// The points, in order of time.
    pub points: Vec<Point>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { start_ns: 0, width_ns: WIDTH_NS_MIN, points: Vec::new() }
    }
}

impl Timeline {
    /// Adds the events of one instant. An instant before the start counts as the start. If there is no room for another
    /// point, all points become wider.
    pub(crate) fn add(&mut self, at: Instant, what: &Point, room: &mut PointRoom) {
        if self.points.is_empty() {
            self.start_ns = at.0;
            self.points.push(Point::default());
        }
        // So that one point of the greatest width holds all time.
        let since_ns = at.0.saturating_sub(self.start_ns).min(u64::MAX - 1);
        let index = loop {
            let index = usize::try_from(since_ns / self.width_ns).unwrap_or(usize::MAX);
            let missing = index.saturating_add(1).saturating_sub(self.points.len());
            if missing == 0 {
                break index;
            }
            if index < room.of_one && missing <= room.left {
                room.left -= missing;
                self.points.resize(index + 1, Point::default());
                break index;
            }
            self.widen(room);
        };
        self.points[index].join(what);
    }

    /// The points that it takes of the common room.
    pub(crate) fn room_taken(&self) -> usize {
        self.points.len().saturating_sub(1)
    }

    fn widen(&mut self, room: &mut PointRoom) {
        room.left += self.room_taken();
        self.width_ns = self.width_ns.saturating_mul(2);
        let pairs = self.points.chunks(2).map(|pair| {
            let mut joined = pair[0];
            pair[1..].iter().for_each(|later| joined.join(later));
            joined
        });
        self.points = pairs.collect();
        room.left -= self.room_taken();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: u64) -> Point {
        Point { to_target: Flow { bytes, ..Flow::default() }, ..Point::default() }
    }

    #[test]
    fn a_long_capture_has_wider_points_and_not_more() {
        let mut timeline = Timeline::default();
        let mut room = PointRoom { of_one: 512, left: 10_000 };
        for second in 0..1000 {
            let what = Point { outstanding_commands_max: second, ..sent(1) };
            timeline.add(Instant(second * 1_000_000_000), &what, &mut room);
        }
        assert!(timeline.points.len() <= 512);
        assert_eq!(timeline.points.iter().map(|point| point.to_target.bytes).sum::<u64>(), 1000);
        assert_eq!(timeline.points.iter().map(|point| point.outstanding_commands_max).max(), Some(999));
        assert_eq!(room.left + timeline.room_taken(), 10_000);
    }

    #[test]
    fn without_room_a_timeline_is_one_point() {
        let mut timeline = Timeline::default();
        let mut room = PointRoom { of_one: 512, left: 0 };
        for at in [5, 1_000_000_000, u64::MAX] {
            timeline.add(Instant(at), &sent(1), &mut room);
        }
        assert_eq!((timeline.points.as_slice(), timeline.start_ns), (&[sent(3)][..], 5));
    }

    #[test]
    fn a_time_at_the_end_of_all_time_is_a_point_too() {
        let mut timeline = Timeline::default();
        let mut room = PointRoom { of_one: 512, left: 512 };
        timeline.add(Instant(0), &Point::default(), &mut room);
        timeline.add(Instant(u64::MAX), &Point::default(), &mut room);
        assert!(timeline.points.len() <= 512);
    }

    #[test]
    fn a_wider_point_has_the_extremes_of_its_parts() {
        let mut point = Point::default();
        for rtt_ns in [5, 3, 9] {
            let flow = Flow { rtt_ns_min: Some(rtt_ns), rtt_ns_max: Some(rtt_ns), ..Flow::default() };
            point.join(&Point { to_target: flow, ..Point::default() });
        }
        assert_eq!((point.to_target.rtt_ns_min, point.to_target.rtt_ns_max), (Some(3), Some(9)));
        assert_eq!(point.to_initiator.rtt_ns_min, None);
    }
}
