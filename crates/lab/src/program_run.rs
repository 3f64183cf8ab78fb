//! A third-party program at the client of a lab, which copies between a file and a disk at the server: of our target, or
//! of a server of its own.

mod command_line;
mod copied_file;
mod extents;
mod server_program;
mod tmpfs_folder;

pub use extents::Extents;
pub use server_program::ServerProgram;

use crate::lab::Lab;
use crate::scsi_run::server::Storage;
use crate::scsi_run::{DiskModel, ScsiRunError};
use crate::session_monitor::{SessionMonitor, SessionSamples};
use crate::workload::{Contents, Direction};
use command_line::{Places, remedy, run_to_end};
use copied_file::CopiedFile;
use extents::extents_of;
use framing::Congestion;
use netem::{Bytes, Span};
use serde::{Deserialize, Serialize};
use std::env;
use std::io;
use std::ops::Range;
use std::process::ExitStatus;
use std::time::Duration;
use tmpfs_folder::TmpfsFolder;

/// The copy and its program. The result is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRun {
    /// The program and its arguments. In them, `{file}` is the path of the file, `{disk}` the URL of the disk, `{from}`
    /// and `{to}` are these two in the order of the direction, and `{ropewalk}` is the path of the program that runs
    /// the experiment.
    pub command: Vec<String>,
    /// The direction: `write` from the file to the disk, `read` from the disk to the file.
    pub direction: Direction,
    /// The length of the data, and of the file and the disk unless there are `extents`.
    pub size: Bytes,
    /// The places of the data; from the beginning without a hole, if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<Extents>,
    /// The approximate time of the program. After ten times as long, it is ended.
    pub expected_time: Span,
    /// The program may use another congestion control than the setup's, as it does by itself.
    #[serde(default)]
    pub chooses_congestion_control: bool,
    /// How often it copies before it is measured. What a program keeps of its runs in the user's state folder (XDG), it finds
    /// there again; the first time, that folder is empty.
    #[serde(default)]
    pub rehearsals: u8,
    /// The server of the disk; our target, if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerProgram>,
}

/// The result of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramReport {
    /// From the start of the program to its end.
    pub elapsed: Duration,
    /// The congestion control of our target's sockets.
    pub congestion_controls: Vec<String>,
    /// Our target's view of its sessions; `None` with another server.
    pub session: Option<SessionSamples>,
}

