//! `ropewalk lab analyse`, of a capture of a copy of 8 KiB in requests of 4 KiB, with its verification.

use crate::world::{Folder, run};

const COPY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../observe/tests/captures/copy.pcap");

#[test]
fn every_command_of_a_recorded_copy_is_told() {
    let lines = run(&["lab", "analyse", "--json", COPY]).expect(0).json_lines();
    assert_eq!(lines.len(), 1);
    let connection = &lines[0]["connections"][0];
    assert_eq!(connection["target_name"], "iqn.2026-11.org.example:disk");
    let summaries = connection["summaries"].as_array().unwrap();
    let writes = summaries.iter().find(|summary| summary["kind"] == "write").unwrap();
    assert_eq!((&writes["commands"], &writes["data_bytes"]), (&2.into(), &8192.into()));
    for way in ["to_target", "to_initiator"] {
        assert_eq!(connection[way]["unknown_bytes"], 0);
        assert_eq!(connection[way]["invalid_pdus"], 0);
    }
    assert_eq!(connection["commands_without_status"], 0);
}

#[test]
fn every_pdu_is_a_line_before_the_report_if_asked_for() {
    let lines = run(&["lab", "analyse", "--json", "--pdus", COPY]).expect(0).json_lines();
    let (summary, pdus) = lines.split_last().unwrap();
    assert_eq!(summary["message_type"], "summary");
    assert!(pdus.iter().all(|pdu| pdu["message_type"] == "pdu"));
    assert_eq!(pdus.len(), 38);
}

#[test]
fn a_person_reads_a_table() {
    let text = run(&["lab", "analyse", "--commands", COPY]).expect(0).stdout();
    for part in ["1 of 1 connection with iSCSI", "TURNAROUND", "writes", "8.00 KiB"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn only_a_window_of_a_capture_is_looked_into_and_its_clock_is_that_of_the_capture() {
    let window = ["lab", "analyse", "--from", "28ms", "--to", "29.2ms", COPY];
    let report = run(&[&window[..], &["--json"]].concat()).expect(0).json_lines().remove(0);
    let connection = &report["connections"][0];
    let kinds: Vec<_> =
        connection["commands"].as_array().unwrap().iter().map(|command| command["kind"].clone()).collect();
    assert_eq!(kinds, ["write", "write"]);
    let capture = &report["capture"];
    assert_eq!(capture["frames"], 34);
    assert_eq!(capture["segments"].as_u64().unwrap() + capture["frames_left_out"].as_u64().unwrap(), 34);
    let text = run(&[&window[..], &["--commands"]].concat()).expect(0).stdout();
    assert!(text.contains("left out") && text.contains("28.5ms"), "{text}");
}

#[test]
fn a_window_that_ends_before_it_begins_is_refused() {
    let outcome = run(&["lab", "analyse", "--from", "2s", "--to", "1s", COPY]).expect(2);
    assert!(outcome.stderr().contains("--from"), "{}", outcome.stderr());
}

#[test]
fn a_file_that_is_no_capture_is_refused() {
    let folder = Folder::new();
    let file = folder.write("text", b"not a capture");
    let outcome = run(&["lab", "analyse", &file]).expect(1);
    assert!(outcome.stderr().contains("neither a pcap nor a pcapng file"));
}

#[test]
fn a_page_shows_what_was_analysed() {
    let folder = Folder::new();
    let page = folder.text("copy.html");
    run(&["lab", "analyse", "--html", &page, COPY]).expect(0);
    let page = std::fs::read_to_string(page).unwrap();
    for part in ["iSCSI in copy.pcap", "iqn.2026-11.org.example:disk", "How long writes took"] {
        assert!(page.contains(part), "{part:?} is missing");
    }
}
