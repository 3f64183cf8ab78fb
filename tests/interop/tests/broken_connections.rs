//! One of the connections of a copy breaks.

use ropewalk_interop::{Cut, Image, Relay, Ropewalk, Way, assert_same, ropewalk, summary};

/// Where in the stream a connection is cut: in its login (not the first one's: without that, there is nothing to go
/// on with), just after it, inside data, on and near round numbers (where buffers and bursts end), and late.
const OFFSETS_BYTES: [u64; 8] = [20, 2_000, 65_536, 65_537, 300_000, 1_048_576, 5_000_011, 12_345_678];

const CONNECTIONS: &str = "--connections=4";

#[test]
fn a_write_survives_a_connection_that_breaks_anywhere() {
    let source = Image::random(96).unwrap();
    for (number, after_bytes) in OFFSETS_BYTES.into_iter().enumerate() {
        let there = Image::empty(96).unwrap();
        let target = Ropewalk::serve(&[&format!("0=file:{}", there.name())]).unwrap();
        let cut = Cut { connection: (number + 1) % 4, way: Way::ToTarget, after_bytes };
        let relay = Relay::to(target.address(), &[cut]).unwrap();
        let url = target.url_by(relay.address(), 0);
        let arguments = ["copy", source.name(), &url, CONNECTIONS, "--json", "--verify=full"];
        let (status, lines) = ropewalk(arguments).unwrap();
        assert!(status.success(), "{cut:?}: {status}: {lines:#?}");
        assert_eq!(relay.cuts_done(), 1, "{cut:?} was never reached");
        assert_eq!(summary(&lines).unwrap()["bytes"], 96 << 20);
        assert!(target.stop().unwrap().success());
        assert_same(source.path(), there.path()).unwrap_or_else(|error| panic!("{cut:?}: {error}"));
    }
}

#[test]
fn a_read_survives_a_connection_that_breaks_anywhere() {
    let source = Image::random(96).unwrap();
    let target = Ropewalk::serve(&[&format!("0=file:{},ro", source.name())]).unwrap();
    for (number, after_bytes) in OFFSETS_BYTES.into_iter().enumerate() {
        let back = source.beside("back.raw");
        let cut = Cut { connection: (number + 1) % 4, way: Way::ToInitiator, after_bytes };
        let relay = Relay::to(target.address(), &[cut]).unwrap();
        let url = target.url_by(relay.address(), 0);
        let arguments = ["copy", &url, &back, CONNECTIONS, "--json", "--verify=off", "--overwrite"];
        let (status, lines) = ropewalk(arguments).unwrap();
        assert!(status.success(), "{cut:?}: {status}: {lines:#?}");
        assert_eq!(relay.cuts_done(), 1, "{cut:?} was never reached");
        assert_same(source.path(), back).unwrap_or_else(|error| panic!("{cut:?}: {error}"));
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
    let url = target.url_by(relay.address(), 0);
    let (status, lines) = ropewalk(["copy", source.name(), &url, CONNECTIONS, "--json"]).unwrap();
    assert!(status.success(), "{status}: {lines:#?}");
    assert!(relay.cuts_done() > 1, "only {} cut", relay.cuts_done());
    assert!(target.stop().unwrap().success());
    assert_same(source.path(), there.path()).unwrap();
}
