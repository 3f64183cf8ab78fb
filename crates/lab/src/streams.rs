//! Plain TCP streams through a lab: what the path itself lets through.

use crate::lab::Lab;
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Streams from the client to the server.
#[derive(Clone, Debug)]
pub struct Streams {
    /// How many.
    pub count: u8,
    /// The congestion control of the sender; the namespace's, if it is missing.
    pub congestion_control: Option<String>,
    /// The server's address.
    pub to: IpAddr,
}

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrived {
    /// Bytes of payload, each as it was sent.
    pub bytes: u64,
    /// In that time.
    pub elapsed: Duration,
}

/// Its length has no factor in common with those of packets, so that a piece in the wrong place is noticed.
const PATTERN_BYTES: usize = 65_521;
/// What is written and read at once; less than the pattern.
const PIECE_BYTES: usize = 48 << 10;

impl Streams {
    /// Sends `bytes` on each stream, and returns when all have arrived.
    ///
    /// # Errors
    /// What the kernel said, or "invalid data" if other bytes arrived than were sent.
    pub fn transfer(&self, lab: &Lab, bytes: u64) -> io::Result<Arrived> {
        let never = AtomicBool::new(false);
        let begun = Instant::now();
        let arrived = AtomicU64::new(0);
        self.run(lab, bytes, &never, &arrived, || ())?;
        Ok(Arrived { bytes: arrived.load(Relaxed), elapsed: begun.elapsed() })
    }

    /// Sends for as long as the two times, and counts what arrives in the second.
    ///
    /// # Errors
    /// As those of [`transfer`](Self::transfer).
    pub fn measure(&self, lab: &Lab, warm_up: Duration, measured: Duration) -> io::Result<Arrived> {
        let is_over = AtomicBool::new(false);
        let arrived = AtomicU64::new(0);
        self.run(lab, u64::MAX, &is_over, &arrived, || {
            thread::sleep(warm_up);
            let (begun, before) = (Instant::now(), arrived.load(Relaxed));
            thread::sleep(measured);
            let outcome = Arrived { bytes: arrived.load(Relaxed) - before, elapsed: begun.elapsed() };
            is_over.store(true, Relaxed);
            outcome
        })
    }

    fn run<T>(
        &self,
        lab: &Lab,
        bytes: u64,
        is_over: &AtomicBool,
        arrived: &AtomicU64,
        meanwhile: impl FnOnce() -> T,
    ) -> io::Result<T> {
        let connections = self.connect(lab)?;
        let pattern = pattern();
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for (sender, receiver) in connections {
                threads.push(scope.spawn(|| send(sender, &pattern, bytes, is_over)));
                threads.push(scope.spawn(|| receive(receiver, &pattern, arrived)));
            }
            let outcome = meanwhile();
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(outcome)
        })
    }

    /// Both ends of each stream.
    fn connect(&self, lab: &Lab) -> io::Result<Vec<(TcpStream, TcpStream)>> {
        let listener = lab.server.namespace.run(|| TcpListener::bind(SocketAddr::new(self.to, 0)))??;
        let address = listener.local_addr()?;
        let connect = |_| {
            let sender = lab.client.namespace.run(|| TcpStream::connect(address))??;
            if let Some(name) = &self.congestion_control {
                SockRef::from(&sender).set_tcp_congestion(name.as_bytes())?;
            }
            Ok((sender, listener.accept()?.0))
        };
        (0..self.count).map(connect).collect()
    }
}

/// Twice the pattern, so that a piece can be taken from wherever it begins.
fn pattern() -> Vec<u8> {
    // Of a multiplicative sequence (Knuth's constant) the upper byte: no period that a shift could hide in.
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

fn send(mut stream: TcpStream, pattern: &[u8], bytes: u64, is_over: &AtomicBool) -> io::Result<()> {
    let mut sent = 0;
    while sent < bytes && !is_over.load(Relaxed) {
        let piece = usize::try_from(bytes - sent).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        sent += stream.write(expected(pattern, sent, piece))? as u64;
    }
    Ok(())
}

fn receive(mut stream: TcpStream, pattern: &[u8], arrived: &AtomicU64) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    let mut received = 0;
    loop {
        let bytes = stream.read(&mut piece)?;
        if bytes == 0 {
            return Ok(());
        }
        if piece[..bytes] != *expected(pattern, received, bytes) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "other bytes arrived than were sent"));
        }
        received += bytes as u64;
        arrived.fetch_add(bytes as u64, Relaxed);
    }
}
