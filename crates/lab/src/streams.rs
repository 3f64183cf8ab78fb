//! Plain TCP streams through a lab, which measure the path itself.

mod pool;

pub use pool::Pooled;

use crate::kernel_trace::SENDER;
use crate::lab::Lab;
use crate::monotonic_ns;
use crate::namespace::Namespace;
use crate::workload::Direction;
use framing::Congestion;
use netem::Bytes;
use rustix::thread::set_name;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};
use transport::SocketBuffer;

/// Streams from the client to the server.
#[derive(Clone, Debug)]
pub struct Streams {
    /// The number of streams.
    pub count: u8,
    /// The congestion control of the senders, which are one group if it has groups; the namespace's, if missing.
    pub congestion: Option<Congestion>,
    /// `SO_SNDBUF` of the senders; the kernel's own tuning, if missing.
    pub send_buffer: Option<Bytes>,
    /// The server's address.
    pub to: IpAddr,
}

/// All streams of a host.
const GROUP: u64 = 1;

/// The data that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrived {
    /// Bytes of payload, verified.
    pub bytes: u64,
    /// The time that it took.
    pub elapsed: Duration,
}

/// The times of a [`Recording`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingTimes {
    /// The time before the streams count.
    pub warm_up: Duration,
    /// The time that counts.
    pub measured: Duration,
    /// The interval between samples.
    pub every: Duration,
}

/// The times of streams beside something else, since its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTimes {
    /// When they connect.
    pub from: Duration,
    /// When they end; with what they are beside, if missing.
    pub to: Option<Duration>,
    /// The interval between samples.
    pub every: Duration,
}

/// The data that arrived, sampled over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// In order, until the measured time is over.
    pub samples: Vec<StreamSample>,
    /// Bytes of each stream that arrived in the measured time.
    pub bytes: Vec<u64>,
    /// The length of the measured time.
    pub elapsed: Duration,
    /// The congestion control of each sender's socket.
    pub congestion_controls: Vec<String>,
}

/// The data that had arrived at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamSample {
    /// On the clock of [`monotonic_ns`](crate::monotonic_ns).
    pub at_ns: u64,
    /// Bytes of payload of each stream since it began.
    pub bytes: Vec<u64>,
}

/// A length without a common factor with those of packets, so that data in the wrong place is noticed.
const PATTERN_BYTES: usize = 65_521;
/// The length of one write or read; less than the pattern.
const PIECE_BYTES: usize = 48 << 10;

impl Streams {
    /// Sends during both times, and counts the bytes that arrive in the second.
    ///
    /// # Errors
    /// The kernel's own, or "invalid data" if other bytes arrived than were sent.
    pub fn measure(&self, lab: &Lab, warm_up: Duration, measured: Duration) -> io::Result<Arrived> {
        let recording = self.record(lab, RecordingTimes { warm_up, measured, every: measured })?;
        Ok(Arrived { bytes: recording.bytes.iter().sum(), elapsed: recording.elapsed })
    }

    /// Sends during both times, and samples the arrived data.
    ///
    /// # Errors
    /// As those of [`measure`](Self::measure).
    pub fn record(&self, lab: &Lab, times: RecordingTimes) -> io::Result<Recording> {
        let connections = self.connect(lab, Direction::Write)?;
        let controls = connections.iter().map(|connection| transport::congestion_of(&connection.sender));
        let congestion_controls = controls.collect::<io::Result<_>>()?;
        let watched = run(&connections, |arrived| watch(arrived, times))?;
        let Watched { samples, bytes, elapsed } = watched;
        Ok(Recording { samples, bytes, elapsed, congestion_controls })
    }

    /// Sends in this direction while `meanwhile` runs, at most in these times since its beginning, and samples the arrived
    /// data.
    ///
    /// # Errors
    /// As those of [`measure`](Self::measure).
    pub fn flow_during<T>(
        &self,
        lab: &Lab,
        direction: Direction,
        times: FlowTimes,
        meanwhile: impl FnOnce() -> T,
    ) -> io::Result<(T, Vec<StreamSample>)> {
        thread::scope(|scope| {
            let (over, is_over) = mpsc::channel();
            let flowing = scope.spawn(move || self.flow(lab, direction, times, &is_over));
            let outcome = meanwhile();
            drop(over);
            let samples = flowing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok((outcome, samples))
        })
    }

    /// Sends in these times, or until nobody can send to `is_over`.
    fn flow(
        &self,
        lab: &Lab,
        direction: Direction,
        times: FlowTimes,
        is_over: &Receiver<()>,
    ) -> io::Result<Vec<StreamSample>> {
        let passes = |time| is_over.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
        let begun = Instant::now();
        if !times.from.is_zero() && !passes(times.from) {
            return Ok(Vec::new());
        }
        run(&self.connect(lab, direction)?, |connections| {
            let mut samples = vec![sample(connections)];
            while times.to.is_none_or(|to| begun.elapsed() < to) && passes(times.every) {
                samples.push(sample(connections));
            }
            samples
        })
    }

    fn connect(&self, lab: &Lab, direction: Direction) -> io::Result<Vec<Connection>> {
        let [client, server] = [&lab.client, &lab.server].map(|host| &host.namespace);
        let listener = server.run(|| self.listen())??;
        let address = listener.local_addr()?;
        let connect = |_| {
            let (connected, accepted) = (client.run(|| self.connect_to(address))??, listener.accept()?.0);
            self.choose_congestion(&accepted)?;
            let (namespace, sender, receiver) = match direction {
                Direction::Write => (client.clone(), connected, accepted),
                Direction::Read => (server.clone(), accepted, connected),
            };
            Ok(Connection { namespace, sender, receiver, arrived: AtomicU64::new(0) })
        };
        (0..self.count).map(connect).collect()
    }

