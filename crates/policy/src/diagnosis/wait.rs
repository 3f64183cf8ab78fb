//! What the next byte of a session waits for at one instant.

use crate::lane_sample::{LaneSample, PathMeasurement};
use pdu::Duration;

/// What the next byte waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The caller asks for nothing.
    Caller,
    /// All that the caller asks for is on its way, and the path would carry more.
    Depth,
    /// The target's command window is closed (RFC 7143 §4.2.2.1).
    CommandWindow,
    /// The target has not asked for a write's data yet (R2T, §11.8).
    ReadyToTransfer,
    /// The target has a command and all its data, and has not answered.
    Target,
    /// Data of reads arrives, as fast as the network carries it or the target sends it.
    Arrival,
    /// The socket takes no more, although its congestion window has room.
    SendBuffer,
    /// The network carries what it can: data lies ready to be sent, or fills the congestion window.
    Network,
}

impl Wait {
    pub const ALL: [Self; 8] = [
        Self::Caller,
        Self::Depth,
        Self::CommandWindow,
        Self::ReadyToTransfer,
        Self::Target,
        Self::Arrival,
        Self::SendBuffer,
        Self::Network,
    ];
}

/// How much of a session waits for what: shares, by [`Wait`], with the sum 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Waits([f64; Wait::ALL.len()]);

impl Waits {
    fn only(wait: Wait) -> Self {
        let mut waits = Self::default();
        waits.add(wait, 1.0);
        waits
    }

    pub fn of(&self, wait: Wait) -> f64 {
        self.0[wait as usize]
    }

    pub fn sum(&self) -> f64 {
        self.0.iter().sum()
    }

    fn add(&mut self, wait: Wait, share: f64) {
        self.0[wait as usize] += share;
    }

    /// Adds `other`, times `factor`.
    pub fn add_scaled(&mut self, other: &Self, factor: f64) {
        for (sum, share) in self.0.iter_mut().zip(other.0) {
            *sum += share * factor;
        }
    }
}

/// All work of a session's caller at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// All connections that carry the work.
    pub lanes: &'a [LaneSample],
    /// Commands that have no connection yet. Those that a session holds for its command window do not count.
    pub queued_commands: u32,
    /// The data of all writes that have a connection and no answer.
    pub unanswered_out_bytes: u64,
    /// The time since a session took the oldest read that has no answer; `None` without any.
    pub oldest_read: Option<Duration>,
    /// Of the thread that looks, which is the one that does the work; `None` if that is not known.
    pub thread: Option<ThreadTime>,
}

/// How much of a processor a thread has wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// The thread, by a number that no other has.
    pub thread: u64,
    /// The time since it began in which it ran, or was ready to run and others used the processors.
    pub busy: Duration,
}

/// A connection counts as busy with this part of its congestion window in flight: acknowledgements come for several
/// segments at once.
const WINDOW_FULL: f64 = 0.75;

/// If more of the commands than this are at the target with all their data, whatever else is idle waits for it.
const MOST: f64 = 0.5;

impl Look<'_> {
    /// What this work waits for. `silence` is the time for which no data has arrived.
    pub(crate) fn waits(&self, silence: Duration) -> Waits {
        let commands: u64 = self.lanes.iter().map(|lane| u64::from(lane.load.commands)).sum();
        if commands == 0 && self.queued_commands == 0 && !self.is_window_closed() {
            return Waits::only(Wait::Caller);
        }
        if self.data_in_bytes() > self.unanswered_out_bytes {
            return Waits::only(self.incoming(silence));
        }
        self.outgoing()
    }

    /// Whether a read has waited for longer than a round trip, so that something must have delayed its data.
    fn has_late_read(&self) -> bool {
        self.oldest_read.is_some_and(|age| age > self.prompt())
    }

    /// Whether there are reads, and each is answered as soon as the path allows.
    pub(crate) fn has_only_prompt_reads(&self) -> bool {
        self.oldest_read.is_some_and(|age| age <= self.prompt())
    }

    /// The time within which data of a read comes that nothing delays.
    fn prompt(&self) -> Duration {
        self.round_trip() + self.round_trip() / 2
    }

    /// The longest of the connections' shortest round trips.
    fn round_trip(&self) -> Duration {
        self.lanes.iter().filter_map(|lane| lane.path).map(|path| path.rtt_min).max().unwrap_or_default()
    }

    fn data_in_bytes(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.load.data_in_bytes).sum()
    }

    pub(crate) fn is_window_closed(&self) -> bool {
        self.lanes.iter().any(|lane| lane.parked_commands > 0)
    }

    /// Reads: the first data of a request takes a round trip, and what takes longer is the target's time. So is a pause while
    /// there is a read that was asked for earlier than that; but not a pause within a PDU, which the target had when it
    /// began to send it.
    fn incoming(&self, silence: Duration) -> Wait {
        if silence.is_zero() || self.lanes.iter().any(|lane| lane.is_receiving) {
            Wait::Arrival
        } else if silence > self.round_trip() {
            Wait::Target
        } else if self.is_window_closed() {
            Wait::CommandWindow
        } else if self.has_late_read() {
            Wait::Target
        } else {
            Wait::Depth
        }
    }

    /// Writes: each connection counts as much as its congestion window lets it carry.
    fn outgoing(&self) -> Waits {
        let usable = || self.lanes.iter().filter(|lane| lane.is_working());
        let capacity: f64 = usable().map(capacity).sum();
        let idle = self.reason_for_idleness();
        let mut waits = Waits::default();
        for lane in usable() {
            waits.add(activity(lane).unwrap_or(idle), capacity_share(lane, capacity));
        }
        if waits.sum() > 0.0 { waits } else { Waits::only(idle) }
    }

    /// Why the idle connections have nothing to send.
    fn reason_for_idleness(&self) -> Wait {
        let commands: u64 = self.lanes.iter().map(|lane| u64::from(lane.load.commands)).sum();
        let command_bytes = self.unanswered_out_bytes.div_ceil(commands.max(1));
        let at_target: u64 = self.lanes.iter().map(|lane| commands_at_target(lane, command_bytes)).sum();
        let is_in_flight = |lane: &LaneSample| lane.path.is_some_and(|path| path.in_flight_bytes > 0);
        let is_not_asked_for = |lane: &LaneSample| activity(lane).is_none() && lane.load.data_out_bytes > 0;
        if self.lanes.iter().any(is_repairing) {
            Wait::Network
        } else if at_target as f64 > MOST * commands as f64 {
            Wait::Target
        } else if self.is_window_closed() {
            Wait::CommandWindow
        } else if self.queued_commands > 0 {
            Wait::Network
        } else if self.lanes.iter().any(is_not_asked_for) {
            Wait::ReadyToTransfer
        } else if self.lanes.iter().any(is_in_flight) {
            Wait::Depth
        } else {
            Wait::Target
        }
    }
}

