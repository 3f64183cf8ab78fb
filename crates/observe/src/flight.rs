//! The data in flight from one end of a TCP connection, and the time until its acknowledgement.

use crate::stream::Stream;
use pdu::{Duration, Instant};

/// Round trips between the point of capture and one end and back, from data and its acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundTrips {
    pub(crate) min: Option<Duration>,
    pub(crate) max: Duration,
    pub(crate) sum: Duration,
    pub(crate) samples: u64,
}

impl RoundTrips {
    fn add(&mut self, sample: Duration) {
        self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
        self.max = self.max.max(sample);
        self.sum = self.sum.saturating_add(sample);
        self.samples += 1;
    }
}

/// The sender of one direction, as seen at the point of capture.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// The end of the sent data.
    sent: u64,
    acknowledged: u64,
    /// One segment at a time is timed, and never a repetition (Karn's rule, RFC 6298 §3).
    timed: Option<(u64, Instant)>,
    pub(crate) round_trips: RoundTrips,
    /// The most data in flight.
    pub(crate) bytes_max: u64,
    /// The peer's window, scaled; its minimum and maximum.
    pub(crate) window: Option<(u64, u64)>,
    /// The peer's shift count, from its SYN. Without a SYN the window is unknown.
    pub(crate) window_shift: Option<u8>,
}

impl Flight {
    /// Bytes sent and not acknowledged.
    pub(crate) const fn bytes(&self) -> u64 {
        self.sent.saturating_sub(self.acknowledged)
    }

    /// Bytes left, from one position to another. A SYN has none, but is acknowledged too.
    pub(crate) fn sent(&mut self, from: u64, to: u64, at: Instant) {
        if let Some((end, _)) = self.timed
            && from < end
        {
            self.timed = None;
        }
        if to > self.sent {
            if from >= self.sent && self.timed.is_none() {
                self.timed = Some((to, at));
            }
            self.sent = to;
        }
        self.bytes_max = self.bytes_max.max(self.bytes());
    }

    /// The SYN left: its answer gives the first round trip.
    pub(crate) fn syn_sent(&mut self, at: Instant) {
        self.timed = if self.timed.is_none() { Some((0, at)) } else { None };
    }

    /// The peer acknowledged everything before a sequence number. Returns a round trip if this measures one.
    pub(crate) fn acknowledged(&mut self, stream: &Stream, sequence: u32, at: Instant) -> Option<Duration> {
        let position = stream.position(sequence)?;
        self.acknowledged = self.acknowledged.max(position);
        let (_, sent_at) = self.timed.take_if(|(end, _)| position >= *end)?;
        let round_trip = at.saturating_duration_since(sent_at);
        self.round_trips.add(round_trip);
        Some(round_trip)
    }

    /// The peer offers this window (not in a SYN, whose window is never scaled). Returns its bytes, if known.
    pub(crate) fn offered(&mut self, window: u16) -> Option<u64> {
        let shift = self.window_shift?;
        // RFC 7323 §2.3: a shift above 14 counts as 14.
        let bytes = u64::from(window) << shift.min(14);
        let (least, most) = self.window.unwrap_or((bytes, bytes));
        self.window = Some((least.min(bytes), most.max(bytes)));
        Some(bytes)
    }
}
