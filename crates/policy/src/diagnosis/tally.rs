//! Adds up what a session waits for.

use super::seen::Seen;
use super::wait::{Look, ThreadTime, Wait, Waits};
use crate::lane_sample::{LaneSample, PathCounters, PathMeasurement};
use pdu::{Instant, LaneId};

/// Watches a session, and adds up what it waits for.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    last: Option<Last>,
    lanes: Vec<Counted>,
    seen: Seen,
}

/// The last look.
#[derive(Clone, Copy, Debug)]
struct Last {
    at: Instant,
    waits: Waits,
    received_bytes: u64,
    /// When data had last arrived, or the work began.
    arrived: Instant,
    /// Every read is answered as soon as the path allows.
    is_prompt: bool,
    is_window_closed: bool,
    thread: Option<ThreadTime>,
}

impl Last {
    /// Whether data of reads was to come, and none came.
    fn has_waited_for_data(&self) -> bool {
        self.arrived < self.at
    }

    fn was_idle(self) -> bool {
        self.waits.of(Wait::Caller) > 0.0
    }
}

/// The counters of a connection at the last look.
#[derive(Clone, Copy, Debug)]
struct Counted {
    lane: LaneId,
    counters: PathCounters,
    received_bytes: u64,
    window_bytes: u64,
    /// Nothing was sent or acknowledged.
    was_idle: bool,
    /// The window before the connection was idle, until it is reached again or something is lost.
    window_before_idle: Option<u64>,
}

impl Tally {
    /// Looks at the session. What was seen at the last look is taken to have lasted until now.
    pub fn look(&mut self, now: Instant, look: &Look<'_>) {
        let received_bytes = look.lanes.iter().map(|lane| lane.received_bytes).sum();
        let last = self.last;
        let arrived = match last {
            Some(last) if last.received_bytes == received_bytes && !last.was_idle() => last.arrived,
            _ => now,
        };
        let elapsed_s = last.map_or(0.0, |last| now.saturating_duration_since(last.at).as_secs_f64());
        if let Some(last) = last {
            self.seen.waits_s.add_scaled(&last.waits, elapsed_s);
            let prompt_s = if last.is_prompt { last.waits.of(Wait::Arrival) * elapsed_s } else { 0.0 };
            self.seen.prompt_s += prompt_s;
            self.seen.prompt_closed_s += if last.is_window_closed { prompt_s } else { 0.0 };
            self.seen.age_s += elapsed_s;
            if let Some(delivery) = delivery_of_one(look.lanes) {
                self.seen.delivery_bytes += delivery * elapsed_s;
                self.seen.delivery_s += elapsed_s;
            }
            if let Some(busy_s) = busy_s(last.thread, look.thread) {
                self.seen.processor_s += busy_s;
                self.seen.processor_seen_s += elapsed_s;
            }
        }
        self.lanes.retain(|known| look.lanes.iter().any(|lane| lane.lane == known.lane));
        let worked_s = if last.is_some_and(Last::was_idle) { 0.0 } else { elapsed_s };
        for lane in look.lanes {
            self.look_at_path(lane, worked_s);
        }
        let mut waits = look.waits(now.saturating_duration_since(arrived));
        if let Some(last) = last.filter(Last::has_waited_for_data)
            && waits.of(Wait::Arrival) > 0.0
        {
            // Data has begun to arrive somewhere between the two looks, and will end somewhere between two others: one of
            // the two intervals belongs to the silence.
            waits = last.waits;
        }
        let (is_prompt, is_window_closed) = (look.has_only_prompt_reads(), look.is_window_closed());
        let thread = look.thread;
        self.last =
            Some(Last { at: now, waits, received_bytes, arrived, is_prompt, is_window_closed, thread });
    }

