//! `ropewalk cc`.

use crate::exit::Failed;
use crate::output::{self, outln};
use clap::Subcommand;
use congestion::{Control, Group, GroupTerms, InvalidTerms, Lack, Offered};
use serde_json::{Value, json};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo ropewalk cc load
  ropewalk copy --congestion rw_fair:single disk.img iscsi://storage.example.com/iqn.2026-11.com.example:disk/0
  ropewalk cc status
  sudo ropewalk cc set 3f2a90c4d1e07b65 weight=2,cubic")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show which congestion controls the kernel has, and which can be added
    List(Form),
    /// Add congestion controls to the kernel, for all users, until they are unloaded or the machine restarts
    ///
    /// Needs root's rights, and Linux 6.4 or later.
    Load(Names),
    /// Unload congestion controls. Open connections keep theirs
    Unload(Names),
    /// Show the groups of connections that share one congestion state
    Status(Form),
    /// Set how a group behaves, whatever the owners of its connections asked for
    ///
    /// Needs root's rights. Terms that are not named become the usual ones. The group follows when one of its connections
    /// sends next, and obeys until it has no connections or is told otherwise. Groups of one number over several local
    /// addresses all follow.
    Set(Order),
}

#[derive(clap::Args)]
struct Form {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Order {
    /// The group's number, as "ropewalk cc status" shows it
    #[arg(value_parser = group)]
    group: u64,
    /// fair, weight=M, single or conservative; reno or cubic; equal; under rw_fast only alpha=SEGMENTS
    #[arg(value_name = "TERM,...", value_parser = terms)]
    terms: GroupTerms,
}

fn group(number: &str) -> Result<u64, &'static str> {
    u64::from_str_radix(number, 16)
        .map_err(|_| "the number of a group is hexadecimal, as \"ropewalk cc status\" shows it")
}

/// Those that a group can change while it has connections.
fn terms(text: &str) -> Result<GroupTerms, String> {
    let terms: GroupTerms = text.parse().map_err(|error: InvalidTerms| error.to_string())?;
    if terms.is_of_host {
        return Err("which connections a group has cannot be changed".to_owned());
    }
    Ok(terms)
}

#[derive(clap::Args)]
struct Names {
    /// Controls to load or unload; without a name, all of them
    #[arg(value_name = "NAME", value_parser = control)]
    names: Vec<Control>,
}

