//! A TCP relay that cuts connections and damages bytes: the network at its worst, at an exact byte.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A relay to one address. Dropping it cuts every connection.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// Where bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Writes and their data.
    ToTarget,
    /// Statuses and what was read.
    ToInitiator,
}

/// One connection to cut, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Which, in the order in which they were opened, from 0.
    pub connection: usize,
    /// What is counted.
    pub way: Way,
    /// So many bytes pass; what comes after is lost.
    pub after_bytes: u64,
}

/// One byte to damage, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// On which connection, in the order in which they were opened, from 0.
    pub connection: usize,
    /// What is counted.
    pub way: Way,
    /// So many bytes pass; the one after them is another than was sent.
    pub after_bytes: u64,
}

/// Some bytes that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The number of the connection, from 0, in the order in which they were opened.
    pub connection: usize,
    /// The direction in which the bytes passed.
    pub way: Way,
    /// The bytes, as they were received.
    pub bytes: Vec<u8>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    cuts: Vec<Cut>,
    damages: Vec<Damage>,
    /// Whether what passes is kept.
    records: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    passed_bytes: u64,
    cuts_done: usize,
    damages_done: usize,
    /// In the order in which it passed.
    recorded: Vec<Recorded>,
    /// Both ends of every connection, to cut them by.
    streams: Vec<(TcpStream, TcpStream)>,
}

/// What one read takes at most.
const PIECE_BYTES: usize = 64 << 10;

impl Relay {
    /// Listens on a port of loopback that the system chooses, and relays to `upstream`.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn to(upstream: SocketAddr, cuts: &[Cut]) -> io::Result<Self> {
        Self::at(Ipv4Addr::LOCALHOST, upstream, cuts)
    }

    /// The same, listening at this address of the host.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn at(host: Ipv4Addr, upstream: SocketAddr, cuts: &[Cut]) -> io::Result<Self> {
        Self::start(host, upstream, cuts, &[], false)
    }

    /// The same, damaging bytes instead.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn damaging(upstream: SocketAddr, damages: &[Damage]) -> io::Result<Self> {
        Self::start(Ipv4Addr::LOCALHOST, upstream, &[], damages, false)
    }

    /// The same, without cuts, and keeping what passes: for short exchanges.
    ///
    /// # Errors
    /// If it cannot listen.
    pub fn recording(upstream: SocketAddr) -> io::Result<Self> {
        Self::start(Ipv4Addr::LOCALHOST, upstream, &[], &[], true)
    }

    fn start(
        host: Ipv4Addr,
        upstream: SocketAddr,
        cuts: &[Cut],
        damages: &[Damage],
        records: bool,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((host, 0))?;
        let address = listener.local_addr()?;
        let (cuts, damages) = (cuts.to_vec(), damages.to_vec());
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { upstream, cuts, damages, records, state, changed });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has passed so far, in the order in which it did; nothing unless it is recording.
    #[must_use]
    pub fn recorded(&self) -> Vec<Recorded> {
        self.shared.state().recorded.clone()
    }

    /// Connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.state().streams.len()
    }

    /// Cuts done so far.
    #[must_use]
    pub fn cuts_done(&self) -> usize {
        self.shared.state().cuts_done
    }

    /// Bytes damaged so far.
    #[must_use]
    pub fn damages_done(&self) -> usize {
        self.shared.state().damages_done
    }

    /// Waits until so many bytes have passed, both ways together; returns whether they did within `limit`.
    #[must_use]
    pub fn wait_for_bytes(&self, bytes: u64, limit: Duration) -> bool {
        self.wait_while(limit, |state| state.passed_bytes < bytes)
    }

    /// Waits until so many cuts are done; returns whether they were within `limit`.
    #[must_use]
    pub fn wait_for_cuts(&self, cuts: usize, limit: Duration) -> bool {
        self.wait_while(limit, |state| state.cuts_done < cuts)
    }

    /// Cuts every connection that there is.
    pub fn cut_all(&self) {
        for (initiator, target) in &self.shared.state().streams {
            cut(initiator, target);
        }
    }

    fn wait_while(&self, limit: Duration, lacking: impl Fn(&State) -> bool) -> bool {
        let state = self.shared.state();
        let waited = self.shared.changed.wait_timeout_while(state, limit, |state| lacking(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.closed = true;
        for (initiator, target) in &state.streams {
            cut(initiator, target);
        }
        drop(state);
        // Wakes the thread that accepts, so that it sees the end.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for initiator in listener.incoming() {
            if self.state().closed {
                return;
            }
            // A target that is away refuses; so does the relay then, by closing.
            let Ok(initiator) = initiator else { continue };
            let Ok(target) = TcpStream::connect(self.upstream) else { continue };
            // Without one of them, this connection closes and its client tries again.
            let _ = self.relay(&initiator, &target);
        }
    }

    fn relay(self: &Arc<Self>, initiator: &TcpStream, target: &TcpStream) -> io::Result<()> {
        initiator.set_nodelay(true)?;
        target.set_nodelay(true)?;
        let connection = {
            let mut state = self.state();
            state.streams.push((initiator.try_clone()?, target.try_clone()?));
            state.streams.len() - 1
        };
        for way in [Way::ToTarget, Way::ToInitiator] {
            let shared = Arc::clone(self);
            let (initiator, target) = (initiator.try_clone()?, target.try_clone()?);
            thread::spawn(move || {
                let (from, to) = match way {
                    Way::ToTarget => (&initiator, &target),
                    Way::ToInitiator => (&target, &initiator),
                };
                // However it ends, the connection is over.
                let _ = shared.pass(connection, way, from, to);
                cut(&initiator, &target);
            });
        }
        Ok(())
    }

    fn pass(&self, connection: usize, way: Way, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        let planned = self.cuts.iter().find(|cut| cut.connection == connection && cut.way == way);
        let mut left = planned.map(|cut| cut.after_bytes);
        let mut piece = vec![0; PIECE_BYTES];
        let mut passed_before = 0;
        loop {
            let read = from.read(&mut piece)?;
            self.damage(connection, way, passed_before, &mut piece[..read]);
            passed_before += read as u64;
            let passed = left.map_or(read, |left| usize::try_from(left).map_or(read, |left| left.min(read)));
            to.write_all(&piece[..passed])?;
            let mut state = self.state();
            if self.records {
                state.recorded.push(Recorded { connection, way, bytes: piece[..passed].to_vec() });
            }
            state.passed_bytes += passed as u64;
            left = left.map(|left| left - passed as u64);
            let cut = left == Some(0);
            state.cuts_done += usize::from(cut);
            self.changed.notify_all();
            if read == 0 || cut {
                return Ok(());
            }
        }
    }

    /// Damages what is planned of these bytes of a stream.
    fn damage(&self, connection: usize, way: Way, passed_before: u64, piece: &mut [u8]) {
        let here = |damage: &&Damage| (damage.connection, damage.way) == (connection, way);
        for damage in self.damages.iter().filter(here) {
            let at = damage.after_bytes.checked_sub(passed_before).and_then(|at| usize::try_from(at).ok());
            if let Some(byte) = at.and_then(|at| piece.get_mut(at)) {
                *byte ^= 0x10;
                self.state().damages_done += 1;
            }
        }
    }
}

fn cut(initiator: &TcpStream, target: &TcpStream) {
    // The other direction may have been first.
    let _ = initiator.shutdown(Shutdown::Both);
    let _ = target.shutdown(Shutdown::Both);
}
