//! `ropewalk info`: everything that a remote disk reports about itself.

use crate::exit::Failed;
use crate::output::{self, outln};
use crate::remote::{Connected, Connecting, Portals, ceilings};
use crate::sizes;
use initiator::{ConnectionReport, LaneRole, PathReport, Report, Unit, Url};
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = "Example: ropewalk info iscsi://storage.example.com/iqn.2026-11.com.example:disk/0")]
pub(crate) struct Arguments {
    /// The remote disk
    #[arg(value_name = "URL")]
    url: Url,

    #[command(flatten)]
    connecting: Connecting,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failed> {
    let connected = Connected::default();
    let outcome = show(&arguments, &connected).await;
    connected.log_out().await;
    outcome
}

async fn show(arguments: &Arguments, connected: &Connected) -> Result<(), Failed> {
    let remote = arguments.connecting.open(&arguments.url, Portals::Given, connected).await?;
    let report = remote.target.report();
    if arguments.json {
        output::json(&object(&arguments.url, remote.lun.unit(), &report));
    } else {
        print(&arguments.url, remote.lun.unit(), &report);
    }
    Ok(())
}

fn identity(unit: &Unit) -> Option<String> {
    unit.designator.as_ref().map(ToString::to_string)
}

fn print(url: &Url, unit: &Unit, report: &Report) {
    let blocks = |blocks: Option<u64>| match blocks {
        Some(blocks) => sizes::bytes(blocks.saturating_mul(unit.block_bytes().into())),
        None => "no limit told".to_owned(),
    };
    let yes = |yes| if yes { "yes" } else { "no" }.to_owned();
    let inquiry = &unit.inquiry;
    let mut rows = vec![
        ("URL", url.to_string()),
        ("Identity", identity(unit).unwrap_or_else(|| "none".to_owned())),
        ("Product", format!("{} {} {}", inquiry.vendor, inquiry.product, inquiry.revision)),
        ("Capacity", format!("{} ({} bytes)", sizes::bytes(unit.capacity_bytes()), unit.capacity_bytes())),
        ("Block", format!("{} bytes", unit.block_bytes())),
        ("Write-protected", yes(unit.mode.write_protected)),
        ("Volatile cache", yes(unit.mode.write_cache)),
        ("Thin", thin(unit).to_owned()),
        ("Longest transfer", blocks(unit.limits.transfer_blocks_max.map(u64::from))),
        ("Best transfer", blocks(unit.limits.transfer_blocks_optimal.map(u64::from))),
        (
            "Compare and write",
            match unit.limits.compare_and_write_blocks_max {
                0 => "no".to_owned(),
                most => format!("up to {most} blocks"),
            },
        ),
        ("Sessions", report.sessions().to_string()),
        ("Connections", report.connections().to_string()),
    ];
    rows.extend(ceilings(report).map(|why| ("No more because", why.to_owned())));
    if let Some(parameters) = report.paths.first().and_then(|path| path.parameters.as_ref()) {
        rows.extend([
            ("MaxConnections", parameters.max_connections.to_string()),
            ("InitialR2T", yes(parameters.initial_r2t)),
            ("ImmediateData", yes(parameters.immediate_data)),
            ("FirstBurstLength", sizes::bytes(parameters.first_burst_bytes.into())),
            ("MaxBurstLength", sizes::bytes(parameters.max_burst_bytes.into())),
            ("MaxOutstandingR2T", parameters.max_outstanding_r2t.to_string()),
            ("ErrorRecoveryLevel", parameters.error_recovery_level.to_string()),
        ]);
    }
    output::print(&output::pairs(rows));
    outln!();
    output::print(&connections(report));
}

fn thin(unit: &Unit) -> &'static str {
    match (unit.provisioning.unmap || unit.provisioning.write_same_unmaps, unit.unmapped_reads_zero()) {
        (false, _) => "no",
        (true, true) => "yes; unmapped blocks read as zeroes",
        (true, false) => "yes; unmapped blocks read as anything",
    }
}

