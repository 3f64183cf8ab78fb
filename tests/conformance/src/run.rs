//! Runs tests, one process each.

use crate::subject::{Configuration, Running};
use crate::test_name::{ISCSI_TEST_CU, TestName};
use crate::verdict::{Verdict, judge};
use anyhow::Result;
use indicatif::ProgressBar;
use ropewalk_interop::Program;
use std::io::ErrorKind;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What `malloc` is told, so that a test's own error does not end it in one of four runs.
///
/// `iSCSITMF.LUNResetSimpleAsync` frees its SCSI task while the command is outstanding, and libiscsi then writes into it
/// (valgrind shows both). A freed block that is not joined with its neighbours survives that.
const FREED_BLOCKS_STAY_APART: &str = "glibc.malloc.tcache_count=65535";

/// Many times what the slowest test takes, on a busy machine too: a test that is only slow must not count as one that
/// hangs.
const TEST_PATIENCE: Duration = Duration::from_secs(180);

/// Processes at a time. Tests that wait leave the processor to others.
const WORKERS: usize = 2;

/// One test on one disk.
#[derive(Debug)]
pub struct Case {
    /// The name of the test.
    pub test: TestName,
    /// The name of the disk's configuration.
    pub configuration: &'static str,
    /// The result of the test.
    pub verdict: Verdict,
}

/// The tests of one suite on one disk, which they share.
struct Job<'a> {
    configuration: &'static Configuration,
    /// At least one.
    suite: &'a [TestName],
}

/// Runs all these tests on all these disks.
///
/// # Errors
/// If a target or a test cannot be started.
pub fn run(
    tests: &[TestName],
    configurations: &[&'static Configuration],
    progress: &ProgressBar,
) -> Result<Vec<Case>> {
    let suites = tests.chunk_by(|left, right| left.suite == right.suite);
    let jobs = suites
        .flat_map(|suite| configurations.iter().map(move |&configuration| Job { configuration, suite }));
    let jobs = jobs.filter(|job| job.configuration.can_run(&job.suite[0]));
    let jobs = Mutex::new(jobs);
    let work = || -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        loop {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(job) = job else { return Ok(cases) };
            run_suite(&job, progress, &mut cases)?;
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        let mut cases = Vec::new();
        for worker in workers {
            // What a worker panics with is the fault of this program, and ends it.
            cases.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok(cases)
    })
}

fn run_suite(job: &Job<'_>, progress: &ProgressBar, cases: &mut Vec<Case>) -> Result<()> {
    let mut target = job.configuration.start()?;
    for test in job.suite {
        let verdict = run_test(test, &target)?;
        // What it left behind must not decide about the next.
        if matches!(verdict, Verdict::Hang | Verdict::Crash(_)) {
            target = job.configuration.start()?;
        }
        cases.push(Case { test: test.clone(), configuration: job.configuration.name, verdict });
        progress.inc(1);
    }
    Ok(())
}

fn run_test(test: &TestName, target: &Running) -> Result<Verdict> {
    let mut command = Command::new(ISCSI_TEST_CU);
    command.args(["--dataloss", "--allow-sanitize", "--verbose", "--test", &test.expression()]);
    command.env("GLIBC_TUNABLES", FREED_BLOCKS_STAY_APART);
    match Program::run(command.args(&target.urls), TEST_PATIENCE) {
        Ok((status, lines)) => {
            let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
            Ok(judge(test, status, &lines.join("\n")))
        }
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(Verdict::Hang),
        Err(error) => Err(error.into()),
    }
}
