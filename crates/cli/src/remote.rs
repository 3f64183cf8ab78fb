//! Connecting to remote disks: the options that several commands share.

use crate::kept::Kept;
use crate::{output, sizes};
use anyhow::Context;
use clap::Args;
use congestion::InvalidChoice;
use framing::{Congestion, Threads};
use initiator::{
    Algorithms, Config, Connections, Credentials, Experience, Lun, Policies, Pool, Portal, Report,
    SplitLanes, Target, Tuning, Url,
};
use lab::DecisionRecord;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use target::IscsiName;

/// How to connect.
#[derive(Args, Clone, Debug)]
pub(crate) struct Connecting {
    /// TCP connections for each remote disk, over all its sessions: `auto`, as many as are worth it, or a number from 1
    /// to 4096
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = connections)]
    connections: Connections,

    /// On a full path, `--connections auto` keeps at most K connections, so that it takes no more of it than K flows would.
    /// Below 8, it also begins with K
    #[arg(long, value_name = "K", default_value_t = Tuning::default().as_flows, value_parser = clap::value_parser!(u32).range(1..))]
    as_flows: u32,

    /// Ignore what `--connections auto` has found over the same path in earlier runs, and keep nothing of what it finds now
    #[arg(long)]
    cold: bool,

    /// Tell at the end what `--connections auto` decided, when, and why
    #[arg(long)]
    pub(crate) explain: bool,

    /// iSCSI sessions to spread the connections over; 1 forbids more [default: one for each portal group, and more if
    /// the target allows too few connections in each, or ends a session with one of them (up to eight, with
    /// `--connections auto`)]
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..))]
    sessions: Option<u16>,

    /// What each connection carries: `whole`, everything. With `split`, each is two TCP connections in a session of its
    /// own, one for requests and one for responses; with `split3` three, the third for the data of reads. Only targets of
    /// ropewalk do it: with others, connections are whole. Sessions that ask for it have error recovery level 0
    #[arg(long, value_name = "whole|split|split3", default_value_t)]
    lanes: SplitLanes,

    /// Threads that move the bytes of connections: `shared`, one for all; `per-lane`, two for each connection, one for each
    /// direction
    #[arg(long, value_name = "shared|per-lane", default_value_t)]
    threads: Threads,

    /// Address to connect to instead of the URL's host; repeat it to spread the connections over several addresses of
    /// the target. Addresses of one portal group share a session. In a copy between two remote disks, it is the
    /// destination's
    #[arg(long = "portal", value_name = "ADDR:PORT")]
    portals: Vec<Portal>,

    /// How long to wait for a lost target: 30s, 5m, 1h [default: 2m]
    #[arg(long, visible_alias = "path-timeout", value_name = "TIME", value_parser = sizes::duration)]
    patience: Option<Duration>,

    #[command(flatten)]
    pub(crate) identity: Identity,
}

/// Who connects, and by which sockets.
#[derive(Args, Clone, Debug)]
pub(crate) struct Identity {
    /// Congestion control of what this end sends, one of `ropewalk cc list`; `auto` is the system's. With `--connections
    /// auto`, `auto` begins with CUBIC where the system's is BBR, and may move to two connections of BBR; `bbr` opens at
    /// most two. Under rw_fair and rw_fast the connections of a session form a group, whose terms may follow: fair, single, conservative,
    /// weight=M; reno, cubic; equal; host; alpha=SEGMENTS
    #[arg(long, value_name = "auto|NAME[:TERM,...]", default_value = "auto", value_parser = congestion)]
    congestion: CongestionChoice,

    /// iSCSI name of this machine [default: made from its host name]
    #[arg(long, value_name = "IQN")]
    initiator_name: Option<IscsiName>,

    /// CHAP algorithms to offer, the preferred first [default: sha3-256,sha256,sha1,md5]
    #[arg(long, value_name = "LIST")]
    chap_algorithms: Option<Algorithms>,