/// A program that did not copy.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message shows what each field is")]
pub enum ProgramError {
    /// The target failed, or its disk has the wrong contents.
    #[error(transparent)]
    Storage(#[from] ScsiRunError),
    /// The program could not be started.
    #[error("{program} could not be started: {source}{remedy}", remedy = remedy(program, source))]
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
    /// The server does not accept connections.
    #[error("{program} did not listen on port {port} within {after:?}: {said}")]
    NotListening { program: String, port: u16, after: Duration, said: String },
    /// Another error, and what the server said meanwhile.
    #[error("{error}; {server} at the server said: {said}")]
    WithServer { error: Box<ProgramError>, server: String, said: String },
    /// The program reports success, but the copy is wrong.
    #[error("the copy differs from its source at byte {at}")]
    Different { at: u64 },
    /// The kernel refused a file or a thread.
    #[error("running a program: {0}")]
    System(#[from] io::Error),
}

/// Both of a pair must be among the arguments; otherwise the program cannot copy.
const FILE: &str = "{file}";
const DISK: &str = "{disk}";
const FROM: &str = "{from}";
const TO: &str = "{to}";
const ROPEWALK: &str = "{ropewalk}";
/// Where programs keep what they find out, by the XDG Base Directory Specification.
const STATE_FOLDER: &str = "XDG_STATE_HOME";
/// A program that takes this many times its expected time hangs.
const LATE_FACTOR: u32 = 10;

impl ProgramRun {
    /// Checks the settings.
    ///
    /// # Errors
    /// The defect, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let has = |what: &str| self.command.iter().skip(1).any(|argument| argument.contains(what));
        if !(has(FILE) && has(DISK) || has(FROM) && has(TO)) {
            let expected = format!(
                "a program with arguments in which {FILE} and {DISK}, or {FROM} and {TO}, are what it copies"
            );
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
        self.extents.map_or(Ok(()), |extents| extents.check(*size))?;
        self.server.as_ref().map_or(Ok(()), ServerProgram::check)
    }

    /// Lets the program copy, with `congestion` at our target. The host determines that of all other
    /// connections ([`Topology::congestion_control`](crate::Topology::congestion_control)).
    ///
    /// # Errors
    /// If it did not copy, whatever it reports.
    pub fn run(&self, lab: &Lab, congestion: &Congestion, seed: u64) -> Result<ProgramReport, ProgramError> {
        let contents = Contents::Known { seed, oldest: 1, newest: 1 };
        let extents = extents_of(self.size, self.extents);
        match &self.server {
            None => self.copy_with_target(lab, congestion, contents, &extents),
            Some(server) => self.copy_with(server, lab, contents, &extents),
        }
    }

    fn copy_with_target(
        &self,
        lab: &Lab,
        congestion: &Congestion,
        contents: Contents,
        extents: &[Range<u64>],
    ) -> Result<ProgramReport, ProgramError> {
        let monitor = SessionMonitor::default();
        let disk = DiskModel { size: Bytes(end_of(extents)), ..DiskModel::default() };
        let storage = Storage::start(0, &disk, target_config(congestion), lab, &monitor)?;
        let file = CopiedFile::unnamed()?;
        match self.direction {
            Direction::Write => file.fill(extents, contents)?,
            Direction::Read => storage.fill(extents, contents)?,
        }
        let elapsed = self.measure(lab, &file, &storage.url.to_string(), || monitor.restart())?;
        let session = monitor.take();
        let connections = session.connections.iter();
        let congestion_controls =
            connections.filter_map(|connection| connection.congestion_control.clone()).collect();
        match self.direction {
            Direction::Write => drop(storage.read_back(extents, contents)?),
            Direction::Read => compare(&file, extents, contents)?,
        }
        storage.stop();
        Ok(ProgramReport { elapsed, congestion_controls, session: Some(session) })
    }

    fn copy_with(
        &self,
        server: &ServerProgram,
        lab: &Lab,
        contents: Contents,
        extents: &[Range<u64>],
    ) -> Result<ProgramReport, ProgramError> {
        let folder = TmpfsFolder::new()?;
        let file = CopiedFile::create(folder.folder("client")?.join("file"), 0)?;
        let state = folder.folder("server")?;
        let disk = CopiedFile::create(ServerProgram::backing(&state), end_of(extents))?;
        let (from, to) = match self.direction {
            Direction::Write => (&file, &disk),
            Direction::Read => (&disk, &file),
        };
        from.fill(extents, contents)?;
        let running = server.start(lab, &state)?;
        let copied = self.measure(lab, &file, &running.url, || ()).and_then(|elapsed| {
            compare(to, extents, contents)?;
            Ok(elapsed)
        });
        let elapsed = copied.map_err(|error| running.explain(error))?;
        Ok(ProgramReport { elapsed, congestion_controls: Vec::new(), session: None })
    }

    /// Rehearses and runs the program; `begin` is called in between. Returns the time that the run took.
    fn measure(
        &self,
        lab: &Lab,
        file: &CopiedFile,
        disk: &str,
        begin: impl FnOnce(),
    ) -> Result<Duration, ProgramError> {
        let (file, disk) = (file.path().display().to_string(), disk.to_owned());
        let (from, to) = match self.direction {
            Direction::Write => (file.clone(), disk.clone()),
            Direction::Read => (disk.clone(), file.clone()),
        };
        let ropewalk = env::current_exe()?.display().to_string();
        let places = Places::new([(FILE, file), (DISK, disk), (FROM, from), (TO, to), (ROPEWALK, ropewalk)]);
        let state = TmpfsFolder::new()?;
        let run = || {
            let mut command = places.command(&self.command, &lab.client.namespace);
            command.env(STATE_FOLDER, state.path());
            run_to_end(command, self.expected_time.0.saturating_mul(LATE_FACTOR))
        };
        for _ in 0..self.rehearsals {
            run()?;
        }
        begin();
        run()
    }
}

/// The length of a disk with these extents.
fn end_of(extents: &[Range<u64>]) -> u64 {
    extents.last().map_or(0, |extent| extent.end)
}

fn compare(copy: &CopiedFile, extents: &[Range<u64>], contents: Contents) -> Result<(), ProgramError> {
    match copy.first_difference(extents, contents)? {
        Some(at) => Err(ProgramError::Different { at }),
        None => Ok(()),
    }
}

/// The defaults of `ropewalk serve`.
fn target_config(congestion: &Congestion) -> target::Config {
    let socket =
        target::SocketConfig { congestion: Some(congestion.clone()), ..target::SocketConfig::default() };
    target::Config { socket, ..target::Config::default() }
}
