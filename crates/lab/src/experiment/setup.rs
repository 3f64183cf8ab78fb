//! The setup of one run.

use super::beside_setup::BesideSetup;
use super::document::SPAN_MAX;
use super::overlay::lay;
use super::quantity::{OF_CAPTURES, OF_LAWS, OF_SCSI, OF_SENDERS, OF_WINDOWS, Quantity, STEADY};
use super::request_model;
use super::streams_setup::{StreamsEnd, StreamsSetup};
use crate::capture::CaptureSetup;
use crate::program_run::ProgramRun;
use crate::scsi_run::{BBR, DiskModel, ScsiRun};
use crate::topology::{IpVersion, OFFLOADED_SEGMENTS, Segmentation, Topology};
use crate::workload::Direction;
use framing::Congestion;
use netem::{LinkModel, PathModel, Span};
use policy::time_model::{TCP_IPV4_BYTES, TCP_IPV6_BYTES, payload_bits_per_second};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use toml::{Table, Value};

/// One run, the table `setup`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The round trip of the path without queues, half of it in each direction.
    pub rtt: Span,
    /// The path to the server: the keys of [`LinkModel`] except its delay, which follows from `rtt`.
    #[serde(skip_serializing)]
    link: Table,
    /// The overrides for the way back.
    #[serde(default, skip_serializing)]
    backward: Table,
    /// The path to the server's second address. Its connections belong to the same session.
    #[serde(default, skip_serializing)]
    second: Option<SecondPath>,
    /// The version of IP.
    #[serde(default)]
    pub ip: IpVersion,
    /// The size of packets that hosts hand over.
    #[serde(default)]
    pub segments: Segments,
    /// The MTU of the hosts' interfaces, in bytes, if it differs from the path's.
    #[serde(default)]
    pub host_mtu: Option<u32>,
    /// Hosts acknowledge each segment at once, instead of every other one.
    #[serde(default)]
    pub acknowledge_each: bool,
    /// Settings of the kernel (sysctl) at both hosts, such as `net.ipv4.tcp_early_retrans`.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// The limit of TCP's buffer autotuning; far beyond the path's need, if missing.
    #[serde(default)]
    pub buffer_max: Option<netem::Bytes>,
    /// The congestion control of all connections, set for each socket, because namespaces may choose fewer. One with groups
    /// may name their terms: `rw_fair:single,cubic`. There is no default: a system's setting is not a choice.
    pub congestion_control: String,
    /// Records what the congestion control does in the kernel, where it is one of ours, and compares that with its law.
    #[serde(default)]
    pub compare_law: bool,
    /// The interval between samples of connections and of the arrived data.
    #[serde(default = "default_sample_every")]
    pub sample_every: Span,
    /// Whether to trace events of the client's connections and waits of threads in the kernel, as far as permitted.
    #[serde(default)]
    pub kernel_trace: bool,
    /// The time for which a trace skips events that change nothing; zero records each.
    #[serde(default = "default_trace_quiet")]
    pub trace_quiet: Span,
    /// The direction of `streams` or `program`, unless they have their own.
    #[serde(default, skip_serializing)]
    direction: Option<Direction>,
    /// The amount that `streams` or `program` move, and about how long that takes, unless they have their own.
    #[serde(default, skip_serializing)]
    size: Option<netem::Bytes>,
    #[serde(default, skip_serializing)]
    expected_time: Option<Span>,
    /// The time before the workload counts. It is part of a SCSI workload.
    #[serde(default)]
    pub warm_up: Span,
    /// The capture settings.
    #[serde(default)]
    pub capture: Option<CaptureSetup>,
    /// A workload of plain TCP streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    streams: Option<StreamsSetup>,
    /// A workload of SCSI commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scsi: Option<ScsiRun>,
    /// What else uses the path while `scsi` does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideSetup>,
    /// A program that copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<ProgramRun>,
    /// Derived from `rtt`, `link` and `backward`.
    #[serde(skip_deserializing)]
    path: Option<PathModel>,
    /// Derived from these and `second`.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    second_path: Option<PathModel>,
}

/// The differences of the second path from the first.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecondPath {
    /// The same, if missing.
    rtt: Option<Span>,
    /// The overrides for the way to the server.
    #[serde(default)]
    link: Table,
    /// The overrides for the way back.
    #[serde(default)]
    backward: Table,
}

fn default_sample_every() -> Span {
    Span(Duration::from_millis(100))
}

fn default_trace_quiet() -> Span {
    Span(monitor::TRACE_QUIET)
}

