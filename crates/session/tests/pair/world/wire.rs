//! The network between two ends: each lane a stream of bytes each way, with its own delay and rate, cut into fragments
//! wherever a seed says.

use pdu::{Duration, Instant};
use std::collections::VecDeque;

/// The longest fragment: a segment as network cards join them.
const FRAGMENT_BYTES_MAX: usize = 64 << 10;

/// What a lane's network is like.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// One way.
    pub delay: Duration,
    pub nanoseconds_per_byte: u64,
    /// What a sender may hand over before it has left.
    pub buffer_bytes: u64,
}

impl Path {
    pub fn of_delay_ms(delay_ms: u64) -> Self {
        Self { delay: Duration::from_millis(delay_ms), nanoseconds_per_byte: 8, buffer_bytes: 0 }
    }
}

/// A piece of a stream.
#[derive(Debug)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// The sender has closed its end.
    End,
}

/// One direction of one lane.
#[derive(Debug)]
pub struct Stream {
    path: Path,
    /// When what was handed over has left.
    free_at: Instant,
    delivered_bytes: u64,
    in_flight: VecDeque<(Instant, Piece)>,
    /// Nothing arrives while it is cut; nobody is told.
    pub is_silent: bool,
}

impl Stream {
    pub fn new(now: Instant, path: Path) -> Self {
        Self { path, free_at: now, delivered_bytes: 0, in_flight: VecDeque::new(), is_silent: false }
    }

    /// When the sender may hand over more.
    pub fn room_at(&self) -> Instant {
        Instant(self.free_at.0.saturating_sub(self.path.buffer_bytes * self.path.nanoseconds_per_byte))
    }

    /// Bytes that have arrived: a peer's network acknowledges them at once.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    pub fn send(&mut self, now: Instant, bytes: &[u8], random: &mut Random) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (fragment, after) =
                rest.split_at(random.below(rest.len().min(FRAGMENT_BYTES_MAX) as u64) as usize + 1);
            rest = after;
            self.free_at = self.free_at.max(now)
                + Duration::from_nanos(fragment.len() as u64 * self.path.nanoseconds_per_byte);
            self.in_flight.push_back((self.free_at + self.path.delay, Piece::Bytes(fragment.to_vec())));
        }
    }

    pub fn end(&mut self, now: Instant) {
        self.in_flight.push_back((self.free_at.max(now) + self.path.delay, Piece::End));
    }

    pub fn arrives_at(&self) -> Option<Instant> {
        self.in_flight.front().filter(|_| !self.is_silent).map(|(at, _)| *at)
    }

    pub fn arrive(&mut self, now: Instant) -> Option<Piece> {
        self.arrives_at().filter(|at| *at <= now)?;
        let (_, piece) = self.in_flight.pop_front()?;
        if let Piece::Bytes(bytes) = &piece {
            self.delivered_bytes += bytes.len() as u64;
        }
        Some(piece)
    }
}

/// Numbers from a seed (xorshift64*).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}
