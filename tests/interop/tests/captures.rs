//! What we read from a capture of real sessions, beside what Wireshark's dissector reads from the same.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use ropewalk_interop::{Image, PATIENCE, Program, Requirement, Ropewalk, require, ropewalk};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Frames that are captured: a part of what the copy sends, so that the capture ends by itself.
const FRAMES: &str = "300";

/// The PDUs that end in one frame, field by field, as tshark lists them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ended {
    opcodes: Vec<u64>,
    task_tags: Vec<u64>,
    cmd_sns: Vec<u64>,
    stat_sns: Vec<u64>,
    data_bytes: Vec<u64>,
    /// Of the frame, in nanoseconds.
    at: u64,
}

struct Captured {
    path: String,
    port: u16,
    /// In whose directory it is.
    _beside: Image,
}

type ByFrame = BTreeMap<u64, Ended>;

#[test]
fn every_pdu_is_read_as_wireshark_reads_it() {
    compare("");
}

#[test]
fn every_pdu_with_a_header_digest_is_read_as_wireshark_reads_it() {
    compare("header_digest = \"required\"");
}

/// Wireshark 4.0 does not count the four bytes of a data digest when it looks for a PDU's end, so it cannot judge here.
#[test]
fn no_pdu_with_digests_is_taken_for_a_damaged_one() {
    let negotiation = "header_digest = \"required\"\ndata_digest = \"required\"";
    let Some(captured) = capture_a_copy(negotiation) else { return };
    let found = ours(&captured.path).len();
    assert!(found > 50, "PDUs were found in {found} frames only");
}

#[test]
fn every_pdu_of_writes_that_wait_for_r2ts_is_read_as_wireshark_reads_it() {
    compare("initial_r2t = true\nimmediate_data = false\nmax_burst = \"64K\"");
}

fn compare(negotiation: &str) {
    let Some(captured) = capture_a_copy(negotiation) else { return };
    let (ours, theirs) = (ours(&captured.path), theirs(&captured.path, captured.port));
    assert!(theirs.len() > 50, "tshark found PDUs in {} frames only", theirs.len());
    for frame in ours.keys().chain(theirs.keys()) {
        assert_eq!(ours.get(frame), theirs.get(frame), "frame {frame}: ours, Wireshark's");
    }
}

/// The beginning of a copy to a target that negotiates so.
fn capture_a_copy(negotiation: &str) -> Option<Captured> {
    if !require(&[Requirement::Root, Requirement::Peers(&["dumpcap", "tshark"])]) {
        return None;
    }
    stay_on_one_processor();
    let (source, there) = (Image::random(32).unwrap(), Image::empty(32).unwrap());
    let target = Ropewalk::serve_negotiating(there.name(), negotiation).unwrap();
    let (url, port) = (target.url(0), target.address().port());
    let file = source.beside("copy.pcapng");
    let mut capture = capture(port, &file);
    let arguments = ["--connections", "3", "--overwrite"];
    let copy = [&["copy", source.name(), &url], &arguments[..]].concat();
    let (status, lines) = ropewalk(copy).unwrap();
    assert!(status.success(), "{lines:?}");
    assert!(capture.finish(PATIENCE).unwrap().success(), "{:?}", capture.lines());
    Some(Captured { path: file, port, _beside: source })
}

/// This thread, and the programs that it starts. Of several processors each brings what it sends over loopback, so that
/// frames come to the capture out of order; then a PDU ends in another frame for Wireshark than for us.
fn stay_on_one_processor() {
    let all = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor)).unwrap());
    sched_setaffinity(None, &one).unwrap();
}

/// A capture that has begun.
fn capture(port: u16, file: &str) -> Program {
    let mut command = Command::new("dumpcap");
    command.args(["-q", "-i", "lo", "-B", "64", "-f", &format!("tcp port {port}"), "-c", FRAMES, "-w", file]);
    let capture = Program::start(&mut command).unwrap();
    capture.wait_for(PATIENCE, |line| line.text.starts_with("File:").then_some(())).unwrap();
    capture
}