/// Whether a command may be late because its connection repairs a loss. The target executes no later one meanwhile,
/// although it has their data (RFC 7143 §4.2.2.1).
fn is_repairing(lane: &LaneSample) -> bool {
    lane.load.commands > 0 && lane.path.is_some_and(|path| path.is_recovering || path.is_timed_out)
}

/// The commands of a lane whose data has all arrived, if they are of `command_bytes` each: those that what has not been
/// acknowledged does not belong to.
fn commands_at_target(lane: &LaneSample, command_bytes: u64) -> u64 {
    let in_flight_bytes = lane.path.map_or(0, |path| path.in_flight_bytes);
    let on_its_way_bytes = lane.load.data_out_bytes + in_flight_bytes;
    u64::from(lane.load.commands).saturating_sub(on_its_way_bytes.div_ceil(command_bytes.max(1)))
}

/// What a connection can carry in a round trip, in proportion to the others.
fn capacity(lane: &LaneSample) -> f64 {
    lane.path.map_or(1.0, |path| path.congestion_window_bytes as f64)
}

fn capacity_share(lane: &LaneSample, sum: f64) -> f64 {
    if sum > 0.0 { capacity(lane) / sum } else { 0.0 }
}

/// What a connection does that has something to send; `None` if it is idle.
fn activity(lane: &LaneSample) -> Option<Wait> {
    let has_unsent = lane.load.unsent_bytes > 0;
    let Some(path) = &lane.path else { return has_unsent.then_some(Wait::Network) };
    if path.unsent_bytes > 0 || is_full(path) {
        Some(Wait::Network)
    } else {
        (has_unsent || path.waiting_bytes > 0).then_some(Wait::SendBuffer)
    }
}