    /// CHAP names and secrets: lines `username = …`, `password = …`, and for mutual CHAP `target_username = …`,
    /// `target_password = …`; only its owner may have access to it
    #[arg(long, value_name = "FILE")]
    chap_file: Option<PathBuf>,
}

/// `None`: the system's.
#[derive(Clone, Debug)]
struct CongestionChoice(Option<Congestion>);

fn congestion(text: &str) -> Result<CongestionChoice, InvalidChoice> {
    if text == "auto" {
        return Ok(CongestionChoice(None));
    }
    congestion::parse(text).map(Some).map(CongestionChoice)
}

/// As many sessions of as many connections as the initiator can have.
const CONNECTIONS_MAX: u16 = 4096;

fn connections(text: &str) -> Result<Connections, String> {
    if text == "auto" {
        return Ok(Connections::Auto);
    }
    let number = text.parse().ok().filter(|number| (1..=CONNECTIONS_MAX).contains(number));
    number
        .map(Connections::Fixed)
        .ok_or_else(|| format!("a number from 1 to {CONNECTIONS_MAX} is needed, or auto"))
}

/// Whether the text names a remote disk, rather than a file.
pub(crate) fn is_url(text: &str) -> bool {
    Url::without_scheme(text).is_some()
}

/// Which portals a URL gets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Portals {
    /// Those of `--portal`.
    Given,
    /// Only its own.
    OfUrl,
}

impl Identity {
    pub(crate) fn config(&self, user: Option<&str>) -> anyhow::Result<Config> {
        let credentials = match &self.chap_file {
            Some(path) => Some(initiator::credentials_from_file(path, user)?),
            None => initiator::credentials_from_environment(user)?,
        };
        let offering = |credentials: Credentials| match &self.chap_algorithms {
            Some(algorithms) => credentials.offering(algorithms.clone()),
            None => credentials,
        };
        let credentials = credentials.map(offering);
        let mut config = Config { credentials, ..Config::default() };
        config.socket.congestion = self.congestion.0.clone();
        if let Some(name) = &self.initiator_name {
            config.initiator_name = name.to_string();
        }
        Ok(config)
    }
}

impl Connecting {
    /// Logs in and opens the URL's disk. The session is among `connected` even if there is no such disk.
    pub(crate) async fn open(
        &self,
        url: &Url,
        portals: Portals,
        connected: &Connected,
    ) -> anyhow::Result<Remote> {
        let remote = self.begin(url, portals, connected).await?;
        remote.target.complete().await;
        Ok(remote)
    }

    /// As [`Self::open`], but the connections after the first log in meanwhile.
    pub(crate) async fn begin(
        &self,
        url: &Url,
        portals: Portals,
        connected: &Connected,
    ) -> anyhow::Result<Remote> {
        let mut config = self.identity.config(url.user.as_deref())?;
        config.connections = self.connections;
        config.tuning.as_flows = self.as_flows;
        let path = self.path(url, portals, config.socket.congestion.as_ref());
        if let Some(path) = &path {
            config.tuning.experience = path.known;
        }
        config.sessions = self.sessions;
        config.offer.split = self.lanes;
        config.socket.threads = self.threads;
        if let Some(patience) = self.patience {
            config.reconnect.give_up_after = patience;
        }
        if portals == Portals::Given {
            config.portals.clone_from(&self.portals);
        }
        let target = initiator::begin(url, config, Policies::of_pool(connected.pool.clone())).await;
        let target = target.with_context(|| format!("cannot open {url}"))?;
        connected.add(&target, path);
        self.warn_if_whole(url, &target);
        let lun = target.lun(url.lun).await.with_context(|| format!("cannot open {url}"))?;
        Ok(Remote { url: url.clone(), target, lun })
    }

