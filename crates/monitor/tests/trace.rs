//! What BPF programs tell of real connections over loopback.
#![cfg(feature = "bpf")]
#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use observe::{CongestionState, TcpEvent, TcpEventKind, TcpTrace};
use requirement::{Need, skip};
use ropewalk_monitor::{BpfError, TraceOptions, Tracer};
use rustix::net::sockopt::socket_cookie;
use socket2::SockRef;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn everything() -> TraceOptions {
    TraceOptions { quiet: Duration::ZERO, ..TraceOptions::default() }
}

/// Both ends of a connection, and a tracer of it; without the rights for one, the test is skipped.
fn traced(options: &TraceOptions) -> Option<(TcpStream, TcpStream, Tracer)> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tracer = match Tracer::start(&TraceOptions { port: Some(address.port()), ..options.clone() }) {
        Err(error @ BpfError::NoRights(_)) => {
            skip(Need::Bpf, &error.to_string());
            return None;
        }
        outcome => outcome.unwrap(),
    };
    let here = TcpStream::connect(address).unwrap();
    SockRef::from(&here).set_tcp_congestion(b"reno").unwrap();
    Some((here, listener.accept().unwrap().0, tracer))
}

/// All that happened to a socket.
fn events(trace: &TcpTrace, socket: &TcpStream) -> Vec<TcpEvent> {
    let cookie = socket_cookie(socket).unwrap();
    trace.events.iter().filter(|event| event.cookie == cookie).copied().collect()
}

fn events_of(trace: &TcpTrace, socket: &TcpStream, kind: TcpEventKind) -> Vec<TcpEvent> {
    events(trace, socket).into_iter().filter(|event| event.kind == kind).collect()
}

/// Bytes that one end gets.
const BYTES: usize = 100;

/// What happens to one end, which gets byte after byte, and then writes one.
fn told_of_a_listener(options: &TraceOptions) -> Option<Vec<TcpEvent>> {
    let (mut here, mut there, tracer) = traced(options)?;
    there.set_nodelay(true).unwrap();
    for _ in 0..BYTES {
        there.write_all(&[8]).unwrap();
        here.read_exact(&mut [0]).unwrap();
    }
    here.write_all(&[7]).unwrap();
    Some(events(&tracer.stop().unwrap(), &here))
}

#[test]
fn writes_and_arrivals_are_told_with_the_state_of_the_connection() {
    let Some((mut here, mut there, tracer)) = traced(&everything()) else { return };
    here.write_all(&[7; 1000]).unwrap();
    there.read_exact(&mut [0; 1000]).unwrap();
    there.write_all(&[8]).unwrap();
    here.read_exact(&mut [0]).unwrap();
    let trace = tracer.stop().unwrap();
    let written = events_of(&trace, &here, TcpEventKind::Written)[0];
    assert_eq!((written.snd_cwnd, written.snd_ssthresh), (10, None), "RFC 6928");
    assert_eq!(written.congestion_state, CongestionState::Open);
    assert_eq!(written.local_port, here.local_addr().unwrap().port());
    assert_eq!(written.peer_port, there.local_addr().unwrap().port());
    let arrived = events_of(&trace, &here, TcpEventKind::Arrived);
    let waiting = arrived.iter().find(|event| event.unacked == 1).expect("of the 1000 bytes");
    assert!(waiting.wmem_queued_bytes >= 1000 && waiting.at_ns >= written.at_ns, "{waiting:?}");
    assert_eq!(trace.events_lost, 0);
    assert!(trace.calls >= trace.events.len() as u64 && trace.busy_ns > 0);
}

#[test]
fn a_writer_that_waits_for_room_is_told() {
    let Some((mut here, mut there, tracer)) = traced(&everything()) else { return };
    here.set_nonblocking(true).unwrap();
    while here.write(&[7; 64 << 10]).is_ok() {}
    assert_eq!(here.write(&[7]).unwrap_err().kind(), ErrorKind::WouldBlock);
    here.set_nonblocking(false).unwrap();
    there.set_nonblocking(true).unwrap();
    // What is read makes room, and TCP say so.
    let writer = std::thread::spawn(move || here.write_all(&[8]).map(|()| here));
    while !writer.is_finished() {
        let _ = there.read(&mut [0; 64 << 10]);
    }
    let here = writer.join().unwrap().unwrap();
    let trace = tracer.stop().unwrap();
    let arrived = events_of(&trace, &here, TcpEventKind::Arrived);
    let waiting =
        arrived.iter().find(|event| event.writer_waits).expect("an acknowledgement while it waited");
    assert!(waiting.wmem_queued_bytes >= waiting.sndbuf_bytes / 2, "{waiting:?}");
}

#[test]
fn of_arrivals_that_find_nothing_new_the_first_is_told_and_when_the_last_was() {
    let options = TraceOptions { quiet: Duration::from_secs(3600), ..TraceOptions::default() };
    let Some(told) = told_of_a_listener(&options) else { return };
    let [arrived, written, ..] = told[..] else { panic!("{told:?}") };
    assert_eq!((arrived.kind, written.kind), (TcpEventKind::Arrived, TcpEventKind::Written));
    assert_eq!(arrived.unchanged_until_ns, None);
    let last_ns = written.unchanged_until_ns.expect("when the last byte arrived");
    assert!(arrived.at_ns < last_ns && last_ns < written.at_ns, "{told:?}");
}

#[test]
fn all_arrivals_are_told_if_none_is_to_be_passed_over() {
    let Some(told) = told_of_a_listener(&everything()) else { return };
    let arrived = told.iter().filter(|event| event.kind == TcpEventKind::Arrived);
    assert!(arrived.count() >= BYTES && told.iter().all(|event| event.unchanged_until_ns.is_none()));
}

#[test]
fn events_of_which_no_more_are_to_be_kept_are_counted() {
    let options = TraceOptions { events_max: 1, ..everything() };
    let Some((mut here, mut there, tracer)) = traced(&options) else { return };
    here.write_all(&[7]).unwrap();
    there.read_exact(&mut [0]).unwrap();
    there.write_all(&[8]).unwrap();
    here.read_exact(&mut [0]).unwrap();
    let trace = tracer.stop().unwrap();
    assert_eq!(trace.events.len(), 1);
    assert!(trace.events_lost >= 3, "{}", trace.events_lost);
}
