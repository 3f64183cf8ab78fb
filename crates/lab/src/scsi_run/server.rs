//! The server's side of a run: the target, and what is done with its disk beside the relay.

use super::{ScsiRun, ScsiRunError};
use crate::lab::Lab;
use crate::namespace::Namespace;
use crate::session_monitor::SessionMonitor;
use crate::workload::{Contents, Direction, Load, Request, RequestSample};
use initiator::{Config, Lun, Session, Url};
use std::collections::HashSet;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use target::{LunConfig, Mask, Observers, Server, TargetConfig};
use tokio::runtime::{Builder, Runtime};

/// The target of every run.
const TARGET: &str = "iqn.2026-11.io.github.ropewalk:lab";

/// What is filled and read back at once, and how many at a time.
const PIECE_BYTES: u32 = 1 << 20;
const PIECES: u16 = 8;

/// For sessions that have logged out already.
const GRACE: Duration = Duration::from_secs(1);

/// A target at work.
pub(super) struct Storage {
    server: Server,
    pub url: Url,
    namespace: Namespace,
    runtime: Runtime,
}

pub(super) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

impl Storage {
    pub fn start(
        run: &ScsiRun,
        lab: &Lab,
        congestion_control: &str,
        monitor: &SessionMonitor,
    ) -> Result<Self, ScsiRunError> {
        let namespace = lab.server.namespace.clone();
        let config = config(run, SocketAddr::new(lab.server.addresses[0], 0), congestion_control);
        let (runtime, observers) = (runtime()?, monitor.target());
        // Its threads begin where this one is, and stay there.
        let server = namespace.run(|| runtime.block_on(start(config, observers)))??;
        let url = Url {
            user: None,
            portal: server.local_addrs()[0].into(),
            target_name: TARGET.to_owned(),
            lun: 0,
        };
        Ok(Self { server, url, namespace, runtime })
    }

    /// Writes all of the disk.
    pub fn fill(&self, disk_bytes: u64, contents: Contents) -> Result<(), ScsiRunError> {
        let pieces = pieces(0, disk_bytes, Direction::Write);
        self.locally(async |lun| load(&lun, contents).run(pieces, |_| ()).await)
    }

    /// Reads what was written, as far as it is known; how much that was.
    pub fn read_back(&self, written: &[RequestSample], contents: Contents) -> Result<u64, ScsiRunError> {
        let written = written.iter().filter(|sample| sample.direction == Direction::Write);
        let extents: HashSet<(u64, u32)> = written.map(|sample| (sample.lba, sample.bytes)).collect();
        let block_bytes = u64::from(super::DiskModel::BLOCK_BYTES);
        self.locally(async |lun| {
            let mut bytes = 0;
            for (lba, length) in extents {
                let offset = lba * block_bytes;
                for piece in pieces(offset, offset + u64::from(length), Direction::Read) {
                    let found = lun.read(piece.offset, piece.bytes as usize).await?;
                    if let Some(offset) = contents.first_not_written(&found, piece.offset) {
                        return Err(ScsiRunError::Lost { offset });
                    }
                    bytes += u64::from(piece.bytes);
                }
            }
            Ok(bytes)
        })
    }

    pub fn stop(self) {
        let Self { server, runtime, .. } = self;
        runtime.block_on(server.shutdown(GRACE));
    }

    /// Does something with the disk on the server itself, over its loopback interface.
    fn locally<T: Send, E: Into<ScsiRunError>>(
        &self,
        task: impl AsyncFnOnce(Lun) -> Result<T, E> + Send,
    ) -> Result<T, ScsiRunError> {
        self.namespace.run(|| {
            runtime()?.block_on(async {
                let session = Session::connect(&self.url, Config::default()).await?;
                let outcome = task(session.lun(self.url.lun).await?).await;
                session.close().await?;
                outcome.map_err(Into::into)
            })
        })?
    }
}

fn start(
    config: target::Config,
    observers: Observers,
) -> impl Future<Output = Result<Server, target::StartError>> {
    Server::start_observed(config, observers)
}

fn config(run: &ScsiRun, address: SocketAddr, congestion_control: &str) -> target::Config {
    let mut node = TargetConfig::new(TARGET.parse().expect("the name of the lab's target is one"));
    node.luns.push(LunConfig { number: 0, backend: run.disk.spec(), mask: Mask::default() });
    target::Config {
        listen: vec![address],
        targets: vec![node],
        // Nobody else is in a lab.
        allow_insecure: true,
        limits: run.session.limits(),
        negotiation: run.session.negotiation(),
        socket: run.sockets.target_config(congestion_control),
        ..target::Config::default()
    }
}

fn load(lun: &Lun, contents: Contents) -> Load<'_> {
    Load::new(lun, PIECES, PIECE_BYTES as usize, contents)
}

fn pieces(from: u64, to: u64, direction: Direction) -> impl Iterator<Item = Request> {
    let offsets = (from..to).step_by(PIECE_BYTES as usize);
    offsets.map(move |offset| Request {
        not_before: Duration::ZERO,
        direction,
        offset,
        bytes: u32::try_from(to - offset).unwrap_or(u32::MAX).min(PIECE_BYTES),
    })
}
