//! Measures the memory of an idle target, and of idle connections.

use crate::Effort;
use initiator::{Config, Connections, Url};
use ropewalk_interop::{IQN, Ropewalk};
use std::fs;
use tempfile::NamedTempFile;

const SESSIONS: usize = 10;
const CONNECTIONS_PER_SESSION: u16 = 64;
const CONNECTIONS: usize = SESSIONS * CONNECTIONS_PER_SESSION as usize;

pub fn measure(_: Effort) -> anyhow::Result<String> {
    let target = serve()?;
    let idle_bytes = target.program.resident_bytes()?;
    let url: Url = target.url(0).parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let connected_bytes = runtime.block_on(async {
        let mut sessions = Vec::new();
        for number in 0..SESSIONS {
            let initiator_name = format!("iqn.2026-11.org.example:idle-{number}");
            let config = Config {
                initiator_name,
                connections: Connections::Fixed(CONNECTIONS_PER_SESSION),
                ..Config::default()
            };
            sessions.push(initiator::connect(&url, config).await?);
        }
        let resident = target.program.resident_bytes()?;
        for session in sessions {
            session.close().await?;
        }
        anyhow::Ok(resident)
    })?;
    let each_kib = connected_bytes.saturating_sub(idle_bytes) as f64 / CONNECTIONS as f64 / 1024.0;
    Ok(format!(
        "## Memory\n\n\
         | state | resident |\n|---|---:|\n\
         | idle target with one RAM LUN | {:.1} MiB |\n\
         | with {CONNECTIONS} logged-in, idle connections in {SESSIONS} sessions | {:.1} MiB |\n\
         | each of these connections | {each_kib:.1} KiB |\n",
        idle_bytes as f64 / 1048576.0,
        connected_bytes as f64 / 1048576.0,
    ))
}

/// Serves a disk to one host with all connections, which are more than the default limit of one address.
fn serve() -> anyhow::Result<Ropewalk> {
    let config = NamedTempFile::with_suffix(".toml")?;
    let target = format!("[[target]]\nname = {IQN:?}\nlun = [{{ number = 0, backend = \"ram:1GiB\" }}]\n");
    fs::write(&config, format!("{target}[limits]\nconnections_per_address = {CONNECTIONS}\n"))?;
    Ok(Ropewalk::serve_with(&[], 1, &["--config", &config.path().to_string_lossy()])?)
}
