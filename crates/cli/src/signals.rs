//! Ctrl-C and its relatives: SIGINT, SIGTERM and SIGHUP. SIGQUIT keeps its meaning, an end at once with a core dump.

use anyhow::Context;
use std::future::pending;
use std::io::Write as _;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that ask for an orderly end.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    /// `None` under `nohup`: a hangup that was ignored when this process began stays so.
    hangup: Option<Signal>,
}

impl Interrupts {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let hangup = if is_ignored(SignalKind::hangup()) { None } else { Some(SignalKind::hangup()) };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: hangup.map(listen).transpose()?,
        })
    }

    /// Resolves when any of them comes.
    pub(crate) async fn next(&mut self) {
        let Self { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
    }

    /// Resolves when somebody insists, who has asked already. A hangup does not: when a terminal closes, the kernel
    /// sends one and the shell another, and systemd can send one after SIGTERM.
    pub(crate) async fn again(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Resolves at the first signal, saying `first_words`. At the second, the process ends at once.
    pub(crate) async fn into_first(mut self, first_words: &'static str, last_words: &'static str) {
        self.next().await;
        say(format_args!("\n{first_words}"));
        tokio::spawn(async move {
            self.again().await;
            say(format_args!("error: {last_words}"));
            std::process::exit(crate::exit::Status::Failed as i32);
        });
    }
}

/// A line on standard error, which may be a terminal that has hung up.
fn say(words: std::fmt::Arguments<'_>) {
    // If it cannot be said, the exit status says it.
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Whether this process began with the signal ignored, as the kernel tells it (`proc_pid_status(5)`).
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status) & 1 << (kind.as_raw_value() - 1) != 0
}

/// The mask of ignored signals, a bit for each from SIGHUP on.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read_from_the_kernels_words() {
        let status = "Name:\tropewalk\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\nSigCgt:\t4002\n";
        assert_eq!(ignored(status), 0x1001);
        assert_eq!(ignored("Name:\tropewalk\n"), 0);
    }
}
