//! The target is killed without warning during a copy, and started again. Its disk forgets what was not flushed.

use ropewalk_interop::{Image, PATIENCE, Program, Relay, Ropewalk, assert_same, binary, summary};
use std::process::Command;

const IMAGE_MIB: u64 = 400;

/// When the target is killed: early, just before and after the flush that comes at 256 MiB, and near the end.
const KILLS_AFTER_MIB: [u64; 4] = [5, 250, 270, 390];

#[test]
fn a_copy_survives_the_death_of_a_target_that_forgets_what_was_not_flushed() {
    let source = Image::random(IMAGE_MIB).unwrap();
    let mut rewritten_bytes = 0;
    for mib in KILLS_AFTER_MIB {
        // Holes are zeroed, not sent, so less than the image's size passes.
        let kill_after_bytes = (mib << 20) * 15 / 16;
        let there = Image::empty(IMAGE_MIB).unwrap();
        let mut target = Ropewalk::serve(&[&format!("0=file:{},volatile", there.name())]).unwrap();
        let relay = Relay::to(target.address(), &[]).unwrap();
        let url = target.url_by(relay.address(), 0);
        let mut copy = Command::new(binary().unwrap());
        copy.args(["copy", source.name(), &url, "--connections=4", "--json", "--verify=full"]);
        let mut copy = Program::start(&mut copy).unwrap();
        assert!(relay.wait_for_bytes(kill_after_bytes, PATIENCE), "{:#?}", copy.lines());
        target.kill_and_restart().unwrap();
        let status = copy.finish(PATIENCE).unwrap();
        let lines = copy.lines();
        assert!(status.success(), "killed after {mib} MiB: {status}: {lines:#?}");
        let summary = summary(&lines).unwrap();
        assert!(summary["retries"].as_u64() > Some(0), "the death went unnoticed: {summary}");
        rewritten_bytes += summary["rewritten_bytes"].as_u64().unwrap();
        assert!(target.stop().unwrap().success());
        assert_same(source.path(), there.path())
            .unwrap_or_else(|error| panic!("killed after {mib} MiB: {error}"));
    }
    // After 5 MiB nothing may have been acknowledged yet; after 250 much was, and none of it flushed.
    assert!(rewritten_bytes > 0, "no acknowledged write was ever lost");
}

#[test]
fn a_copy_from_a_target_that_dies_goes_on_when_it_is_back() {
    let source = Image::random(IMAGE_MIB).unwrap();
    let back = source.beside("back.raw");
    let mut target = Ropewalk::serve(&[&format!("0=file:{},ro", source.name())]).unwrap();
    let relay = Relay::to(target.address(), &[]).unwrap();
    let url = target.url_by(relay.address(), 0);
    let mut copy = Command::new(binary().unwrap());
    copy.args(["copy", &url, &back, "--connections=4", "--json", "--verify=full"]);
    let mut copy = Program::start(&mut copy).unwrap();
    assert!(relay.wait_for_bytes(100 << 20, PATIENCE), "{:#?}", copy.lines());
    target.kill_and_restart().unwrap();
    let status = copy.finish(PATIENCE).unwrap();
    assert!(status.success(), "{status}: {:#?}", copy.lines());
    assert_same(source.path(), back).unwrap();
}