/// The size of packets that hosts hand over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segments {
    /// Short super-packets, as most machines do.
    #[default]
    Offloaded,
    /// Single packets: exact, and possible up to about 500 Mbit/s.
    Single,
}

/// The workload across the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunLoad<'a> {
    /// Plain TCP streams.
    Streams(&'a StreamsSetup),
    /// Reads and writes through an iSCSI session.
    Scsi(&'a ScsiRun),
    /// A program that copies.
    Program(&'a ProgramRun),
}

/// The MTU that every link of IPv6 supports (RFC 8200 §5).
const IPV6_MTU_MIN: u32 = 1280;
/// More frequent samples would be a load of their own.
const SAMPLE_EVERY_MIN: Span = Span(Duration::from_millis(1));
/// The time to build a lab and take it down.
const OVERHEAD: Duration = Duration::from_millis(500);
/// The round trips before the workload: echo requests, and a connection.
const ROUND_TRIPS_BEFORE: u32 = 6;

/// The path of the tables `link` and `backward`, named as keys of `of`.
fn read_path(of: &str, rtt: Span, link: &Table, overrides: &Table) -> Result<PathModel, String> {
    let direction = |name: &str, table: &Table| -> Result<LinkModel, String> {
        if table.contains_key("delay") {
            return Err(format!("{of}.{name}.delay is not for you to set: it is half of {of}.rtt"));
        }
        let mut table = table.clone();
        table.insert("delay".to_owned(), Value::String(Span(rtt.0 / 2).to_string()));
        table.try_into().map_err(|error| problem(&format!("{of}.{name}"), &error))
    };
    let mut backward = link.clone();
    lay(&mut backward, overrides);
    let forward = direction("link", link)?;
    Ok(PathModel { forward, backward: Some(direction("backward", &backward)?) })
}

/// A congestion control that was checked.
fn congestion(text: &str) -> Congestion {
    text.parse().unwrap_or_else(|_| Congestion::named(text))
}

/// Checks a congestion control, which may have terms.
pub(super) fn check_congestion(key: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("setup.{key} is empty, but must be a name, such as cubic"));
    }
    congestion::parse(text).map(drop).map_err(|error| format!("setup.{key}: {error}"))
}

impl Setup {
    /// Parses a setup after all overlays.
    ///
    /// # Errors
    /// The defect, in words.
    pub(crate) fn read(table: &Table) -> Result<Self, String> {
        let mut table = table.clone();
        hand_down(&mut table);
        let mut setup: Self = table.try_into().map_err(|error| problem("setup", &error))?;
        let path = read_path("setup", setup.rtt, &setup.link, &setup.backward)?;
        path.validate().map_err(|error| format!("setup.link: {error}"))?;
        setup.path = Some(path);
        setup.second_path = setup.read_second_path()?;
        setup.check()?;
        Ok(setup)
    }

    fn read_second_path(&self) -> Result<Option<PathModel>, String> {
        let Some(second) = &self.second else { return Ok(None) };
        if self.scsi.is_none() {
            return Err("setup.second is for scsi: other workloads use one address".to_owned());
        }
        let (mut link, mut backward) = (self.link.clone(), self.backward.clone());
        lay(&mut link, &second.link);
        lay(&mut backward, &second.backward);
        let path = read_path("setup.second", second.rtt.unwrap_or(self.rtt), &link, &backward)?;
        path.validate().map_err(|error| format!("setup.second.link: {error}"))?;
        Ok(Some(path))
    }

