//! The time of one request and the throughput that it allows: the model of paper 004 (figure 9), and its consequences
//! for R2Ts, send buffers and several requests at a time.
//!
//! ```text
//! write   T = B/C + RTT + Tb + Tc  +  waits for R2Ts  +  waits for room in the send buffer
//! read    T = RTT + Tb + B/C + Tc
//! ```
//!
//! | name | meaning |
//! |---|---|
//! | B | bytes of the request |
//! | C | the network's capacity for these bytes, per second |
//! | RTT | round trip without queues |
//! | Tb | the target's time: of a write from its last data to its status, of a read from its command to its first data |
//! | Tc | the initiator's time from a status to the next request |
//! | Tr | the target's time from a command, or the last data of a burst, to an R2T |
//!
//! **R2Ts.** A write sends u bytes unsolicited, at most FirstBurstLength; i of them are immediate data, a part of the
//! command. If the write has more, the first R2T arrives RTT + Tr after the command and its immediate data have been
//! sent, while the rest of these u bytes is being sent: it costs max(0, RTT + Tr − (u − i)/C). The remaining bytes take
//! k bursts of MaxBurstLength M, of which the target may ask for MaxOutstandingR2T R at a time. An R2T is outstanding
//! until the last of its data has arrived (RFC 7143 §13.17), so the next one follows a burst by a round trip, in which
//! the other R − 1 bursts arrive: every further R bursts cost max(0, RTT + Tr − (R − 1)·M/C). With R = 1, each burst
//! costs a whole round trip.
//!
//! **The send buffer.** TCP keeps sent bytes until they are acknowledged. If only S bytes fit, a write is cut into
//! ⌈B/S⌉ pieces, and between two of them the sender waits max(0, RTT − S/C): the transfer grows with the distance
//! (paper 004, figures 10 to 12).
//!
//! **Several requests at a time.** Paper 004 has one at a time and no formula for more. The throughput of N requests is
//! at most the least of N·B/T, C, and S/RTT for each connection (the asymptotic bounds of a closed queueing system,
//! Denning and Buzen 1978). A request then takes N·B divided by that throughput (Little's law). These are bounds: where
//! two of them are close, requests also wait for each other and take longer.
//!
//! The model has no slow start, no losses and no queues: it describes a connection that has grown to its path.

use pdu::Duration;

/// A path, and the constant times at its ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeModel {
    /// C: TCP payload that arrives per second, in bits; see [`payload_bits_per_second`].
    pub payload_bits_per_second: f64,
    /// RTT: the round trip without queues.
    pub round_trip: Duration,
    /// Tb: the target's time for a request.
    pub target_time: Duration,
    /// Tc: the initiator's time from a status to the next request.
    pub initiator_time: Duration,
    /// Tr: the target's time until it asks for data.
    pub r2t_time: Duration,
    /// S: the payload that the sender of data can send in a round trip; `None` if its buffer does not limit that.
    pub send_buffer_bytes: Option<u64>,
}

/// The negotiated terms that determine the R2Ts of a write (RFC 7143 §13.10 to §13.17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteTerms {
    /// InitialR2T: no unsolicited Data-Out.
    pub initial_r2t: bool,
    /// ImmediateData (§13.11): a part of the unsolicited data is in the command PDU.
    pub immediate_data: bool,
    /// FirstBurstLength (§13.14): the most unsolicited data of a write.
    pub first_burst_bytes: u32,
    /// MaxBurstLength (§13.13): the most data that one R2T asks for.
    pub max_burst_bytes: u32,
    /// MaxOutstandingR2T (§13.17): the most R2Ts of a write at a time.
    pub max_outstanding_r2t: u16,
    /// The target's MaxRecvDataSegmentLength: immediate data is one segment.
    pub segment_bytes_max: u32,
}

impl WriteTerms {
    /// u: the unsolicited bytes of a write.
    #[must_use]
    pub fn unsolicited_bytes(&self, bytes: u64) -> u64 {
        let first_burst_bytes = match (self.initial_r2t, self.immediate_data) {
            (true, false) => 0,
            (true, true) => self.first_burst_bytes.min(self.segment_bytes_max),
            (false, _) => self.first_burst_bytes,
        };
        bytes.min(first_burst_bytes.into())
    }

