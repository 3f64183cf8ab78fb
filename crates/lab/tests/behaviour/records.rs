//! The record of a run, and what a report makes of it.

use crate::world::{in_lab, run_once};
use observe::report::{Cell, Section};
use ropewalk_lab::{Folder, Quantity, Sample, report};
use serde_json::Value;
use std::fs;

/// More requests at a time than the window lets go, over two connections. They are too short to be cut.
const CROWDED: &str = r#"
    title = "A crowded window"

    [setup]
    rtt = "5ms"
    link = { rate = "100Mbit", queue = "1MB" }
    congestion_control = "reno"

    [setup.scsi]
    workload.pattern = { request_size = "16KiB", depth = 8, end = { requests = 24 } }
    session = { connections = 2, window_commands = 4 }
"#;

/// Half of its round trip.
const WAY_S: f64 = 0.0025;

fn section(folder: &Folder, heading: &str) -> Section {
    let sections = report(folder).unwrap().sections;
    sections.into_iter().find(|section| section.heading == heading).unwrap()
}

#[test]
fn the_record_of_a_run_says_what_its_sessions_waited_for() {
    in_lab(|| {
        let (_place, folder) = run_once(CROWDED);
        let record = &folder.records[0];
        let session = record.session.as_ref().unwrap_or_else(|| panic!("{:?}", record.reasons));
        let [window] = &session.sessions.window_closed[..] else { panic!("{session:?}") };
        // The questions before the workload meet a closed window, too, so that the total may exceed its time.
        assert!(window.count > 0 && window.longest_ns <= session.elapsed_ns, "{window:?}");
        assert_eq!((session.sessions.commands_open, session.sessions.connections.len()), (0, 4));
        assert!(session.sessions.connections.iter().all(|connection| connection.send_buffer_bytes.is_some()));
        let [requests, medium, order] =
            [session.requests, session.medium_of_writes, session.order_wait].map(Option::unwrap);
        assert_eq!([requests.samples, medium.samples, order.samples], [24; 3]);
        assert_eq!(session.verified.unwrap().read_back_bytes, 24 * (16 << 10));
        let [p99, max] = [Quantity::OrderWaitP99, Quantity::OrderWaitMax].map(|wait| record.measured[&wait]);
        assert!((0.0..=max).contains(&p99) && max <= requests.max_ns as f64 / 1e9, "{p99} s, {max} s");
        // A command and its status each take the way, and a request at least both.
        let delays = [Quantity::CommandDelay, Quantity::StatusDelay].map(|delay| record.measured[&delay]);
        assert!(delays.iter().all(|delay| *delay >= WAY_S), "{delays:?}");
        assert!(delays.iter().sum::<f64>() <= record.measured[&Quantity::RequestTime], "{delays:?}");
        // The single times are among the samples.
        let held = folder.samples(record).unwrap().into_iter();
        assert!(held.filter(|sample| matches!(sample, Sample::Held(_))).count() as u64 >= window.count);
    });
}

#[test]
fn a_report_tells_of_sessions_and_how_evenly_their_connections_shared() {
    in_lab(|| {
        let (_place, folder) = run_once(CROWDED);
        let sessions = section(&folder, "Sessions");
        let titles: Vec<_> = sessions.tables.iter().map(|table| table.title.as_str()).collect();
        assert_eq!(
            titles,
            ["Causes of their waits", "Times of requests and commands", "Their sockets", "Negotiated terms"]
        );
        let Cell::Number(closed) = sessions.tables[0].rows[0].cells[0] else { panic!("{sessions:?}") };
        assert!(closed > 0.0 && closed <= 1.0, "{closed}");
        assert_eq!(sessions.tables[2].rows.len(), 2, "both ends");
        assert!(sessions.tables[3].rows.iter().any(|row| row.cells == ["connections", "2"].map(Cell::from)));
        let every = &section(&folder, "Every run").tables[0];
        let fairness = every.columns.iter().position(|column| column.label.contains("Jain")).unwrap();
        assert!(matches!(every.rows[0].cells[fairness], Cell::Number(index) if index > 0.5), "{every:?}");
    });
}

#[test]
fn a_closed_window_is_drawn_beside_what_the_kernel_knew() {
    in_lab(|| {
        let trace = "[[trace]]\ny = [\"send_queue\"]\nevents = [\"command\"]\nheld = [\"window_closed\"]\n";
        let (_place, folder) = run_once(&format!("{CROWDED}\n{trace}"));
        let figure = section(&folder, "Over time").figures.remove(0);
        let [.., commands, closed] = &figure.series[..] else { panic!("{figure:?}") };
        assert_eq!((commands.name.as_str(), closed.name.as_str()), ("command", "command window closed"));
        // A beginning, an end, and a break of the line.
        let height = closed.points[0].y;
        assert!(height > commands.points[0].y && closed.points.len() % 3 == 0, "{closed:?}");
        for points in closed.points.chunks(3) {
            assert!(
                points[0].x <= points[1].x && points[1].y == height && points[2].y.is_nan(),
                "{points:?}"
            );
        }
    });
}

#[test]
fn the_record_of_a_run_says_what_nobody_wrote() {
    in_lab(|| {
        let (_place, folder) = run_once(CROWDED);
        let record = &folder.records[0];
        let setup = record.resolved_setup.as_ref().unwrap();
        let at = |place: &str| setup.pointer(place).unwrap_or_else(|| panic!("no {place} in {setup:#}"));
        assert_eq!(at("/path/forward/delay"), "2500us");
        assert_eq!(at("/path/backward/mtu"), 1500);
        assert_eq!(at("/host_mtu"), 1500);
        assert_eq!(at("/scsi/session/window_commands"), 4, "as it was written");
        assert_eq!(at("/scsi/session/error_recovery_level"), 2);
        assert_ne!(at("/scsi/sockets/unsent"), "default");
        assert!(at("/scsi/sockets/send_buffer").is_null());
        let program = record.program.as_ref().unwrap();
        assert_eq!(program.executable_crc32c.as_ref().unwrap().len(), 8);
        for setting in ["net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_limit_output_bytes"] {
            assert!(record.client_settings.contains_key(setting), "{:?}", record.client_settings);
        }
    });
}

#[test]
fn a_record_without_what_was_not_kept_before_is_still_read() {
    in_lab(|| {
        let (place, folder) = run_once(CROWDED);
        drop(folder);
        let file = place.path().join("runs/0001-1.json");
        let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let fields = record.as_object_mut().unwrap();
        for newer in ["session", "program", "resolved_setup"] {
            fields.remove(newer).unwrap();
        }
        fs::write(&file, record.to_string()).unwrap();
        let folder = Folder::open(place.path()).unwrap();
        assert_eq!(folder.records[0].session, None);
        let sections = report(&folder).unwrap().sections;
        assert!(sections.iter().all(|section| section.heading != "Sessions"));
    });
}
