//! Plain TCP streams that carry a fixed amount of data together, which is the limit for a copy over as many
//! connections.

use super::{PIECE_BYTES, Streams, expected, pattern, receive};
use crate::kernel_trace::SENDER;
use crate::lab::Lab;
use crate::namespace::Namespace;
use crate::workload::Direction;
use rustix::thread::set_name;
use socket2::SockRef;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The length of a piece. A stream draws the next one when the kernel holds less than a piece that has not left: what
/// waits at a slow stream's end could have travelled on another.
const DRAWN_BYTES: u32 = 64 << 10;
/// A stream that neither connects nor carries anything for this long never will.
const PATIENCE: Duration = Duration::from_secs(60);

/// The data of streams that shared a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Pooled {
    /// From the first connection's begin to the arrival of the last byte.
    pub elapsed: Duration,
    /// The bytes that each stream carried.
    pub bytes: Vec<u64>,
    /// The congestion control of each sender's socket.
    pub congestion_controls: Vec<String>,
}

/// Bytes that no stream has drawn yet.
struct Pool(AtomicU64);

impl Pool {
    /// The length of the next piece; `None` if nothing is left.
    fn draw(&self) -> Option<usize> {
        let take = |left: u64| (left > 0).then(|| left.saturating_sub(DRAWN_BYTES.into()));
        let before = self.0.fetch_update(Relaxed, Relaxed, take).ok()?;
        usize::try_from(before.min(DRAWN_BYTES.into())).ok()
    }
}

/// The result of one end of a stream.
enum End {
    Sent {
        congestion_control: String,
    },
    /// `last` is when the last byte arrived; a stream that connected late may have carried none.
    Received {
        bytes: u64,
        last: Option<Instant>,
    },
}

impl Streams {
    /// Carries `bytes` in pieces of 64 KiB that the streams draw from one pool, to the server (`Write`) or to the
    /// client. All connect at the same time.
    ///
    /// # Errors
    /// The kernel's own, or "invalid data" if other bytes arrived than were sent.
    pub fn carry(&self, lab: &Lab, bytes: u64, direction: Direction) -> io::Result<Pooled> {
        let server = &lab.server.namespace;
        let listener = server.run(|| self.listen())??;
        let address = listener.local_addr()?;
        let (pool, pattern) = (&Pool(AtomicU64::new(bytes)), &pattern());
        let end = |namespace: &Namespace, connection: &TcpStream, sends: bool| match sends {
            true => send(connection, namespace, pool, pattern),
            false => received(connection, pattern),
        };
        let begun = Instant::now();
        let ends = thread::scope(|scope| {
            let clients = (0..self.count).map(|_| {
                scope.spawn(|| {
                    lab.client.namespace.enter()?;
                    end(&lab.client.namespace, &self.connect_to(address)?, direction == Direction::Write)
                })
            });
            let mut threads: Vec<_> = clients.collect();
            for _ in 0..self.count {
                let connection = listener.accept()?.0;
                self.choose_congestion(&connection)?;
                threads.push(scope.spawn(move || end(server, &connection, direction == Direction::Read)));
            }
            let ends = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            ends.collect::<io::Result<Vec<End>>>()
        })?;
        Ok(Pooled::of(ends, begun))
    }

    /// Listens in the calling thread's namespace. The sockets that it accepts inherit its options.
    pub(super) fn listen(&self) -> io::Result<TcpListener> {
        let address = SocketAddr::new(self.to, 0);
        let socket = self.socket(address)?;
        // Also the limit of `accept`.
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.bind(&address.into())?;
        socket.listen(self.count.into())?;
        Ok(socket.into())
    }
}

impl Pooled {
    fn of(ends: Vec<End>, begun: Instant) -> Self {
        let mut pooled = Self { elapsed: Duration::ZERO, bytes: Vec::new(), congestion_controls: Vec::new() };
        for end in ends {
            match end {
                End::Sent { congestion_control } => pooled.congestion_controls.push(congestion_control),
                End::Received { bytes, last } => {
                    pooled.bytes.push(bytes);
                    pooled.elapsed = last.map_or(pooled.elapsed, |last| pooled.elapsed.max(last - begun));
                }
            }
        }
        pooled
    }
}

fn send(mut to: &TcpStream, namespace: &Namespace, pool: &Pool, pattern: &[u8]) -> io::Result<End> {
    namespace.enter()?;
    set_name(SENDER)?;
    SockRef::from(to).set_tcp_notsent_lowat(DRAWN_BYTES)?;
    let congestion_control = transport::congestion_of(to)?;
    let mut offset = 0;
    while let Some(mut drawn) = pool.draw() {
        while drawn > 0 {
            let bytes = to.write(expected(pattern, offset, drawn.min(PIECE_BYTES)))?;
            offset += bytes as u64;
            drawn -= bytes;
        }
    }
    to.shutdown(Shutdown::Write)?;
    Ok(End::Sent { congestion_control })
}

fn received(from: &TcpStream, pattern: &[u8]) -> io::Result<End> {
    let (mut arrived, mut last) = (0, None);
    receive(from, pattern, |bytes| {
        arrived += bytes;
        last = Some(Instant::now());
    })?;
    Ok(End::Received { bytes: arrived, last })
}
