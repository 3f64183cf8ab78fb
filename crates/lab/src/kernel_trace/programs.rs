//! The BPF programs that trace a run.

use crate::namespace::Namespace;
use monitor::{BpfError, OffCpu, TraceOptions, Tracer};
use observe::{OffCpuReport, TcpTrace};
use std::time::Duration;

/// The most events kept of a run. Each is a line of some 350 bytes in its samples.
const EVENTS_MAX: usize = 1_000_000;

pub(super) struct Programs {
    tracer: Tracer,
    off_cpu: OffCpu,
}

impl Programs {
    pub fn start(client: &Namespace, quiet: Duration) -> Result<Self, BpfError> {
        let options = TraceOptions { quiet, events_max: EVENTS_MAX, ..TraceOptions::default() };
        client.run(|| {
            let tracer = Tracer::start(&options)?;
            Ok(Self { tracer, off_cpu: OffCpu::start(std::process::id())? })
        })?
    }

    pub fn stop(self) -> Result<(TcpTrace, OffCpuReport), BpfError> {
        let waits = self.off_cpu.stop()?;
        Ok((self.tracer.stop()?, waits))
    }
}
