//! Strangers who mean harm, against the real program: it stays up, small, of use to others, and says what happened.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_interop::{Image, PATIENCE, Ropewalk, assert_same, ropewalk};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

/// An idle target, and what the buffers of a copy may add to it.
const RESIDENT_BYTES_MAX: u64 = 512 << 20;

/// What strangers may make it grow by: some bookkeeping for each, but no buffers.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

const SILENT_CONNECTIONS: usize = 1000;

/// Someone else can copy an image there.
fn serves_others(target: &Ropewalk, source: &Image, there: &Image) {
    let url = target.url(0);
    let (status, lines) = ropewalk(["copy", source.name(), &url, "--verify=full", "--overwrite"]).unwrap();
    assert!(status.success(), "{status}: {lines:#?}");
    let resident = target.program.resident_bytes().unwrap();
    assert!(resident < RESIDENT_BYTES_MAX, "{resident} bytes resident");
    assert_same(source.path(), there.path()).unwrap();
}

fn connect(target: &Ropewalk) -> (TcpStream, SocketAddr) {
    let stream = TcpStream::connect(target.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let ours = stream.local_addr().unwrap();
    (stream, ours)
}

/// Waits until the target has written a line about this peer.
fn line_about(target: &Ropewalk, peer: SocketAddr) {
    let peer = peer.to_string();
    let said = |line: &ropewalk_interop::Line| line.text.contains(&peer).then_some(());
    target.program.wait_for(PATIENCE, said).unwrap();
}

/// Lines about this peer.
fn lines_about(target: &Ropewalk, peer: SocketAddr) -> Vec<String> {
    let lines = target.program.lines().into_iter().map(|line| line.text);
    lines.filter(|line| line.contains(&peer.to_string())).collect()
}

#[test]
fn garbage_before_login_costs_the_connection_and_one_line() {
    let (source, there) = (Image::random(32).unwrap(), Image::empty(32).unwrap());
    let target = Ropewalk::serve(&[&format!("0=file:{}", there.name())]).unwrap();
    for garbage in [&b"GET / HTTP/1.1\r\nHost: disk.example\r\n\r\n............"[..], &[0; 48], &[0xff; 4096]]
    {
        let (mut stream, ours) = connect(&target);
        // The target may close before everything is written.
        let _ = stream.write_all(garbage);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        line_about(&target, ours);
        let lines = lines_about(&target, ours);
        assert_eq!(lines.len(), 1, "{lines:#?}");
    }
    serves_others(&target, &source, &there);
}

#[test]
fn half_a_pdu_and_then_silence_keeps_nobody_else_waiting() {
    let (source, there) = (Image::random(32).unwrap(), Image::empty(32).unwrap());
    let target = Ropewalk::serve(&[&format!("0=file:{}", there.name())]).unwrap();
    let (mut stream, ours) = connect(&target);
    stream.write_all(&[0x43, 0x87, 0, 0, 0, 0, 0x20]).unwrap();
    serves_others(&target, &source, &there);
    // The login's deadline ends it.
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    line_about(&target, ours);
    let lines = lines_about(&target, ours);
    assert_eq!(lines.len(), 1, "{lines:#?}");
}

/// A Login Request that stays in its stage for ever (RFC 7143 §11.12), with a text segment of this many bytes.
fn endless_login_request(text_bytes: u32) -> Vec<u8> {
    let mut request = vec![0; 48];
    // Immediate Login; C bit: more text follows; security negotiation.
    request[0] = 0x43;
    request[1] = 0x40;
    request[5..8].copy_from_slice(&text_bytes.to_be_bytes()[1..]);
    request[8..14].copy_from_slice(&[0x80, 0, 0, 1, 0, 0]);
    request.resize(48 + text_bytes.next_multiple_of(4) as usize, b'x');
    request
}

#[test]
fn a_login_that_never_ends_is_ended() {
    let (source, there) = (Image::random(32).unwrap(), Image::empty(32).unwrap());
    let target = Ropewalk::serve(&[&format!("0=file:{}", there.name())]).unwrap();
    let before = target.program.resident_bytes().unwrap();
    let (mut stream, ours) = connect(&target);
    let request = endless_login_request(8192);
    let mut answer = vec![0; 64 << 10];
    let mut requests = 0;
    while stream.write_all(&request).is_ok() && matches!(stream.read(&mut answer), Ok(read) if read > 0) {
        requests += 1;
        assert!(requests < 100_000, "it listens for ever");
    }
    line_about(&target, ours);
    let lines = lines_about(&target, ours);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let growth = target.program.resident_bytes().unwrap().saturating_sub(before);
    assert!(growth < GROWTH_BYTES_MAX, "grown by {growth} bytes");
    serves_others(&target, &source, &there);
}

#[test]
fn a_thousand_silent_connections_keep_nobody_else_out() {
    let (source, there) = (Image::random(32).unwrap(), Image::empty(32).unwrap());
    let target = Ropewalk::serve(&[&format!("0=file:{}", there.name())]).unwrap();
    let before = target.program.resident_bytes().unwrap();
    let silent: Vec<_> = (0..SILENT_CONNECTIONS).map(|_| connect(&target)).collect();
    serves_others(&target, &source, &there);
    let growth = target.program.resident_bytes().unwrap().saturating_sub(before);
    assert!(growth < RESIDENT_BYTES_MAX, "grown by {growth} bytes");
    // All were let in before the copy, and the oldest had to go.
    let (_, first) = &silent[0];
    line_about(&target, *first);
    let lines = lines_about(&target, *first);
    assert_eq!(lines.len(), 1, "{lines:#?}");
}

#[test]
fn an_idle_target_is_small() {
    let target = Ropewalk::serve(&["0=ram:1GiB"]).unwrap();
    assert_eq!(target.address().ip(), Ipv4Addr::LOCALHOST);
    let resident = target.program.resident_bytes().unwrap();
    assert!(resident < 32 << 20, "{resident} bytes resident");
}
