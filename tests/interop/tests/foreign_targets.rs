//! Our initiator against other people's targets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_interop::{
    Image, Istgt, Line, Requirement, Tgt, Tuning, assert_same, objects, require, ropewalk, summary,
};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const ISTGT: Requirement = Requirement::Peers(&["istgt"]);
const TGT: [Requirement; 2] = [Requirement::Root, Requirement::Peers(&["tgtd", "tgtadm"])];

/// Copies, verifying every byte; the copy must succeed. Returns its summary.
fn copy(source: &str, destination: &str, options: &[&str]) -> (Value, Vec<Line>) {
    let arguments = [&["copy", source, destination, "--json", "--verify=full"], options].concat();
    let (status, lines) = ropewalk(arguments).unwrap();
    assert!(status.success(), "{status}: {lines:#?}");
    (summary(&lines).unwrap(), lines)
}

/// The most connections that a copy had at once. istgt loses sessions now and then, and a copy may end while one that
/// came back has only its first connection.
fn most_connections(lines: &[Line]) -> u64 {
    objects(lines).filter_map(|object| object["connections"].as_u64()).max().unwrap_or_default()
}

#[test]
fn istgt_takes_four_connections_into_one_session() {
    if !require(&[ISTGT]) {
        return;
    }
    let source = Image::random(96).unwrap();
    let there = Image::empty(96).unwrap();
    let target = Istgt::serve(there.path(), Tuning::Defaults).unwrap();
    let (sent, lines) = copy(source.name(), &target.url(), &["--connections=4", "--sessions=1"]);
    assert_eq!((most_connections(&lines), &sent["sessions"]), (4, &1.into()), "{lines:#?}");
    let back = source.beside("back.raw");
    let (fetched, lines) = copy(&target.url(), &back, &["--connections=4", "--sessions=1"]);
    assert_eq!((most_connections(&lines), &fetched["sessions"]), (4, &1.into()), "{lines:#?}");
    assert_same(source.path(), back).unwrap();
}

#[test]
fn a_target_that_does_not_join_connections_gets_as_many_sessions() {
    if !require(&TGT) {
        return;
    }
    let source = Image::random(96).unwrap();
    let there = Image::empty(96).unwrap();
    let target = Tgt::serve(1, &[there.path()]).unwrap();
    target.tune().unwrap();
    let (sent, lines) = copy(source.name(), &target.url(1), &["--connections=8"]);
    assert_eq!((&sent["connections"], &sent["sessions"]), (&8.into(), &8.into()), "{sent}");
    let warned = lines.iter().any(|line| line.text.contains("could not be added"));
    assert!(warned, "nothing said of the connections that did not join: {lines:#?}");
    assert_same(source.path(), there.path()).unwrap();
    let back = source.beside("back.raw");
    copy(&target.url(1), &back, &["--connections=8"]);
    assert_same(source.path(), back).unwrap();
}

#[test]
fn connections_to_targets_that_do_not_split_sessions_are_whole() {
    let source = Image::random(16).unwrap();
    let there = Image::empty(16).unwrap();
    let split = |url: &str| {
        let (sent, lines) = copy(source.name(), url, &["--connections=2", "--lanes=split", "--overwrite"]);
        assert_eq!(sent["connections"], Value::from(2), "{sent}");
        let warned = lines.iter().any(|line| line.text.contains("does not have split connections"));
        assert!(warned, "{lines:#?}");
        assert_same(source.path(), there.path()).unwrap();
    };
    if require(&[ISTGT]) {
        split(&Istgt::serve(there.path(), Tuning::Defaults).unwrap().url());
    }
    if require(&TGT) {
        split(&Tgt::serve(3, &[there.path()]).unwrap().url(1));
    }
}

#[test]
fn a_path_that_leads_to_another_disk_is_refused() {
    if !require(&TGT) {
        return;
    }
    let source = Image::random(16).unwrap();
    let (here, elsewhere) = (Image::empty(16).unwrap(), Image::random(16).unwrap());
    // Two servers with targets and LUNs of the same name, but different disks behind them.
    let (target, other) =
        (Tgt::serve(1, &[here.path()]).unwrap(), Tgt::serve(2, &[elsewhere.path()]).unwrap());
    let portals = [format!("--portal={}", target.address()), format!("--portal={}", other.address())];
    let url = target.url(1);
    let arguments = ["copy", source.name(), &url, "--connections=2", &portals[0], &portals[1], "--json"];
    let (status, lines) = ropewalk(arguments).unwrap();
    let refused = lines.iter().any(|line| line.text.contains(&other.address().to_string()));
    assert!(refused, "{status}: nothing said of the path that was refused: {lines:#?}");
    let untouched = Image::random(16).unwrap();
    assert_same(elsewhere.path(), untouched.path()).unwrap();
    if status.success() {
        assert_same(source.path(), here.path()).unwrap();
    }
}

/// What initiators prove with, in a file that nobody else can read.
fn credentials(image: &Image, target_password: &str) -> String {
    let path = image.beside("credentials");
    let text = format!(
        "username = alice\npassword = what alice knows\ntarget_username = disk\ntarget_password = {target_password}\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// tgt knows MD5 as 5 like everybody, and SHA-1 as 7, which is SHA-256 elsewhere: the first attempt fails, and the second
/// must not.
#[test]
fn tgt_and_we_prove_ourselves_to_each_other_whatever_it_means_by_the_numbers_of_algorithms() {
    if !require(&TGT) {
        return;
    }
    let disk = Image::random(16).unwrap();
    let target = Tgt::serve(1, &[disk.path()]).unwrap();
    target.authenticate(("alice", "what alice knows"), ("disk", "what the disk knows")).unwrap();
    let url = target.url(1);
    let info = |file: &str, options: &[&str]| {
        let arguments = [&["info", "--chap-file", file, &url], options].concat();
        let (status, lines) = ropewalk(arguments).unwrap();
        (status.success(), lines)
    };
    let right = credentials(&disk, "what the disk knows");
    for algorithms in ["sha3-256,sha256,sha1,md5", "md5", "sha256,md5"] {
        let (success, lines) = info(&right, &["--chap-algorithms", algorithms]);
        assert!(success, "{algorithms}: {lines:#?}");
    }
    let wrong = credentials(&disk, "what another knows");
    let (success, lines) = info(&wrong, &[]);
    assert!(!success, "an impostor was believed: {lines:#?}");
}
