//! Reads a whole remote disk over several connections, and says how that went.
//!
//! `cargo run --example read_disk -- iscsi://127.0.0.1/iqn.2026-11.test:disk/0 4`

use ropewalk_initiator::{Config, Connections, Url, credentials_from_environment};
use std::collections::VecDeque;
use std::error::Error;
use std::time::Instant;

/// Bytes of one read, and how many are under way together: enough to fill a long fat network.
const READ_BYTES: u64 = 1 << 20;
const READS: usize = 32;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let mut arguments = std::env::args().skip(1);
    let url: Url = arguments.next().ok_or("usage: read_disk URL [CONNECTIONS]")?.parse()?;
    let connections = match arguments.next() {
        Some(number) => Connections::Fixed(number.parse()?),
        None => Connections::Auto,
    };
    let credentials = credentials_from_environment(url.user.as_deref())?;
    let config = Config { connections, credentials, ..Config::default() };

    let session = ropewalk_initiator::connect(&url, config).await?;
    let lun = session.lun(url.lun).await?;
    let name =
        lun.unit().designator.as_ref().map_or_else(|| "a nameless disk".to_owned(), ToString::to_string);
    println!("{name}: {} bytes", lun.unit().capacity_bytes());

    let started = Instant::now();
    let capacity = lun.unit().capacity_bytes();
    let mut reads = VecDeque::new();
    let mut offset = 0;
    while offset < capacity || !reads.is_empty() {
        if offset < capacity && reads.len() < READS {
            let bytes = READ_BYTES.min(capacity - offset);
            let lun = lun.clone();
            reads.push_back(tokio::spawn(async move {
                lun.read(offset, usize::try_from(bytes).unwrap_or(0)).await
            }));
            offset += bytes;
        } else if let Some(read) = reads.pop_front() {
            read.await??;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{:.0} MB/s", capacity as f64 / seconds / 1e6);

    let report = session.report();
    println!(
        "{} connections in {} sessions, {} retries",
        report.connections(),
        report.sessions(),
        report.retries
    );
    for path in &report.paths {
        for connection in &path.connections {
            let rtt = connection.path.map(|path| path.rtt).unwrap_or_default();
            println!(
                "  session {} connection {} to {}: {} bytes in, rtt {rtt:?}",
                path.isid, connection.cid, connection.peer, connection.counters.received_bytes
            );
        }
    }
    session.close().await?;
    Ok(())
}
