//! Workloads at SCSI level run between the hosts of a lab, and are told completely.

use crate::world::{in_lab, lab, link, reno};
use ropewalk_lab::Lab;
use ropewalk_lab::netem::{Bytes, Span};
use ropewalk_lab::scsi_run::{DiskModel, ScsiReport, ScsiRun, ScsiRunError, SessionTerms, SocketTerms};
use ropewalk_lab::session_monitor::CommandSample;
use ropewalk_lab::workload::{Direction, End, Order, Pattern, Replay, RequestSample, Workload};
use std::time::Duration;

const REQUEST_BYTES: u64 = 256 << 10;

fn writes(requests: u64, depth: u16) -> Pattern {
    Pattern {
        order: Order::Sequential,
        read_percent: 0,
        request_size: Bytes(REQUEST_BYTES),
        depth,
        end: End::Requests(requests),
        every: None,
        seed: 3,
    }
}

/// On a disk of 8 MiB.
fn of(workload: Workload) -> ScsiRun {
    ScsiRun {
        workload,
        disk: DiskModel { size: Bytes(8 << 20), ..DiskModel::default() },
        session: SessionTerms::default(),
        sockets: SocketTerms::default(),
        compute: Span::default(),
    }
}

fn wan() -> Lab {
    lab(link(144, Duration::from_millis(20)))
}

fn run(run: &ScsiRun) -> ScsiReport {
    run.run(&wan(), &reno(), 9).unwrap()
}

/// READ or WRITE.
fn transfers(report: &ScsiReport) -> impl Iterator<Item = &CommandSample> {
    report.session.commands.iter().filter(|command| command.lba.is_some())
}

/// In the order in which they must have happened; what did not happen is left out.
fn moments(command: &CommandSample) -> [Vec<u64>; 2] {
    let target = command.target.unwrap();
    let ends = (command.pulled_ns, command.ended_ns);
    let at_initiator =
        [Some(ends.0), command.sent_ns, command.first_r2t_ns, command.data_sent_ns, Some(ends.1)];
    let at_target = [
        Some(ends.0),
        Some(target.arrived_ns),
        Some(target.begun_ns),
        target.started_ns,
        Some(target.carried_out_ns),
        Some(ends.1),
    ];
    [at_initiator.into_iter().flatten().collect(), at_target.into_iter().flatten().collect()]
}

/// What the requests have read, and what they have written.
fn moved_bytes(report: &ScsiReport) -> (u64, u64) {
    let (reads, writes): (Vec<&RequestSample>, Vec<_>) =
        report.requests.iter().partition(|request| request.direction == Direction::Read);
    let bytes = |requests: Vec<&RequestSample>| requests.iter().map(|request| u64::from(request.bytes)).sum();
    (bytes(reads), bytes(writes))
}

#[test]
fn what_is_written_across_a_wide_area_is_on_the_disk_and_every_request_is_told() {
    in_lab(|| {
        let session = SessionTerms { connections: 2, ..SessionTerms::default() };
        let report = run(&ScsiRun { session, ..of(Workload::Pattern(writes(16, 4))) });
        assert_eq!(moved_bytes(&report), (0, 16 * REQUEST_BYTES));
        assert_eq!(report.verified.read_back_bytes, 16 * REQUEST_BYTES);
        assert_eq!((report.requests.len(), report.requests_lost, report.retries), (16, 0, 0));
        assert_eq!(report.congestion_controls, ["reno"; 4], "at both ends of both connections");
        for request in &report.requests {
            assert!(report.begun_ns <= request.begun_ns && request.begun_ns < request.ended_ns);
            assert!(request.ended_ns <= report.ended_ns);
            assert!(request.connection.is_some(), "{request:?}");
        }
        let used: std::collections::HashSet<_> =
            report.requests.iter().map(|request| request.connection).collect();
        assert_eq!(used.len(), 2);
        // Both bring data of a command at the same time: the later one has come before the earlier one is whole.
        assert!(report.session.cmd_sn_holes.iter().any(|holes| holes.count > 0));
    });
}

#[test]
fn every_command_is_followed_from_its_connection_to_the_medium_and_back() {
    in_lab(|| {
        let session = SessionTerms {
            first_burst: Bytes(64 << 10),
            max_burst: Bytes(64 << 10),
            max_outstanding_r2t: 1,
            ..SessionTerms::default()
        };
        let disk =
            DiskModel { latency: Span(Duration::from_millis(1)), ..of(Workload::Pattern(writes(1, 1))).disk };
        let report = run(&ScsiRun { session, disk, ..of(Workload::Pattern(writes(8, 2))) });
        assert_eq!((report.session.commands_lost, report.session.commands_open), (0, 0));
        assert_eq!(transfers(&report).count(), 8);
        for command in transfers(&report) {
            assert_eq!((command.direction, command.bytes), (Some(Direction::Write), 256 << 10));
            assert_eq!((command.r2ts, command.status), (3, 0), "three bursts are asked for after the first");
            assert!(command.first_r2t_ns.is_some() && command.target.unwrap().started_ns.is_some());
            for moments in moments(command) {
                assert!(moments.is_sorted(), "{command:?}");
            }
            assert!(command.target.unwrap().medium_ns() >= Some(1_000_000), "the disk takes its time");
        }
        let sent_bytes = report.session.connections.iter().map(|connection| connection.sent_bytes).max();
        assert!(sent_bytes.unwrap() > 8 * REQUEST_BYTES);
    });
}

