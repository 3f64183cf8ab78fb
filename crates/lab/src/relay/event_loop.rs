//! The relay's thread, which sleeps until a frame arrives or is due.

use super::clock::Clock;
use super::direction::Next;
use super::forwarder::{Forwarder, Look};
use super::packet_socket::PacketSocket;
use super::report::RelayReport;
use super::watch::Looker;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// A request to the relay's thread.
pub(crate) enum Request {
    Report(SyncSender<RelayReport>),
    Stop,
}

pub(crate) struct EventLoop {
    forwarder: Arc<Mutex<Forwarder>>,
    sockets: Sockets,
    clock: Clock,
    requests: Receiver<Request>,
    /// Readable when there is a request, or when another thread has looked.
    bell: Arc<OwnedFd>,
    nap: Duration,
}

/// The forwarder's sockets, to wait for.
struct Sockets {
    client: OwnedFd,
    server: OwnedFd,
}

/// The pause after work, since more frames come soon and are cheaper together: at 900 Mbit/s this saves a quarter of
/// the relay's time. It does not delay their timestamps, which are the kernel's.
const NAP_MAX: Duration = Duration::from_micros(50);

/// The inverse of the share of the round trip that the pause may take.
const NAP_SHARE: u32 = 200;

/// The lead of a wake-up, since a processor that slept wakes late: by 0.1 ms and more in a virtual machine. The relay
/// watches the clock for the rest.
const WAKE_EARLY: Duration = Duration::from_micros(200);

/// The lead applies only to longer sleeps: processors that sleep often sleep less deeply, and watching the clock costs
/// work.
const LONG_SLEEP: Duration = Duration::from_millis(4);

/// The time to sleep, if something is due after that time.
fn sleep_for(left: Duration) -> Duration {
    if left < LONG_SLEEP { left } else { left - WAKE_EARLY }
}

impl EventLoop {
    pub fn new(forwarder: Forwarder, requests: Receiver<Request>, bell: Arc<OwnedFd>) -> io::Result<Self> {
        let descriptor = |socket: &PacketSocket| socket.as_fd().try_clone_to_owned();
        Ok(Self {
            sockets: Sockets {
                client: descriptor(&forwarder.client)?,
                server: descriptor(&forwarder.server)?,
            },
            clock: forwarder.tools.clock,
            nap: NAP_MAX.min(forwarder.round_trip / NAP_SHARE),
            forwarder: Arc::new(Mutex::new(forwarder)),
            requests,
            bell,
        })
    }

    /// Shared with the thread that stands by.
    pub fn forwarder(&self) -> Arc<Mutex<Forwarder>> {
        self.forwarder.clone()
    }

    /// Runs until a request to stop.
    pub fn run(self) -> RelayReport {
        loop {
            let look = self.lock().look(Looker::Relay);
            if self.is_asked_to_stop() {
                return self.lock().report();
            }
            match look.has_more() {
                true => {}
                false if look.has_moved() => std::thread::sleep(self.nap),
                false => self.sleep(&look),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Forwarder> {
        self.forwarder.lock().expect("a thread that looks does not panic")
    }

    /// Sleeps until a frame arrives or is due.
    fn sleep(&self, look: &Look) {
        let wanted =
            |next: Next| if next == Next::Room { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut descriptors = [
            PollFd::new(&self.sockets.client, wanted(look.backward.next)),
            PollFd::new(&self.sockets.server, wanted(look.forward.next)),
            PollFd::new(&self.bell, PollFlags::IN),
        ];
        let timeout = |at: Duration| sleep_for(at.saturating_sub(look.ended)).try_into().unwrap_or_default();
        match (poll(&mut descriptors, look.wakes_at.map(timeout).as_ref()), look.wakes_at) {
            (Ok(0), Some(wakes_at)) => self.await_time(wakes_at),
            (Ok(_) | Err(Errno::INTR), _) => {}
            // No action of the relay makes this call fail; looking again at once is busy, but correct.
            (Err(error), _) => debug_assert!(false, "poll: {error}"),
        }
        // It rings until it is read.
        if descriptors[2].revents().contains(PollFlags::IN) {
            let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        }
    }

    /// Watches the clock, for at most [`WAKE_EARLY`].
    fn await_time(&self, time: Duration) {
        while self.clock.now() < time {
            std::hint::spin_loop();
        }
    }

    fn is_asked_to_stop(&self) -> bool {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Stop => return true,
                // The requester may have stopped waiting.
                Request::Report(to) => drop(to.send(self.lock().report())),
            }
        }
        false
    }
}