    /// Tells if the target does not split sessions as asked.
    fn warn_if_whole(&self, url: &Url, target: &Target) {
        let report = target.report();
        let agreed = report.paths.first().and_then(|path| path.parameters).map(|parameters| parameters.split);
        if let Some(agreed) = agreed.filter(|agreed| *agreed != self.lanes) {
            tracing::warn!(portal = %url.portal, "the target does not have {} connections: using {agreed} ones", self.lanes);
        }
    }

    /// The path of which something is kept.
    fn path(&self, url: &Url, portals: Portals, congestion: Option<&Congestion>) -> Option<KnownPath> {
        if self.cold || self.connections != Connections::Auto {
            return None;
        }
        let given = self.portals.iter().map(Portal::to_string).collect::<Vec<_>>();
        let portals = match portals {
            Portals::Given if !given.is_empty() => given.join(","),
            _ => url.portal.to_string(),
        };
        // What is best under one congestion control is not under another.
        let portals = match url.congestion.as_ref().or(congestion) {
            Some(congestion) => format!("{portals} under {congestion}"),
            None => portals,
        };
        // Nor is what many flows have found to be the beginning of fewer.
        let portals = match self.as_flows == Tuning::default().as_flows {
            true => portals,
            false => format!("{portals} as {} flows", self.as_flows),
        };
        let kept = Kept::of_user()?;
        Some(KnownPath { known: kept.recall(&portals), kept, portals })
    }
}

/// A path of which something is kept from one run to the next.
#[derive(Debug)]
struct KnownPath {
    kept: Kept,
    portals: String,
    /// What was known of it when this run began.
    known: Experience,
}

impl KnownPath {
    fn keep(&self, found: Experience) {
        if let Err(error) = self.kept.keep(&self.portals, self.known, found) {
            tracing::info!(portals = self.portals, %error, "what was found over this path is not kept");
        }
    }
}

/// A remote disk that is open.
pub(crate) struct Remote {
    pub(crate) url: Url,
    pub(crate) target: Target,
    pub(crate) lun: Lun,
}

/// How long goodbyes may take.
pub(crate) const GOODBYE: Duration = Duration::from_secs(5);

/// The targets that a command has connected to. However it ends, it logs out: a target may keep a session that was not
/// logged out, and all that it holds, for a minute.
#[derive(Debug, Default)]
pub(crate) struct Connected {
    targets: Mutex<Vec<(Target, Option<KnownPath>)>>,
    /// Their connections are tuned together.
    pool: Pool,
}

impl Connected {
    fn add(&self, target: &Target, path: Option<KnownPath>) {
        self.lock().push((target.clone(), path));
    }

