//! Measures the cost of the session monitor: a target and an initiator in this process, over loopback, with and without
//! it.

use crate::processor;
use anyhow::Context;
use initiator::{Config, Policies, Url};
use lab::netem::Bytes;
use lab::session_monitor::SessionMonitor;
use lab::workload::{Contents, End, Load, Order, Pattern};
use observe::statistics::Sample;
use std::time::Duration;
use target::{LunConfig, Mask, Server, TargetConfig};
use tokio::runtime::Builder;

/// Pairs of runs: one without the monitor, then one with it.
const PAIRS: usize = 9;
const WRITE_BYTES: u32 = 4096;
const WRITES: u64 = 20_000;
const DEPTH: u16 = 16;

const DISK: &str = "ram:64MiB";
const DISK_BYTES: u64 = 64 << 20;
const BLOCK_BYTES: u32 = 512;
const TARGET: &str = "iqn.2026-11.io.github.ropewalk:bench";
const GRACE: Duration = Duration::from_secs(1);

/// Measures, and returns a paragraph of the report.
pub fn measure() -> anyhow::Result<String> {
    let mut unwatched = Vec::new();
    let mut differences = Vec::new();
    for _ in 0..PAIRS {
        let without = write(None)?;
        differences.push(write(Some(&SessionMonitor::default()))? - without);
        unwatched.push(without);
    }
    let unwatched = Sample::of(unwatched).context("no pair was measured")?;
    let differences = Sample::of(differences).context("no pair was measured")?;
    Ok(format!(
        "A write of {WRITE_BYTES} bytes over loopback, {DEPTH} at a time, takes {without:.1} µs of processor time, both ends \
         together. The session monitor, at both ends, takes {median:.1} µs more (median of {PAIRS} pairs of {WRITES} \
         writes each; from {least:.1} to {most:.1} µs).",
        without = unwatched.median(),
        median = differences.median(),
        least = differences.min(),
        most = differences.max(),
    ))
}

/// The processor time of a write, in microseconds.
fn write(monitor: Option<&SessionMonitor>) -> anyhow::Result<f64> {
    let pattern = Pattern {
        order: Order::Sequential,
        read_percent: 0,
        request_size: Bytes(WRITE_BYTES.into()),
        depth: DEPTH,
        end: End::Requests(WRITES),
        every: None,
        seed: 1,
    };
    let observers = monitor.map(SessionMonitor::target).unwrap_or_default();
    let observer = monitor.map(SessionMonitor::initiator);
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let server = Server::start_observed(target_config()?, observers).await?;
        let portal = server.local_addrs()[0].into();
        let url = Url { user: None, portal, target_name: TARGET.to_owned(), lun: 0, congestion: None };
        let session = match observer {
            Some(observer) => {
                initiator::connect_observed(&url, Config::default(), observer, Policies::default()).await?
            }
            None => initiator::connect(&url, Config::default()).await?,
        };
        let lun = session.lun(url.lun).await?;
        let load = Load::new(&lun, DEPTH, WRITE_BYTES as usize, Contents::Any);
        let begun = processor();
        load.run(pattern.requests(DISK_BYTES, BLOCK_BYTES)?, |_| ()).await?;
        let taken = processor() - begun;
        session.close().await?;
        server.shutdown(GRACE).await;
        Ok(taken.as_secs_f64() * 1e6 / WRITES as f64)
    })
}

fn target_config() -> anyhow::Result<target::Config> {
    let mut node = TargetConfig::new(TARGET.parse()?);
    node.luns.push(LunConfig { number: 0, backend: DISK.parse()?, mask: Mask::default() });
    Ok(target::Config {
        listen: vec![([127, 0, 0, 1], 0).into()],
        targets: vec![node],
        // No other process knows this target.
        allow_insecure: true,
        ..target::Config::default()
    })
}
