//! Connections that say nothing cost next to nothing. Alone in its process, whose memory is measured.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "behaviour/world/mod.rs"]
#[allow(dead_code, reason = "the other program uses the rest")]
mod world;

use ropewalk_target::{Config, Limits};
use world::*;

const CONNECTIONS: u8 = 200;
const PAGE_BYTES: usize = 4096;

/// What one that has not logged in may hold, this test's end of it included. It was 3 KiB when this was written.
const STRANGER_BYTES_MAX: usize = 8 << 10;

/// What a session may hold that has written and is idle, this test's end of it included. It was 15 KiB.
const SESSION_BYTES_MAX: usize = 24 << 10;

/// Memory of this process that is in use (proc(5), `statm`).
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * PAGE_BYTES
}

fn grown_by_each(before: usize) -> usize {
    resident_bytes().saturating_sub(before) / usize::from(CONNECTIONS)
}

#[test]
fn silent_connections_hold_no_buffer_and_little_else() {
    let limits = Limits {
        sessions_per_address: CONNECTIONS.into(),
        connections_per_address: 1024,
        unauthenticated_connections: 1024,
        ..Limits::default()
    };
    let world = World::with_config(Config { limits, ..config(vec![target(TARGET, &["0=ram:16M"])]) });
    let mut first = world.initiator(0);
    assert_eq!(first.write(0, &pattern(64 << 10)).status, 0);
    let before = resident_bytes();
    let strangers: Vec<_> = (0..CONNECTIONS).map(|_| world.connect()).collect();
    world.wait_for(|counters| counters.unauthenticated_connections == strangers.len());
    let each = grown_by_each(before);
    assert!(each <= STRANGER_BYTES_MAX, "{each} bytes for a connection that has not logged in");
    drop(strangers);
    world.wait_for(|counters| counters.unauthenticated_connections == 0);
    let before = resident_bytes();
    let mut sessions: Vec<_> = (1..CONNECTIONS).map(|isid| world.initiator(isid)).collect();
    for session in &mut sessions {
        assert_eq!(session.write(0, &pattern(64 << 10)).status, 0);
    }
    world.wait_for(|counters| counters.buffer_bytes == 0);
    let each = grown_by_each(before);
    assert!(each <= SESSION_BYTES_MAX, "{each} bytes for a session that has nothing to do");
}