    /// i: the immediate bytes of a write, which are a part of the command.
    #[must_use]
    pub fn immediate_bytes(&self, bytes: u64) -> u64 {
        let segment_bytes = if self.immediate_data { self.segment_bytes_max } else { 0 };
        self.unsolicited_bytes(bytes).min(segment_bytes.into())
    }
}

/// Headers of IPv4 and of TCP with timestamps.
pub const TCP_IPV4_BYTES: u32 = 52;
/// Headers of IPv6 and of TCP with timestamps.
pub const TCP_IPV6_BYTES: u32 = 72;

/// C of a link of `link_bits_per_second`. Each packet of `mtu` bytes has `framing_bytes` of framing around it and
/// `header_bytes` of headers within, such as [`TCP_IPV4_BYTES`].
#[must_use]
pub fn payload_bits_per_second(
    link_bits_per_second: f64,
    mtu: u32,
    header_bytes: u32,
    framing_bytes: u32,
) -> f64 {
    let mtu = f64::from(mtu);
    link_bits_per_second * (mtu - f64::from(header_bytes)) / (mtu + f64::from(framing_bytes))
}

impl TimeModel {
    /// T of a write of `bytes`: from its first byte to the first byte of the next write, at depth 1.
    #[must_use]
    pub fn write_time(&self, bytes: u64, terms: &WriteTerms) -> Duration {
        let waits_s = self.r2t_waits_s(bytes, terms) + self.send_buffer_waits_s(bytes);
        seconds(self.transfer_s(bytes) + self.constant_s() + waits_s)
    }

    /// T of a write with only unsolicited data: the theoretical curve of paper 004.
    #[must_use]
    pub fn unsolicited_write_time(&self, bytes: u64) -> Duration {
        seconds(self.transfer_s(bytes) + self.constant_s() + self.send_buffer_waits_s(bytes))
    }

    /// T of a read of `bytes`. The target sends the data, so the send buffer is the target's.
    #[must_use]
    pub fn read_time(&self, bytes: u64) -> Duration {
        self.unsolicited_write_time(bytes)
    }

    /// Bits per second of requests of `bytes` that take `time` each, at this `depth`: the least of the network's
    /// capacity, the send buffers of all `connections`, and the rate of so many requests.
    #[must_use]
    pub fn bits_per_second(&self, bytes: u64, time: Duration, depth: u32, connections: u16) -> f64 {
        let requests = f64::from(depth) * bits(bytes) / time.as_secs_f64();
        let round_trip_s = self.round_trip.as_secs_f64();
        let buffers = match self.send_buffer_bytes {
            Some(buffer_bytes) if round_trip_s > 0.0 => {
                f64::from(connections) * bits(buffer_bytes) / round_trip_s
            }
            _ => f64::INFINITY,
        };
        requests.min(buffers).min(self.payload_bits_per_second)
    }

    /// The time of each of `depth` requests, from submission to end, at that throughput: T, or longer if they wait for
    /// each other. A lower bound.
    #[must_use]
    pub fn request_time(&self, bytes: u64, time: Duration, depth: u32, connections: u16) -> Duration {
        let all = f64::from(depth) * bits(bytes);
        seconds(all / self.bits_per_second(bytes, time, depth, connections))
    }

    /// Ta without any wait: B/C.
    fn transfer_s(&self, bytes: u64) -> f64 {
        bits(bytes) / self.payload_bits_per_second
    }

    fn constant_s(&self) -> f64 {
        (self.round_trip + self.target_time + self.initiator_time).as_secs_f64()
    }

    fn r2t_waits_s(&self, bytes: u64, terms: &WriteTerms) -> f64 {
        let unsolicited_bytes = terms.unsolicited_bytes(bytes);
        if bytes == unsolicited_bytes {
            return 0.0;
        }
        let r2t_s = (self.round_trip + self.r2t_time).as_secs_f64();
        let following_bytes = unsolicited_bytes - terms.immediate_bytes(bytes);
        let first_s = (r2t_s - self.transfer_s(following_bytes)).max(0.0);
        let burst_bytes = u64::from(terms.max_burst_bytes.max(1));
        let outstanding = u64::from(terms.max_outstanding_r2t.max(1));
        let bursts = (bytes - unsolicited_bytes).div_ceil(burst_bytes);
        let further = bursts.div_ceil(outstanding) - 1;
        let further_s = (r2t_s - self.transfer_s((outstanding - 1) * burst_bytes)).max(0.0);
        first_s + further as f64 * further_s
    }

