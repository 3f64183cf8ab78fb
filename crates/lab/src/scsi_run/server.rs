//! The server's side of a run: the target, and the access to its disk beside the relay.

use super::{DiskModel, ScsiRunError};
use crate::lab::Lab;
use crate::namespace::Namespace;
use crate::session_monitor::SessionMonitor;
use crate::workload::{Contents, Direction, Load, Request, RequestSample};
use initiator::{Config, Connections, Lun, Portal, Url};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::Duration;
use target::{LunConfig, Mask, Observers, Server, TargetConfig};
use tokio::runtime::{Builder, Runtime};

/// The target of every run.
const TARGET: &str = "iqn.2026-11.io.github.ropewalk:lab";

/// The same at all of its addresses. Further targets have the ports after it.
const PORT: u16 = 3260;

/// The length of one request when filling and reading back, and the number at a time.
const PIECE_BYTES: u32 = 1 << 20;
const PIECES: u16 = 8;

/// For sessions that have already logged out.
const GRACE: Duration = Duration::from_secs(1);

/// A running target.
pub(crate) struct Storage {
    server: Server,
    pub url: Url,
    /// All of its portals, in one portal group.
    pub portals: Vec<Portal>,
    namespace: Namespace,
    runtime: Runtime,
}

pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

impl Storage {
    /// Starts the target of this number with this disk; the rest of `config` is the run's.
    pub fn start(
        number: u8,
        disk: &DiskModel,
        config: target::Config,
        lab: &Lab,
        monitor: &SessionMonitor,
    ) -> Result<Self, ScsiRunError> {
        let namespace = lab.server.namespace.clone();
        let config = with_disk(disk, config, &lab.server.portals, PORT + u16::from(number));
        let (runtime, observers) = (runtime()?, monitor.target());
        // Its threads start in this thread's namespace, and stay there.
        let server = namespace.run(|| runtime.block_on(start(config, observers)))??;
        let portals: Vec<Portal> = server.local_addrs().iter().map(|address| (*address).into()).collect();
        let url = Url {
            user: None,
            portal: portals[0].clone(),
            target_name: TARGET.to_owned(),
            lun: 0,
            congestion: None,
        };
        Ok(Self { server, url, portals, namespace, runtime })
    }

    /// Writes ranges of the disk.
    pub fn fill(&self, extents: &[Range<u64>], contents: Contents) -> Result<(), ScsiRunError> {
        let pieces = extents.iter().flat_map(|extent| pieces(extent.start, extent.end, Direction::Write));
        self.locally(async |lun| load(&lun, contents).run(pieces, |_| ()).await)
    }

    /// Reads ranges of the disk and compares them; returns their total.
    pub fn read_back(&self, extents: &[Range<u64>], contents: Contents) -> Result<u64, ScsiRunError> {
        let pieces = extents.iter().flat_map(|extent| pieces(extent.start, extent.end, Direction::Read));
        self.locally(async |lun| load(&lun, contents).run(pieces, |_| ()).await)?;
        Ok(extents.iter().map(|extent| extent.end - extent.start).sum())
    }

    pub fn stop(self) {
        let Self { server, runtime, .. } = self;
        runtime.block_on(server.shutdown(GRACE));
    }

    /// Accesses the disk on the server itself, over its loopback interface.
    fn locally<T: Send, E: Into<ScsiRunError>>(
        &self,
        task: impl AsyncFnOnce(Lun) -> Result<T, E> + Send,
    ) -> Result<T, ScsiRunError> {
        self.namespace.run(|| {
            runtime()?.block_on(async {
                let config = Config { connections: Connections::Fixed(1), ..Config::default() };
                let session = initiator::connect(&self.url, config).await?;
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

fn with_disk(disk: &DiskModel, config: target::Config, addresses: &[IpAddr], port: u16) -> target::Config {
    let mut node = TargetConfig::new(TARGET.parse().expect("the name of the lab's target is one"));
    node.luns.push(LunConfig { number: 0, backend: disk.spec(), mask: Mask::default() });
    target::Config {
        listen: addresses.iter().map(|address| SocketAddr::new(*address, port)).collect(),
        targets: vec![node],
        // A lab has no other users.
        allow_insecure: true,
        ..config
    }
}

fn load(lun: &Lun, contents: Contents) -> Load<'_> {
    Load::new(lun, PIECES, PIECE_BYTES as usize, contents)
}

/// The written bytes of a disk, ascending, without overlaps.
pub(super) fn written(requests: &[RequestSample]) -> Vec<Range<u64>> {
    let block_bytes = u64::from(DiskModel::BLOCK_BYTES);
    let written = requests.iter().filter(|sample| sample.direction == Direction::Write);
    let mut extents: Vec<Range<u64>> = written
        .map(|sample| sample.lba * block_bytes..sample.lba * block_bytes + u64::from(sample.bytes))
        .collect();
    extents.sort_unstable_by_key(|extent| extent.start);
    extents.dedup_by(|next, extent| {
        let touches = next.start <= extent.end;
        if touches {
            extent.end = extent.end.max(next.end);
        }
        touches
    });
    extents
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_several_times_is_read_back_once() {
        let sample = |direction, lba, blocks: u32| RequestSample {
            begun_ns: 0,
            ended_ns: 0,
            direction,
            lba,
            bytes: blocks * 512,
            connection: None,
        };
        let requests = [
            sample(Direction::Write, 8, 4),
            sample(Direction::Write, 0, 2),
            sample(Direction::Read, 2, 2),
            sample(Direction::Write, 10, 6),
            sample(Direction::Write, 8, 1),
            sample(Direction::Write, 16, 1),
        ];
        assert_eq!(written(&requests), [0..1024, 4096..8704]);
    }
}
