//! What is expected of a lane: when it delivers a command, how much may wait on it, and how long commands should be.

use crate::arrivals::Arrivals;
use crate::lane_sample::{LaneSample, PathMeasurement};
use crate::placement::Demand;
use pdu::{Duration, LaneId};

/// The least that may wait on a lane, to be sent or to come: a few segments more than a window that begins.
pub(crate) const ROOM_BYTES_MIN: u64 = 64 << 10;

/// The least that may be on its way on a lane from the target, which sends it without further delay.
pub(crate) const INCOMING_BYTES_MIN: u64 = 128 << 10;

/// What may be on its way, in round trips. Two at least: one until the target has the command, and as much again so that
/// the rate can double. More while much is queued, so that the lanes have work while a command that was lost is sent
/// again: the target begins nothing that comes after it.
const INCOMING_ROUND_TRIPS_MIN: f64 = 2.0;
const INCOMING_ROUND_TRIPS_MAX: f64 = 6.0;

/// The part of a lane's share in everything queued that it may get beyond the least. The rest evens out what the lanes
/// turn out to move.
const SHARE_PART: u64 = 4;

/// The shortest command that is made by cutting while much is queued. Shorter ones cost more processor time than they
/// save.
pub(crate) const CUT_BYTES_MIN: u64 = 64 << 10;

/// The shortest one while little is queued, so that lanes that move little finish together with the others: whole
/// pages, and no more than an initial window.
pub(crate) const LAST_CUT_BYTES_MIN: u64 = 12 << 10;

/// Commands are cut at pages while their lane's rate is not known.
const PAGE_BYTES: u64 = 4 << 10;

/// Half a round trip counts at least this much where commands are cut: a shorter command gains nothing.
const CUT_TIME_MIN: Duration = Duration::from_millis(10);

/// What may wait on a lane on a short path, even if its share of the work is less: more than such a path holds, so that
/// the lane never idles.
const NEAR_ROOM_BYTES_MIN: u64 = 1 << 20;

/// The initial window of RFC 6928, for a lane that has brought nothing yet.
const INITIAL_WINDOW_BYTES: f64 = 14_600.0;

/// The round trip from which on a path's rate is worth measuring: on shorter ones, what is at the ends takes as long.
pub(crate) const LONG_PATH: Duration = Duration::from_millis(1);

/// The rate assumed if all paths are shorter, and of lanes that nothing measures. Only their proportions matter, and
/// these are equal; commands are cut to what it moves in [`CUT_TIME_MIN`].
const NEAR_BYTES_PER_SECOND: f64 = 400e6;

/// The expectation for one lane, in the direction of the command's data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    pub lane: LaneId,
    pub bytes_per_second: f64,
    pub round_trip_s: f64,
    /// Bytes that arrive before anything that is placed now.
    pub before_bytes: f64,
    /// Bytes placed and not yet sent, or not yet come.
    placed_bytes: u64,
    /// The lane gets more while less than this is placed.
    room_bytes: u64,
    command_bytes_min: u64,
    /// No command is cut to more.
    command_bytes_limit: u64,
    /// What the lane certainly brings in its first round trip, beyond what is placed on it; 0 once its rate is known.
    first_window_bytes: u64,
    pub commands: u32,
}

impl Outlook {
    /// What is expected of a lane among the `crowd`.
    pub fn new(arrivals: &Arrivals, demand: Demand, sample: &LaneSample, crowd: Crowd) -> Self {
        let Some(path) = sample.path.filter(|path| !crowd.is_near && path.rtt_min > Duration::ZERO) else {
            return near(demand, sample, crowd.share_bytes);
        };
        if demand.data_in_bytes > 0 {
            incoming(arrivals, sample, &path, crowd)
        } else {
            outgoing(demand, sample, &path, crowd)
        }
    }

    pub fn has_room(&self) -> bool {
        self.placed_bytes < self.room_bytes
    }

    /// The time until `bytes` more are delivered.
    pub fn delivery_s(&self, bytes: u64) -> f64 {
        self.round_trip_s + (self.before_bytes + bytes as f64) / self.bytes_per_second
    }

    /// The longest command that should be placed, if it may be cut.
    pub fn command_bytes_max(&self) -> u64 {
        let first_bytes = self.first_window_bytes / PAGE_BYTES * PAGE_BYTES;
        if first_bytes > 0 {
            return first_bytes;
        }
        let time_s = (self.round_trip_s / 2.0).max(CUT_TIME_MIN.as_secs_f64());
        let bytes = whole(self.bytes_per_second * time_s);
        let bytes = bytes.next_multiple_of(self.command_bytes_min).max(self.command_bytes_min);
        bytes.min(self.command_bytes_limit)
    }
}

/// What a lane has to know of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    /// The share of each connection in everything that is queued or waits on a lane.
    share_bytes: u64,
    /// Further connections are about to come.
    is_growing: bool,
    /// All lanes that are measured have short paths.
    is_near: bool,
}

impl Crowd {
    pub fn new(demand: Demand, lanes: &[LaneSample]) -> Self {
        let waiting: u64 = lanes.iter().map(|sample| waiting_bytes(demand, sample)).sum();
        let (present, wanted) = (lanes.len() as u64, u64::from(demand.connections_wanted));
        Self {
            share_bytes: (waiting + demand.queued_bytes).div_ceil(present.max(wanted).max(1)),
            is_growing: demand.is_growing && present < wanted,
            is_near: lanes.iter().filter_map(|sample| sample.path).all(|path| path.rtt_min < LONG_PATH),
        }
    }

