//! Connections of a copy break, or damage what passes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_interop::{Cut, Damage, Image, Relay, Ropewalk, Way, assert_same, ropewalk, summary};
use serde_json::Value;

/// Where in the stream a connection is cut: in its login, just after it, inside data, on and near round numbers (where
/// buffers and bursts end), and late.
const OFFSETS_BYTES: [u64; 8] = [20, 2_000, 65_536, 65_537, 300_000, 1_048_576, 5_000_011, 12_345_678];

/// From here on a connection has been part of its session.
const LOGGED_IN_BYTES: u64 = 2_000;

const CONNECTIONS: usize = 4;

/// Copies over four connections, verifying every byte; the copy must succeed. Returns its summary. The requests are
/// short, so that each connection also carries many bytes of commands.
fn copy(source: &str, destination: &str) -> Value {
    let options = ["--connections=4", "--request-size=256K", "--json", "--verify=full", "--overwrite"];
    let (status, lines) = ropewalk([&["copy", source, destination], &options[..]].concat()).unwrap();
    assert!(status.success(), "{status}: {lines:#?}");
    summary(&lines).unwrap()
}

/// No task was aborted or lost, and the session is the first one.
fn assert_nothing_lost(summary: &Value) {
    for counter in ["retries", "reinstated_sessions", "losses", "rewritten_bytes"] {
        assert_eq!(summary[counter], 0, "{counter}: {summary:#}");
    }
}

fn number(summary: &Value, name: &str) -> u64 {
    summary[name].as_u64().unwrap()
}

/// One connection at each offset, each connection in its turn; then all four.
fn plans(way: Way) -> impl Iterator<Item = Vec<Cut>> {
    let cut = move |connection, after_bytes| Cut { connection, way, after_bytes };
    let one = OFFSETS_BYTES.into_iter().enumerate();
    let one = one.map(move |(number, bytes)| vec![cut(number % CONNECTIONS, bytes)]);
    let all = [LOGGED_IN_BYTES, 1_048_576, 5_000_011].into_iter();
    one.chain(all.map(move |bytes| (0..CONNECTIONS).map(|connection| cut(connection, bytes)).collect()))
}

fn assert_recovered(relay: &Relay, cuts: &[Cut], summary: &Value) {
    assert_eq!(relay.cuts_done(), cuts.len(), "{cuts:?} were not reached");
    assert_nothing_lost(summary);
    let logged_in = cuts.iter().filter(|cut| cut.after_bytes >= LOGGED_IN_BYTES).count() as u64;
    assert_eq!(number(summary, "recovered_connections"), logged_in, "{cuts:?}: {summary:#}");
}

fn a_write_survives_breaks(way: Way) {
    let source = Image::random(96).unwrap();
    for cuts in plans(way) {
        let there = Image::empty(96).unwrap();
        let target = Ropewalk::serve(&[&format!("0=file:{}", there.name())]).unwrap();
        let relay = Relay::to(target.address(), &cuts).unwrap();
        let summary = copy(source.name(), &target.url_by(relay.address(), 0));
        assert_recovered(&relay, &cuts, &summary);
        assert_eq!(summary["bytes"], 96 << 20);
        assert!(target.stop().unwrap().success());
        assert_same(source.path(), there.path()).unwrap_or_else(|error| panic!("{cuts:?}: {error}"));
    }
}

#[test]
fn a_write_loses_nothing_when_connections_break_anywhere_on_the_way_to_the_target() {
    a_write_survives_breaks(Way::ToTarget);
}

#[test]
fn a_write_loses_nothing_when_connections_break_anywhere_on_the_way_back() {
    a_write_survives_breaks(Way::ToInitiator);
}

