//! The monitor's thread.

use crate::clock::{monotonic_ns, processor_ns};
use crate::inet_diag::{Diagnosis, Family, SocketId};
use crate::monitor::{Discovery, Options, WatchError};
use crate::rounds::Rounds;
use crate::sock_diag::SockDiag;
use observe::{CongestionControl, SocketSample, SocketSeries, SocketsReport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashSet;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

/// A request to the sampling thread.
pub(crate) enum Request {
    Watch(SocketId, SyncSender<Result<(), WatchError>>),
    Stop,
}

pub(crate) struct Sampler {
    options: Options,
    kernel: SockDiag,
    requests: Receiver<Request>,
    bell: Arc<OwnedFd>,
    /// Cookies of all sockets that are or were sampled.
    known: HashSet<u64>,
    report: SocketsReport,
    samples: usize,
}

impl Sampler {
    pub fn new(options: Options, requests: Receiver<Request>, bell: Arc<OwnedFd>) -> io::Result<Self> {
        let interval_ns = nanoseconds(options.interval);
        let report = SocketsReport { begun_ns: monotonic_ns(), interval_ns, ..SocketsReport::default() };
        let kernel = SockDiag::open()?;
        Ok(Self { options, kernel, requests, bell, known: HashSet::new(), report, samples: 0 })
    }

    /// Samples until it is asked to stop.
    pub fn run(mut self) -> SocketsReport {
        // By default, the kernel lets a thread sleep some 50 us longer than it asked for.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut sampling = Rounds::new(self.report.begun_ns, self.report.interval_ns);
        let discovery = self.options.discovery.clone();
        let mut looking = discovery
            .map(|discovery| (Rounds::new(self.report.begun_ns, nanoseconds(discovery.interval)), discovery));
        loop {
            let now_ns = monotonic_ns();
            if let Some((rounds, discovery)) = &mut looking
                && rounds.is_due(now_ns)
            {
                self.discover(discovery);
            }
            if sampling.is_due(now_ns) {
                self.sample_all();
            }
            if self.answer() {
                break;
            }
            let looking_ns = looking.as_ref().map_or(u64::MAX, |(rounds, _)| rounds.next_ns());
            self.sleep(sampling.next_ns().min(looking_ns));
        }
        if let Some((_, discovery)) = &looking {
            self.discover(discovery);
        }
        self.sample_all();
        self.report.rounds_missed = sampling.missed();
        self.report.ended_ns = monotonic_ns();
        self.report.processor_ns = processor_ns();
        self.report
    }

    /// Sleeps until then, or until there is a request.
    fn sleep(&self, until_ns: u64) {
        let timeout = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        let timeout = Timespec::try_from(timeout).unwrap_or_default();
        // An early return is harmless: nothing is due then.
        let _ = poll(&mut [PollFd::new(&self.bell, PollFlags::IN)], Some(&timeout));
    }

    /// Answers requests. Returns whether to stop.
    fn answer(&mut self) -> bool {
        // Reading the bell resets it.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Stop => return true,
                Request::Watch(id, to) => {
                    let outcome = self.watch(id);
                    // The caller may have stopped waiting.
                    let _ = to.send(outcome);
                }
            }
        }
        false
    }

    fn watch(&mut self, id: SocketId) -> Result<(), WatchError> {
        if self.known.contains(&id.cookie) {
            return Ok(());
        }
        if self.known.len() >= self.options.sockets_max {
            return Err(WatchError::TooMany(self.options.sockets_max));
        }
        if self.kernel.ask(&id)?.tcp.is_none() {
            return Err(io::Error::from(io::ErrorKind::Unsupported).into());
        }
        self.add(id);
        self.sample(self.report.sockets.len() - 1);
        Ok(())
    }

    fn discover(&mut self, discovery: &Discovery) {
        let mut without_room = 0;
        for family in [Family::Inet, Family::Inet6] {
            let mut found = Vec::new();
            let outcome = self.kernel.connections(family, |id| {
                let has_port = |port| id.local.port() == port || id.peer.port() == port;
                if discovery.port.is_none_or(has_port) && !self.known.contains(&id.cookie) {
                    found.push(id);
                }
            });
            // A kernel without IPv6 answers "not found", which is no failure.
            let has_failed = outcome.is_err_and(|error| error.kind() != io::ErrorKind::NotFound);
            self.report.failures += u64::from(has_failed);
            let room = self.options.sockets_max.saturating_sub(self.known.len());
            without_room += found.len().saturating_sub(room) as u64;
            found.into_iter().take(room).for_each(|id| self.add(id));
        }
        // Every round finds them again.
        self.report.sockets_lost = self.report.sockets_lost.max(without_room);
    }

    fn add(&mut self, id: SocketId) {
        self.known.insert(id.cookie);
        self.report.sockets.push(SocketSeries {
            cookie: id.cookie,
            local: id.local,
            peer: id.peer,
            congestion_controls: Vec::new(),
            samples: Vec::new(),
            samples_lost: 0,
            ended_ns: None,
        });
    }

    fn sample_all(&mut self) {
        (0..self.report.sockets.len()).for_each(|index| self.sample(index));
    }

    fn sample(&mut self, index: usize) {
        let series = &mut self.report.sockets[index];
        if series.ended_ns.is_some() {
            return;
        }
        let id = SocketId { local: series.local, peer: series.peer, cookie: series.cookie };
        match self.kernel.ask(&id) {
            Ok(diagnosis) => {
                let has_room = self.samples < self.options.samples_max;
                self.samples += usize::from(has_room);
                record(series, &diagnosis, has_room);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => series.ended_ns = Some(monotonic_ns()),
            Err(_) => self.report.failures += 1,
        }
    }
}

/// Adds a diagnosis to the series, or ends the series if the diagnosis has no state.
fn record(series: &mut SocketSeries, diagnosis: &Diagnosis<'_>, has_room: bool) {
    let at_ns = monotonic_ns();
    let (Some(tcp), Some(memory)) = (diagnosis.tcp, diagnosis.memory) else {
        series.ended_ns = Some(at_ns);
        return;
    };
    match has_room {
        true => series.samples.push(SocketSample { at_ns, tcp, memory }),
        false => series.samples_lost += 1,
    }
    let last = series.congestion_controls.last().map(|last| &*last.name);
    if let Some(name) = diagnosis.congestion_control.filter(|name| last != Some(name) && has_room) {
        series.congestion_controls.push(CongestionControl { since_ns: at_ns, name: name.to_owned() });
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
