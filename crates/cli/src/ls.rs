//! `ropewalk ls`: discovery.

use crate::exit::Failed;
use crate::output::{self, outln};
use crate::remote::Identity;
use anyhow::Context;
use initiator::{Portal, TargetRecord, Url};
use serde_json::json;

#[derive(clap::Args)]
#[command(after_help = "Example: ropewalk ls storage.example.com")]
pub(crate) struct Arguments {
    /// The portal to ask: HOST, HOST:PORT, [IPV6]:PORT
    #[arg(value_name = "PORTAL", value_parser = portal)]
    portal: Portal,

    #[command(flatten)]
    identity: Identity,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Also accepts the portal as a URL, as other tools write it.
fn portal(text: &str) -> Result<Portal, initiator::InvalidUrl> {
    Url::without_scheme(text).unwrap_or(text).trim_end_matches('/').parse()
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failed> {
    let portal = &arguments.portal;
    let config = arguments.identity.config(None)?;
    let targets = initiator::discover(portal, &config).await;
    let targets = targets.with_context(|| format!("cannot list the targets at {portal}"))?;
    if arguments.json {
        let object = |target: &TargetRecord| json!({ "name": target.target_name, "addresses": target.target_addresses });
        let targets: Vec<_> = targets.iter().map(object).collect();
        output::json(&json!({ "portal": portal.to_string(), "targets": targets }));
    } else if targets.is_empty() {
        outln!("{portal} shows no target to this initiator ({})", config.initiator_name);
    } else {
        let mut table = output::table(&["TARGET", "ADDRESSES"]);
        for target in &targets {
            table.add_row([&target.target_name, &target.target_addresses.join(" ")]);
        }
        output::print(&table);
    }
    Ok(())
}
