//! What an experiment asks for is what its runs do, with real packets.

use crate::world::{in_lab, plan, run_once};
use observe::Kind;
use observe::report::Cell;
use policy::TunerChoice;
use policy::tuner::Terms;
use requirement::{Need, skip};
use ropewalk_lab::{CapturedConnection, KernelTrace, LabError, Quantity, Sample, execute, report};
use std::net::SocketAddr;

const IPV6: &str = r#"
    title = "IPv6"

    [setup]
    rtt = "1ms"
    ip = 6
    sample_every = "1ms"
    link = { rate = "100Mbit" }
    congestion_control = "reno"

    [[vary]]
    name = "workload"
    cases = [
      { name = "streams", setup.streams = { count = 1, measured = "200ms" } },
      { name = "commands", setup.scsi = { workload.pattern = { request_size = "64KiB", end.requests = 40 }, disk.size = "1MiB" } },
    ]
"#;

#[test]
fn a_run_uses_ipv6_if_that_is_asked_for() {
    in_lab(|| {
        let plan = plan(IPV6);
        for cell in &plan.cells {
            let outcome = match execute(&cell.setup, 1) {
                Err(LabError::NoIpv6) => return skip(Need::Ipv6, "this machine has no IPv6"),
                outcome => outcome.unwrap(),
            };
            assert!(outcome.measured.contains_key(&Quantity::Throughput), "{:?}", outcome.reasons);
            let peers: Vec<SocketAddr> = outcome.sockets.sockets.iter().map(|socket| socket.peer).collect();
            assert!(!peers.is_empty() && peers.iter().all(SocketAddr::is_ipv6), "{peers:?}");
        }
    });
}

const LOSSY_WAY_BACK: &str = r#"
    title = "A way back that loses packets"

    [setup]
    rtt = "0ms"
    sample_every = "10ms"
    link = { rate = "100Mbit", queue = "1MB" }
    backward.loss = { random = "5%" }
    congestion_control = "reno"

    [setup.scsi]
    workload.pattern = { request_size = "256KiB", end = { requests = 4 } }
    disk.size = "1MiB"

    [[vary]]
    name = "reads"
    key = "scsi.workload.pattern.read_percent"
    values = [0, 100]
"#;

#[test]
fn what_is_lost_is_counted_in_the_direction_of_the_data() {
    in_lab(|| {
        let plan = plan(LOSSY_WAY_BACK);
        let [written, read] = [0, 1].map(|cell: usize| execute(&plan.cells[cell].setup, 1).unwrap().measured);
        assert!(written[&Quantity::Lost].abs() < 0.5, "nothing that is written is lost");
        assert!(read[&Quantity::Lost] >= 1.0);
        // The server sent it again, for one of the reasons.
        let again = read[&Quantity::RetransmittedInRecovery] + read[&Quantity::RetransmittedAfterTimeout];
        assert!(again >= 1.0 && again <= read[&Quantity::Retransmitted], "{read:?}");
        // Only what the client sends has windows that it knows.
        assert!(written.contains_key(&Quantity::Window) && !read.contains_key(&Quantity::Window));
    });
}

const LATE_STREAM: &str = r#"
    title = "A stream that comes late and goes early"

    [setup]
    rtt = "2ms"
    sample_every = "10ms"
    link = { rate = "20Mbit", queue = "64KiB" }
    congestion_control = "reno"
    settings = { "net.ipv4.tcp_early_retrans" = "0" }
    beside = { streams = 1, from = "1s", to = "1600ms" }

    [setup.scsi]
    workload.pattern = { request_size = "16KiB", depth = 4, end = { time = "2200ms" } }
    disk.size = "1MiB"
"#;

#[test]
fn what_is_beside_a_workload_for_a_part_of_its_time_shares_that_part() {
    in_lab(|| {
        let outcome = execute(&plan(LATE_STREAM).cells[0].setup, 1).unwrap();
        let share = outcome.measured[&Quantity::Share];
        assert!(share > 0.0 && share < 1.0, "{share}");
        let requests: Vec<_> = outcome
            .samples
            .iter()
            .filter_map(|sample| match sample {
                Sample::Request(request) => Some(request.begun_ns),
                _ => None,
            })
            .collect();
        let looks = |connection| {
            outcome.samples.iter().filter_map(move |sample| match sample {
                Sample::Socket(sample) if sample.connection == connection => Some(sample.socket.at_ns),
                _ => None,
            })
        };
        let come = [0, 1].map(|connection| looks(connection).min()).into_iter().max().unwrap();
        let gone = [0, 1].map(|connection| looks(connection).max()).into_iter().min().unwrap();
        assert!(requests.iter().min() < come.as_ref(), "the session is alone at first");
        assert!(gone.as_ref() < requests.iter().max(), "the session is alone at the end");
        let settings = &outcome.settings[0];
        assert_eq!(settings["net.ipv4.tcp_early_retrans"], "0");
    });
}