    fn send_buffer_waits_s(&self, bytes: u64) -> f64 {
        let Some(buffer_bytes) = self.send_buffer_bytes.filter(|bytes| *bytes > 0) else { return 0.0 };
        let pauses = bytes.div_ceil(buffer_bytes).saturating_sub(1);
        let pause_s = self.round_trip.as_secs_f64() - self.transfer_s(buffer_bytes);
        pauses as f64 * pause_s.max(0.0)
    }
}

fn bits(bytes: u64) -> f64 {
    bytes as f64 * 8.0
}

/// Converts to a duration, as far as one can represent it; a network that carries nothing takes for ever.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEBIBYTE: u64 = 1 << 20;
    /// The overhead of a packet on an Ethernet cable: preamble, header, checksum and gap (IEEE 802.3).
    const ETHERNET_CABLE_BYTES: u32 = 38;
    const ROUND_TRIPS_MS: [u64; 6] = [1, 5, 10, 20, 32, 50];

    /// C of Gigabit Ethernet.
    fn payload(mtu: u32, header_bytes: u32) -> f64 {
        payload_bits_per_second(1e9, mtu, header_bytes, ETHERNET_CABLE_BYTES)
    }

    /// Gigabit Ethernet, and Tb + Tc of half a millisecond, as in paper 004.
    fn gigabit(round_trip_ms: u64) -> TimeModel {
        TimeModel {
            payload_bits_per_second: payload(1500, TCP_IPV4_BYTES),
            round_trip: Duration::from_millis(round_trip_ms),
            target_time: Duration::from_micros(300),
            initiator_time: Duration::from_micros(200),
            r2t_time: Duration::ZERO,
            send_buffer_bytes: None,
        }
    }

    fn terms(first_burst_bytes: u32, max_burst_bytes: u32, max_outstanding_r2t: u16) -> WriteTerms {
        WriteTerms {
            initial_r2t: false,
            immediate_data: true,
            first_burst_bytes,
            max_burst_bytes,
            max_outstanding_r2t,
            segment_bytes_max: 256 << 10,
        }
    }

    fn megabits(model: &TimeModel, bytes: u64, time: Duration) -> f64 {
        (model.bits_per_second(bytes, time, 1, 1) / 1e6).round()
    }

    #[test]
    fn the_payload_of_a_link_is_what_headers_and_framing_leave() {
        assert_eq!(payload(1500, TCP_IPV4_BYTES).round(), 941_482_445.0);
        assert_eq!(payload(9000, TCP_IPV4_BYTES).round(), 990_042_045.0);
        assert_eq!(payload(1500, TCP_IPV6_BYTES).round(), 928_478_544.0);
    }

    #[test]
    fn throughput_falls_with_distance_as_the_theory_of_paper_004_says() {
        let expected = [
            (MEBIBYTE, [806.0, 582.0, 432.0, 285.0, 203.0, 141.0]),
            (2 * MEBIBYTE, [868.0, 719.0, 592.0, 438.0, 333.0, 246.0]),
            (4 * MEBIBYTE, [903.0, 815.0, 727.0, 597.0, 492.0, 389.0]),
        ];
        for (bytes, expected) in expected {
            let found = ROUND_TRIPS_MS.map(|round_trip_ms| {
                let model = gigabit(round_trip_ms);
                megabits(&model, bytes, model.unsolicited_write_time(bytes))
            });
            for (found, expected) in found.into_iter().zip(expected) {
                assert!((found - expected).abs() <= 1.0, "{bytes}: {found} and not {expected}");
            }
        }
    }

    #[test]
    fn a_send_buffer_of_a_megabyte_costs_what_paper_004_measured() {
        for (round_trip_ms, expected) in [(10, 680.0), (20, 375.0), (50, 160.0)] {
            let model = TimeModel { send_buffer_bytes: Some(1_050_000), ..gigabit(round_trip_ms) };
            let time = model.unsolicited_write_time(4 * MEBIBYTE);
            assert!((megabits(&model, 4 * MEBIBYTE, time) - expected).abs() <= 1.0, "{round_trip_ms} ms");
        }
        // Figure 12: four bursts, and between them pauses of eleven to twelve milliseconds.
        let model = TimeModel { send_buffer_bytes: Some(1_050_000), ..gigabit(20) };
        let pauses =
            model.unsolicited_write_time(4 * MEBIBYTE) - gigabit(20).unsolicited_write_time(4 * MEBIBYTE);
        assert!((11.0..12.0).contains(&(pauses.as_secs_f64() * 1e3 / 3.0)), "{pauses:?}");
    }

    #[test]
    fn a_write_within_its_first_burst_waits_for_no_r2t() {
        let model = gigabit(50);
        let time = model.write_time(MEBIBYTE, &terms(1 << 20, 1 << 20, 1));
        assert_eq!(time, model.unsolicited_write_time(MEBIBYTE));
    }

    #[test]
    fn a_write_that_must_ask_first_takes_one_round_trip_more() {
        let model = gigabit(50);
        let terms = WriteTerms { initial_r2t: true, immediate_data: false, ..terms(1 << 20, 1 << 20, 1) };
        assert_eq!(terms.unsolicited_bytes(MEBIBYTE), 0);
        let extra = model.write_time(MEBIBYTE, &terms) - model.unsolicited_write_time(MEBIBYTE);
        assert_eq!(extra.as_micros(), 50_000);
    }

    #[test]
    fn without_unsolicited_data_out_only_one_segment_is_immediate() {
        let terms = WriteTerms { initial_r2t: true, ..terms(1 << 20, 1 << 20, 1) };
        assert_eq!(terms.unsolicited_bytes(MEBIBYTE), 256 << 10);
        assert_eq!(terms.unsolicited_bytes(4096), 4096);
    }

    #[test]
    fn every_burst_that_is_asked_for_alone_costs_a_round_trip_and_others_on_their_way_hide_it() {
        let model = gigabit(20);
        // Three bursts after the unsolicited one. The first R2T is on its way while three quarters of that are sent: the
        // other is immediate data.
        let burst_ms = (8 * MEBIBYTE) as f64 / model.payload_bits_per_second * 1e3;
        let first_ms = 20.0 - 0.75 * burst_ms;
        let expected_ms = [first_ms + 2.0 * 20.0, first_ms + 20.0 - burst_ms, first_ms];
        for (outstanding, expected_ms) in (1..).zip(expected_ms) {
            let time = model.write_time(4 * MEBIBYTE, &terms(1 << 20, 1 << 20, outstanding));
            let extra = time - model.unsolicited_write_time(4 * MEBIBYTE);
            assert!((extra.as_secs_f64() * 1e3 - expected_ms).abs() < 0.001, "{outstanding}: {extra:?}");
        }
    }

    #[test]
    fn depth_multiplies_until_the_network_or_a_send_buffer_is_full() {
        let model = gigabit(50);
        let time = model.read_time(MEBIBYTE);
        let megabits = |model: &TimeModel, depth, connections| {
            (model.bits_per_second(MEBIBYTE, time, depth, connections) / 1e6).round()
        };
        assert_eq!(megabits(&model, 1, 1), 141.0);
        assert_eq!(megabits(&model, 4, 1), 565.0);
        assert_eq!(megabits(&model, 32, 1), 941.0);
        let request_ms = |depth| (model.request_time(MEBIBYTE, time, depth, 1).as_secs_f64() * 1e3).round();
        assert_eq!([1, 4, 32].map(request_ms), [59.0, 59.0, 285.0], "they wait for each other");
        let buffered = TimeModel { send_buffer_bytes: Some(1_000_000), ..model };
        assert_eq!(megabits(&buffered, 32, 1), 160.0);
        assert_eq!(megabits(&buffered, 32, 4), 640.0);
    }
}
