//! libiscsi's conformance tests against our target.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use ropewalk_interop::{Image, PATIENCE, Program, Requirement, Ropewalk, require};
use std::collections::BTreeSet;
use std::process::Command;

/// The suites, as `iscsi-test-cu --test` takes them.
const SUITES: &[&str] = &[
    "ALL.Read*",
    "ALL.Write*",
    "ALL.Inquiry*",
    "ALL.TestUnitReady*",
    "ALL.Unmap*",
    "ALL.CompareAndWrite*",
    "ALL.GetLBAStatus*",
    "ALL.Verify*",
    "ALL.OrWrite*",
    "ALL.Prefetch*",
    "ALL.ModeSense6*",
    "ALL.ExtendedCopy*",
    "ALL.ReceiveCopyResults*",
    "ALL.ReportSupportedOpcodes*",
    "ALL.Mandatory*",
    "ALL.iSCSIcmdsn*",
    "ALL.iSCSIdatasn*",
    "ALL.iSCSIResiduals*",
];

/// What a test says when it finds nothing to test, and which tests say it.
type Skip = (&'static str, &'static [&'static str]);

/// Tests that find nothing to test on any disk of ours. A new one must not go unnoticed.
const SKIPS: &[Skip] = &[
    // It needs a disk that cannot be written; see the test of one below.
    ("Logical unit is not write-protected. Skipping test.", &["ReadOnly.ReadOnlySBC"]),
    // Optional commands (SBC-3 §5.1) that common initiators do not send.
    (
        "WRITEATOMIC16 is not implemented.",
        &[
            "WriteAtomic16.BeyondEol",
            "WriteAtomic16.DpoFua",
            "WriteAtomic16.Simple",
            "WriteAtomic16.VPD",
            "WriteAtomic16.WriteProtect",
            "WriteAtomic16.ZeroBlocks",
        ],
    ),
];

/// Those of WRITE SAME.
const SKIPS_OF_WRITE_SAME: &[Skip] = &[
    // The disk says so in page B0h: "until the end of the disk" is too much to write by mistake.
    ("WRITESAME10 does not support 0-blocks.", &["WriteSame10.ZeroBlocks"]),
    ("WRITESAME16 does not support 0-blocks.", &["WriteSame16.ZeroBlocks"]),
];

/// Further ones on a LUN whose blocks can be deallocated.
const SKIPS_WHEN_THIN: &[Skip] = &[
    // They need physical blocks of more than one logical block.
    (
        "LBPPB < 2. Skipping test",
        &[
            "CompareAndWrite.InvalidDataOutSize",
            "WriteSame10.InvalidDataOutSize",
            "WriteSame10.UnmapUnaligned",
            "WriteSame16.InvalidDataOutSize",
            "WriteSame16.UnmapUnaligned",
        ],
    ),
];

/// Further ones on a LUN whose blocks cannot.
const SKIPS_WHEN_FULLY_PROVISIONED: &[Skip] = &[
    // They deallocate blocks.
    (
        "Logical unit is fully provisioned. Skipping test",
        &[
            "CompareAndWrite.InvalidDataOutSize",
            "GetLBAStatus.UnmapSingle",
            "Inquiry.BlockLimits",
            "Unmap.Simple",
            "Unmap.ZeroBlocks",
            "WriteSame10.InvalidDataOutSize",
            "WriteSame10.Unmap",
            "WriteSame10.UnmapUnaligned",
            "WriteSame10.UnmapUntilEnd",
            "WriteSame16.InvalidDataOutSize",
            "WriteSame16.Unmap",
            "WriteSame16.UnmapUnaligned",
            "WriteSame16.UnmapUntilEnd",
        ],
    ),
    ("UNMAP is not implemented.", &["Unmap.VPD"]),
];

/// What the test of a read-only disk leaves out of its many writes.
const SKIPS_WHEN_READ_ONLY: &[Skip] = &[("UNMAP is not implemented.", &["ReadOnly.ReadOnlySBC"])];

/// Said of every disk before and after the tests, which clear reservations; there are none.
const SAID_BY_NO_TEST: &str = "PERSISTENT RESERVE IN is not implemented.";

/// What one run of the suites found.
#[derive(Debug, Default)]
struct Outcome {
    ran: usize,
    failures: Vec<String>,
    skips: BTreeSet<String>,
}

/// Reads the report: `Suite: Read10`, `  Test: Simple ...passed`, and between them what a test has to say.
fn outcome(report: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let (mut suite, mut test) = ("", String::new());
    for line in report.lines() {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix("Suite: ") {
            suite = name;
        }
        if let Some((name, _)) = trimmed.strip_prefix("Test: ").and_then(|rest| rest.split_once(" ...")) {
            test = format!("{suite}.{name}");
            outcome.ran += 1;
        }
        let said = trimmed.split_once("[SKIPPED] ").map(|(_, said)| said);
        if let Some(said) = said.filter(|said| *said != SAID_BY_NO_TEST) {
            outcome.skips.insert(format!("{test}: {said}"));
        }
        // "[FAILED]" is a command that failed, as some tests want it to; "FAILED" is a test.
        if trimmed.ends_with("FAILED") {
            outcome.failures.push(format!("{test}: {trimmed}"));
        }
    }
    outcome
}

/// Runs one group of suites, destructive tests included.
fn run(suites: &str, url: &str) -> Outcome {
    let mut tests = Command::new("iscsi-test-cu");
    tests.args(["--dataloss", "--verbose", "--test", suites, url]);
    let (status, lines) = Program::run(&mut tests, PATIENCE).unwrap();
    let report = lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
    assert!(status.success(), "{suites}: {status}\n{report}");
    let outcome = outcome(&report);
    assert!(outcome.ran > 0, "{suites} names no test:\n{report}");
    assert!(outcome.failures.is_empty(), "{:#?}\n{report}", outcome.failures);
    outcome
}

/// Runs these suites against the LUN; the skipped tests must be exactly those of the tables.
fn passes(suites: &[&str], lun: &str, tables: &[&[Skip]]) {
    if !require(&[Requirement::Peers(&["iscsi-test-cu"])]) {
        return;
    }
    let target = Ropewalk::serve(&[lun]).unwrap();
    let url = target.url(0);
    let skips: BTreeSet<String> = suites.iter().flat_map(|suites| run(suites, &url).skips).collect();
    let expected = tables.iter().copied().flatten();
    let expected = expected.flat_map(|(said, tests)| tests.iter().map(move |test| format!("{test}: {said}")));
    assert_eq!(skips, expected.collect(), "skipped on {lun}");
}

#[test]
fn a_thin_disk_passes_every_suite() {
    passes(SUITES, "0=ram:128M", &[SKIPS, SKIPS_OF_WRITE_SAME, SKIPS_WHEN_THIN]);
}

#[test]
fn a_thin_disk_of_4096_byte_blocks_passes_every_suite() {
    passes(SUITES, "0=ram:128M,bs=4096", &[SKIPS, SKIPS_OF_WRITE_SAME, SKIPS_WHEN_THIN]);
}

#[test]
fn a_thin_file_passes_every_suite() {
    let image = Image::empty(128).unwrap();
    passes(SUITES, &format!("0=file:{},thin", image.name()), &[SKIPS, SKIPS_OF_WRITE_SAME, SKIPS_WHEN_THIN]);
}

#[test]
fn a_fully_provisioned_file_passes_every_suite() {
    let image = Image::empty(128).unwrap();
    passes(
        SUITES,
        &format!("0=file:{}", image.name()),
        &[SKIPS, SKIPS_OF_WRITE_SAME, SKIPS_WHEN_FULLY_PROVISIONED],
    );
}

#[test]
fn a_disk_with_a_forgetful_cache_passes_every_suite() {
    let image = Image::empty(128).unwrap();
    passes(
        SUITES,
        &format!("0=file:{},thin,volatile", image.name()),
        &[SKIPS, SKIPS_OF_WRITE_SAME, SKIPS_WHEN_THIN],
    );
}

#[test]
fn a_read_only_disk_refuses_every_write() {
    let image = Image::empty(128).unwrap();
    passes(&["ALL.ReadOnly"], &format!("0=file:{},ro", image.name()), &[SKIPS_WHEN_READ_ONLY]);
}

#[test]
fn a_removable_disk_passes_the_suites_of_ejecting() {
    let suites = ["ALL.NoMedia*", "ALL.PreventAllow*", "ALL.StartStopUnit*", "ALL.TestUnitReady*"];
    passes(&suites, "0=ram:128M,removable", &[]);
}

/// Not those of GET LBA STATUS: one of its tests asks for a block and expects the answer to begin with a later one.
#[test]
fn a_disk_of_larger_physical_blocks_passes_the_suites_that_need_them() {
    let suites = ["ALL.CompareAndWrite*", "ALL.WriteSame*", "ALL.Unmap*", "ALL.Inquiry*"];
    passes(&suites, "0=ram:128M,pbs=4096", &[SKIPS_OF_WRITE_SAME]);
}
