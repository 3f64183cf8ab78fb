//! Requests to stop: SIGINT, SIGTERM and SIGHUP. SIGQUIT keeps its meaning, an immediate end with a core dump.

use crate::output;
use anyhow::Context;
use futures_util::future::select_all;
use std::sync::OnceLock;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end a command in good order. SIGHUP is not among them under `nohup`: a signal that was ignored when
/// this process began stays so.
pub(crate) struct Interrupts {
    signals: Vec<(Interrupt, Signal)>,
}

/// A signal that ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// SIGINT: the user pressed Ctrl-C.
    Keyboard,
    /// SIGTERM: a program, or the system that shuts down, asks it to stop.
    Terminate,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

/// The first that came to this process.
static FIRST: OnceLock<Interrupt> = OnceLock::new();

/// The first signal that ended something here; SIGINT if none did.
pub(crate) fn first() -> Interrupt {
    FIRST.get().copied().unwrap_or(Interrupt::Keyboard)
}

impl Interrupts {
    /// From now on they do not end the process by themselves.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let mut kinds = vec![
            (Interrupt::Keyboard, SignalKind::interrupt()),
            (Interrupt::Terminate, SignalKind::terminate()),
        ];
        if !is_ignored(SignalKind::hangup()) {
            kinds.push((Interrupt::HangUp, SignalKind::hangup()));
        }
        let listen = |(interrupt, kind)| Ok((interrupt, signal(kind).context("cannot listen for signals")?));
        Ok(Self { signals: kinds.into_iter().map(listen).collect::<anyhow::Result<_>>()? })
    }

    /// Resolves when any of them comes.
    pub(crate) async fn next(&mut self) -> Interrupt {
        let interrupt = self.any_of(|_| true).await;
        let _ = FIRST.set(interrupt);
        interrupt
    }

    /// Resolves when somebody insists, who has asked already. A hangup does not: when a terminal closes, the kernel
    /// sends one and the shell another, and systemd can send one after SIGTERM.
    pub(crate) async fn again(&mut self) -> Interrupt {
        self.any_of(|interrupt| interrupt != Interrupt::HangUp).await
    }

    async fn any_of(&mut self, counts: impl Fn(Interrupt) -> bool) -> Interrupt {
        let counted = self.signals.iter_mut().filter(|(interrupt, _)| counts(*interrupt));
        let signals = counted.map(|(interrupt, signal)| {
            Box::pin(async move {
                signal.recv().await;
                *interrupt
            })
        });
        select_all(signals).await.0
    }

    /// Prints `first_words` and resolves at the first signal. The second ends the process at once.
    pub(crate) async fn into_first(mut self, first_words: &'static str, last_words: &'static str) {
        self.next().await;
        output::tell(format_args!("\n{first_words}"));
        tokio::spawn(async move {
            let interrupt = self.again().await;
            output::tell(format_args!("error: {last_words}"));
            std::process::exit(crate::exit::Status::from(interrupt) as i32);
        });
    }
}

/// Whether this process started with the signal ignored, according to the kernel (`proc_pid_status(5)`).
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status) & 1 << (kind.as_raw_value() - 1) != 0
}

/// The mask of ignored signals, one bit each, from SIGHUP on.
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