    /// Logs out, without waiting for the last answer, and keeps what was found over the paths. All data is durable by now; a
    /// lost logout changes nothing.
    pub(crate) async fn log_out(self) {
        let targets = std::mem::take(&mut *self.lock());
        let (targets, paths): (Vec<_>, Vec<_>) = targets.into_iter().unzip();
        let found: Vec<_> = targets.iter().map(|target| target.report().experience).collect();
        let goodbyes = futures_util::future::join_all(targets.into_iter().map(Target::leave));
        let _ = tokio::time::timeout(GOODBYE, goodbyes).await;
        for (path, found) in paths.into_iter().zip(found) {
            path.into_iter().for_each(|path| path.keep(found));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Target, Option<KnownPath>)>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What several remote disks together use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Usage {
    pub(crate) connections: usize,
    pub(crate) working_connections: usize,
    pub(crate) sessions: usize,
    pub(crate) retries: u64,
    pub(crate) recovered_connections: u64,
    pub(crate) reassigned_tasks: u64,
    pub(crate) retransmitted_pdus: u64,
    pub(crate) reinstated_sessions: u64,
    /// In force at this end, on connections that work.
    pub(crate) congestion_controls: BTreeSet<String>,
}

impl Usage {
    pub(crate) fn of<'a>(remotes: impl IntoIterator<Item = &'a Target>) -> Self {
        remotes.into_iter().map(Target::report).fold(Self::default(), |usage, report| usage.and(&report))
    }

    /// These, and what another remote disk uses.
    pub(crate) fn and(self, report: &Report) -> Self {
        let controls = report.working().filter_map(|connection| connection.congestion.clone());
        Self {
            connections: self.connections + report.connections(),
            working_connections: self.working_connections + report.working_connections(),
            sessions: self.sessions + report.sessions(),
            retries: self.retries + report.retries,
            recovered_connections: self.recovered_connections + report.recovered_connections,
            reassigned_tasks: self.reassigned_tasks + report.reassigned_tasks,
            retransmitted_pdus: self.retransmitted_pdus + report.retransmitted_pdus,
            reinstated_sessions: self.reinstated_sessions + report.reinstatements,
            congestion_controls: self.congestion_controls.into_iter().chain(controls).collect(),
        }
    }

    /// Under their stable names, into a JSON object.
    pub(crate) fn describe(&self, object: &mut Map<String, Value>) {
        if let Value::Object(own) = json!(self) {
            object.extend(own);
        }
    }

    /// Connections and sessions, for people.
    pub(crate) fn describe_connections(&self) -> String {
        let connections = sizes::count(self.connections, "connection");
        let sessions = sizes::count(self.sessions, "session");
        let spare = match self.connections - self.working_connections {
            0 => String::new(),
            spare => format!(", of which {spare} are spare"),
        };
        let controls: Vec<_> = self.congestion_controls.iter().map(String::as_str).collect();
        let controls = match controls.as_slice() {
            [] => String::new(),
            controls => format!(" ({} at this end)", controls.join(" and ")),
        };
        format!("{connections} in {sessions}{spare}{controls}")
    }

    /// What went wrong and was repaired, as the end of a sentence.
    pub(crate) fn repairs(&self) -> String {
        let repairs = [
            (self.recovered_connections, "connections recovered"),
            (self.reinstated_sessions, "sessions reinstated"),
            (self.reassigned_tasks, "commands moved to another connection"),
            (self.retransmitted_pdus, "PDUs sent again"),
            (self.retries, "commands sent again"),
        ];
        let repairs = repairs.into_iter().filter(|(number, _)| *number > 0);
        repairs.map(|(number, what)| format!(", {number} {what}")).collect()
    }
}

/// What kept the sessions from moving more, for people.
pub(crate) fn limit(report: &Report) -> Option<String> {
    report.diagnosis.map(|diagnosis| format!("Limited by {diagnosis}."))
}

/// The same for programs; null if too little was moved to tell.
pub(crate) fn limit_object(report: &Report) -> Value {
    json!(report.diagnosis.map(lab::DiagnosisRecord::from))
}

/// What was decided over the number of connections, for people who want to know.
pub(crate) fn explanation(report: &Report) -> String {
    if report.decisions.is_empty() {
        return "No other number of connections was tried.".to_owned();
    }
    let mut table = output::table(&["AT", "CONNECTIONS", "MBIT/S", "WHY"]);
    table.add_rows(DecisionRecord::all_of(report).map(|decision| {
        let law = if decision.bbr { " with BBR" } else { "" };
        let connections = format!("{} → {}{law}", decision.connections_before, decision.connections);
        let megabits = decision.bytes_per_second * 8e-6;
        [format!("{:.1} s", decision.at_s), connections, format!("{megabits:.1}"), decision.explanation]
    }));
    output::align_right(&mut table, [0, 2]);
    table.to_string()
}

/// The same for programs.
pub(crate) fn decisions(report: &Report) -> Value {
    json!(DecisionRecord::all_of(report).collect::<Vec<_>>())
}

/// Why there are fewer connections or sessions than asked for, if that is so.
pub(crate) fn ceilings(report: &Report) -> impl Iterator<Item = &str> {
    report.paths.iter().filter_map(|path| path.ceiling.as_deref())
}
