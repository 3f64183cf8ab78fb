use super::*;

fn way() -> WayReport {
    WayReport {
        frames_in: 1,
        frames_out: 1,
        dropped_by_kernel: 0,
        unreadable: 0,
        beyond_memory: 0,
        writes_failed: 0,
        lateness: Distribution::default(),
        path: Counters::default(),
    }
}

/// The report of a relay without faults.
fn report(round_trip: Duration) -> RelayReport {
    RelayReport {
        begun_at: SystemTime::UNIX_EPOCH,
        begun_ns: 0,
        elapsed: Duration::from_secs(10),
        has_priority: true,
        keeps_processors_awake: true,
        has_large_buffers: true,
        round_trip,
        forward: way(),
        backward: way(),
        gaps: gap(1_000_000),
        processor_share: 0.2,
        processor_share_max: 0.7,
        sightings_lost: 0,
    }
}

fn late(p999_ns: u64) -> WayReport {
    WayReport { lateness: Distribution { p999_ns, ..Distribution::default() }, ..way() }
}

fn gap(max_ns: u64) -> Distribution {
    Distribution { max_ns, ..Distribution::default() }
}

#[test]
fn a_relay_that_kept_up_is_valid() {
    let verdict = report(Duration::from_millis(40)).verdict();
    assert!(verdict.is_valid());
    assert_eq!(verdict.to_string(), "VALID");
}

#[test]
fn each_reason_alone_is_enough() {
    let good = report(Duration::from_millis(40));
    let broken = [
        RelayReport { forward: WayReport { dropped_by_kernel: 1, ..way() }, ..good.clone() },
        RelayReport { backward: WayReport { unreadable: 1, ..way() }, ..good.clone() },
        RelayReport { forward: WayReport { beyond_memory: 1, ..way() }, ..good.clone() },
        RelayReport { backward: WayReport { writes_failed: 1, ..way() }, ..good.clone() },
        RelayReport { backward: late(800_001), ..good.clone() },
        RelayReport { gaps: gap(32_000_001), ..good.clone() },
        RelayReport { processor_share_max: 0.71, ..good },
    ];
    for report in broken {
        assert!(matches!(report.verdict(), Verdict::Invalid(reasons) if reasons.len() == 1), "{report:?}");
    }
}

#[test]
fn lateness_is_judged_by_the_round_trip_but_not_beyond_what_timers_can_do() {
    let late = |round_trip, p999_ns| RelayReport { forward: late(p999_ns), ..report(round_trip) }.verdict();
    assert!(late(Duration::from_millis(40), 800_000).is_valid());
    assert!(late(Duration::from_millis(1), 200_000).is_valid());
    assert!(!late(Duration::from_millis(1), 200_001).is_valid());
}

#[test]
fn one_gap_may_be_a_round_trip_and_what_a_host_of_virtual_machines_takes_on_any() {
    let gap = |round_trip, max_ns| RelayReport { gaps: gap(max_ns), ..report(round_trip) }.verdict();
    assert!(gap(Duration::from_millis(20), 20_000_000).is_valid());
    assert!(!gap(Duration::from_millis(20), 20_000_001).is_valid());
    assert!(gap(Duration::ZERO, 10_000_000).is_valid());
    assert!(!gap(Duration::ZERO, 10_000_001).is_valid());
    assert!(!gap(Duration::from_millis(200), 32_000_001).is_valid());
}

#[test]
fn a_verdict_says_why() {
    let report = RelayReport {
        forward: WayReport { dropped_by_kernel: 3, ..late(1_500_000) },
        ..report(Duration::from_millis(40))
    };
    let expected = "INVALID: 3 frames were dropped at the relay's sockets; one frame of a thousand was late by 1.5ms or \
                    more, and 800.0µs is allowed";
    assert_eq!(report.verdict().to_string(), expected);
}
