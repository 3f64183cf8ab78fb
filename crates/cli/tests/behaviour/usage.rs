//! Wrong usage is refused with status 2, before anything is touched; every command explains itself.

use crate::world::run;

const URL: &str = "iscsi://127.0.0.1:1/iqn.2026-11.com.example:disk/0";

#[track_caller]
fn refused(arguments: &[&str], words: &str) {
    let outcome = run(arguments).expect(2);
    assert!(outcome.stderr().contains(words), "{}", outcome.stderr());
}

#[test]
fn what_makes_no_sense_is_refused() {
    refused(&["copy", "a"], "DST");
    refused(&["copy", "--connections", "0", "a", "b"], "from 1");
    refused(&["copy", "--connections", "many", "a", "b"], "or auto");
    refused(&["copy", "--request-size", "1G", "a", "b"], "request");
    refused(&["copy", "--bwlimit", "fast", "a", "b"], "200M");
    refused(&["copy", "iscsi://host/disk/0", "b"], "iqn.");
    refused(&["copy", "iscsi://user:secret@host/iqn.2026-11.com.example:a/0", "b"], "secret");
    refused(&["copy", "--json", "a", "-"], "standard output");
    refused(&["copy", "--verify=full", "a", "-"], "read back");
    refused(&["bench", URL, "--rw", "sideways"], "randread");
    refused(&["serve"], "--target");
    refused(&["serve", "--target", "disk", "--lun", "0=ram:1M"], "iqn.");
    refused(&["serve", "--target", "iqn.2026-11.com.example:disk", "--lun", "ram:1M"], "0=ram:1GiB");
    refused(&["ls", "host:port"], "host:port");
}

#[test]
fn writing_by_bench_needs_consent() {
    let outcome = run(&["bench", URL, "--rw", "randwrite"]).expect(5);
    assert!(outcome.stderr().contains("--destroy-data"), "{}", outcome.stderr());
}

#[test]
fn listening_beyond_loopback_needs_protection_or_consent() {
    let target = ["--target", "iqn.2026-11.com.example:disk", "--lun", "0=ram:1M"];
    let arguments = [&["serve", "--listen", "0.0.0.0:0"], &target[..]].concat();
    refused(&arguments, "refusing to listen");
}

#[test]
fn what_is_not_there_is_named() {
    let outcome = run(&["info", URL]).expect(1);
    assert!(outcome.stderr().contains("127.0.0.1:1"), "{}", outcome.stderr());
    let outcome = run(&["copy", "/nonexistent/image", "b"]).expect(1);
    assert!(outcome.stderr().contains("/nonexistent/image"), "{}", outcome.stderr());
}

#[test]
fn every_command_explains_itself_with_an_example() {
    for command in ["serve", "ls", "info", "copy", "bench"] {
        let help = run(&[command, "--help"]).expect(0).stdout();
        assert!(help.contains("Example"), "{command}");
        assert!(help.contains(&format!("ropewalk {command}")), "{command}");
    }
}
