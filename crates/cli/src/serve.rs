//! `ropewalk serve`.

use crate::exit::{Failed, Status};
use crate::folders;
use crate::output::{self, outln};
use crate::signals::Interrupts;
use crate::sizes;
use anyhow::Context;
use clap::ValueEnum;
use framing::{Congestion, Threads};
use initiator::Algorithms;
use serde_json::json;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use target::{
    Chap, ChapAlgorithms, Config, Credential, IscsiName, LunConfig, NumberedLunSpec, Server, TargetConfig,
};

#[derive(clap::Args)]
#[command(after_help = "\
A LUN is N=ram:SIZE or N=file:PATH (a regular file or block device), followed by options:
  size=SIZE               create the file, or extend it
  bs=512|4096, pbs=SIZE   bytes of a logical and of a physical block
  ro, removable, thin     refuse writes; allow ejecting the medium; allow UNMAP (always in memory)
  threshold=PERCENT       warn initiators when PERCENT of a thin LUN is allocated
  write-same-to-end       let a WRITE SAME of zero blocks run to the end of the LUN
  direct                  bypass the page cache
  id=NAME                 derive the identity from NAME, instead of target, number and path
  volatile, rate=SIZE, latency=MILLISECONDS
                          for experiments: lose unflushed writes when the server is killed; limit
                          bytes per second; add latency

Examples:
  ropewalk serve --target iqn.2026-11.com.example:disk --lun 0=file:/srv/disk.img,size=16GiB,thin
  ropewalk serve --listen 0.0.0.0:3260 --target iqn.2026-11.com.example:disk --lun 0=ram:1GiB \\
      --initiator-mask 192.0.2.0/24
  ropewalk serve --config /etc/ropewalk.toml

