//! `ropewalk attach` and `ropewalk detach`: a remote disk as one of this machine.

mod background;
mod detach;
mod list;
mod place;
mod served;
mod source;

pub(crate) use detach::run as detach;

use crate::exit::Failed;
use crate::output::{self, outln};
use crate::remote::{Connected, Connecting};
use crate::signals::Interrupts;
use place::Name;
use served::Served;
use source::Source;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ropewalk attach iscsi://storage.example.com/iqn.2026-11.com.example:disk/0
  mount /dev/ropewalk/NAME /mnt
  ropewalk attach --nbd /run/disk.sock iscsi://storage.example.com/iqn.2026-11.com.example:disk/0
  qemu-img info nbd+unix:///?socket=/run/disk.sock
  ropewalk attach --list
  ropewalk detach NAME

While the target cannot be reached, reads and writes wait, for as long as --patience says; then they fail, and
every later flush fails, until the disk is detached.")]
pub(crate) struct Arguments {
    /// The disk: iscsi://…, or one of this machine: `ram:SIZE` or `file:PATH`, with the options of `serve`
    #[arg(value_name = "DISK", required_unless_present = "list")]
    source: Option<Source>,

    /// Serve NBD at this unix socket, for QEMU, nbdcopy or nbd-client, instead of making a block device
    #[arg(long, value_name = "SOCKET")]
    nbd: Option<PathBuf>,

    /// Name of the disk on this machine [default: from the disk's identity]
    #[arg(long)]
    name: Option<Name>,

    /// Refuse writes
    #[arg(long)]
    read_only: bool,

    /// Stay in the foreground, and log to standard error; for systemd
    #[arg(long)]
    foreground: bool,

    /// This is the process in the background.
    #[arg(long, hide = true, requires = "foreground")]
    behind: bool,

    /// Show what is attached
    #[arg(long, conflicts_with_all = ["source", "nbd", "name", "foreground"])]
    list: bool,

    /// With --list: print one JSON object
    #[arg(long, requires = "list")]
    json: bool,

    #[command(flatten)]
    connecting: Connecting,
}

#[derive(clap::Args)]
#[command(after_help = "Example: ropewalk detach /dev/ropewalk/NAME")]
pub(crate) struct DetachArguments {
    /// Name, device or socket of the disk
    #[arg(value_name = "DEVICE")]
    called: String,

    /// Detach it even if programs use it: they get errors
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failed> {
    let Some(source) = &arguments.source else {
        output::log_warnings();
        return list::run(arguments.json);
    };
    if !arguments.foreground {
        return background::start();
    }
    output::log_as_server();
    let mut interrupts = Interrupts::listen()?;
    let connected = Connected::default();
    let outcome = serve(&arguments, source, &connected, &mut interrupts).await;
    connected.log_out().await;
    outcome
}

/// Attaches the disk, says so, and serves it until it is detached.
async fn serve(
    arguments: &Arguments,
    source: &Source,
    connected: &Connected,
    interrupts: &mut Interrupts,
) -> Result<(), Failed> {
    let disk = tokio::select! {
        disk = source.open(&arguments.connecting, arguments.read_only, connected) => disk?,
        _ = interrupts.next() => return Err(Failed::interrupted()),
    };
    let name = arguments.name.clone().unwrap_or_else(|| disk.name.clone());
    background::keep_in_memory();
    let served = Served::begin(disk, source, &name, arguments.nbd.as_deref()).await?;
    outln!("{}", served.path().display());
    background::ready();
    if arguments.behind {
        background::leave_terminal(&served.log())?;
    }
    served.until_detached(interrupts).await
}