    /// Connects in the calling thread's namespace. Options are set before the socket connects, as [`transport::apply`]
    /// requires.
    fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        let socket = self.socket(address)?;
        socket.connect(&address.into())?;
        Ok(socket.into())
    }

    /// An accepted socket has the listener's congestion control, but no group.
    fn choose_congestion(&self, socket: &impl AsFd) -> io::Result<()> {
        let Some(congestion) = &self.congestion else { return Ok(()) };
        transport::choose(congestion, GROUP, socket).map_err(io::Error::other)
    }

    /// A socket that sends as these streams do, in the calling thread's namespace.
    fn socket(&self, address: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        self.choose_congestion(&socket)?;
        if let Some(asked) = self.send_buffer {
            let bytes = u32::try_from(asked.0).unwrap_or(u32::MAX);
            SocketBuffer::Send.set(&socket, bytes).map_err(io::Error::other)?;
        }
        Ok(socket)
    }
}

/// Both ends of a stream.
struct Connection {
    /// The namespace of the sending thread, as for a program on that host.
    namespace: Namespace,
    sender: TcpStream,
    receiver: TcpStream,
    /// Bytes that have arrived.
    arrived: AtomicU64,
}

/// Sends until `meanwhile` is over.
fn run<T>(connections: &[Connection], meanwhile: impl FnOnce(&[Connection]) -> T) -> io::Result<T> {
    let pattern = pattern();
    let is_over = AtomicBool::new(false);
    // An error of a connection that was torn down at the end is no error.
    let unless_over = |outcome: io::Result<()>| {
        outcome.or_else(|error| match is_over.load(Relaxed) {
            true => Ok(()),
            false => Err(error),
        })
    };
    let (pattern, unless_over) = (&pattern, &unless_over);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for connection in connections {
            threads.push(scope.spawn(move || {
                connection.namespace.enter()?;
                set_name(SENDER)?;
                unless_over(connection.send(pattern))
            }));
            threads.push(scope.spawn(move || unless_over(connection.receive(pattern))));
        }
        let outcome = meanwhile(connections);
        is_over.store(true, Relaxed);
        connections.iter().for_each(Connection::tear_down);
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(outcome)
    })
}

/// The pattern twice, so that a slice can start anywhere in it.
fn pattern() -> Vec<u8> {
    // The upper byte of a multiplicative sequence (Knuth's constant), which has no period that could hide a shift.
    let bytes =
        (0_u32..).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ number.to_be_bytes()[2]);
    let once: Vec<u8> = bytes.take(PATTERN_BYTES).collect();
    once.repeat(2)
}

/// The bytes of a stream from `offset`, up to a whole pattern.
fn expected(pattern: &[u8], offset: u64, bytes: usize) -> &[u8] {
    let start = usize::try_from(offset % PATTERN_BYTES as u64).unwrap_or(0);
    &pattern[start..start + bytes]
}

/// Receives a stream to its end, and verifies it. `arrived` gets the length of each piece.
fn receive(mut from: &TcpStream, pattern: &[u8], mut arrived: impl FnMut(u64)) -> io::Result<()> {
    let (mut piece, mut offset) = (vec![0; PIECE_BYTES], 0);
    loop {
        let bytes = from.read(&mut piece)?;
        if bytes == 0 {
            return Ok(());
        }
        if piece[..bytes] != *expected(pattern, offset, bytes) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "other bytes arrived than were sent"));
        }
        offset += bytes as u64;
        arrived(bytes as u64);
    }
}

impl Connection {
    fn arrived(&self) -> u64 {
        self.arrived.load(Relaxed)
    }

    /// Sends until the connection is torn down.
    fn send(&self, pattern: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        loop {
            sent += (&self.sender).write(expected(pattern, sent, PIECE_BYTES))? as u64;
        }
    }

    fn receive(&self, pattern: &[u8]) -> io::Result<()> {
        receive(&self.receiver, pattern, |bytes| {
            self.arrived.fetch_add(bytes, Relaxed);
        })
    }

    /// Wakes all waiters, whatever is still under way.
    fn tear_down(&self) {
        for end in [&self.sender, &self.receiver] {
            // A closed one needs no shutdown.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

/// The samples of connections from outside.
struct Watched {
    samples: Vec<StreamSample>,
    bytes: Vec<u64>,
    elapsed: Duration,
}

fn sample(connections: &[Connection]) -> StreamSample {
    StreamSample { at_ns: monotonic_ns(), bytes: connections.iter().map(Connection::arrived).collect() }
}

fn watch(connections: &[Connection], times: RecordingTimes) -> Watched {
    let begun = Instant::now();
    let mut samples = Vec::new();
    let mut look = || {
        let looked = sample(connections);
        samples.push(looked.clone());
        (looked.bytes, begun.elapsed())
    };
    let mut look_until = |end: Duration| {
        // A time of zero would never end.
        let every = times.every.max(Duration::from_millis(1));
        while begun.elapsed() + every < end {
            thread::sleep(every);
            look();
        }
        thread::sleep(end.saturating_sub(begun.elapsed()));
        look()
    };
    let (before, measured_from) = look_until(times.warm_up);
    let (after, measured_to) = look_until(measured_from + times.measured);
    let bytes = after.iter().zip(before).map(|(after, before)| after - before).collect();
    Watched { samples, bytes, elapsed: measured_to - measured_from }
}
