//! A third-party program at the client of a lab, which copies between a file and a disk of our target at the server.

mod memory_file;

use crate::lab::Lab;
use crate::scsi_run::server::{Storage, runtime};
use crate::scsi_run::{DiskModel, ScsiRunError};
use crate::session_monitor::{SessionMonitor, SessionSamples};
use crate::workload::{Contents, Direction};
use memory_file::MemoryFile;
use netem::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::env;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The copy and its program. The result is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRun {
    /// The program and its arguments. In them, `{file}` is the path of the file, `{disk}` the URL of the disk, and
    /// `{ropewalk}` the path of the program that runs the experiment.
    pub command: Vec<String>,
    /// The direction: `write` from the file to the disk, `read` from the disk to the file.
    pub direction: Direction,
    /// The length of the file and of the disk.
    pub size: Bytes,
    /// The approximate time of the program. After ten times as long, it is ended.
    pub expected_time: Span,
}

/// The result of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramReport {
    /// From the start of the program to its end.
    pub elapsed: Duration,
    /// The congestion control of the target's sockets.
    pub congestion_controls: Vec<String>,
    /// The target's view of its sessions.
    pub session: SessionSamples,
}

/// A program that did not copy.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum ProgramError {
    /// The target failed, or its disk has the wrong contents.
    #[error(transparent)]
    Storage(#[from] ScsiRunError),
    /// The program could not be started.
    #[error("{program} could not be started: {source}")]
    Start { program: String, source: io::Error },
    /// The program reports a failure.
    #[error("{program} ended with {status}: {said}")]
    Failed {
        program: String,
        status: ExitStatus,
        /// The end of its standard error.
        said: String,
    },
    /// The program took too long and was ended.
    #[error("{program} had not ended after {after:?}")]
    Late { program: String, after: Duration },
    /// The program reports success, but the copy is wrong.
    #[error("the copy differs from its source at byte {at}")]
    Different { at: u64 },
    /// The kernel refused a file or a thread.
    #[error("running a program: {0}")]
    System(#[from] io::Error),
}

/// Both must be among the arguments; otherwise the program cannot copy.
const FILE: &str = "{file}";
const DISK: &str = "{disk}";
const ROPEWALK: &str = "{ropewalk}";
/// A program that takes this many times its expected time hangs.
const LATE_FACTOR: u32 = 10;
/// The most characters quoted from a program.
const SAID_MAX: usize = 300;

impl ProgramRun {
    /// Checks the settings.
    ///
    /// # Errors
    /// The defect, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let has = |what: &str| self.command.iter().skip(1).any(|argument| argument.contains(what));
        if !has(FILE) || !has(DISK) {
            let expected = format!("a program with arguments in which {FILE} and {DISK} are what it copies");
            return Err(format!("setup.program.command must be {expected}"));
        }
        let Self { size, expected_time, .. } = self;
        if size.0 == 0 || !size.0.is_multiple_of(DiskModel::BLOCK_BYTES.into()) {
            let block_bytes = DiskModel::BLOCK_BYTES;
            return Err(format!(
                "setup.program.size is {size}, but must be whole blocks of {block_bytes} bytes"
            ));
        }
        if expected_time.0.is_zero() {
            return Err("setup.program.expected_time is 0, but must be a time".to_owned());
        }
        Ok(())
    }

    /// Lets the program copy, with `congestion_control` at the target. The host determines that of the program's own
    /// connections ([`Topology::congestion_control`](crate::Topology::congestion_control)).
    ///
    /// # Errors
    /// If it did not copy, whatever it reports.
    pub fn run(&self, lab: &Lab, congestion_control: &str, seed: u64) -> Result<ProgramReport, ProgramError> {
        let contents = Contents::Known { seed, oldest: 1, newest: 1 };
        let monitor = SessionMonitor::default();
        let disk = DiskModel { size: self.size, ..DiskModel::default() };
        let storage = Storage::start(&disk, target_config(congestion_control), lab, &monitor)?;
        let file = MemoryFile::new()?;
        match self.direction {
            Direction::Write => file.fill(self.size.0, contents)?,
            Direction::Read => storage.fill(self.size.0, contents)?,
        }
        monitor.restart();
        let elapsed = self.measure(lab, &file, &storage.url.to_string())?;
        let session = monitor.take();
        let connections = session.connections.iter();
        let congestion_controls =
            connections.filter_map(|connection| connection.congestion_control.clone()).collect();
        match self.direction {
            Direction::Write => {
                storage.read_back(std::slice::from_ref(&(0..self.size.0)), contents)?;
            }
            Direction::Read => {
                if let Some(at) = file.first_difference(self.size.0, contents)? {
                    return Err(ProgramError::Different { at });
                }
            }
        }
        storage.stop();
        Ok(ProgramReport { elapsed, congestion_controls, session })
    }

    fn measure(&self, lab: &Lab, file: &MemoryFile, disk: &str) -> Result<Duration, ProgramError> {
        let ropewalk = env::current_exe()?;
        let fill_in = |text: &String| {
            let path = |path: &Path| path.display().to_string();
            text.replace(FILE, &path(&file.path())).replace(DISK, disk).replace(ROPEWALK, &path(&ropewalk))
        };
        let words: Vec<String> = self.command.iter().map(fill_in).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        lab.client.namespace.put(&mut command);
        let program = || {
            let name = Path::new(&words[0]).file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let after = self.expected_time.0.saturating_mul(LATE_FACTOR);
        runtime()?.block_on(async {
            let mut command = tokio::process::Command::from(command);
            let begun = Instant::now();
            let process = command.kill_on_drop(true).spawn();
            let process = process.map_err(|source| ProgramError::Start { program: program(), source })?;
            let ended = tokio::time::timeout(after, process.wait_with_output()).await;
            let output = ended.map_err(|_| ProgramError::Late { program: program(), after })??;
            let elapsed = begun.elapsed();
            match output.status.success() {
                true => Ok(elapsed),
                false => Err(ProgramError::Failed {
                    program: program(),
                    status: output.status,
                    said: end_of(&output.stderr),
                }),
            }
        })
    }
}

/// The defaults of `ropewalk serve`.
fn target_config(congestion_control: &str) -> target::Config {
    let socket = target::SocketConfig {
        congestion: Some(congestion_control.to_owned()),
        ..target::SocketConfig::default()
    };
    target::Config { socket, ..target::Config::default() }
}

/// The end of the text, in one line.
fn end_of(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = line.char_indices().rev().nth(SAID_MAX - 1).map_or(0, |(index, _)| index);
    line[from..].to_owned()
}