    fn look_at_path(&mut self, lane: &LaneSample, elapsed_s: f64) {
        let Some(path) = &lane.path else { return };
        let counted = Counted {
            lane: lane.lane,
            counters: path.counters,
            received_bytes: lane.received_bytes,
            window_bytes: path.congestion_window_bytes,
            was_idle: path.is_idle(),
            window_before_idle: None,
        };
        let mut is_restarted = false;
        match self.lanes.iter_mut().find(|known| known.lane == lane.lane) {
            Some(known) => {
                self.seen.path.add_counters(known.counters, path);
                self.seen.path.add_received(lane.received_bytes.saturating_sub(known.received_bytes));
                *known = Counted { window_before_idle: known.window_before_idle(path), ..counted };
                is_restarted = known.window_before_idle.is_some();
            }
            None => self.lanes.push(counted),
        }
        self.seen.path.add_time(lane, path, is_restarted, elapsed_s);
    }

    /// What has been seen so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.seen
    }
}

impl Counted {
    /// The window that the connection had before it was idle: since then, it is less than half as large.
    fn window_before_idle(&self, path: &PathMeasurement) -> Option<u64> {
        let (before, now) = (self.counters, path.counters);
        let window_bytes = path.congestion_window_bytes;
        if (before.repeated_bytes, before.timeouts) != (now.repeated_bytes, now.timeouts) {
            return None;
        }
        let has_shrunk = self.was_idle && window_bytes < self.window_bytes / 2;
        let earlier = self.window_before_idle.or(has_shrunk.then_some(self.window_bytes));
        earlier.filter(|earlier| window_bytes < earlier / 4 * 3)
    }
}

/// The delivery rate of the connection that works, in bytes per second, if it is only one. Of several, each may have the
/// path to itself at times, and nobody knows when.
fn delivery_of_one(lanes: &[LaneSample]) -> Option<f64> {
    let mut working = lanes.iter().filter(|lane| lane.is_working()).filter_map(|lane| lane.path);
    let only = working.next().filter(|_| working.next().is_none())?;
    (only.delivery_bytes_per_second > 0).then_some(only.delivery_bytes_per_second as f64)
}

