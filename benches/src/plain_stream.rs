//! The baseline: plain TCP streams that read and write memory like a disk, without a protocol.

use crate::measure::pin_thread;
use crate::{CLIENT_CORE, TARGET_CORE, WORKING_SET_MIB};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The bytes that are sent or received at once, like one request of the initiator.
const PIECE_BYTES: usize = 1 << 20;

/// The longest time before the measurement, which excludes slow start and the first touch of the memory.
const WARM_UP_MAX: Duration = Duration::from_secs(1);

/// Bytes per second over `connections` streams. If `from_target`, the sender's memory is the whole working set, and the
/// receiver's is as large as the buffers of an initiator with `requests` requests; else the reverse.
pub fn bytes_per_second(
    connections: usize,
    requests: usize,
    from_target: bool,
    duration: Duration,
) -> anyhow::Result<f64> {
    let disk = usize::try_from(WORKING_SET_MIB)?;
    let (sends, receives) = if from_target { (disk, requests) } else { (requests, disk) };
    let (send_core, receive_core) =
        if from_target { (TARGET_CORE, CLIENT_CORE) } else { (CLIENT_CORE, TARGET_CORE) };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (received, over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..connections {
            let outgoing = TcpStream::connect(listener.local_addr()?)?;
            let (incoming, _) = listener.accept()?;
            outgoing.set_nodelay(true)?;
            let (received, over) = (&received, &over);
            let (sends, receives) = (sends / connections, (receives / connections).max(1));
            threads.push(scope.spawn(move || {
                pin_thread(None, &[send_core])?;
                Ok(send(outgoing, sends.max(1), over)?)
            }));
            threads.push(scope.spawn(move || -> anyhow::Result<()> {
                pin_thread(None, &[receive_core])?;
                Ok(receive(incoming, receives, received)?)
            }));
        }
        thread::sleep(WARM_UP_MAX.min(duration / 2));
        let (before, started) = (received.load(Ordering::Relaxed), Instant::now());
        thread::sleep(duration);
        let (bytes, elapsed) = (received.load(Ordering::Relaxed) - before, started.elapsed());
        over.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a stream panicked"))??;
        }
        Ok(bytes as f64 / elapsed.as_secs_f64())
    })
}

fn memory(pieces: usize) -> Vec<Vec<u8>> {
    (0..pieces).map(|_| vec![0xa5; PIECE_BYTES]).collect()
}

fn send(mut stream: TcpStream, pieces: usize, over: &AtomicBool) -> io::Result<()> {
    for piece in memory(pieces).iter().cycle() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        stream.write_all(piece)?;
    }
    Ok(())
}

fn receive(mut stream: TcpStream, pieces: usize, received: &AtomicU64) -> io::Result<()> {
    let mut memory = memory(pieces);
    loop {
        for piece in &mut memory {
            let mut filled = 0;
            while filled < piece.len() {
                match stream.read(&mut piece[filled..])? {
                    0 => return Ok(()),
                    read => {
                        filled += read;
                        received.fetch_add(read as u64, Ordering::Relaxed);
                    }
                }
            }
        }
    }
}
