//! Chooses the lane that will have delivered the command first.

use crate::arrivals::Arrivals;
use crate::lane_sample::LaneSample;
use crate::outlook::{Crowd, Outlook};
use crate::placement::{Choice, Demand, Placement};
use pdu::{Instant, LaneId};

/// Places each command where its last byte is expected to arrive first: the bytes that the lane has to move before it
/// and those of the command itself, over the lane's rate, and the round trip.
///
/// A command is bound to its lane when it leaves, with all its data, also the data that the target asks for later. So a
/// lane gets no more than it moves in about a round trip ([`Outlook::has_room`]), in commands no longer than it moves
/// in half of one, and the rest waits for whichever lane is free next. A lane with room gets a command even so only if
/// the lanes without room would not have finished all that is queued by then: near the end of a copy, a slow lane
/// therefore stays idle rather than be the last.
///
/// A lane that is [stalled](LaneSample::is_stalled) gets nothing, nor does a session that has a
/// [parked](LaneSample::parked_commands) command.
#[derive(Clone, Debug, Default)]
pub struct EarliestDelivery {
    arrivals: Arrivals,
    last: Option<LaneId>,
}

/// The most unsent data of a connection without others beside it.
const ALONE_UNSENT_BYTES_MAX: u64 = 512 << 10;

/// A session with this many parked commands gets no further one, because another session may take it meanwhile. One
/// is parked so that it leaves at once when the command window opens.
const PARKED_COMMANDS_MAX: u32 = 1;

impl Placement for EarliestDelivery {
    fn wants_measurements(&self) -> bool {
        true
    }

    fn place(&mut self, now: Instant, demand: Demand, lanes: &[LaneSample]) -> Option<Choice> {
        self.arrivals.observe(now, lanes);
        if let [only] = lanes
            && !demand.may_be_cut
        {
            return alone(only);
        }
        let is_open =
            |sample: &&LaneSample| sample.is_usable() && sample.parked_commands < PARKED_COMMANDS_MAX;
        let all_idle = lanes.iter().all(LaneSample::is_idle);
        let open = lanes.iter().filter(is_open).filter(|sample| all_idle || !sample.is_stalled());
        let crowd = Crowd::new(demand, lanes);
        let outlooks: Vec<Outlook> =
            open.map(|sample| Outlook::new(&self.arrivals, demand, sample, crowd)).collect();
        let last = self.last.map_or(0, |lane| lane.0.wrapping_add(1));
        let bytes = |outlook: &Outlook| match demand.may_be_cut {
            true => demand.bytes().min(outlook.command_bytes_max()),
            false => demand.bytes(),
        };
        let rank = |outlook: &Outlook| {
            (outlook.delivery_s(bytes(outlook)), outlook.commands, outlook.lane.0.wrapping_sub(last))
        };
        let chosen = outlooks
            .iter()
            .filter(|outlook| outlook.has_room() || all_idle || demand.is_urgent)
            .min_by(|one, other| rank(one).partial_cmp(&rank(other)).unwrap_or(core::cmp::Ordering::Equal))?;
        if !all_idle && !demand.is_urgent && is_better_left(demand, chosen, bytes(chosen), &outlooks) {
            return None;
        }
        self.last = Some(chosen.lane);
        let bytes_max = if demand.may_be_cut { chosen.command_bytes_max() } else { u64::MAX };
        Some(Choice { lane: chosen.lane, bytes_max })
    }

    fn forget(&mut self, lane: LaneId) {
        self.arrivals.forget(lane);
    }
}

/// Whether the lanes without room would have finished everything queued before `chosen` has delivered `bytes`.
fn is_better_left(demand: Demand, chosen: &Outlook, bytes: u64, outlooks: &[Outlook]) -> bool {
    let busy = || outlooks.iter().filter(|outlook| !outlook.has_room());
    let bytes_per_second: f64 = busy().map(|outlook| outlook.bytes_per_second).sum();
    if bytes_per_second == 0.0 {
        return false;
    }
    let before: f64 = busy().map(|outlook| outlook.before_bytes).sum();
    let round_trip_s = busy().map(|outlook| outlook.round_trip_s).fold(f64::INFINITY, f64::min);
    let all_s = round_trip_s + (before + demand.queued_bytes as f64) / bytes_per_second;
    chosen.delivery_s(bytes) > all_s
}