/// One line per connection.
pub(crate) fn connections(report: &Report) -> comfy_table::Table {
    let columns =
        ["SESSION", "CID", "CARRIES", "ADDRESS", "CONGESTION", "RTT", "DIGESTS", "SENT", "RECEIVED"];
    let mut table = output::table(&columns);
    for (path, connection) in all(report) {
        table.add_row([
            path.path.0.to_string(),
            connection.cid.0.to_string(),
            carried(connection).to_owned(),
            connection.peer.to_string(),
            connection.congestion.clone().unwrap_or_default(),
            connection.path.map(|path| format!("{:.1?}", path.rtt)).unwrap_or_default(),
            digests(connection).to_owned(),
            sizes::bytes(connection.counters.sent_bytes),
            sizes::bytes(connection.counters.received_bytes),
        ]);
    }
    output::align_right(&mut table, [0, 1, 5, 7, 8]);
    table
}

fn carried(connection: &ConnectionReport) -> &'static str {
    if connection.role == LaneRole::Whole { "everything" } else { connection.role.name() }
}

fn all(report: &Report) -> impl Iterator<Item = (&PathReport, &ConnectionReport)> {
    report.paths.iter().flat_map(|path| path.connections.iter().map(move |connection| (path, connection)))
}

fn digests(connection: &ConnectionReport) -> &'static str {
    match (connection.parameters.header_digest, connection.parameters.data_digest) {
        (false, false) => "none",
        (true, false) => "header",
        (false, true) => "data",
        (true, true) => "header+data",
    }
}

fn object(url: &Url, unit: &Unit, report: &Report) -> Value {
    json!({
        "url": url.to_string(),
        "id": identity(unit),
        "vendor": unit.inquiry.vendor,
        "product": unit.inquiry.product,
        "revision": unit.inquiry.revision,
        "bytes": unit.capacity_bytes(),
        "block_bytes": unit.block_bytes(),
        "write_protected": unit.mode.write_protected,
        "volatile_cache": unit.mode.write_cache,
        "unmap": unit.provisioning.unmap,
        "unmapped_reads_zero": unit.unmapped_reads_zero(),
        "transfer_blocks_max": unit.limits.transfer_blocks_max,
        "transfer_blocks_optimal": unit.limits.transfer_blocks_optimal,
        "write_same_blocks_max": unit.limits.write_same_blocks_max,
        "unmap_blocks_max": unit.limits.unmap_blocks_max,
        "compare_and_write_blocks_max": unit.limits.compare_and_write_blocks_max,
        "connections": report.connections(),
        "sessions": report.sessions(),
        "ceilings": ceilings(report).collect::<Vec<_>>(),
        "negotiated": report.paths.first().and_then(|path| path.parameters.as_ref()).map(|parameters| json!({
            "MaxConnections": parameters.max_connections,
            "InitialR2T": parameters.initial_r2t,
            "ImmediateData": parameters.immediate_data,
            "FirstBurstLength": parameters.first_burst_bytes,
            "MaxBurstLength": parameters.max_burst_bytes,
            "MaxOutstandingR2T": parameters.max_outstanding_r2t,
            "ErrorRecoveryLevel": parameters.error_recovery_level,
        })),
        "per_connection": connection_objects(report),
    })
}

/// One object per connection.
pub(crate) fn connection_objects(report: &Report) -> Vec<Value> {
    let object = |(path, connection): (&PathReport, &ConnectionReport)| {
        json!({
            "session": path.path.0,
            "cid": connection.cid.0,
            "role": connection.role.name(),
            "address": connection.peer.to_string(),
            "congestion": connection.congestion,
            "rtt_us": connection.path.map(|path| u64::try_from(path.rtt.as_micros()).unwrap_or(u64::MAX)),
            "retransmitted_segments": connection.path.map(|path| path.counters.repeated_segments),
            "header_digest": connection.parameters.header_digest,
            "data_digest": connection.parameters.data_digest,
            "sent_bytes": connection.counters.sent_bytes,
            "received_bytes": connection.counters.received_bytes,
        })
    };
    all(report).map(object).collect()
}