const SPLIT: &str = r#"
    title = "A split session, captured"

    [setup]
    rtt = "4ms"
    link = { rate = "100Mbit", queue = "1MB" }
    congestion_control = "reno"
    capture = { to = "60s" }

    [setup.scsi]
    workload.pattern = { request_size = "64KiB", read_percent = 50, depth = 4, end = { requests = 40 } }
    session = { lanes = "split3", error_recovery_level = 0 }
    disk.size = "4MiB"
"#;

#[test]
fn the_commands_of_a_split_session_are_captured_whole_although_they_use_three_connections() {
    in_lab(|| {
        let outcome = execute(&plan(SPLIT).cells[0].setup, 1).unwrap();
        assert!(!outcome.workload_failed, "{:?}", outcome.reasons);
        let capture = outcome.capture.expect("it was asked for");
        assert_eq!(capture.record.connections.len(), 3);
        let lost = |connection: &CapturedConnection| connection.commands_without_status;
        assert!(
            capture.record.connections.iter().all(|connection| lost(connection) == 0),
            "{:?}",
            capture.record.connections
        );
        // Each transfers data, and tells its status.
        let moved = capture.commands.iter().filter(|captured| captured.command.kind != Kind::NoData);
        let moved: Vec<_> = moved.collect();
        assert!(moved.len() >= 40 && moved.iter().all(|captured| captured.command.whole), "{}", moved.len());
        let kinds =
            [Kind::Read, Kind::Write].map(|kind| moved.iter().any(|captured| captured.command.kind == kind));
        assert_eq!(kinds, [true; 2]);
    });
}

/// Writes that the send buffer cuts into pieces: at 10 ms and 100 Mbit/s 125 kB are under way.
const CAPTURED: &str = r#"
    title = "Writes, captured"

    [setup]
    rtt = "10ms"
    link = { rate = "100Mbit", queue = "1MB" }
    congestion_control = "reno"
    capture = { to = "60s" }

    [setup.scsi]
    workload.pattern = { request_size = "512KiB", end = { requests = 4 } }
    session = { initial_r2t = false, first_burst = "512KiB", max_burst = "512KiB" }
    sockets = { send_buffer = "32KiB", unsent = "none" }

    [[trace]]
    y = ["packets_sent"]
    right = ["send_queue"]
    events = ["command", "status"]
    gaps = true
    commands = 1
"#;

#[test]
fn a_capture_becomes_part_of_a_run_on_the_clock_of_everything_else() {
    in_lab(|| {
        let (_place, folder) = run_once(CAPTURED);
        let record = &folder.records[0];
        let capture = record.capture.as_ref().expect("it was asked for");
        assert_eq!((capture.frames_lost, capture.connections.len()), (0, 1), "{:?}", record.reasons);
        assert_eq!((capture.connections[0].missed_bytes, capture.connections[0].unknown_bytes), (0, 0));

        // What was captured at the initiator is within what the initiator says of the same command.
        let samples = folder.samples(record).unwrap();
        let told = samples.iter().filter_map(|sample| match sample {
            Sample::Command(command) if command.lba.is_some() => Some(command),
            _ => None,
        });
        let told: Vec<_> = told.collect();
        assert_eq!(told.len(), 4);
        for command in told {
            let captured = samples.iter().find_map(|sample| match sample {
                Sample::Captured(captured) if captured.command.cmd_sn == command.cmd_sn => {
                    Some(&captured.command)
                }
                _ => None,
            });
            let captured = captured.expect("it was captured");
            assert!(
                captured.whole && captured.data_bytes == 512 << 10 && captured.gap_count > 0,
                "{captured:?}"
            );
            let begun_ns = captured.begun_ns;
            assert!(command.pulled_ns <= begun_ns && begun_ns + captured.ta_ns <= command.ended_ns);
        }

        // The file holds headers only, and still tells every packet.
        let file = folder.capture(record).unwrap().expect("it is there");
        assert!(file.len() < 1 << 20, "{} bytes of a file", file.len());
        let report = report(&folder).unwrap();
        let trace = &report.sections[1].figures[0];
        let names: Vec<_> = trace.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["packets sent", "send queue", "command", "status"]);
        let [status] = &trace.series[3].points[..] else { panic!("{:?}", trace.series[3]) };
        let before = |point: &&observe::report::Point| point.x <= status.x;
        let packets = trace.series[0].points.iter().rfind(before).expect("packets were sent").y;
        // The data of one write, and what a header takes. The next begins at once.
        assert!((363.0..=366.0).contains(&packets), "{packets}");
        assert_eq!(trace.series[2].points.iter().filter(before).count(), 1);
        assert!(!trace.annotations.is_empty());
        let table = &report.sections[2].tables[0];
        assert_eq!(table.rows[0].cells[..2], [Cell::Text("writes: Ta".to_owned()), Cell::Number(4.0)]);
    });
}

