//! One run over its time: kernel samples, moments of commands, and captured packets, on one clock.

use super::measured::run_to_tell;
use crate::capture::{SentFrame, sent_frames};
use crate::experiment::Plan;
use crate::results::{Folder, FolderError, RunRecord};
use crate::sample::{HeldKind, HeldSample, Sample};
use crate::session_monitor::CommandSample;
use observe::{CommandReport, OffCpuStack, SocketSample, TcpEvent};
use std::collections::BTreeMap;

/// The record of a run with all its samples and captured frames.
pub(super) struct RunOverTime<'a> {
    pub record: &'a RunRecord,
    samples: Vec<Sample>,
    sent: Vec<SentFrame>,
}

/// The runs of a folder that are described in detail: one of each cell.
pub(super) struct RunsOverTime<'a> {
    folder: &'a Folder,
    plan: &'a Plan,
    /// Read on demand.
    runs: BTreeMap<usize, RunOverTime<'a>>,
}

impl<'a> RunsOverTime<'a> {
    pub fn new(folder: &'a Folder, plan: &'a Plan) -> Self {
        Self { folder, plan, runs: BTreeMap::new() }
    }

    /// The first VALID run of a cell; without one, the last attempt; `None` without any.
    pub fn of_cell(&mut self, cell: usize) -> Result<Option<&RunOverTime<'a>>, FolderError> {
        let Some(record) = run_to_tell(cell, self.plan, self.folder) else { return Ok(None) };
        if !self.runs.contains_key(&cell) {
            self.runs.insert(cell, RunOverTime::read(record, cell, self.plan, self.folder)?);
        }
        Ok(self.runs.get(&cell))
    }
}

impl<'a> RunOverTime<'a> {
    fn read(record: &'a RunRecord, cell: usize, plan: &Plan, folder: &Folder) -> Result<Self, FolderError> {
        let mtu = plan.cells[cell].setup.mtu();
        let sent = folder.capture(record)?.map_or(Ok(Vec::new()), |file| {
            sent_frames(&file, &record.relay, mtu).map_err(|error| FolderError::Damaged {
                path: folder.capture_file(record),
                reason: error.to_string(),
            })
        })?;
        Ok(Self { record, samples: folder.samples(record)?, sent })
    }

    /// The time since the start of the run.
    pub fn since_s(&self, at_ns: u64) -> f64 {
        at_ns.saturating_sub(self.record.relay.begun_ns) as f64 / 1e9
    }

    /// The number of the client's connections.
    pub fn connections(&self) -> usize {
        let of_socket = |sample: &Sample| match sample {
            Sample::Socket(sample) => Some(sample.connection + 1),
            _ => None,
        };
        self.samples.iter().filter_map(of_socket).max().unwrap_or(0)
    }

    /// The kernel's samples of one connection.
    pub fn socket(&self, connection: usize) -> Vec<&SocketSample> {
        let of_connection = self.samples.iter().filter_map(|sample| match sample {
            Sample::Socket(sample) if sample.connection == connection => Some(&sample.socket),
            _ => None,
        });
        of_connection.collect()
    }

    /// The events of one connection; none if the run was not traced.
    pub fn tcp_events(&self, connection: usize) -> Vec<&TcpEvent> {
        let cookie = self.record.sockets.sockets.get(connection).map(|socket| socket.cookie);
        let of_connection = self.samples.iter().filter_map(|sample| match sample {
            Sample::TcpEvent(event) if Some(event.cookie) == cookie => Some(event),
            _ => None,
        });
        of_connection.collect()
    }

    /// The waits of threads, the longest first.
    pub fn waits(&self) -> impl Iterator<Item = &OffCpuStack> {
        self.samples.iter().filter_map(|sample| match sample {
            Sample::OffCpu(stack) => Some(&**stack),
            _ => None,
        })
    }

    /// The captured frames that the client sent on one connection.
    pub fn sent(&self, connection: usize) -> impl Iterator<Item = &SentFrame> {
        let local = self.record.sockets.sockets.get(connection).map(|socket| socket.local);
        self.sent.iter().filter(move |frame| Some(frame.from) == local)
    }

    /// READs and WRITEs, in the order in which they left.
    pub fn commands(&self) -> Vec<&CommandSample> {
        let mut commands: Vec<&CommandSample> = self
            .samples
            .iter()
            .filter_map(|sample| match sample {
                Sample::Command(command) if command.lba.is_some() => Some(&**command),
                _ => None,
            })
            .collect();
        commands.sort_unstable_by_key(|command| command.pulled_ns);
        commands
    }

    /// The times in which this held a session up, in any order.
    pub fn held(&self, kind: HeldKind) -> impl Iterator<Item = &HeldSample> {
        self.samples.iter().filter_map(move |sample| match sample {
            Sample::Held(held) if held.what == kind => Some(held),
            _ => None,
        })
    }

    /// The captured commands.
    pub fn captured(&self) -> impl Iterator<Item = &CommandReport> {
        self.samples.iter().filter_map(|sample| match sample {
            Sample::Captured(captured) => Some(&captured.command),
            _ => None,
        })
    }
}
