//! A target in this process, and a way to it that can be cut.

mod meddler;

pub use meddler::{Meddler, Meddling};
use ropewalk_initiator::{Config, Connections, Error, Lun, Reconnect, Target, Url};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use target::{LunConfig, PortalGroupConfig, Server, TargetConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

pub const TARGET: &str = "iqn.2026-11.org.example:disk";

pub struct World {
    pub server: Server,
}

impl World {
    /// A target with one disk of 64 MiB in memory.
    pub async fn new() -> Self {
        Self::serving("ram:64MiB", |_| {}).await
    }

    /// A target with this LUN 0.
    pub async fn serving(lun: &str, change: impl FnOnce(&mut target::Config)) -> Self {
        let mut node = TargetConfig::new(TARGET.parse().unwrap());
        node.luns.push(LunConfig { number: 0, backend: lun.parse().unwrap(), mask: target::Mask::default() });
        let mut config = target::Config {
            listen: vec!["127.0.0.1:0".parse().unwrap()],
            targets: vec![node],
            ..target::Config::default()
        };
        change(&mut config);
        Self { server: Server::start(config).await.unwrap() }
    }

    /// A target with one disk of 64 MiB in memory and portal groups of so many portals.
    pub async fn with_portal_groups<const N: usize>(
        portals: [usize; N],
        change: impl FnOnce(&mut target::Config),
    ) -> Self {
        let group = |(tag, portals)| PortalGroupConfig {
            tag,
            portals: vec!["127.0.0.1:0".parse().unwrap(); portals],
        };
        Self::serving("ram:64MiB", |config| {
            config.listen = target::Config::default().listen;
            config.portal_groups = (1..).zip(portals).map(group).collect();
            change(config);
        })
        .await
    }

    pub fn address(&self) -> SocketAddr {
        self.server.local_addrs()[0]
    }

    pub fn url(&self) -> Url {
        url(self.address())
    }

    pub async fn connect(&self, connections: u16) -> (Target, Lun) {
        connect(&self.url(), config(connections)).await
    }
}

pub fn url(address: SocketAddr) -> Url {
    Url { user: None, portal: address.into(), target_name: TARGET.into(), lun: 0, congestion: None }
}

/// Impatient, so that tests are quick.
pub fn config(connections: u16) -> Config {
    let pause = Duration::from_millis(5);
    let mut config = Config {
        connections: Connections::Fixed(connections),
        login_timeout: Duration::from_secs(5),
        reconnect: Reconnect {
            pause_min: pause,
            pause_max: pause * 4,
            give_up_after: Duration::from_secs(20),
        },
        ..Config::default()
    };
    config.offer.default_time2wait_s = 0;
    config
}

pub async fn connect(url: &Url, config: Config) -> (Target, Lun) {
    let session = ropewalk_initiator::connect(url, config).await.unwrap();
    let lun = session.lun(url.lun).await.unwrap();
    (session, lun)
}

/// A buffer whose every block says where it belongs.
pub fn pattern(lun: &Lun, offset: u64, bytes: usize, seed: u8) -> block::Buffer {
    let mut buffer = lun.allocate(bytes).unwrap();
    for (at, block) in buffer.chunks_mut(512).enumerate() {
        block.fill(seed);
        block[..8].copy_from_slice(&(offset + at as u64 * 512).to_be_bytes());
    }
    buffer
}

/// That the range holds the pattern.
pub async fn expect_pattern(lun: &Lun, offset: u64, bytes: usize, seed: u8) {
    let found = lun.read(offset, bytes).await.unwrap();
    let expected = pattern(lun, offset, bytes, seed);
    let same = found[..] == expected[..];
    assert!(same, "wrong data at offset {offset}");
}

/// What [`write_carefully`] writes at a time.
pub const PIECE: usize = 128 << 10;

/// Writes and flushes as a careful program does: what was not flushed when a nexus was lost is written again. Returns
/// how often that was.
pub async fn write_carefully(lun: &Lun, pieces: u64) -> u32 {
    let mut rewritten = 0;
    loop {
        let writes: Vec<_> = (0..pieces)
            .map(|at| {
                let lun = lun.clone();
                let offset = at * PIECE as u64;
                tokio::spawn(async move { lun.write(offset, pattern(&lun, offset, PIECE, 9), false).await })
            })
            .collect();
        for write in writes {
            write.await.unwrap().unwrap();
        }
        match lun.flush().await {
            Ok(()) => return rewritten,
            Err(Error::WritesLost { .. }) => rewritten += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A relay to the target. It cuts every connection, both ways, when the budget of bytes towards the target is used up;
/// then it goes on with the next budget.
pub struct Relay {
    pub address: SocketAddr,
    state: Arc<RelayState>,
}

struct RelayState {
    target: SocketAddr,
    /// Bytes towards the target until the next cut.
    budget: AtomicU64,
    cuts: AtomicU64,
    /// Only the connection that uses the budget up is cut.
    spares_others: AtomicBool,
    closed: AtomicBool,
    cut: Notify,
}

impl Relay {
    /// Relays without limit until [`Self::cut_after`].
    pub async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(RelayState {
            target,
            budget: AtomicU64::new(u64::MAX),
            cuts: AtomicU64::new(0),
            spares_others: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            cut: Notify::new(),
        });
        tokio::spawn(accept(listener, Arc::clone(&state)));
        Self { address, state }
    }

    /// Cuts everything when this many more bytes have gone to the target, once.
    pub fn cut_after(&self, bytes: u64) {
        self.state.budget.store(bytes, Ordering::SeqCst);
    }

    /// The same for the connection alone over which the last of these bytes go.
    pub fn cut_one_after(&self, bytes: u64) {
        self.state.spares_others.store(true, Ordering::SeqCst);
        self.cut_after(bytes);
    }

    /// How often it has cut.
    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// Cuts everything now, and lets nobody in any more.
    pub fn close(&self) {
        self.state.closed.store(true, Ordering::SeqCst);
        self.state.cut.notify_waiters();
    }
}

/// A relay that makes one target look as if it answered success to connections that want to join a session, and
/// then made sessions of their own of them: those go to another target, as leading ones.
pub async fn lying_relay(honest: SocketAddr, other: SocketAddr) -> SocketAddr {
    const TSIH: std::ops::Range<usize> = 14..16;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut header = [0; 48];
                near.read_exact(&mut header).await.unwrap();
                let joins = header[TSIH] != [0, 0];
                header[TSIH].fill(0);
                let mut far = TcpStream::connect(if joins { other } else { honest }).await.unwrap();
                far.write_all(&header).await.unwrap();
                // Either end may close it.
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    address
}

/// A relay that makes a target look as if it took a block less than it was sent, whatever it answers.
pub async fn stingy_relay(target: SocketAddr) -> SocketAddr {
    const SCSI_RESPONSE: u8 = 0x21;
    const UNDERFLOW: u8 = 0x02;
    const RESIDUAL_COUNT: std::ops::Range<usize> = 44..48;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let (mut far, far_write) = TcpStream::connect(target).await.unwrap().into_split();
            let (near_read, mut near) = near.into_split();
            tokio::spawn(pump(near_read, far_write, None));
            tokio::spawn(async move {
                let mut header = [0; 48];
                while far.read_exact(&mut header).await.is_ok() {
                    let bytes = u32::from_be_bytes([0, header[5], header[6], header[7]]);
                    let mut data = vec![0; bytes.next_multiple_of(4) as usize];
                    far.read_exact(&mut data).await.unwrap();
                    if header[0] == SCSI_RESPONSE {
                        header[1] |= UNDERFLOW;
                        header[RESIDUAL_COUNT].copy_from_slice(&512u32.to_be_bytes());
                    }
                    if near.write_all(&[&header[..], &data].concat()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A relay for one connection. Others get no answer.
pub async fn mute_relay(target: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let (near_read, near_write) = near.into_split();
        let (far_read, far_write) = TcpStream::connect(target).await.unwrap().into_split();
        tokio::spawn(pump(near_read, far_write, None));
        tokio::spawn(pump(far_read, near_write, None));
        let mut others = Vec::new();
        while let Ok((other, _)) = listener.accept().await {
            others.push(other);
        }
    });
    address
}

async fn accept(listener: TcpListener, state: Arc<RelayState>) {
    while let Ok((near, _)) = listener.accept().await {
        if state.closed.load(Ordering::SeqCst) {
            continue;
        }
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let far = TcpStream::connect(state.target).await.unwrap();
            near.set_nodelay(true).unwrap();
            far.set_nodelay(true).unwrap();
            let (near_read, near_write) = near.into_split();
            let (far_read, far_write) = far.into_split();
            let cut = state.cut.notified();
            tokio::select! {
                () = cut => {}
                () = pump(near_read, far_write, Some(&state)) => {}
                () = pump(far_read, near_write, None) => {}
            }
        });
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, metered: Option<&RelayState>) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut buffer).await {
        if let Some(state) = metered {
            let left = state.budget.load(Ordering::SeqCst);
            if left != u64::MAX {
                let allowed = left.min(bytes as u64);
                // The peer sees part of a PDU, then the end.
                let _ = to.write_all(&buffer[..usize::try_from(allowed).unwrap()]).await;
                state.budget.store(left - allowed, Ordering::SeqCst);
                if allowed == left {
                    state.budget.store(u64::MAX, Ordering::SeqCst);
                    state.cuts.fetch_add(1, Ordering::SeqCst);
                    if !state.spares_others.load(Ordering::SeqCst) {
                        state.cut.notify_waiters();
                    }
                    return;
                }
                continue;
            }
        }
        if to.write_all(&buffer[..bytes]).await.is_err() {
            return;
        }
    }
}