const TRACED: &str = r#"
    title = "A sender that waits"

    [setup]
    rtt = "10ms"
    link = { rate = "100Mbit", queue = "200kB" }
    congestion_control = "reno"
    warm_up = "20ms"
    streams = { count = 1, measured = "500ms", send_buffer = "32KiB" }
    kernel_trace = true

    [[trace]]
    y = ["send_queue", "send_buffer"]
    right = ["slow_start_threshold", "congestion_window"]
    marks = ["arrived"]
"#;

#[test]
fn a_run_that_is_to_be_traced_tells_where_its_writer_waits_or_why_it_does_not() {
    in_lab(|| {
        let (_place, folder) = run_once(TRACED);
        let report = report(&folder).unwrap();
        let (figure, waits) = (&report.sections[1].figures[0], &report.sections[2]);
        assert_eq!(waits.heading, "Where the writer waits");
        match folder.records[0].kernel_trace.as_ref().expect("it was asked for") {
            KernelTrace::Missing(reason) => {
                assert_eq!(waits.paragraphs, [reason.as_str()]);
                assert!(waits.tables.is_empty());
            }
            KernelTrace::Taken { connections, .. } => {
                assert_eq!(connections.events_lost, 0);
                let mark = figure.series.last().unwrap();
                assert!(mark.name == "acknowledgement" && mark.points.len() > 10, "{mark:?}");
                let [functions, rooms] = &waits.tables[..] else { panic!("{:?}", waits.tables) };
                let [Cell::Text(thread), Cell::Text(function), ..] = &functions.rows[0].cells[..] else {
                    panic!("{functions:?}")
                };
                assert_eq!(thread, "sender");
                assert!(function.starts_with("sk_stream_wait_memory ← tcp_sendmsg"), "{function}");
                let Cell::Number(share) = rooms.rows[0].cells[1] else { panic!("{rooms:?}") };
                assert!(share > 0.0 && share <= 1.0, "{share}");
            }
        }
    });
}

const TUNED: &str = r#"
    title = "A tuner on a path with losses"

    [setup]
    rtt = "20ms"
    link = { rate = "40Mbit", queue = "1bdp", loss = { random = "1%" } }
    congestion_control = "reno"

    [setup.scsi]
    session = { tuner = "guided", as_flows = 2 }
    workload.pattern = { request_size = "64KiB", depth = 64, end = { time = "8s" } }
    disk.size = "16MiB"
"#;

#[test]
fn a_tuner_that_is_shown_a_run_again_decides_as_in_the_run() {
    in_lab(|| {
        let outcome = execute(&plan(TUNED).cells[0].setup, 1).unwrap();
        let decided = outcome.session.unwrap().decisions;
        assert!(!decided.is_empty(), "{:?}", outcome.reasons);
        let shown = outcome.samples.iter().filter_map(|sample| match sample {
            Sample::Slice(shown) => Some(shown.slice),
            _ => None,
        });
        let mut tuner = TunerChoice::Guided.begin(Terms { as_flows: 2, ..Terms::default() });
        let again: Vec<_> = shown.filter_map(|slice| tuner.decide(&slice)).collect();
        assert_eq!(
            again.iter().map(|decision| (decision.connections, decision.reason.name())).collect::<Vec<_>>(),
            decided.iter().map(|decision| (decision.connections, &*decision.reason)).collect::<Vec<_>>()
        );
    });
}