/// The only connection that there is or is to be gets whole commands, as long as its socket takes them.
fn alone(only: &LaneSample) -> Option<Choice> {
    let has_room = only.is_usable()
        && only.parked_commands < PARKED_COMMANDS_MAX
        && only.load.unsent_bytes < ALONE_UNSENT_BYTES_MAX;
    has_room.then(|| Choice::whole(only.lane))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane_sample::{LaneLoad, Obstacle, PathMeasurement};
    use crate::outlook::{CUT_BYTES_MIN, INCOMING_BYTES_MIN, LAST_CUT_BYTES_MIN, ROOM_BYTES_MIN};
    use pdu::Duration;

    const MEBIBYTE: u32 = 1 << 20;
    const RTT: Duration = PathMeasurement::QUIET.rtt;
    /// 20 kB in 40 ms: 500 kB/s.
    const WINDOW_BYTES: u64 = 20_000;

    const PATH: PathMeasurement = PathMeasurement {
        delivery_bytes_per_second: 500_000,
        congestion_window_bytes: WINDOW_BYTES,
        ..PathMeasurement::QUIET
    };

    fn lane(id: u32) -> LaneSample {
        LaneSample { path: Some(PATH), unsolicited_bytes: 256 << 10, ..LaneSample::idle(LaneId(id)) }
    }

    fn with_window(lane: LaneSample, congestion_window_bytes: u64) -> LaneSample {
        with_path(lane, |path| path.congestion_window_bytes = congestion_window_bytes)
    }

    fn with_path(lane: LaneSample, change: impl Fn(&mut PathMeasurement)) -> LaneSample {
        let mut path = lane.path.unwrap_or(PATH);
        change(&mut path);
        LaneSample { path: Some(path), ..lane }
    }

    fn writing(lane: LaneSample, data_out_bytes: u64) -> LaneSample {
        LaneSample { load: LaneLoad { commands: 1, data_out_bytes, ..LaneLoad::default() }, ..lane }
    }

    fn reading(lane: LaneSample, data_in_bytes: u64) -> LaneSample {
        LaneSample { load: LaneLoad { commands: 1, data_in_bytes, ..LaneLoad::default() }, ..lane }
    }

    /// A write of a mebibyte with this much queued.
    fn write_of(queued_bytes: u64) -> Demand {
        Demand { queued_bytes, ..WRITE }
    }

    /// One of many, as in the middle of a copy.
    const WRITE: Demand = Demand {
        data_out_bytes: MEBIBYTE,
        data_in_bytes: 0,
        queued_bytes: 64 << 20,
        may_be_cut: true,
        connections_wanted: 4,
        is_growing: false,
        is_urgent: false,
    };
    const READ: Demand = Demand { data_out_bytes: 0, data_in_bytes: MEBIBYTE, ..WRITE };

    fn choice(demand: Demand, lanes: &[LaneSample]) -> Option<(u32, u64)> {
        let choice = EarliestDelivery::default().place(Instant::ZERO, demand, lanes)?;
        Some((choice.lane.0, choice.bytes_max))
    }

    fn chosen(demand: Demand, lanes: &[LaneSample]) -> Option<u32> {
        choice(demand, lanes).map(|(lane, _)| lane)
    }

    #[test]
    fn without_a_lane_the_command_waits() {
        assert_eq!(choice(WRITE, &[]), None);
    }

    #[test]
    fn while_lanes_are_to_come_a_new_one_gets_what_it_brings_in_its_first_round_trip() {
        let (room, full) = (reading(lane(0), 4_000), reading(lane(0), 8_000));
        let growing = Demand { is_growing: true, ..READ };
        assert_eq!(chosen(growing, &[room]), Some(0));
        assert_eq!(chosen(growing, &[full]), None);
        let complete = Demand { connections_wanted: 1, ..growing };
        assert_eq!(chosen(complete, &[full]), Some(0));
        assert_eq!(chosen(READ, &[full]), Some(0), "lanes that take long are not waited for");
    }

    #[test]
    fn while_lanes_are_to_come_one_that_has_brought_a_little_is_not_asked_for_everything() {
        let mut policy = EarliestDelivery::default();
        let growing = Demand { queued_bytes: 128 << 10, is_growing: true, ..READ };
        let at = |received_bytes, placed| LaneSample { received_bytes, ..reading(lane(0), placed) };
        policy.place(Instant::ZERO, growing, &[at(0, 4_000)]);
        let now = Instant::ZERO + RTT;
        assert!(policy.place(now, growing, &[at(2_000, 14_000)]).is_some());
        assert_eq!(policy.place(now, growing, &[at(2_000, 15_000)]), None);
        let complete = Demand { connections_wanted: 1, ..growing };
        assert!(policy.place(now, complete, &[at(2_000, 15_000)]).is_some());
    }

    #[test]
    fn equal_lanes_take_turns() {
        let lanes = [lane(0), lane(1), lane(2)];
        let mut policy = EarliestDelivery::default();
        let turns = (0..4).filter_map(|_| policy.place(Instant::ZERO, WRITE, &lanes));
        assert_eq!(turns.map(|choice| choice.lane.0).collect::<Vec<_>>(), [0, 1, 2, 0]);
    }

    #[test]
    fn a_faster_lane_is_chosen_even_if_it_has_more_to_do() {
        let fast = writing(with_window(lane(1), 20 * WINDOW_BYTES), 100_000);
        assert_eq!(chosen(WRITE, &[lane(0), fast]), Some(1));
    }

    #[test]
    fn a_nearer_lane_is_chosen_at_the_same_rate() {
        let near = with_path(lane(1), |path| {
            (path.rtt, path.rtt_min) = (RTT / 4, RTT / 4);
            path.congestion_window_bytes = WINDOW_BYTES / 4;
        });
        assert_eq!(chosen(WRITE, &[lane(0), near]), Some(1));
    }

    #[test]
    fn data_in_flight_and_unsent_in_the_socket_come_first() {
        let busy = |change: fn(&mut PathMeasurement)| [with_path(lane(0), change), lane(1)];
        assert_eq!(chosen(WRITE, &busy(|path| path.in_flight_bytes = 1448)), Some(1));
        assert_eq!(chosen(WRITE, &busy(|path| path.unsent_bytes = 1448)), Some(1));
    }

    #[test]
    fn a_command_is_cut_to_what_its_lane_moves_in_half_a_round_trip() {
        assert_eq!(choice(WRITE, &[lane(0)]), Some((0, CUT_BYTES_MIN)));
        assert_eq!(choice(WRITE, &[with_window(lane(0), 320_000)]), Some((0, 3 * CUT_BYTES_MIN)));
    }

    #[test]
    fn on_a_short_path_commands_stay_long() {
        let near = with_path(lane(0), |path| {
            (path.rtt, path.rtt_min) = (Duration::from_micros(50), Duration::from_micros(50));
            path.congestion_window_bytes = 640 << 10;
        });
        let (_, bytes_max) = choice(WRITE, &[near, LaneSample { lane: LaneId(1), ..near }]).unwrap();
        assert!(bytes_max >= u64::from(MEBIBYTE), "{bytes_max}");
    }

    #[test]
    fn beside_a_long_path_a_short_one_gets_no_more_than_it_moves() {
        let near = with_path(writing(lane(0), ROOM_BYTES_MIN), |path| {
            (path.rtt, path.rtt_min) = (Duration::from_micros(900), Duration::from_micros(900));
            path.congestion_window_bytes = 2000;
        });
        assert_eq!(chosen(WRITE, &[near, lane(1)]), Some(1));
        assert_eq!(chosen(WRITE, &[near, writing(lane(1), ROOM_BYTES_MIN)]), None);
    }

    #[test]
    fn a_lane_with_a_window_of_data_waiting_gets_no_more() {
        let large = |placed| writing(with_window(lane(0), 100_000), placed);
        assert_eq!(chosen(WRITE, &[large(99_999)]), Some(0));
        assert_eq!(chosen(WRITE, &[large(100_000)]), None);
    }

    #[test]
    fn where_the_target_must_ask_for_data_three_windows_of_it_may_wait() {
        let asks =
            |placed| LaneSample { unsolicited_bytes: 0, ..writing(with_window(lane(0), 100_000), placed) };
        assert_eq!(chosen(WRITE, &[asks(299_999)]), Some(0));
        assert_eq!(chosen(WRITE, &[asks(300_000)]), None);
    }

    #[test]
    fn reads_count_what_has_yet_to_come() {
        assert_eq!(chosen(READ, &[reading(lane(0), 1), lane(1)]), Some(1));
        assert_eq!(chosen(READ, &[reading(lane(0), INCOMING_BYTES_MIN)]), None);
    }

    #[test]
    fn a_new_lane_is_asked_for_what_it_brings_in_its_first_round_trip() {
        let survey = Demand { queued_bytes: 128 << 10, connections_wanted: 2, ..READ };
        assert_eq!(choice(survey, &[reading(lane(0), 0)]), Some((0, 12 << 10)));
        assert_eq!(choice(survey, &[reading(lane(0), 4 << 10)]), Some((0, 8 << 10)));
        assert_eq!(choice(survey, &[reading(lane(0), 12 << 10)]), Some((0, 24 << 10)));
    }

    #[test]
    fn a_lane_that_brings_more_may_be_asked_for_more() {
        let mut policy = EarliestDelivery::default();
        let at = |received_bytes| LaneSample { received_bytes, ..reading(lane(0), INCOMING_BYTES_MIN) };
        assert_eq!(policy.place(Instant::ZERO, READ, &[at(0)]), None);
        let choice = policy.place(Instant::ZERO + RTT, READ, &[at(200_000)]);
        assert_eq!(choice.map(|choice| choice.bytes_max), Some(2 * CUT_BYTES_MIN));
    }

    #[test]
    fn while_much_is_queued_reads_are_asked_for_further_ahead() {
        // 200 kB in a round trip.
        let mut policy = EarliestDelivery::default();
        let at = |received_bytes, placed| LaneSample { received_bytes, ..reading(lane(0), placed) };
        assert_eq!(policy.place(Instant::ZERO, READ, &[at(0, 1_000_000)]), None);
        let read_of = |queued_bytes| Demand { queued_bytes, connections_wanted: 2, ..READ };
        let mut is_placed = |queued_bytes| {
            let lanes = [at(200_000, 1_000_000)];
            policy.place(Instant::ZERO + RTT, read_of(queued_bytes), &lanes).is_some()
        };
        assert!(is_placed(64 << 20), "less than six round trips of data are to come");
        assert!(!is_placed(1 << 20), "more than two are");
    }

    #[test]
    fn behind_the_data_of_writes_reads_are_asked_for_as_much_further_ahead() {
        let mut policy = EarliestDelivery::default();
        let at = |received_bytes, change: fn(&mut PathMeasurement)| LaneSample {
            received_bytes,
            load: LaneLoad {
                commands: 2,
                data_in_bytes: 1_500_000,
                data_out_bytes: 1,
                ..LaneLoad::default()
            },
            ..with_path(lane(0), change)
        };
        assert_eq!(policy.place(Instant::ZERO, READ, &[at(0, |_| ())]), None);
        let now = Instant::ZERO + RTT;
        assert_eq!(policy.place(now, READ, &[at(200_000, |_| ())]), None);
        let full = at(200_000, |path| (path.rtt, path.in_flight_bytes) = (RTT * 2, 1));
        assert!(policy.place(now, READ, &[full]).is_some());
    }

    #[test]
    fn near_the_end_commands_are_cut_shorter() {
        let lanes = [lane(0), lane(1), lane(2), lane(3)];
        assert_eq!(choice(write_of(64 << 20), &lanes), Some((0, CUT_BYTES_MIN)));
        assert_eq!(choice(write_of(64 << 10), &lanes), Some((0, LAST_CUT_BYTES_MIN)));
    }

    #[test]
    fn near_the_end_a_slow_lane_is_left_idle() {
        let busy = writing(with_window(lane(0), 2_000_000), 2_000_000);
        assert_eq!(chosen(write_of(64 << 20), &[busy, lane(1)]), Some(1));
        assert_eq!(chosen(write_of(64 << 10), &[busy, lane(1)]), None, "the fast one is done first");
    }

    #[test]
    fn a_lane_after_a_retransmission_timeout_gets_nothing() {
        let stalled = writing(with_path(lane(0), |path| path.is_timed_out = true), 1);
        assert_eq!(chosen(WRITE, &[stalled, lane(1)]), Some(1));
        assert_eq!(chosen(WRITE, &[stalled]), None);
    }

    #[test]
    fn a_lane_that_has_fallen_silent_gets_nothing() {
        let unheard = with_path(lane(0), |path| (path.in_flight_bytes, path.out_silence) = (1, RTT * 2));
        let broken_off = with_path(lane(0), |path| path.in_silence = RTT * 2);
        let broken_off = LaneSample { is_receiving: true, ..broken_off };
        for silent in [unheard, broken_off] {
            assert_eq!(chosen(WRITE, &[writing(silent, 1), lane(1)]), Some(1));
            assert_eq!(chosen(WRITE, &[writing(silent, 1)]), None);
        }
    }

    #[test]
    fn a_lane_with_nothing_under_way_is_not_silent() {
        let quiet = with_path(lane(0), |path| (path.out_silence, path.in_silence) = (RTT * 9, RTT * 9));
        assert_eq!(chosen(WRITE, &[quiet]), Some(0));
    }

    #[test]
    fn idle_lanes_are_never_held_back() {
        let stalled = with_path(lane(0), |path| path.is_timed_out = true);
        assert!(stalled.is_idle());
        assert_eq!(chosen(WRITE, &[stalled]), Some(0));
    }

    #[test]
    fn a_lane_that_cannot_take_a_command_is_not_chosen() {
        for obstacle in [Obstacle::Leaving, Obstacle::SessionFull] {
            let closed = LaneSample { obstacle: Some(obstacle), ..lane(0) };
            assert_eq!(chosen(WRITE, &[closed, writing(lane(1), 1)]), Some(1), "{obstacle:?}");
        }
    }

    #[test]
    fn a_session_with_a_parked_command_gets_no_further_one() {
        let parked = LaneSample { parked_commands: PARKED_COMMANDS_MAX, ..lane(0) };
        assert_eq!(chosen(WRITE, &[parked, lane(1)]), Some(1));
        assert_eq!(chosen(WRITE, &[parked]), None);
    }

    #[test]
    fn the_only_connection_gets_whole_commands_until_its_socket_is_full() {
        let alone = Demand { may_be_cut: false, ..WRITE };
        assert_eq!(choice(alone, &[writing(lane(0), 1 << 30)]), Some((0, u64::MAX)));
        let load = LaneLoad { commands: 1, unsent_bytes: ALONE_UNSENT_BYTES_MAX, ..LaneLoad::default() };
        assert_eq!(choice(alone, &[LaneSample { load, ..lane(0) }]), None);
    }

    #[test]
    fn a_write_on_a_long_path_is_cut_to_what_needs_no_r2t() {
        let fast = with_window(lane(0), 2_000_000);
        assert_eq!(choice(WRITE, &[fast]), Some((0, 256 << 10)));
        let (_, asked) = choice(WRITE, &[LaneSample { unsolicited_bytes: 8 << 10, ..fast }]).unwrap();
        assert!(asked > 256 << 10, "R2Ts are needed in any case: {asked}");
    }

    #[test]
    fn lanes_on_a_short_path_share_by_what_they_have_to_do_and_not_by_their_rates() {
        let near = |id, rtt_us, placed| {
            let rtt = Duration::from_micros(rtt_us);
            writing(with_path(lane(id), |path| (path.rtt, path.rtt_min) = (rtt, rtt)), placed)
        };
        assert_eq!(chosen(WRITE, &[near(0, 20, 4096), near(1, 900, 0)]), Some(1));
    }

    #[test]
    fn on_a_short_path_a_lane_leaves_their_shares_to_those_that_have_not_logged_in() {
        let first = |placed| LaneSample { path: None, ..writing(lane(0), placed) };
        assert_eq!(chosen(write_of(8 << 20), &[first(0)]), Some(0));
        assert_eq!(chosen(write_of(5 << 20), &[first(3 << 20)]), None, "it has a quarter");
    }

    #[test]
    fn a_command_that_others_wait_for_is_placed_even_where_no_room_is() {
        let urgent = Demand { is_urgent: true, ..WRITE };
        let full = writing(lane(0), 1 << 20);
        assert_eq!(chosen(WRITE, &[full]), None);
        assert_eq!(chosen(urgent, &[full]), Some(0));
    }

    #[test]
    fn lanes_that_nothing_measures_share_by_what_they_have_to_do() {
        let unmeasured = |id, placed| LaneSample { path: None, ..writing(lane(id), placed) };
        assert_eq!(chosen(WRITE, &[unmeasured(0, 9), unmeasured(1, 5), unmeasured(2, 7)]), Some(1));
    }
}