A configuration file:
  listen = [\"192.0.2.1:3260\"]

  [[target]]
  name = \"iqn.2026-11.com.example:disk\"
  chap.initiator = { user = \"backup\", secret_file = \"/etc/ropewalk.secret\" }
  addresses = [\"192.0.2.0/24\"]
  lun = [{ number = 0, backend = \"file:/srv/disk.img,size=16GiB,thin\" }]

More for a configuration file:
  chap_algorithms = [\"sha3-256\", \"sha256\"]       allowed algorithms; by default also sha1 and md5
  [discovery.chap] initiator, target             CHAP for the list of targets
  [[portal_group]] tag, portals                  portal groups, instead of listen
  [[target]] portal_groups = [1, 2]              the groups that serve the target; by default all
  [[target]] redirect = \"HOST:PORT,permanent\"    send initiators there; `temporary` by default;
                                                 also under [discovery]
  [[target]] chap.target = { user, secret_file } the target's own secret, for mutual CHAP
  [[target]] chap.initiator = [{ … }, { … }]     several users; users = [\"NAME\"] restricts a LUN
  [limits], [negotiation]                        bounds for initiators; login parameters
A secret comes from secret_file, secret_env or secret. A file with a secret, including the
configuration, must be accessible only to its owner: root, or the user who runs the server.")]
pub(crate) struct Arguments {
    /// TOML file of targets and limits; --listen, --shards, --congestion, --state-directory and --allow-insecure
    /// override it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["target", "luns"])]
    config: Option<PathBuf>,

    /// Address to accept connections on; repeatable; with port 0 the system chooses one [default: 127.0.0.1:3260]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Vec<SocketAddr>,

    /// iSCSI name of the target
    #[arg(long, value_name = "IQN", requires = "luns")]
    target: Option<IscsiName>,

    /// A logical unit of the target, in the form below; repeatable
    #[arg(long = "lun", value_name = "N=KIND:SPEC[,OPTION]...", requires = "target")]
    luns: Vec<NumberedLunSpec>,

    /// Initiators that may use the target: a network, an address, a name, or the start of a name and *; repeatable
    #[arg(long = "initiator-mask", value_name = "CIDR|NAME", requires = "target")]
    initiator_masks: Vec<String>,

    /// CHAP user that initiators must authenticate as
    #[arg(long, value_name = "USER", requires = "target", requires = "chap_secret")]
    chap_user: Option<String>,

    /// File with the CHAP user's secret; only its owner may have access to it
    #[arg(long, value_name = "FILE", group = "chap_secret", requires = "chap_user")]
    chap_secret_file: Option<PathBuf>,

    /// Environment variable that holds the CHAP user's secret
    #[arg(long, value_name = "NAME", group = "chap_secret", requires = "chap_user")]
    chap_secret_env: Option<String>,

    /// CHAP algorithms that initiators may use [default: sha3-256,sha256,sha1,md5]
    #[arg(long, value_name = "LIST", requires = "target")]
    chap_algorithms: Option<Algorithms>,

    /// Listen beyond loopback even if a target is open to everyone who can reach it
    #[arg(long)]
    allow_insecure: bool,

    /// Congestion control of the connections, one of `ropewalk cc list`, with terms as for `copy` [default: the system's]
    #[arg(long, value_name = "NAME[:TERM,...]", value_parser = congestion::parse)]
    congestion: Option<Congestion>,

    /// Threads that move the bytes of connections: `shared`, one for each shard; `per-lane`, two for each connection, one
    /// for each direction [default: shared]
    #[arg(long, value_name = "shared|per-lane")]
    threads: Option<Threads>,

    /// Folder for the persistent reservations that must survive a restart; if empty, none survive [default: the first
    /// of `$STATE_DIRECTORY`, `$XDG_STATE_HOME/ropewalk`, ~/.local/state/ropewalk and /var/lib/ropewalk]
    #[arg(long, value_name = "DIRECTORY")]
    state_directory: Option<std::ffi::OsString>,

    /// Event loops, each on its own thread; each target belongs to one of them [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    shards: Option<u16>,

    /// Format of the log on standard error
    #[arg(long, value_name = "FORM", default_value = "human")]
    log: LogForm,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogForm {
    /// Text for people
    Human,
    /// One JSON object per line
    Json,
}

/// The time that initiators have to log out.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) async fn run(arguments: Arguments) -> Result<(), Failed> {
    log(arguments.log);
    let log_form = arguments.log;
    let mut interrupts = Interrupts::listen()?;
    let config = config(arguments)?;
    let targets = config.targets.clone();
    let server = Server::start(config).await.context("cannot serve")?;
    announce(&server, &targets, log_form);
    interrupts.next().await;
    tracing::info!("stopping: initiators have {} seconds to log out", GRACE.as_secs());
    let report = tokio::select! {
        report = server.shutdown(GRACE) => report,
        _ = interrupts.again() => {
            return Err(anyhow::anyhow!("interrupted twice: stopped at once, and did not flush").into());
        }
    };
    if report.sessions_cut > 0 {
        tracing::warn!("{} sessions did not log out in time and were cut off", report.sessions_cut);
    }
    if report.unflushed.is_empty() {
        return Ok(());
    }
    let lost = report.unflushed.join(", ");
    Err(anyhow::anyhow!("cannot flush {lost}: unflushed writes may be lost; see the log above").into())
}

fn log(form: LogForm) {
    match form {
        LogForm::Human => output::log_as_server(),
        LogForm::Json => output::server_log().json().flatten_event(true).init(),
    }
}

fn config(arguments: Arguments) -> Result<Config, Failed> {
    if arguments.config.is_none() && arguments.target.is_none() {
        let text = "nothing to serve: describe one target with --target and --lun, or several in a file with --config";
        return Err(Failed::usage(text));
    }
    let mut config = match &arguments.config {
        Some(path) => {
            let (text, verdict) = secret::read_and_check(path).context("the configuration")?;
            let config = parse(path, &text).map_err(usage)?;
            if config.has_inline_secrets() {
                verdict.context("the configuration holds secrets").map_err(usage)?;
            }
            config
        }
        None => Config::default(),
    };
    if !arguments.listen.is_empty() {
        config.listen = arguments.listen;
    }
    config.allow_insecure |= arguments.allow_insecure;
    config.socket.congestion = arguments.congestion.or(config.socket.congestion);
    config.socket.threads = arguments.threads.unwrap_or(config.socket.threads);
    config.shards = arguments.shards.map_or(config.shards, usize::from);
    config.chap_algorithms = arguments.chap_algorithms.map_or(config.chap_algorithms, ChapAlgorithms);
    let asked = arguments.state_directory.map(PathBuf::from);
    config.state_directory = asked.or(config.state_directory).or_else(usable_default);
    if let Some(name) = arguments.target {
        let mut target = TargetConfig::new(name);
        target.luns = arguments.luns.into_iter().map(lun).collect();
        target.chap = arguments.chap_user.map(|user| Chap {
            initiators: vec![Credential {
                user,
                secret_file: arguments.chap_secret_file,
                secret_env: arguments.chap_secret_env,
                secret: None,
            }],
            target: None,
        });
        for mask in arguments.initiator_masks {
            add_mask(&mut target, mask);
        }
        config.targets.push(target);
    }
    config.validate().map_err(|error| usage(error.into()))?;
    Ok(config)
}

fn usage(error: anyhow::Error) -> Failed {
    Failed { status: Status::Usage, error, consequence: None }
}

/// Parses a configuration. An error names the line without quoting it, because the line may hold a secret.
fn parse(path: &Path, text: &[u8]) -> anyhow::Result<Config> {
    let name = path.display();
    let text = std::str::from_utf8(text).with_context(|| format!("{name} is not text"))?;
    toml::from_str(text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        anyhow::anyhow!("{name}, line {line}: {}", error.message())
    })
}

/// The default state directory, if it exists or can be made. Without one, reservations end with the server.
fn usable_default() -> Option<PathBuf> {
    const SYSTEM: &str = "/var/lib/ropewalk";
    // systemd lists several directories, separated by colons; the first one is ours.
    let first = |value: std::ffi::OsString| std::env::split_paths(&value).next();
    let directory = std::env::var_os("STATE_DIRECTORY").and_then(first);
    let directory = directory.or_else(|| Some(folders::user_state()?.join("ropewalk")));
    let directory = directory.unwrap_or_else(|| SYSTEM.into());
    match std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory) {
        Ok(()) => Some(directory),
        Err(error) => {
            let directory = directory.display();
            tracing::warn!(%directory, %error, "no state directory: no reservation survives the end of this server");
            None
        }
    }
}

fn lun(numbered: NumberedLunSpec) -> LunConfig {
    LunConfig { number: numbered.number, backend: numbered.spec, mask: target::Mask::default() }
}

/// Parses a network or an address; everything else is a name.
fn add_mask(target: &mut TargetConfig, mask: String) {
    let address = || mask.parse().ok().map(|address: std::net::IpAddr| address.into());
    match mask.parse().ok().or_else(address) {
        Some(network) => target.mask.addresses.push(network),
        None => target.mask.initiators.push(mask),
    }
}

/// The line that announces, when the server accepts connections, its addresses and targets.
fn announce(server: &Server, targets: &[TargetConfig], form: LogForm) {
    let addresses: Vec<_> = server.local_addrs().iter().map(ToString::to_string).collect();
    let luns: usize = targets.iter().map(|target| target.luns.len()).sum();
    if form == LogForm::Json {
        let names: Vec<_> = targets.iter().map(|target| target.name.as_str()).collect();
        output::json(
            &json!({ "message_type": "ready", "listen": addresses, "targets": names, "luns": luns }),
        );
        return;
    }
    outln!("Ready at {}: {}", addresses.join(", "), described(targets, luns));
}

fn described(targets: &[TargetConfig], luns: usize) -> String {
    let luns = sizes::count(luns, "LUN");
    match targets {
        [one] => format!("{} with {luns}", one.name),
        many => format!("{} with {luns}", sizes::count(many.len(), "target")),
    }
}
