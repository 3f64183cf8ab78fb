//! What programs rely on: the shape of JSON output.

use crate::world::{Folder, MIB, Server, TARGET, noise, run};
use serde_json::Value;

/// The names, all of them present in the object.
#[track_caller]
fn assert_has(object: &Value, names: &[&str]) {
    for name in names {
        assert!(object.get(name).is_some(), "{name} is not in {object}");
    }
}

const STABLE: &[&str] =
    &["message_type", "bytes", "seconds", "bytes_per_second", "connections", "sessions", "retries"];

#[test]
fn a_copy_prints_status_lines_and_a_summary_last() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:8MiB"]));
    let image = folder.write("image", &noise(8 * MIB));
    let lines = run(&["copy", "--json", "--connections", "3", &image, &server.url(0)]).expect(0).json_lines();
    let (summary, statuses) = lines.split_last().unwrap();
    for line in &lines {
        assert_has(line, STABLE);
    }
    assert!(statuses.iter().all(|line| line["message_type"] == "status"));
    assert_eq!(summary["message_type"], "summary");
    assert_eq!(summary["bytes"], 8 * MIB);
    assert_eq!((&summary["connections"], &summary["sessions"]), (&3.into(), &1.into()));
    assert_eq!((&summary["verified"], &summary["done"]), (&"sample".into(), &true.into()));
}

#[test]
fn a_bench_prints_status_lines_and_a_summary_last() {
    let server = Server::with_luns(&["0=ram:8MiB"]);
    let arguments = ["--json", "--rw=randwrite", "--destroy-data", "--request-size=4K", "--runtime=1s"];
    let lines = run(&[&["bench", &server.url(0)], &arguments[..]].concat()).expect(0).json_lines();
    let summary = lines.last().unwrap();
    for line in &lines {
        assert_has(line, STABLE);
    }
    assert_eq!(summary["message_type"], "summary");
    assert_has(summary, &["requests_per_second", "latency_us", "per_connection"]);
    assert_has(&summary["latency_us"], &["min", "p50", "p90", "p99", "p99_9", "max"]);
    assert!(summary["bytes"].as_u64() > Some(0));
    assert_eq!(summary["per_connection"].as_array().unwrap().len(), 16);
}

#[test]
fn ls_prints_one_object() {
    let server = Server::with_luns(&["0=ram:1MiB"]);
    let lines = run(&["ls", "--json", &server.address]).expect(0).json_lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["targets"][0]["name"], TARGET);
}

#[test]
fn info_prints_one_object() {
    let server = Server::with_luns(&["0=ram:1MiB,bs=4096"]);
    let lines = run(&["info", "--json", &server.url(0)]).expect(0).json_lines();
    assert_eq!(lines.len(), 1);
    assert_eq!((&lines[0]["bytes"], &lines[0]["block_bytes"]), (&MIB.into(), &4096.into()));
    assert!(lines[0]["id"].as_str().unwrap().starts_with("naa."));
    assert_has(&lines[0]["negotiated"], &["MaxConnections", "InitialR2T", "FirstBurstLength"]);
}

#[test]
fn a_refused_copy_prints_a_summary_too() {
    let (folder, server) = (Folder::new(), Server::with_luns(&["0=ram:1MiB"]));
    let image = folder.write("image", &noise(2 * MIB));
    let lines = run(&["copy", "--json", &image, &server.url(0)]).expect(5).json_lines();
    assert_eq!((&lines[0]["message_type"], &lines[0]["done"]), (&"summary".into(), &false.into()));
    assert!(lines[0]["error"].as_str().unwrap().contains("refused"));
}