fn ours(file: &str) -> ByFrame {
    let (status, lines) = ropewalk(["lab", "analyse", "--json", "--pdus", file]).unwrap();
    assert!(status.success(), "{lines:?}");
    let objects = lines.iter().filter_map(|line| serde_json::from_str::<Value>(&line.text).ok());
    let mut frames = ByFrame::new();
    for pdu in objects.filter(|object| object["message_type"] == "pdu") {
        let number = |name: &str| pdu[name].as_u64();
        let ended = frames.entry(number("last_frame").unwrap()).or_default();
        let opcode = number("opcode").unwrap();
        assert_eq!(pdu["invalid"], false, "{pdu}");
        ended.at = number("last_ns").unwrap();
        ended.opcodes.push(opcode);
        ended.task_tags.extend(number("task_tag"));
        ended.cmd_sns.extend(number("cmd_sn"));
        ended.data_bytes.extend(number("data_bytes"));
        if opcode >= 0x20 {
            // tshark shows the reserved field of a Data-In without status.
            ended.stat_sns.push(number("stat_sn").unwrap_or_default());
        }
    }
    frames
}

fn theirs(file: &str, port: u16) -> ByFrame {
    let mut command = Command::new("tshark");
    command.args(["-r", file, "-d", &format!("tcp.port=={port},iscsi"), "-Y", "iscsi"]);
    command.args(["-o", "iscsi.bogus_pdu_filter:FALSE", "-T", "fields", "-E", "separator=|"]);
    let fields = [
        "frame.number",
        "frame.time_epoch",
        "iscsi.opcode",
        "iscsi.initiatortasktag",
        "iscsi.cmdsn",
        "iscsi.statsn",
        "iscsi.datasegmentlength",
    ];
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(parse_line).collect()
}

fn parse_line(line: &str) -> (u64, Ended) {
    let fields: Vec<&str> = line.split('|').collect();
    let &[frame, time, opcodes, task_tags, cmd_sns, stat_sns, data_bytes] = fields.as_slice() else {
        panic!("tshark wrote {line:?}")
    };
    let mut ended = Ended {
        opcodes: numbers(opcodes),
        task_tags: numbers(task_tags),
        cmd_sns: numbers(cmd_sns),
        stat_sns: numbers(stat_sns),
        data_bytes: numbers(data_bytes),
        // Seconds with nine digits behind the point.
        at: time.replace('.', "").parse().unwrap(),
    };
    leave_out_rejected(&mut ended);
    (frame.parse().unwrap(), ended)
}

const DATA_OUT: u64 = 0x05;
const SNACK: u64 = 0x10;
const REJECT: u64 = 0x3f;

/// Leaves out the headers within Rejects (RFC 7143 §11.17), which Wireshark lists like those of further PDUs. It lists their
/// tags in place of the Rejects' own, which are reserved.
fn leave_out_rejected(ended: &mut Ended) {
    let mut at = 0;
    while at < ended.opcodes.len() {
        if ended.opcodes[at] == REJECT {
            let rejected = ended.opcodes.remove(at + 1);
            ended.data_bytes.remove(at + 1);
            ended.task_tags[at] = 0xffff_ffff;
            if rejected != DATA_OUT && rejected != SNACK {
                // A target sends no CmdSN of its own.
                ended.cmd_sns.remove(0);
            }
        }
        at += 1;
    }
}

#[test]
fn the_header_within_a_reject_is_not_taken_for_a_pdu() {
    let line = "41|1795931477.783886212|0x20,0x3f,0x00|0xeda5aada,0xeda5aadf|39|910875524,910875525|0,48,0";
    let expected = Ended {
        opcodes: vec![0x20, 0x3f],
        task_tags: vec![0xeda5_aada, 0xffff_ffff],
        cmd_sns: vec![],
        stat_sns: vec![910_875_524, 910_875_525],
        data_bytes: vec![0, 48],
        at: 1_795_931_477_783_886_212,
    };
    assert_eq!(parse_line(line), (41, expected));
}

fn numbers(list: &str) -> Vec<u64> {
    let parse = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    list.split(',').filter(|text| !text.is_empty()).map(parse).collect()
}
