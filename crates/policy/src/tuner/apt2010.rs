//! The tuner of iSCSI-APT (paper 003), for comparison.

use super::{Decision, Reason, Slice, Terms, Tuner};
use pdu::{Duration, Instant};

/// Doubles the number of connections until they move less, and then searches the maximum between by golden sections. It
/// knows nothing but the rate of each chunk of time, and does not search again.
///
/// The paper gives neither the length of a chunk nor the factor; the times that it reports fit a factor of two and
/// chunks of three seconds.
#[derive(Clone, Debug)]
pub struct Apt2010 {
    connections_max: u32,
    chunk: Chunk,
    state: State,
}

/// The shortest chunk. It lasts at least twenty round trips, too.
const CHUNK_MIN: Duration = Duration::from_secs(3);

/// Each slice lasts ten round trips or more.
const CHUNK_SLICES_MIN: u32 = 2;

/// The smaller part of a golden section.
const GOLDEN: f64 = 0.381_966;

/// The search ends when the maximum lies within so many connections.
const WIDTH_MIN: u32 = 2;

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    connections: u32,
    slices: u32,
    moved_bytes: u64,
    length: Duration,
}

/// What a number of connections moved.
#[derive(Clone, Copy, Debug)]
struct Point {
    connections: u32,
    bytes_per_second: f64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The number doubles; the last two, as far as there are any.
    Doubling {
        before: Option<Point>,
        last: Option<Point>,
    },
    /// The maximum lies between `left` and `right`, and `best` is the most that was found.
    Searching {
        left: u32,
        best: Point,
        right: u32,
    },
    Ended,
}

impl Apt2010 {
    /// A tuner without any experience. It leaves the congestion control as it is.
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        Self {
            connections_max: terms.connections_max.max(1),
            chunk: Chunk::default(),
            state: State::Doubling { before: None, last: None },
        }
    }
}

impl Tuner for Apt2010 {
    fn connections_at_first(&self) -> u32 {
        1
    }

    fn decide(&mut self, slice: &Slice) -> Option<Decision> {
        let point = self.chunk.add(slice)?;
        let ceiling = slice.connections_max.min(self.connections_max);
        let (state, connections, reason) = match self.state {
            State::Doubling { before, last } => double(before, last, point, ceiling),
            // A connection that broke is no point of the search.
            State::Searching { left, right, .. } if !(left..=right).contains(&point.connections) => {
                return None;
            }
            State::Searching { left, best, right } => narrow(left, best, right, point),
            State::Ended => return None,
        };
        self.state = state;
        Some(Decision {
            at: slice.end,
            connections_before: point.connections,
            connections,
            law: slice.law,
            bytes_per_second: point.bytes_per_second,
            reason,
        })
    }

    /// The paper knows no bound.
    fn login_pause(&self, _now: Instant) -> Duration {
        Duration::ZERO
    }
}

impl Chunk {
    /// The chunk's point, once it is long enough.
    fn add(&mut self, slice: &Slice) -> Option<Point> {
        if slice.connections == 0 {
            return None;
        }
        if self.connections != slice.connections {
            *self = Self { connections: slice.connections, ..Self::default() };
        }
        self.slices += 1;
        self.moved_bytes += slice.moved_bytes;
        self.length += slice.length;
        if self.length < CHUNK_MIN || self.slices < CHUNK_SLICES_MIN {
            return None;
        }
        let Self { connections, moved_bytes, length, .. } = core::mem::take(self);
        Some(Point { connections, bytes_per_second: moved_bytes as f64 / length.as_secs_f64() })
    }
}

type Step = (State, u32, Reason);

/// The next step after a number of connections has been doubled to that of `point`.
fn double(before: Option<Point>, last: Option<Point>, point: Point, ceiling: u32) -> Step {
    match last {
        // The target allows no more.
        Some(best) if point.connections <= best.connections => {
            (State::Ended, best.connections, Reason::Found)
        }
        Some(best) if point.bytes_per_second <= best.bytes_per_second => {
            search(before.map_or(1, |point| point.connections), best, point.connections)
        }
        _ if point.connections < ceiling => {
            let connections = (point.connections * 2).min(ceiling);
            (State::Doubling { before: last, last: Some(point) }, connections, Reason::Searching)
        }
        // The ceiling moves the most.
        _ => search(last.map_or(1, |point| point.connections), point, point.connections),
    }
}

/// The next step once the maximum lies between `left` and `right`: a golden section into the wider side of the best.
fn search(left: u32, best: Point, right: u32) -> Step {
    if right - left <= WIDTH_MIN {
        return (State::Ended, best.connections, Reason::Found);
    }
    let (to_left, to_right) = (best.connections - left, right - best.connections);
    let step = |width: u32| section(width).clamp(1, width.saturating_sub(1).max(1));
    let connections = match to_right > to_left {
        true => best.connections + step(to_right),
        false => best.connections - step(to_left),
    };
    if [left, best.connections, right].contains(&connections) {
        return (State::Ended, best.connections, Reason::Found);
    }
    (State::Searching { left, best, right }, connections, Reason::Searching)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive number")]
fn section(width: u32) -> u32 {
    (f64::from(width) * GOLDEN).round() as u32
}

/// The next step after a section at `point`.
fn narrow(left: u32, best: Point, right: u32, point: Point) -> Step {
    let is_better = point.bytes_per_second > best.bytes_per_second;
    match (point.connections > best.connections, is_better) {
        (true, true) => search(best.connections, point, right),
        (true, false) => search(left, best, point.connections),
        (false, true) => search(left, point, best.connections),
        (false, false) => search(point.connections, best, right),
    }
}
