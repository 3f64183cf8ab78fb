//! A TCP socket with a thread for each direction, as a [`Wire`] (paper 001).
//!
//! Each thread waits in its system call, and one ring of bytes joins it to the thread that runs the protocol. The
//! protocol's thread still checks digests, because only it knows where PDUs begin. The rings cost one more copy of what is
//! sent, and two of what is received.

use crate::path_measurement::measure;
use crate::{acknowledgement, send_queue, socket_options};
use framing::{InForce, SocketOptions, SocketOptionsError, Wire};
use futures_util::task::AtomicWaker;
use policy::PathMeasurement;
use rtrb::{Consumer, Producer, RingBuffer};
use socket2::SockRef;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::thread::{self, Thread};
use std::time::Duration;

/// The capacity of a ring.
const RING_BYTES: usize = 256 << 10;

/// The most bytes of one system call.
const CALL_BYTES: usize = 64 << 10;

/// The name of the thread that sends.
pub const SENDING_THREAD: &str = "send";

/// How often a blocked sender checks whether to go on.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// A TCP socket that two threads of its own work.
#[derive(Debug)]
pub(crate) struct ThreadedSocket {
    stream: TcpStream,
    incoming: Consumer<u8>,
    receiver: Worker,
    outgoing: Producer<u8>,
    sender: Worker,
    /// The most bytes that may wait for the sending thread: what waits can no longer be placed on another connection.
    waiting_bytes_max: AtomicUsize,
}

/// A thread as the protocol's sees it.
#[derive(Debug)]
struct Worker {
    thread: Thread,
    shared: Arc<Direction>,
}

/// What both threads of a direction know besides its ring.
#[derive(Debug, Default)]
struct Direction {
    /// Waits for bytes, or for room for them.
    protocol: AtomicWaker,
    /// How the bytes ended.
    end: OnceLock<Result<(), io::Error>>,
    /// No more will be put into the ring.
    is_closing: AtomicBool,
    /// The connection is gone: nobody waits for the rest.
    is_dropped: AtomicBool,
    /// What is received is acknowledged at once.
    acknowledges_at_once: AtomicBool,
}

impl ThreadedSocket {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system has no descriptor or no thread left.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(SEND_TIMEOUT))?;
        let (filled, incoming) = RingBuffer::new(RING_BYTES);
        let (outgoing, emptied) = RingBuffer::new(RING_BYTES);
        let (near, far) = (stream.try_clone()?, stream.try_clone()?);
        let receiver = Worker::start("receive", move |shared| receive(&near, filled, shared))?;
        let sender = match Worker::start(SENDING_THREAD, move |shared| send(&far, emptied, shared)) {
            Ok(sender) => sender,
            Err(error) => {
                // The other thread would wait for bytes for ever.
                let _ = stream.shutdown(Shutdown::Both);
                return Err(error);
            }
        };
        Ok(Self {
            stream,
            incoming,
            receiver,
            outgoing,
            sender,
            waiting_bytes_max: AtomicUsize::new(RING_BYTES),
        })
    }

    fn take(&mut self, to: &mut [IoSliceMut<'_>]) -> usize {
        let mut taken = 0;
        for slice in to {
            let (filled, rest) = self.incoming.pop_partial_slice(slice);
            taken += filled.len();
            if !rest.is_empty() {
                break;
            }
        }
        taken
    }

    fn put(&mut self, from: &[IoSlice<'_>]) -> usize {
        let mut room = self.waiting_bytes_max.load(Ordering::Relaxed).saturating_sub(self.waiting_bytes());
        let mut put = 0;
        for slice in from {
            let (pushed, _) = self.outgoing.push_partial_slice(&slice[..slice.len().min(room)]);
            put += pushed.len();
            room -= pushed.len();
            if pushed.len() < slice.len() {
                break;
            }
        }
        put
    }

    /// The bytes that wait for the sending thread.
    fn waiting_bytes(&self) -> usize {
        RING_BYTES - self.outgoing.slots()
    }
}

impl Wire for ThreadedSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, to: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        // Bytes may arrive between look and registration, so it looks twice. The end is read first, because it is set
        // after the last bytes.
        for is_registered in [false, true] {
            let end = self.receiver.shared.end();
            let taken = self.take(to);
            if taken > 0 {
                self.receiver.thread.unpark();
                return Poll::Ready(Ok(taken));
            }
            if let Some(end) = end {
                return Poll::Ready(end.map(|()| 0));
            }
            if !is_registered {
                self.receiver.shared.protocol.register(cx.waker());
            }
        }
        Poll::Pending
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        for is_registered in [false, true] {
            if let Some(Err(error)) = self.sender.shared.end() {
                return Poll::Ready(Err(error));
            }
            let put = self.put(from);
            if put > 0 {
                self.sender.thread.unpark();
                return Poll::Ready(Ok(put));
            }
            if !is_registered {
                self.sender.shared.protocol.register(cx.waker());
            }
        }
        Poll::Pending
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sender.close();
        self.sender.shared.protocol.register(cx.waker());
        self.sender.shared.end().map_or(Poll::Pending, Poll::Ready)
    }

    fn unacknowledged_bytes(&self) -> io::Result<u64> {
        // In this order, what moves meanwhile is counted twice rather than not at all.
        let waiting_bytes = self.waiting_bytes() as u64;
        Ok(send_queue::unacknowledged_bytes(&self.stream)? + waiting_bytes)
    }

    fn measure(&self) -> Option<PathMeasurement> {
        let waiting_bytes = self.waiting_bytes() as u64;
        Some(PathMeasurement { waiting_bytes, ..measure(&self.stream).ok()? })
    }

    fn limit_unsent(&self, bytes: u32) {
        let most = usize::try_from(bytes).unwrap_or(usize::MAX).clamp(1, RING_BYTES);
        self.waiting_bytes_max.store(most, Ordering::Relaxed);
        // Without the limit the kernel keeps more, and placement decides about less.
        let _ = SockRef::from(&self.stream).set_tcp_notsent_lowat(bytes);
    }

    fn acknowledge_at_once(&mut self) {
        self.receiver.shared.acknowledges_at_once.store(true, Ordering::Relaxed);
    }

    fn apply(&self, options: &SocketOptions) -> Result<InForce, SocketOptionsError> {
        socket_options::apply(options, &self.stream)?;
        Ok(socket_options::in_force(&self.stream))
    }
}