#[test]
fn a_read_loses_nothing_when_connections_break_anywhere() {
    let source = Image::random(96).unwrap();
    let target = Ropewalk::serve(&[&format!("0=file:{},ro", source.name())]).unwrap();
    // Commands alone do not make as many bytes.
    let reached =
        |cuts: &Vec<Cut>| cuts.iter().all(|cut| cut.way == Way::ToInitiator || cut.after_bytes < 3_000);
    for cuts in plans(Way::ToInitiator).chain(plans(Way::ToTarget)).filter(reached) {
        let back = source.beside("back.raw");
        let relay = Relay::to(target.address(), &cuts).unwrap();
        let summary = copy(&target.url_by(relay.address(), 0), &back);
        assert_recovered(&relay, &cuts, &summary);
        assert_same(source.path(), back).unwrap_or_else(|error| panic!("{cuts:?}: {error}"));
    }
}

#[test]
fn a_copy_survives_many_breaks_one_after_the_other() {
    let source = Image::random(128).unwrap();
    let there = Image::empty(128).unwrap();
    let target = Ropewalk::serve(&[&format!("0=file:{}", there.name())]).unwrap();
    // Each of them is in use when its turn comes: what was opened to replace the first ones breaks too.
    let cuts: Vec<Cut> = (0..12)
        .map(|connection| Cut { connection, way: Way::ToTarget, after_bytes: 3_000_000 + connection as u64 })
        .collect();
    let relay = Relay::to(target.address(), &cuts).unwrap();
    let summary = copy(source.name(), &target.url_by(relay.address(), 0));
    assert!(relay.cuts_done() > CONNECTIONS, "only {} cut", relay.cuts_done());
    assert_nothing_lost(&summary);
    assert!(target.stop().unwrap().success());
    assert_same(source.path(), there.path()).unwrap();
}

#[test]
fn below_level_2_a_broken_connection_costs_a_session_and_no_data() {
    let source = Image::random(96).unwrap();
    for level in [0, 1] {
        let there = Image::empty(96).unwrap();
        let target =
            Ropewalk::serve_negotiating(there.name(), &format!("error_recovery_level = {level}")).unwrap();
        let cut = Cut { connection: 2, way: Way::ToTarget, after_bytes: 5_000_011 };
        let relay = Relay::to(target.address(), &[cut]).unwrap();
        let summary = copy(source.name(), &target.url_by(relay.address(), 0));
        assert_eq!(relay.cuts_done(), 1);
        assert_eq!(
            (number(&summary, "reinstated_sessions"), number(&summary, "recovered_connections")),
            (1, 0)
        );
        assert!(target.stop().unwrap().success());
        assert_same(source.path(), there.path()).unwrap();
    }
}

#[test]
fn damaged_data_is_sent_again_on_the_same_connection() {
    let source = Image::random(96).unwrap();
    for level in [1, 2] {
        let there = Image::empty(96).unwrap();
        let negotiation = format!(
            "error_recovery_level = {level}\nheader_digest = \"required\"\ndata_digest = \"required\""
        );
        let target = Ropewalk::serve_negotiating(there.name(), &negotiation).unwrap();
        // Inside data: there are four headers in a megabyte.
        let damages: Vec<Damage> = (0..CONNECTIONS)
            .flat_map(|connection| {
                [Way::ToTarget, Way::ToInitiator].into_iter().flat_map(move |way| {
                    [1_000_003, 3_333_333, 6_000_001].map(|after_bytes| Damage {
                        connection,
                        way,
                        after_bytes,
                    })
                })
            })
            .collect();
        let relay = Relay::damaging(target.address(), &damages).unwrap();
        let summary = copy(source.name(), &target.url_by(relay.address(), 0));
        assert_eq!(relay.damages_done(), damages.len());
        assert_nothing_lost(&summary);
        assert_eq!(relay.connections(), CONNECTIONS, "none was given up");
        assert!(number(&summary, "retransmitted_pdus") >= damages.len() as u64, "{summary:#}");
        assert!(target.stop().unwrap().success());
        assert_same(source.path(), there.path()).unwrap();
    }
}
