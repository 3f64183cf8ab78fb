//! A program beside the test: its output is collected, every wait has a deadline, and it ends with the test.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    output: Arc<Output>,
    readers: Vec<JoinHandle<()>>,
    /// Known once it has ended.
    cpu_seconds: Option<f64>,
}

/// One line that a program wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The stream that the program wrote to.
    pub stream: Stream,
    /// The line, without its end.
    pub text: String,
}

/// The standard stream that a program writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the streams")]
pub enum Stream {
    Out,
    Err,
}

#[derive(Debug, Default)]
struct Output {
    lines: Mutex<Vec<Line>>,
    grown: Condvar,
}

impl Output {
    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn collect(&self, stream: Stream, from: impl Read) {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            self.lines().push(Line { stream, text });
            self.grown.notify_all();
        }
    }
}

impl Program {
    /// Starts it with no input.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        let output = Arc::new(Output::default());
        let mut readers = Vec::new();
        if let Some(out) = child.stdout.take() {
            let output = Arc::clone(&output);
            readers.push(thread::spawn(move || output.collect(Stream::Out, out)));
        }
        if let Some(err) = child.stderr.take() {
            let output = Arc::clone(&output);
            readers.push(thread::spawn(move || output.collect(Stream::Err, err)));
        }
        Ok(Self { name, child, output, readers, cpu_seconds: None })
    }

    /// Runs it to its end, and returns how it ended and what it wrote.
    ///
    /// # Errors
    /// If it cannot be started, or takes longer than `limit`; it is killed then.
    pub fn run(command: &mut Command, limit: Duration) -> io::Result<(ExitStatus, Vec<Line>)> {
        let mut program = Self::start(command)?;
        let status = program.finish(limit)?;
        Ok((status, program.lines()))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// If that takes longer than `limit`.
    pub fn finish(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        if !self.ends_within(limit)? {
            return Err(self.stuck("end", limit));
        }
        // The system forgets it with the process.
        self.cpu_seconds = Some(self.cpu_seconds()?);
        let status = self.child.wait()?;
        for reader in self.readers.drain(..) {
            // A reader that panicked has lost lines; the test that wants them will say so.
            let _ = reader.join();
        }
        Ok(status)
    }

    fn ends_within(&self, limit: Duration) -> io::Result<bool> {
        let pidfd = pidfd_open(self.rustix_pid()?, PidfdFlags::empty())?;
        let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
        let mut ends = [PollFd::new(&pidfd, PollFlags::IN)];
        Ok(poll(&mut ends, Some(&limit))? > 0)
    }

    /// Waits for a line that `find` makes something of, those already written included.
    ///
    /// # Errors
    /// If none comes within `limit`, or the program has ended without one.
    pub fn wait_for<T>(&self, limit: Duration, find: impl Fn(&Line) -> Option<T>) -> io::Result<T> {
        let deadline = Instant::now() + limit;
        let mut lines = self.output.lines();
        loop {
            if let Some(found) = lines.iter().find_map(&find) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.readers.iter().all(JoinHandle::is_finished) {
                drop(lines);
                return Err(self.stuck("say what was expected", limit));
            }
            // Short enough to notice the end of a program that says nothing more.
            let turn = left.min(Duration::from_millis(100));
            lines = self.output.grown.wait_timeout(lines, turn).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until it, or another, listens there.
    ///
    /// # Errors
    /// If nobody does within `limit`, or it has ended before.
    pub fn wait_until_listening(&self, address: SocketAddr, limit: Duration) -> io::Result<()> {
        let deadline = Instant::now() + limit;
        while TcpStream::connect(address).is_err() {
            // A refusal comes at once: this pause keeps a core from being busy with asking.
            if Instant::now() > deadline || self.ends_within(Duration::from_millis(5))? {
                return Err(self.stuck(&format!("listen on {address}"), limit));
            }
        }
        Ok(())
    }

    /// Everything it has written so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        self.output.lines().clone()
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it without a chance to clean up (kill −9).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Asks it to end (SIGTERM).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn terminate(&self) -> io::Result<()> {
        Ok(kill_process(self.rustix_pid()?, Signal::TERM)?)
    }

    /// Interrupts it (SIGINT).
    ///
    /// # Errors
    /// If the system refuses.
    pub fn interrupt(&self) -> io::Result<()> {
        Ok(kill_process(self.rustix_pid()?, Signal::INT)?)
    }

    /// Memory of it that is resident, in bytes.
    ///
    /// # Errors
    /// If it has ended.
    pub fn resident_bytes(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.map(|kib| kib << 10).ok_or_else(|| io::Error::other(format!("{} has ended", self.name)))
    }

    /// Processor time that it has used, all its threads together.
    ///
    /// # Errors
    /// If it has been killed.
    pub fn cpu_seconds(&self) -> io::Result<f64> {
        if let Some(seconds) = self.cpu_seconds {
            return Ok(seconds);
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        // Its name, in brackets, may hold anything. After it: state is the 3rd field, utime and stime the 14th and 15th.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace();
        let ticks: u32 = fields.skip(11).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
        // Fewer ticks per second than any number that a float could round.
        Ok(f64::from(ticks) / clock_ticks_per_second() as f64)
    }

    fn rustix_pid(&self) -> io::Result<Pid> {
        i32::try_from(self.pid())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("no such process"))
    }

    fn stuck(&self, what: &str, limit: Duration) -> io::Error {
        let said: Vec<String> = self.lines().into_iter().map(|line| line.text).collect();
        let text = format!("{} did not {what} within {limit:?}. It said:\n{}", self.name, said.join("\n"));
        io::Error::new(io::ErrorKind::TimedOut, text)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.kill();
    }
}
