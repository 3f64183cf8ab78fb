//! What is said of real connections over loopback.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use observe::{SocketSeries, SocketsReport, TcpState};
use ropewalk_monitor::{Discovery, Monitor, Options, WatchError};
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Never within a test: what is sampled is the beginning and the end.
const HOUR: Duration = Duration::from_secs(3600);

fn monitor() -> Monitor {
    Monitor::start(Options { interval: HOUR, ..Options::default() }).unwrap()
}

/// Both ends of a connection.
fn connection(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address).unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (here, listener.accept().unwrap().0)
}

const LOOPBACK: &str = "127.0.0.1:0";

fn series(report: &SocketsReport, cookie: u64) -> &SocketSeries {
    report.sockets.iter().find(|series| series.cookie == cookie).unwrap()
}

fn fill(stream: &mut TcpStream) -> u64 {
    stream.set_nonblocking(true).unwrap();
    let mut written = 0;
    loop {
        match stream.write(&[7; 64 << 10]) {
            Ok(bytes) => written += bytes as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return written,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn congestion_controls_are_told_as_they_were_set() {
    let (here, _there) = connection(LOOPBACK);
    let monitor = monitor();
    let name = SockRef::from(&here).tcp_congestion().unwrap();
    let default = String::from_utf8(name).unwrap().trim_end_matches('\0').to_owned();
    let cookie = monitor.watch(&here).unwrap();
    // The one that every kernel has, and lets everybody use.
    SockRef::from(&here).set_tcp_congestion(b"reno").unwrap();
    let report = monitor.stop();
    let mut expected = vec![&*default, "reno"];
    expected.dedup();
    let names = series(&report, cookie).congestion_controls.iter().map(|control| &*control.name);
    assert_eq!(names.collect::<Vec<_>>(), expected);
}

#[test]
fn the_congestion_window_of_a_new_connection_is_the_initial_one() {
    let (here, _there) = connection(LOOPBACK);
    SockRef::from(&here).set_tcp_congestion(b"reno").unwrap();
    let monitor = monitor();
    let cookie = monitor.watch(&here).unwrap();
    let report = monitor.stop();
    assert_eq!(series(&report, cookie).samples[0].tcp.snd_cwnd, 10, "RFC 6928");
}

#[test]
fn what_is_written_waits_in_the_send_buffer_when_the_reader_stops() {
    let (mut here, there) = connection(LOOPBACK);
    let monitor = monitor();
    let cookies = [monitor.watch(&here).unwrap(), monitor.watch(&there).unwrap()];
    let written = fill(&mut here);
    let report = monitor.stop();
    let [sender, receiver] = cookies.map(|cookie| &series(&report, cookie).samples);
    assert_eq!((sender[0].memory.wmem_queued_bytes, sender[0].tcp.notsent_bytes), (0, 0));
    assert!(sender[1].memory.wmem_queued_bytes > 64 << 10, "{sender:?}");
    assert!(receiver[1].memory.rmem_alloc_bytes > 0, "{receiver:?}");
    let sent = sender[1].tcp.bytes_sent - sender[1].tcp.bytes_retrans;
    assert_eq!(sent + u64::from(sender[1].tcp.notsent_bytes), written);
}

#[test]
fn what_is_acknowledged_is_what_was_written() {
    let (mut here, mut there) = connection(LOOPBACK);
    let monitor = monitor();
    let cookies = [monitor.watch(&here).unwrap(), monitor.watch(&there).unwrap()];
    here.write_all(&[7; 100_000]).unwrap();
    there.read_exact(&mut [0; 100_000]).unwrap();
    // What is sent back acknowledges all that has come.
    there.write_all(&[8]).unwrap();
    here.read_exact(&mut [0]).unwrap();
    let report = monitor.stop();
    let [sender, receiver] = cookies.map(|cookie| series(&report, cookie));
    let tcp = sender.samples[1].tcp;
    assert_eq!(tcp.bytes_acked - sender.samples[0].tcp.bytes_acked, 100_000);
    assert_eq!(receiver.samples[1].tcp.bytes_received, 100_000);
    assert_eq!((sender.local, sender.peer), (receiver.peer, receiver.local));
}

#[test]
fn a_socket_is_not_held_open_and_its_series_ends_when_it_is_closed() {
    let (mut here, there) = connection(LOOPBACK);
    let monitor = monitor();
    let cookie = monitor.watch(&there).unwrap();
    drop(there);
    assert_eq!(here.read(&mut [0]).unwrap(), 0, "its peer is told that it was closed");
    drop(here);
    let report = monitor.stop();
    assert!(series(&report, cookie).ended_ns.is_some());
    assert_eq!(series(&report, cookie).samples.len(), 1);
}

#[test]
fn connections_of_a_port_are_found() {
    for address in [LOOPBACK, "[::1]:0"] {
        let Ok(listener) = TcpListener::bind(address) else { continue };
        let port = listener.local_addr().unwrap().port();
        let discovery = Some(Discovery { interval: HOUR, port: Some(port) });
        let monitor = Monitor::start(Options { discovery, interval: HOUR, ..Options::default() }).unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let _there = listener.accept().unwrap();
        let report = monitor.stop();
        let locals: Vec<_> = report.sockets.iter().map(|series| series.local).collect();
        assert_eq!(locals.len(), 2, "both ends: {locals:?}");
        assert!(locals.contains(&here.local_addr().unwrap()));
        assert!(report.sockets.iter().all(|series| series.samples[0].tcp.state == TcpState::Established));
    }
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let (here, there) = connection(LOOPBACK);
    let options = Options { interval: HOUR, sockets_max: 1, samples_max: 1, ..Options::default() };
    let monitor = Monitor::start(options).unwrap();
    let cookie = monitor.watch(&here).unwrap();
    assert!(matches!(monitor.watch(&there), Err(WatchError::TooMany(1))));
    let report = monitor.stop();
    assert_eq!((series(&report, cookie).samples.len(), series(&report, cookie).samples_lost), (1, 1));
}

#[test]
fn what_is_no_connection_cannot_be_watched() {
    let monitor = monitor();
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    assert!(matches!(monitor.watch(&listener), Err(WatchError::Unknown(_))));
    let datagrams = UdpSocket::bind(LOOPBACK).unwrap();
    datagrams.connect(datagrams.local_addr().unwrap()).unwrap();
    assert!(matches!(monitor.watch(&datagrams), Err(WatchError::Unknown(_))));
}

#[test]
fn what_the_monitor_costs_is_told() {
    let (here, _there) = connection(LOOPBACK);
    let monitor =
        Monitor::start(Options { interval: Duration::from_micros(100), ..Options::default() }).unwrap();
    monitor.watch(&here).unwrap();
    let report = monitor.stop();
    assert!(report.processor_ns > 0 && report.processor_share() > 0.0);
    assert!(report.begun_ns < report.ended_ns);
}
