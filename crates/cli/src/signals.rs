//! Ctrl-C and its relatives.

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGINT or SIGTERM, whichever comes.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Resolves at the first signal, saying `first_words`. At the second, the process ends at once.
    pub(crate) async fn into_first(mut self, first_words: &'static str, last_words: &'static str) {
        self.next().await;
        eprintln!("\n{first_words}");
        tokio::spawn(async move {
            self.next().await;
            eprintln!("error: {last_words}");
            std::process::exit(crate::exit::Status::Failed as i32);
        });
    }
}