/// The seconds in which a thread was busy between two looks; `None` if they are of different threads.
fn busy_s(before: Option<ThreadTime>, now: Option<ThreadTime>) -> Option<f64> {
    let (before, now) = (before?, now?);
    (before.thread == now.thread).then(|| now.busy.saturating_sub(before.busy).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::{Change, Diagnosis, Limit};
    use crate::lane_sample::LaneLoad;
    use pdu::Duration;

    const RTT: Duration = PathMeasurement::QUIET.rtt;
    const MEBIBYTE: u64 = 1 << 20;

    fn look_at(lanes: &[LaneSample], unanswered_out_bytes: u64) -> Look<'_> {
        Look { lanes, queued_commands: 0, unanswered_out_bytes, oldest_read: None, thread: None }
    }

    /// A connection with data to send.
    fn sending() -> LaneSample {
        let path =
            PathMeasurement { in_flight_bytes: 100_000, unsent_bytes: 50_000, ..PathMeasurement::QUIET };
        let load = LaneLoad { commands: 1, data_out_bytes: MEBIBYTE, ..LaneLoad::default() };
        LaneSample { load, path: Some(path), ..LaneSample::idle(LaneId(0)) }
    }

    /// One whose data is all at the target.
    fn answered_late() -> LaneSample {
        let mut lane = sending();
        lane.load.data_out_bytes = 0;
        with(lane, |path| (path.in_flight_bytes, path.unsent_bytes) = (0, 0))
    }

    fn with(mut lane: LaneSample, change: impl FnOnce(&mut PathMeasurement)) -> LaneSample {
        if let Some(path) = &mut lane.path {
            change(path);
        }
        lane
    }

    /// The diagnosis of a second in which the session looks in turn as these connections do, each for ten milliseconds.
    fn diagnosis(lanes: &[LaneSample]) -> Diagnosis {
        diagnosis_after(100, lanes)
    }

    fn diagnosis_after(ticks: u64, lanes: &[LaneSample]) -> Diagnosis {
        let mut tally = Tally::default();
        for (tick, lane) in (0..=ticks).zip(lanes.iter().cycle()) {
            let lanes = [with(*lane, |path| {
                // What was sent until now: a megabyte per second.
                path.counters.sent_bytes = tick * 10_000;
                path.counters.repeated_bytes *= tick;
                path.counters.busy = Duration::from_millis(10 * tick);
                path.counters.receive_window_limited *= u32::try_from(tick).unwrap_or(u32::MAX);
            })];
            let now = Instant::ZERO + Duration::from_millis(10 * tick);
            tally.look(now, &look_at(&lanes, MEBIBYTE));
        }
        tally.seen().diagnose().expect("that is long enough")
    }

    #[test]
    fn a_part_of_the_time_is_judged_by_what_was_seen_in_it() {
        let mut tally = Tally::default();
        let mut look = |ms: u64, lane| {
            let lanes = [lane];
            let look = look_at(&lanes, MEBIBYTE);
            tally.look(Instant::ZERO + Duration::from_millis(ms), &look);
            tally.seen()
        };
        let before = (0..100).map(|tick| look(10 * tick, answered_late())).last().unwrap();
        let after = (100..200).map(|tick| look(10 * tick, sending())).last().unwrap();
        assert_eq!(before.diagnose().map(|diagnosis| diagnosis.limit), Some(Limit::Target));
        let second = after.since(&before).diagnose().unwrap();
        assert!(second.network_share > 0.9, "{second:?}");
    }

    #[test]
    fn a_look_of_a_moment_says_nothing() {
        let mut tally = Tally::default();
        tally.look(Instant::ZERO, &look_at(&[sending()], 0));
        assert_eq!(tally.seen().diagnose(), None);
    }

    #[test]
    fn nothing_is_said_of_a_session_within_one_machine() {
        let mut tally = Tally::default();
        for tick in 0..=100 {
            let near = [with(sending(), |path| path.rtt_min = Duration::from_micros(50))];
            let now = Instant::ZERO + Duration::from_millis(10 * tick);
            tally.look(now, &look_at(&near, MEBIBYTE));
        }
        assert_eq!(tally.seen().diagnose(), None);
    }

    #[test]
    fn what_was_waited_for_most_of_the_time_limits_and_without_it_the_rest_is_faster() {
        let mut on_its_way = sending();
        on_its_way.load.data_out_bytes = 0;
        let on_its_way = with(on_its_way, |path| (path.in_flight_bytes, path.unsent_bytes) = (60_000, 0));
        let mut tally = Tally::default();
        for tick in 0..=100_u64 {
            let (lane, unanswered_out_bytes) =
                if tick % 2 == 0 { (on_its_way, 60_000) } else { (sending(), MEBIBYTE) };
            // A megabyte per second, over a path that carries two.
            let lane = with(lane, |path| {
                path.delivery_bytes_per_second = 2_000_000;
                path.counters.sent_bytes = tick * 10_000;
            });
            let now = Instant::ZERO + Duration::from_millis(10 * tick);
            tally.look(now, &look_at(&[lane], unanswered_out_bytes));
        }
        let diagnosis = tally.seen().diagnose().unwrap();
        assert_eq!((diagnosis.limit, diagnosis.share), (Limit::Depth, 0.5));
        let remedy = diagnosis.remedy.unwrap();
        assert_eq!(remedy.change, Change::MoreRequests);
        assert!((remedy.gain - 2.0).abs() < 0.1, "{remedy:?}");
    }

    #[test]
    fn a_disk_is_not_taken_for_the_network_as_long_as_that_is_idle() {
        let diagnosis = diagnosis(&[answered_late(), answered_late(), sending()]);
        assert_eq!(diagnosis.limit, Limit::Target);
        assert!((0.3..0.4).contains(&diagnosis.network_share), "{diagnosis:?}");
    }

    #[test]
    fn losses_without_a_queue_limit_a_busy_network() {
        let lossy = with(sending(), |path| path.counters.repeated_bytes = 100);
        let diagnosis = diagnosis(&[lossy]);
        assert_eq!(diagnosis.limit, Limit::Losses);
        assert!((diagnosis.path.loss - 0.01).abs() < 1e-9, "{diagnosis:?}");
    }

    #[test]
    fn losses_with_a_queue_are_those_of_a_full_path() {
        let full = with(sending(), |path| {
            path.counters.repeated_bytes = 100;
            path.rtt = RTT * 2;
        });
        let diagnosis = diagnosis(&[full]);
        assert_eq!((diagnosis.limit, diagnosis.remedy), (Limit::Saturation, None));
    }

    #[test]
    fn losses_at_long_round_trips_are_those_of_a_full_path_even_if_the_queue_is_short_at_other_times() {
        let at_its_peak = |rtt: Duration, repeated_bytes| {
            with(sending(), |path| {
                path.rtt = rtt;
                path.counters.repeated_bytes = repeated_bytes;
            })
        };
        // Data is only sent again between the third look and the first of the next four.
        let [short, long] = [RTT, RTT * 4 / 3];
        let mut tally = Tally::default();
        for tick in 0..=100_u64 {
            let rtt = if tick % 4 == 0 { long } else { short };
            let mut lane = at_its_peak(rtt, tick / 4 * 100);
            lane = with(lane, |path| path.counters.sent_bytes = tick * 10_000);
            tally.look(Instant::ZERO + Duration::from_millis(10 * tick), &look_at(&[lane], MEBIBYTE));
        }
        assert_eq!(tally.seen().diagnose().unwrap().limit, Limit::Saturation);
    }

    #[test]
    fn a_twentieth_lost_is_not_the_loss_of_a_full_path() {
        let lossy = with(sending(), |path| {
            path.counters.repeated_bytes = 500;
            path.rtt = RTT * 2;
        });
        assert_eq!(diagnosis(&[lossy]).limit, Limit::Losses);
    }

    #[test]
    fn connections_that_mostly_recover_from_timeouts_are_limited_by_those() {
        let timed_out = with(sending(), |path| path.is_timed_out = true);
        assert_eq!(diagnosis(&[timed_out, sending(), sending()]).limit, Limit::Timeouts);
    }

    #[test]
    fn a_receivers_window_that_is_full_a_fifth_of_the_time_limits() {
        let narrow = with(sending(), |path| {
            path.counters.receive_window_limited = Duration::from_millis(3);
        });
        assert_eq!(diagnosis(&[narrow]).limit, Limit::ReceiveWindow);
    }

    #[test]
    fn windows_that_grow_again_after_pauses_limit_a_session_that_pauses_little() {
        let mut tally = Tally::default();
        for tick in 0..=100_u64 {
            // Every quarter of a second, the connection is idle for a moment, and then its window grows again.
            let (window_bytes, is_idle) = (100_000 * (1 + tick % 25) / 26, tick % 25 == 24);
            let lane = with(sending(), |path| {
                path.congestion_window_bytes = window_bytes;
                path.in_flight_bytes = if is_idle { 0 } else { window_bytes };
                path.unsent_bytes = if is_idle { 0 } else { MEBIBYTE };
                path.counters.sent_bytes = tick * 10_000;
            });
            tally.look(Instant::ZERO + Duration::from_millis(10 * tick), &look_at(&[lane], MEBIBYTE));
        }
        assert_eq!(tally.seen().diagnose().unwrap().limit, Limit::IdleRestart);
    }

    /// The diagnosis of a second in which the working thread, or one thread after the other, is busy for so much of it.
    fn diagnosis_of_thread(percent: u64, threads: u64) -> Option<Limit> {
        let mut tally = Tally::default();
        for tick in 0..=100 {
            let busy = Duration::from_micros(100 * percent * tick);
            let thread = Some(ThreadTime { thread: tick % threads, busy });
            let near = [with(sending(), |path| path.rtt_min = Duration::from_micros(50))];
            let look = Look {
                lanes: &near,
                queued_commands: 0,
                unanswered_out_bytes: MEBIBYTE,
                oldest_read: None,
                thread,
            };
            tally.look(Instant::ZERO + Duration::from_millis(10 * tick), &look);
        }
        tally.seen().diagnose().map(|diagnosis| diagnosis.limit)
    }

    #[test]
    fn a_thread_that_always_works_is_the_limit_also_within_one_machine() {
        assert_eq!(diagnosis_of_thread(95, 1), Some(Limit::Processor));
        assert_eq!(diagnosis_of_thread(80, 1), None);
        assert_eq!(diagnosis_of_thread(95, 2), None, "nothing is known of work that changes its thread");
    }

    /// A connection on which data of reads comes all the time.
    fn receiving(tick: u64, change: impl FnOnce(&mut PathMeasurement)) -> LaneSample {
        let load = LaneLoad { commands: 1, data_in_bytes: MEBIBYTE, ..LaneLoad::default() };
        let idle = LaneSample { load, path: Some(PathMeasurement::QUIET), ..LaneSample::idle(LaneId(0)) };
        let received_bytes = 14_480 * tick;
        let lane = with(idle, |path| {
            path.receive_rtt = RTT;
            path.counters.received_segments = u32::try_from(10 * tick).unwrap_or(u32::MAX);
        });
        with(LaneSample { received_bytes, ..lane }, change)
    }

    /// The diagnosis of a second of reads, more than the path holds.
    fn diagnosis_of_reads(change: impl Fn(&mut PathMeasurement)) -> Diagnosis {
        diagnosis_of_reads_of_age(RTT * 4, 0, change)
    }

    /// The same, while the oldest read is as old as that, and so many commands are parked.
    fn diagnosis_of_reads_of_age(
        oldest_read: Duration,
        parked_commands: u32,
        change: impl Fn(&mut PathMeasurement),
    ) -> Diagnosis {
        let mut tally = Tally::default();
        for tick in 0..=100 {
            let lanes = [LaneSample { parked_commands, ..receiving(tick, &change) }];
            let now = Instant::ZERO + Duration::from_millis(10 * tick);
            tally.look(now, &Look { oldest_read: Some(oldest_read), ..look_at(&lanes, 0) });
        }
        tally.seen().diagnose().expect("that is long enough")
    }

    #[test]
    fn a_receivers_round_trip_that_is_long_shows_a_full_path() {
        let diagnosis = diagnosis_of_reads(|path| path.receive_rtt = RTT * 2);
        assert_eq!((diagnosis.limit, diagnosis.is_incoming), (Limit::Saturation, true));
        assert!((diagnosis.queue_share() - 0.5).abs() < 1e-9, "{diagnosis:?}");
    }

    #[test]
    fn segments_out_of_order_without_a_queue_show_losses() {
        let diagnosis = diagnosis_of_reads(|path| {
            path.counters.out_of_order_segments = path.counters.received_segments / 20;
        });
        assert_eq!(diagnosis.limit, Limit::Losses);
        assert!((diagnosis.path.out_of_order - 0.05).abs() < 0.01, "{diagnosis:?}");
    }

    #[test]
    fn reads_without_a_queue_or_losses_may_be_limited_by_the_targets_sending() {
        assert_eq!(diagnosis_of_reads(|_| ()).limit, Limit::Arrival);
    }

    #[test]
    fn reads_that_are_all_answered_at_once_want_others_beside_them() {
        let prompt = |parked_commands| diagnosis_of_reads_of_age(RTT, parked_commands, |_| ()).limit;
        assert_eq!((prompt(0), prompt(1)), (Limit::Depth, Limit::CommandWindow));
    }

    #[test]
    fn data_that_comes_in_bursts_arrives_for_as_long_as_the_bursts_last() {
        // Data comes for 15 ms of every 50, and the looks at 10, 20, 60, 70, … find that some has come.
        let mut tally = Tally::default();
        let mut bursts = 0;
        for tick in 0..=500_u64 {
            bursts += u64::from(matches!(tick % 5, 1 | 2));
            let lanes = [receiving(bursts, |_| ())];
            let now = Instant::ZERO + Duration::from_millis(10 * tick);
            tally.look(now, &Look { oldest_read: Some(RTT * 4), ..look_at(&lanes, 0) });
        }
        let waits_s = tally.seen().waits_s;
        let share = waits_s.of(Wait::Arrival) / waits_s.sum();
        assert!((share - 0.2).abs() < 0.02, "{share}");
    }

    #[test]
    fn windows_that_still_double_are_in_slow_start_and_others_are_just_small() {
        let doubling = with(sending(), |path| path.is_in_slow_start = true);
        assert_eq!(diagnosis_after(50, &[doubling]).limit, Limit::SlowStart);
        assert_eq!(diagnosis(&[doubling]).limit, Limit::CongestionWindow, "after 25 round trips");
        assert_eq!(diagnosis(&[sending()]).limit, Limit::CongestionWindow);
    }
}