    fn check_nothing_is_to_hand_down(&self) -> Result<(), String> {
        let given = [
            ("direction", self.direction.is_some()),
            ("size", self.size.is_some()),
            ("expected_time", self.expected_time.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => {
                Err(format!("setup.{key} is for streams and program: scsi.workload has its own terms"))
            }
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<(), String> {
        check_congestion("congestion_control", &self.congestion_control)?;
        let measured = match (&self.streams, &self.scsi, &self.program) {
            (Some(streams), None, None) => {
                streams.check(self.warm_up)?;
                ("streams", streams.time())
            }
            (None, Some(run), None) => {
                self.check_nothing_is_to_hand_down()?;
                let requests = run.workload.requests(run.disk.size, DiskModel::BLOCK_BYTES);
                drop(requests.map_err(|error| format!("setup.scsi.workload: {error}"))?);
                ("scsi", Span::default())
            }
            (None, None, Some(program)) => {
                program.check()?;
                ("program.expected_time", program.expected_time)
            }
            (None, None, None) => {
                return Err("setup has no workload: it needs streams, scsi or program".to_owned());
            }
            _ => return Err("setup has more than one of streams, scsi and program".to_owned()),
        };
        if self.beside.is_some() && self.scsi.is_none() {
            return Err("setup.beside is for scsi: other workloads run alone".to_owned());
        }
        self.beside.as_ref().map_or(Ok(()), BesideSetup::check)?;
        self.capture.as_ref().map_or(Ok(()), CaptureSetup::check)?;
        if self.ip == IpVersion::V6 && self.mtu() < IPV6_MTU_MIN {
            let mtu = self.mtu();
            return Err(format!("setup.link.mtu is {mtu}, but for IPv6 must be at least {IPV6_MTU_MIN}"));
        }
        if let Some(name) = self.settings.keys().find(|name| !is_of_network(name)) {
            return Err(format!("setup.settings has {name}, which is no name below net"));
        }
        if self.sample_every < SAMPLE_EVERY_MIN {
            return Err(format!(
                "setup.sample_every is {}, but must be at least {SAMPLE_EVERY_MIN}",
                self.sample_every
            ));
        }
        let spans =
            [("sample_every", self.sample_every), ("rtt", self.rtt), ("warm_up", self.warm_up), measured];
        match spans.iter().find(|(_, span)| *span > SPAN_MAX) {
            Some((key, span)) => Err(format!("setup.{key} is {span}, but must be at most a week")),
            None => Ok(()),
        }
    }

    /// The congestion control, and the terms of its groups.
    #[must_use]
    pub fn congestion(&self) -> Congestion {
        congestion(&self.congestion_control)
    }

    /// The same of plain streams beside a SCSI workload.
    #[must_use]
    pub fn congestion_beside(&self) -> Congestion {
        let own = self.beside.as_ref().and_then(|beside| beside.congestion_control.as_ref());
        congestion(own.unwrap_or(&self.congestion_control))
    }

    /// The network of this setup.
    #[must_use]
    pub fn topology(&self, seed: u64) -> Topology {
        let mut topology = Topology::new(self.path().clone());
        topology.seed = seed;
        topology.second = self.second_path.clone();
        topology.addresses = if topology.second.is_some() { 2 } else { 1 };
        topology.mtu = self.host_mtu;
        topology.ip = self.ip;
        topology.segmentation = match self.segments {
            Segments::Offloaded => Segmentation::Offloaded(OFFLOADED_SEGMENTS),
            Segments::Single => Segmentation::PerPacket,
        };
        if self.program.is_some() {
            topology.congestion_control = Some(self.congestion().name);
        }
        topology.acknowledge_each = self.acknowledge_each;
        topology.settings.clone_from(&self.settings);
        if let Some(bytes) = self.buffer_max {
            topology.tcp_buffer_bytes_max = u32::try_from(bytes.0).unwrap_or(u32::MAX);
        }
        topology
    }

    /// The whole setup, including defaults.
    pub(crate) fn resolved(&self) -> serde_json::Value {
        let topology = self.topology(0);
        let resolved = Self {
            host_mtu: Some(topology.interface_mtu()),
            buffer_max: Some(netem::Bytes(topology.tcp_buffer_bytes_max.into())),
            scsi: self.scsi.as_ref().map(ScsiRun::resolved),
            ..self.clone()
        };
        serde_json::to_value(resolved).expect("keys are texts")
    }

    /// The longest packet that is sent, in bytes.
    pub(crate) fn mtu(&self) -> u32 {
        let mtu = self.paths().map(PathModel::mtu).fold(u32::MAX, u32::min);
        self.host_mtu.map_or(mtu, |host_mtu| host_mtu.min(mtu))
    }

    /// The model of the path.
    pub(crate) fn path(&self) -> &PathModel {
        self.path.as_ref().expect("a setup is only made by reading, which makes the path")
    }

    fn paths(&self) -> impl Iterator<Item = &PathModel> {
        std::iter::once(self.path()).chain(&self.second_path)
    }

    /// The share of the data that is read, and so travels back, from 0 to 1. The rest travels to the server.
    pub(crate) fn read_share(&self) -> f64 {
        match self.load() {
            RunLoad::Streams(streams) => share_of_reads(streams.direction()),
            RunLoad::Scsi(run) => run.workload.read_share(),
            RunLoad::Program(program) => share_of_reads(program.direction),
        }
    }

    /// The path's capacity for data with this read share, in bits of TCP payload per second: both directions at once,
    /// until one of them is full.
    pub(crate) fn payload_bits_per_second(&self, read_share: f64) -> f64 {
        let header_bytes = match self.ip {
            IpVersion::V4 => TCP_IPV4_BYTES,
            IpVersion::V6 => TCP_IPV6_BYTES,
        };
        let of = |link: &LinkModel| {
            let rate = link.rate.bits().get() as f64;
            payload_bits_per_second(rate, self.mtu(), header_bytes, link.framing)
        };
        let forward: f64 = self.paths().map(|path| of(&path.forward)).sum();
        let backward: f64 = self.paths().map(|path| of(path.backward())).sum();
        (forward / (1.0 - read_share)).min(backward / read_share)
    }

    /// The quantities measured in this run. Those of windows need several samples, and some of them several connections.
    #[must_use]
    pub fn quantities(&self) -> Vec<Quantity> {
        let mut quantities = vec![Quantity::Throughput, Quantity::RoundTrip, Quantity::Lost];
        quantities.extend(OF_SENDERS);
        if self.measures_windows() {
            quantities.extend(OF_WINDOWS);
        }
        if self.amount().is_none() {
            quantities.extend(STEADY);
        }
        match self.load() {
            RunLoad::Streams(_) => quantities.push(Quantity::Fairness),
            RunLoad::Program(_) => {}
            RunLoad::Scsi(run) => {
                quantities.extend(OF_SCSI);
                let is_shared = self.beside.is_some();
                quantities.extend((is_shared || run.session.connections > 1).then_some(Quantity::Fairness));
                quantities.extend(is_shared.then_some(Quantity::Share));
                if self.capture.is_some() {
                    quantities.extend(OF_CAPTURES);
                }
            }
        }
        if self.compare_law {
            quantities.extend(OF_LAWS);
        }
        quantities
    }

    /// Whether connections of the client send for a known time.
    pub(crate) fn measures_windows(&self) -> bool {
        self.read_share() < 1.0 && self.amount().is_none()
    }

    /// The workload across the path.
    ///
    /// # Panics
    /// Never: a setup without a load is refused.
    #[must_use]
    pub fn load(&self) -> RunLoad<'_> {
        let streams = self.streams.as_ref().map(RunLoad::Streams);
        streams
            .or(self.scsi.as_ref().map(RunLoad::Scsi))
            .or(self.program.as_ref().map(RunLoad::Program))
            .expect("a setup is only made by reading, which looks for it")
    }

    /// Whether the workload may choose this congestion control in the place of the setup's.
    pub(crate) fn may_use(&self, congestion_control: &str) -> bool {
        matches!(self.load(), RunLoad::Scsi(run) if run.session.may_use_bbr && congestion_control == BBR)
    }

    /// The data that a run moves, if that is fixed.
    pub(crate) fn amount(&self) -> Option<netem::Bytes> {
        match self.load() {
            RunLoad::Streams(streams) => match streams.end() {
                StreamsEnd::Size(size, _) => Some(size),
                StreamsEnd::Time(_) => None,
            },
            RunLoad::Scsi(_) => None,
            RunLoad::Program(program) => Some(program.size),
        }
    }

    /// The estimated time of a run.
    #[must_use]
    pub fn estimate(&self) -> Duration {
        let load = match self.load() {
            RunLoad::Streams(streams) => self.warm_up.0 + streams.time().0,
            RunLoad::Scsi(run) => request_model::load_time(self, run),
            RunLoad::Program(program) => program.expected_time.0 * (1 + u32::from(program.rehearsals)),
        };
        OVERHEAD + self.rtt.0 * ROUND_TRIPS_BEFORE + load
    }
}

/// Whether a setting may belong to a network namespace.
fn is_of_network(setting: &str) -> bool {
    let is_plain = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    setting.starts_with("net.") && setting.split('.').all(is_plain)
}

fn share_of_reads(direction: Direction) -> f64 {
    match direction {
        Direction::Read => 1.0,
        Direction::Write => 0.0,
    }
}

/// Gives what the setup says for any workload that moves a fixed amount to the one that it has.
fn hand_down(setup: &mut Table) {
    for key in ["direction", "size", "expected_time"] {
        let Some(value) = setup.get(key).cloned() else { continue };
        for workload in ["streams", "program"] {
            if let Some(Value::Table(workload)) = setup.get_mut(workload) {
                workload.entry(key).or_insert_with(|| value.clone());
            }
        }
    }
}

/// An error of a table without its own text: the key's place, the defect, and the allowed values.
fn problem(place: &str, error: &toml::de::Error) -> String {
    let text = error.to_string();
    let (what, keys) = text.trim_end().split_once("\nin `").unwrap_or((text.trim_end(), ""));
    match keys.trim_end_matches('`') {
        "" => format!("{place}: {what}"),
        keys => format!("{place}.{keys}: {what}"),
    }
}