impl Drop for ThreadedSocket {
    /// What was written is still sent, as far as the peer takes it soon.
    fn drop(&mut self) {
        for worker in [&self.sender, &self.receiver] {
            worker.shared.is_dropped.store(true, Ordering::Release);
        }
        self.sender.close();
        // The receiving thread waits for bytes, or for room for them.
        let _ = self.stream.shutdown(Shutdown::Read);
        self.receiver.thread.unpark();
    }
}

impl Worker {
    fn start(name: &str, work: impl FnOnce(&Direction) + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Direction::default());
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || work(&own))?;
        Ok(Self { thread: thread.thread().clone(), shared })
    }

    fn close(&self) {
        self.shared.is_closing.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Direction {
    fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::Acquire)
    }

    fn end(&self) -> Option<io::Result<()>> {
        self.end.get().map(|end| end.as_ref().copied().map_err(same))
    }

    fn finish(&self, end: io::Result<()>) {
        // The first end counts.
        let _ = self.end.set(end);
        self.protocol.wake();
    }
}

/// The same error once more.
fn same(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Fills the ring from the socket until either ends.
fn receive(mut stream: &TcpStream, mut to: Producer<u8>, shared: &Direction) {
    let mut bytes = vec![0; CALL_BYTES];
    while !shared.is_dropped() {
        match stream.read(&mut bytes) {
            Ok(0) => return shared.finish(Ok(())),
            Ok(count) => {
                if shared.acknowledges_at_once.load(Ordering::Relaxed) {
                    acknowledgement::send(stream);
                }
                pass_on(&bytes[..count], &mut to, shared);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return shared.finish(Err(error)),
        }
    }
}

/// Puts all of it into the ring, as room comes.
fn pass_on(mut bytes: &[u8], to: &mut Producer<u8>, shared: &Direction) {
    while !bytes.is_empty() && !shared.is_dropped() {
        let (pushed, rest) = to.push_partial_slice(bytes);
        if pushed.is_empty() {
            thread::park();
        } else {
            shared.protocol.wake();
        }
        bytes = rest;
    }
}

/// Empties the ring into the socket until nothing more will come.
fn send(stream: &TcpStream, mut from: Consumer<u8>, shared: &Direction) {
    loop {
        // What was put into the ring before it was closed is seen after this.
        let is_closing = shared.is_closing.load(Ordering::Acquire);
        let count = from.slots().min(CALL_BYTES);
        if count > 0 {
            match send_once(stream, &mut from, count) {
                Ok(()) => shared.protocol.wake(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && !shared.is_dropped() => {}
                Err(error) => return shared.finish(Err(error)),
            }
        } else if is_closing {
            return shared.finish(stream.shutdown(Shutdown::Write));
        } else {
            thread::park();
        }
    }
}

/// Waits until the kernel has taken some of the next `count` bytes.
fn send_once(mut stream: &TcpStream, from: &mut Consumer<u8>, count: usize) -> io::Result<()> {
    let Ok(chunk) = from.read_chunk(count) else { return Ok(()) };
    let (first, second) = chunk.as_slices();
    let sent = stream.write_vectored(&[IoSlice::new(first), IoSlice::new(second)])?;
    chunk.commit(sent);
    Ok(())
}