#[test]
fn what_is_read_is_compared_with_what_was_there_or_is_written_meanwhile() {
    in_lab(|| {
        let mixed = Pattern { order: Order::Random, read_percent: 50, ..writes(24, 6) };
        let report = run(&of(Workload::Pattern(mixed)));
        let (read_bytes, written_bytes) = moved_bytes(&report);
        assert_eq!(read_bytes + written_bytes, 24 * REQUEST_BYTES);
        assert!(read_bytes > 0 && written_bytes > 0);
        assert_eq!(report.verified.read_bytes, read_bytes);
        assert!(report.verified.read_back_bytes > 0);
        let reads = transfers(&report).filter(|command| command.direction == Some(Direction::Read));
        for read in reads {
            assert!(read.first_data_ns.unwrap() <= read.data_received_ns.unwrap());
            assert!(read.data_received_ns.unwrap() <= read.ended_ns);
        }
    });
}

#[test]
fn a_list_of_requests_is_repeated() {
    in_lab(|| {
        let list = "0, write, 0, 64\n0, write, 64, 8\n0.001, read, 0, 72\n".parse().unwrap();
        let report = run(&of(Workload::Replay(Replay { requests: list, depth: 4 })));
        let mut found: Vec<_> = report.requests.iter().map(|request| (request.lba, request.bytes)).collect();
        found.sort_unstable();
        assert_eq!(found, [(0, 32 << 10), (0, 36 << 10), (64, 4 << 10)]);
    });
}

#[test]
fn a_small_window_is_seen_to_be_closed() {
    in_lab(|| {
        let session = SessionTerms { window_commands: 4, ..SessionTerms::default() };
        let report = run(&ScsiRun { session, ..of(Workload::Pattern(writes(16, 8))) });
        assert!(report.session.window_closed.iter().any(|closed| closed.count > 0));
    });
}

#[test]
fn digests_and_large_bursts_hold_as_they_were_asked_for() {
    in_lab(|| {
        let session = SessionTerms {
            first_burst: Bytes(1 << 20),
            max_burst: Bytes(1 << 20),
            receive_segment: Bytes(1 << 20),
            header_digest: true,
            data_digest: true,
            error_recovery_level: 0,
            ..SessionTerms::default()
        };
        let pattern = Pattern { request_size: Bytes(1 << 20), ..writes(3, 1) };
        let report = run(&ScsiRun { session, ..of(Workload::Pattern(pattern)) });
        assert!(transfers(&report).all(|command| command.r2ts == 0), "all data leaves unasked");
    });
}

#[test]
fn a_session_that_cannot_be_as_it_was_asked_for_is_no_run() {
    in_lab(|| {
        // FirstBurstLength never exceeds MaxBurstLength (RFC 7143 §13.14).
        let session = SessionTerms {
            first_burst: Bytes(1 << 20),
            max_burst: Bytes(1 << 18),
            ..SessionTerms::default()
        };
        let outcome = ScsiRun { session, ..of(Workload::Pattern(writes(1, 1))) }.run(&wan(), &reno(), 9);
        let expected = "FirstBurstLength was to be 1048576, but is 262144: the two ends cannot agree on it; change setup.scsi";
        assert!(
            matches!(&outcome, Err(error @ ScsiRunError::Negotiated { .. }) if error.to_string() == expected),
            "{outcome:?}"
        );
    });
}

#[test]
fn a_buffer_that_was_asked_for_is_what_the_sockets_have_or_there_is_no_run() {
    in_lab(|| {
        let with = |bytes: u64| {
            let sockets = SocketTerms { send_buffer: Some(Bytes(bytes)), ..SocketTerms::default() };
            ScsiRun { sockets, ..of(Workload::Pattern(writes(2, 1))) }
        };
        let report = run(&with(100_000));
        let connections = &report.session.connections;
        assert!(connections.iter().all(|connection| connection.send_buffer_bytes == Some(200_000)));
        // Beyond what any kernel grants.
        let refusal = with(1 << 30).run(&wan(), &reno(), 9).unwrap_err().to_string();
        assert!(refusal.contains("SO_SNDBUF"), "{refusal}");
    });
}