    /// The shortest command that is made by cutting.
    fn command_bytes_min(self) -> u64 {
        let part = self.share_bytes / SHARE_PART;
        part.next_multiple_of(LAST_CUT_BYTES_MIN).clamp(LAST_CUT_BYTES_MIN, CUT_BYTES_MIN)
    }
}

fn incoming(arrivals: &Arrivals, sample: &LaneSample, path: &PathMeasurement, crowd: Crowd) -> Outlook {
    // Commands are short, and their acknowledgements delayed. Behind the data of writes they wait as long as it does.
    let is_sending = sample.load.data_out_bytes > 0 && path.in_flight_bytes > 0;
    let round_trip_s = if is_sending { path.rtt } else { path.rtt_min }.as_secs_f64();
    let first = INITIAL_WINDOW_BYTES / round_trip_s;
    let measured = arrivals.bytes_per_second(sample.lane).unwrap_or(first).max(1.0);
    let expected = arrivals.expected(sample.lane).unwrap_or(measured).max(1.0);
    let moved =
        |round_trips: f64| whole(measured * round_trips * round_trip_s.max(CUT_TIME_MIN.as_secs_f64()));
    let spare = moved(INCOMING_ROUND_TRIPS_MAX).min(crowd.share_bytes / SHARE_PART);
    // While lanes are about to come, a lane gets no more than it is sure to bring: the rest is theirs.
    let room_bytes = match (crowd.is_growing, arrivals.is_proven(sample.lane)) {
        (true, false) => whole(INITIAL_WINDOW_BYTES / 2.0),
        (true, true) => moved(INCOMING_ROUND_TRIPS_MIN).max(whole(INITIAL_WINDOW_BYTES)),
        (false, _) => moved(INCOMING_ROUND_TRIPS_MIN).max(spare).max(INCOMING_BYTES_MIN),
    };
    Outlook {
        lane: sample.lane,
        bytes_per_second: expected,
        round_trip_s,
        before_bytes: sample.load.data_in_bytes as f64,
        placed_bytes: sample.load.data_in_bytes,
        room_bytes,
        command_bytes_min: crowd.command_bytes_min(),
        command_bytes_limit: u64::MAX,
        first_window_bytes: match arrivals.is_proven(sample.lane) {
            true => 0,
            false => whole(INITIAL_WINDOW_BYTES).saturating_sub(sample.load.data_in_bytes),
        },
        commands: sample.load.commands,
    }
}

fn outgoing(demand: Demand, sample: &LaneSample, path: &PathMeasurement, crowd: Crowd) -> Outlook {
    let placed_bytes = sample.load.data_out_bytes + sample.load.unsent_bytes + path.pending_bytes();
    let round_trip_s = path.rtt.as_secs_f64();
    Outlook {
        lane: sample.lane,
        bytes_per_second: (path.congestion_window_bytes as f64 / round_trip_s).max(1.0),
        round_trip_s,
        before_bytes: (placed_bytes + path.in_flight_bytes) as f64,
        placed_bytes,
        room_bytes: (path.congestion_window_bytes * windows(demand, sample)).max(ROOM_BYTES_MIN),
        command_bytes_min: crowd.command_bytes_min(),
        command_bytes_limit: without_r2t(sample),
        first_window_bytes: 0,
        commands: sample.load.commands,
    }
}

/// The longest write that does not wait a round trip for an R2T, if that is long enough to be worth a command.
fn without_r2t(sample: &LaneSample) -> u64 {
    let unsolicited_bytes = u64::from(sample.unsolicited_bytes);
    if unsolicited_bytes < CUT_BYTES_MIN { u64::MAX } else { unsolicited_bytes }
}

/// How many windows of data may wait on a lane: data that the target must ask for leaves a round trip later, and then
/// needs another one, or the lane would run dry meanwhile.
fn windows(demand: Demand, sample: &LaneSample) -> u64 {
    let bytes = u64::from(demand.data_out_bytes).min(CUT_BYTES_MIN);
    if bytes > u64::from(sample.unsolicited_bytes) { 3 } else { 1 }
}

/// On a short path the hosts' processors limit the rates, and a lane's rate is only what it gets of them. Such lanes
/// have equal shares of the work.
fn near(demand: Demand, sample: &LaneSample, share_bytes: u64) -> Outlook {
    let before_bytes = waiting_bytes(demand, sample);
    Outlook {
        lane: sample.lane,
        bytes_per_second: NEAR_BYTES_PER_SECOND,
        round_trip_s: 0.0,
        before_bytes: before_bytes as f64,
        placed_bytes: before_bytes,
        room_bytes: share_bytes.max(NEAR_ROOM_BYTES_MIN),
        command_bytes_min: CUT_BYTES_MIN,
        command_bytes_limit: u64::MAX,
        first_window_bytes: 0,
        commands: sample.load.commands,
    }
}

/// Bytes that wait on a lane in the direction of the command's data.
fn waiting_bytes(demand: Demand, sample: &LaneSample) -> u64 {
    match demand.data_in_bytes {
        0 => sample.load.data_out_bytes + sample.load.unsent_bytes,
        _ => sample.load.data_in_bytes,
    }
}

/// A number of bytes as a whole one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}