fn is_full(path: &PathMeasurement) -> bool {
    path.in_flight_bytes as f64 >= WINDOW_FULL * path.congestion_window_bytes as f64
        && path.in_flight_bytes > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane_sample::LaneLoad;
    use pdu::LaneId;

    const RTT: Duration = PathMeasurement::QUIET.rtt;
    const MEBIBYTE: u64 = 1 << 20;

    fn path(in_flight_bytes: u64, unsent_bytes: u64) -> PathMeasurement {
        PathMeasurement { in_flight_bytes, unsent_bytes, ..PathMeasurement::QUIET }
    }

    fn lane(load: LaneLoad, path: PathMeasurement) -> LaneSample {
        LaneSample { load, path: Some(path), ..LaneSample::idle(LaneId(0)) }
    }

    fn writing(data_out_bytes: u64, path: PathMeasurement) -> LaneSample {
        lane(LaneLoad { commands: 1, data_out_bytes, ..LaneLoad::default() }, path)
    }

    fn waits(lanes: &[LaneSample], queued_commands: u32, unanswered_out_bytes: u64) -> Waits {
        Look { lanes, queued_commands, unanswered_out_bytes, oldest_read: None, thread: None }
            .waits(Duration::ZERO)
    }

    fn wait(lanes: &[LaneSample], queued_commands: u32, unanswered_out_bytes: u64) -> Wait {
        let waits = waits(lanes, queued_commands, unanswered_out_bytes);
        let all = Wait::ALL.into_iter().find(|wait| waits.of(*wait) > 0.999);
        all.unwrap_or_else(|| panic!("several: {waits:?}"))
    }

    #[test]
    fn without_work_the_session_waits_for_its_caller() {
        assert_eq!(wait(&[lane(LaneLoad::default(), path(0, 0))], 0, 0), Wait::Caller);
    }

    #[test]
    fn unsent_data_and_a_full_window_wait_for_the_network() {
        assert_eq!(wait(&[writing(MEBIBYTE, path(50_000, 1))], 9, MEBIBYTE), Wait::Network);
        assert_eq!(wait(&[writing(MEBIBYTE, path(90_000, 0))], 9, MEBIBYTE), Wait::Network);
    }

    #[test]
    fn data_that_the_socket_does_not_take_although_the_window_has_room_waits_for_the_send_buffer() {
        let mut blocked = writing(MEBIBYTE, path(50_000, 0));
        blocked.load.unsent_bytes = 8192;
        assert_eq!(wait(&[blocked], 0, MEBIBYTE), Wait::SendBuffer);
    }

    #[test]
    fn data_that_a_thread_cannot_write_although_the_window_has_room_waits_for_the_send_buffer() {
        let blocked = PathMeasurement { waiting_bytes: 8192, ..path(50_000, 0) };
        assert_eq!(wait(&[writing(MEBIBYTE, blocked)], 0, MEBIBYTE), Wait::SendBuffer);
    }

    #[test]
    fn a_write_that_the_target_has_not_asked_for_waits_for_an_r2t() {
        assert_eq!(wait(&[writing(MEBIBYTE, path(0, 0))], 0, MEBIBYTE), Wait::ReadyToTransfer);
    }

    #[test]
    fn a_write_that_is_on_its_way_alone_wants_another_beside_it() {
        assert_eq!(wait(&[writing(0, path(60_000, 0))], 0, 60_000), Wait::Depth);
    }

    #[test]
    fn a_write_of_which_a_part_has_arrived_does_not_wait_for_the_target() {
        assert_eq!(wait(&[writing(0, path(10_000, 0))], 0, MEBIBYTE), Wait::Depth);
    }

    #[test]
    fn a_write_that_has_arrived_waits_for_the_target() {
        assert_eq!(wait(&[writing(0, path(0, 0))], 0, MEBIBYTE), Wait::Target);
    }

    #[test]
    fn writes_at_the_target_wait_for_the_network_while_an_earlier_one_may_be_lost() {
        let lost = PathMeasurement { is_recovering: true, ..path(1000, 0) };
        let lanes = [writing(0, path(0, 0)), writing(0, path(0, 0)), writing(0, lost)];
        assert_eq!(wait(&lanes, 0, 3 * MEBIBYTE), Wait::Network);
    }

    #[test]
    fn if_most_writes_are_at_the_target_a_closed_command_window_is_its_fault() {
        let mut parked = LaneSample { parked_commands: 1, ..writing(0, path(10_000, 0)) };
        parked.load.commands = 100;
        assert_eq!(wait(&[parked], 5, 100 * MEBIBYTE), Wait::Target);
    }

    #[test]
    fn a_closed_command_window_is_waited_for_if_what_it_admits_is_on_its_way() {
        let parked = LaneSample { parked_commands: 1, ..writing(0, path(60_000, 0)) };
        assert_eq!(wait(&[parked], 5, 64_000), Wait::CommandWindow);
    }

    #[test]
    fn connections_count_as_much_as_their_windows_carry() {
        let mut large = path(0, 0);
        large.congestion_window_bytes = 300_000;
        let waits = waits(&[writing(MEBIBYTE, path(90_000, 0)), writing(0, large)], 0, MEBIBYTE);
        assert_eq!((waits.of(Wait::Network), waits.of(Wait::Depth)), (0.25, 0.75));
    }

    #[test]
    fn a_pause_within_a_pdu_is_not_the_targets_time() {
        let load = LaneLoad { commands: 1, data_in_bytes: MEBIBYTE, ..LaneLoad::default() };
        let lanes = [LaneSample { is_receiving: true, ..lane(load, path(0, 0)) }];
        let late = Look {
            lanes: &lanes,
            queued_commands: 0,
            unanswered_out_bytes: 0,
            oldest_read: Some(RTT * 3),
            thread: None,
        };
        assert_eq!(late.waits(RTT / 2), Waits::only(Wait::Arrival));
    }

    #[test]
    fn the_first_data_of_a_read_takes_a_round_trip_and_more_is_the_targets_time() {
        let reading =
            lane(LaneLoad { commands: 1, data_in_bytes: MEBIBYTE, ..LaneLoad::default() }, path(0, 0));
        let lanes = [reading];
        let look = |oldest_read| Look {
            lanes: &lanes,
            queued_commands: 0,
            unanswered_out_bytes: 0,
            oldest_read: Some(oldest_read),
            thread: None,
        };
        assert_eq!(look(RTT).waits(Duration::ZERO), Waits::only(Wait::Arrival));
        assert_eq!(look(RTT).waits(RTT / 2), Waits::only(Wait::Depth));
        assert_eq!(look(RTT * 2).waits(RTT / 2), Waits::only(Wait::Target));
        assert_eq!(look(RTT).waits(RTT * 2), Waits::only(Wait::Target));
    }
}