fn control(name: &str) -> Result<Control, String> {
    let names = Control::ALL.map(Control::name).join(", ");
    Control::named(name).ok_or_else(|| format!("it can be one of {names}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failed> {
    match &arguments.command {
        Command::List(form) => list(form.json)?,
        Command::Load(names) => load(&names.names)?,
        Command::Unload(names) => unload(&names.names)?,
        Command::Status(form) => status(form.json)?,
        Command::Set(order) => set(order)?,
    }
    Ok(())
}

fn load(names: &[Control]) -> Result<(), congestion::Error> {
    let loaded = congestion::loaded()?;
    let missing = |control: &Control| !loaded.contains(control);
    let wanted: Vec<_> = match names {
        // Those that are there need not be loaded.
        [] => Control::ALL.into_iter().filter(missing).collect(),
        names => names.to_vec(),
    };
    wanted.into_iter().try_for_each(congestion::load)?;
    if !congestion::is_open_to_all() {
        tracing::warn!(
            "only root's connections can have groups, because /sys/fs/bpf is closed to others: \"chmod 711 /sys/fs/bpf\" opens it"
        );
    }
    Ok(())
}

fn set(order: &Order) -> Result<(), Failed> {
    if congestion::order(order.group, order.terms)? > 0 {
        return Ok(());
    }
    Err(anyhow::anyhow!(
        "no group {:016x} has connections: \"ropewalk cc status\" shows those that have",
        order.group
    )
    .into())
}

fn unload(names: &[Control]) -> Result<(), congestion::Error> {
    let wanted = match names {
        [] => congestion::loaded()?,
        names => names.to_vec(),
    };
    wanted.into_iter().try_for_each(congestion::unload)
}

/// A congestion control that the kernel has, or can have.
struct Listed {
    name: String,
    is_available: bool,
    is_default: bool,
    description: &'static str,
}

/// The kernel's own first, then ours.
fn listed(offered: &Offered) -> impl Iterator<Item = Listed> {
    let foreign = offered.available.iter().filter(|name| Control::named(name).is_none());
    let foreign = foreign.map(|name| (name.clone(), "the kernel's own"));
    let ours = Control::ALL.into_iter().map(|control| (control.name().to_owned(), control.description()));
    foreign.chain(ours).map(|(name, description)| Listed {
        is_available: offered.is_available(&name),
        is_default: name == offered.default,
        name,
        description,
    })
}

/// What it takes to load ours; `None` if they can be loaded.
fn missing() -> Option<&'static str> {
    match congestion::lack() {
        _ if !congestion::CAN_LOAD => Some("a build with BPF"),
        Some(Lack::Links(_)) => Some("Linux 6.4 or later"),
        Some(Lack::Types) => Some("a kernel with BTF"),
        None => None,
    }
}

fn list(is_json: bool) -> Result<(), congestion::Error> {
    let offered = Offered::here();
    if is_json {
        let controls: Vec<_> = listed(&offered)
            .map(|listed| {
                json!({
                    "name": listed.name,
                    "available": listed.is_available,
                    "default": listed.is_default,
                    "description": listed.description,
                })
            })
            .collect();
        output::json(&json!({ "congestion_controls": controls, "loading_needs": missing() }));
        return Ok(());
    }
    let others = missing().map_or("can be loaded".to_owned(), |missing| format!("needs {missing}"));
    let mut table = output::table(&["NAME", "STATE", "WHAT IT IS"]);
    table.add_rows(listed(&offered).map(|listed| {
        let state = match (listed.is_available, listed.is_default) {
            (true, true) => "default",
            (true, false) => "available",
            (false, _) => &others,
        };
        [listed.name, state.to_owned(), listed.description.to_owned()]
    }));
    output::print(&table);
    Ok(())
}

fn status(is_json: bool) -> Result<(), congestion::Error> {
    let (loaded, groups) = (congestion::loaded()?, congestion::groups()?);
    if is_json {
        let loaded: Vec<_> = loaded.into_iter().map(Control::name).collect();
        let groups: Vec<_> = groups.iter().map(object).collect();
        output::json(&json!({ "loaded": loaded, "groups": groups }));
        return Ok(());
    }
    if loaded.is_empty() {
        outln!("No congestion control of ropewalk is loaded.");
        return Ok(());
    }
    outln!("Loaded: {}.", loaded.into_iter().map(Control::name).collect::<Vec<_>>().join(", "));
    if groups.is_empty() {
        outln!("There are no groups.");
        return Ok(());
    }
    let columns = [
        "GROUP",
        "CONTROL",
        "USER",
        "FROM",
        "TO",
        "CONNECTIONS",
        "WINDOW",
        "EACH",
        "RTT",
        "LOSSES",
        "TIMEOUTS",
    ];
    let mut table = output::table(&columns);
    table.add_rows(groups.iter().map(row));
    output::align_right(&mut table, [2, 6, 7, 8, 9, 10]);
    output::print(&table);
    outln!("Windows are in segments. EACH is that of a connection that sends and repairs no losses.");
    Ok(())
}

fn row(group: &Group) -> [String; 11] {
    let key = &group.key;
    let connections = match group.members - group.active_members {
        0 => group.members.to_string(),
        idle => format!("{}, {idle} idle", group.members),
    };
    [
        format!("{:016x}", key.group),
        format!("{}:{}", key.control.name(), group.terms),
        key.user.to_string(),
        key.local_address.to_string(),
        group.peer.to_string(),
        connections,
        segments(group.window_segments),
        segments(group.share_segments),
        format!("{:.1} ms", milliseconds(group.srtt_us)),
        group.losses.to_string(),
        group.timeouts.to_string(),
    ]
}

/// Connections under FAST have no window in common.
fn segments(segments: Option<f64>) -> String {
    segments.map_or_else(|| "–".to_owned(), |segments| format!("{segments:.1}"))
}

#[expect(clippy::cast_precision_loss, reason = "no round trip takes so long")]
fn milliseconds(us: u64) -> f64 {
    us as f64 / 1e3
}

fn object(group: &Group) -> Value {
    let key = &group.key;
    json!({
        "group": format!("{:016x}", key.group),
        "congestion_control": key.control.name(),
        "terms": group.terms.to_string(),
        "user": key.user,
        "network_namespace": key.namespace_inode,
        "local_address": key.local_address,
        "peer": group.peer,
        "connections": group.members,
        "active_connections": group.active_members,
        "repairing_connections": group.repairing_members,
        "window_segments": group.window_segments,
        "ssthresh_segments": group.ssthresh_segments,
        "share_segments": group.share_segments,
        "srtt_us": group.srtt_us,
        "min_rtt_us": group.min_rtt_us,
        "losses": group.losses,
        "timeouts": group.timeouts,
        "undone": group.undone,
        "raised_shares": group.raised_shares,
        "split_connections": group.split_members,
    })
}
