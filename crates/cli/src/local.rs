//! I/O on files of this machine.

use anyhow::Context;
use block::Engine;
use transport::ReadableFd;

/// An engine that delivers its completions on this runtime.
pub(crate) fn engine() -> anyhow::Result<Engine> {
    let engine = Engine::probe()?;
    if let Some(descriptor) = engine.reap_fd() {
        let readable = ReadableFd::new(descriptor).context("cannot watch file completions")?;
        tokio::spawn(reap(engine.clone(), readable));
    }
    Ok(engine)
}

async fn reap(engine: Engine, completions: ReadableFd) {
    while completions.readable().await.is_ok() {
        engine.reap();
    }
}
