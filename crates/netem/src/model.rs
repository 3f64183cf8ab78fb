//! The configuration of a path across a wide area, with units that people can read.

use crate::cap::Cap;
use crate::codel::CoDel;
use crate::cross_traffic::CrossTraffic;
use crate::jitter::Jitter;
use crate::link::Link;
use crate::loss::Loss;
use crate::outage::Outages;
use crate::packet::Packet;
use crate::random::Random;
use crate::schedule::{self, Change};
use crate::time::whole;
use crate::units::{Probability, QueueSize, Rate, Span, is_factor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Both directions between two places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathModel {
    /// From here to there.
    pub forward: LinkModel,
    /// From there to here: the same as forward if it is missing.
    #[serde(default)]
    pub backward: Option<LinkModel>,
}

/// The network in one direction: rates, delay, queues and faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkModel {
    /// The rate of the bottleneck, of each parallel path.
    pub rate: Rate,
    /// The one-way delay of an undisturbed packet, without its time at the bottleneck.
    pub delay: Span,
    /// Varies the delay upwards, and keeps the order.
    #[serde(default)]
    pub jitter: Jitter,
    /// The longest IP packet in bytes; longer ones are lost.
    #[serde(default = "default_mtu")]
    pub mtu: u32,
    /// Bytes that the link layer adds to each packet. Rates, bursts and queues count them too.
    #[serde(default = "default_framing")]
    pub framing: u32,
    /// Room for packets before the bottleneck of each parallel path, cross traffic and the packet being sent included.
    #[serde(default = "default_queue")]
    pub queue: QueueSize,
    /// Keeps waiting times short by `CoDel`; if it is missing, packets are dropped only when the queue is full.
    #[serde(default)]
    pub codel: Option<CoDel>,
    /// Loss on the line.
    #[serde(default)]
    pub loss: Loss,
    /// Times in which everything is lost.
    #[serde(default)]
    pub outages: Option<Outages>,
    /// How often a bit of a packet is flipped.
    #[serde(default)]
    pub corruption: Probability,
    /// How often a packet arrives twice.
    #[serde(default)]
    pub duplication: Probability,
    /// Packets that are overtaken.
    #[serde(default)]
    pub reordering: Option<Reordering>,
    /// Limits the rate of each flow.
    #[serde(default)]
    pub cap: Cap,
    /// Equal paths next to each other. Each flow takes one of them, by its hash (ECMP).
    #[serde(default = "default_parallel")]
    pub parallel: u16,
    /// All flows look like one, as inside a tunnel: for caps, and for the choice of a parallel path.
    #[serde(default)]
    pub tunnel: bool,
    /// Others at the bottleneck.
    #[serde(default)]
    pub cross_traffic: CrossTraffic,
    /// Changes of the path, in the order of their times.
    #[serde(default)]
    pub schedule: Vec<Change>,
}

/// Some packets are late, and those behind them are not held up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// The share of packets that are late.
    pub probability: Probability,
    /// The extra delay of a late packet.
    pub late: Span,
}

/// An impossible model: the wrong part, and the values that it may have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} is {value}, but must be {expected}")]
pub struct InvalidModel {
    name: &'static str,
    value: String,
    expected: &'static str,
}

impl InvalidModel {
    pub(crate) fn new(name: &'static str, value: impl fmt::Display, expected: &'static str) -> Self {
        Self { name, value: value.to_string(), expected }
    }
}

/// The MTU of Ethernet.
pub const MTU: u32 = 1500;

/// An Ethernet header of 14 bytes and the frame check sequence of 4: what an interface's counters and a carrier's
/// contract usually count. With it and the MTU of Ethernet, the payload of TCP with timestamps is 1448/1518 of the rate:
/// 858 of 900 Mbit/s. Preamble and gap between frames are another 20 bytes on a cable.
pub const ETHERNET_FRAMING: u32 = 18;

/// A queue given as a multiple of the bandwidth-delay product holds at least so many packets of the MTU: without
/// any delay it would hold none, and with fewer a single window of TCP would not pass.
const QUEUE_PACKETS_MIN: u64 = 16;

/// IPv4 requires at least this of every link (RFC 791 §3.2).
const MTU_MIN: u32 = 68;
/// The longest IP packet, in bytes.
const MTU_MAX: u32 = 65535;
/// The most framing in bytes: more than any stack of tunnels adds.
const FRAMING_MAX: u32 = 1000;
/// The most parallel paths: more than any router spreads flows over.
const PARALLEL_MAX: u16 = 256;

fn default_mtu() -> u32 {
    MTU
}

fn default_framing() -> u32 {
    ETHERNET_FRAMING
}

fn default_queue() -> QueueSize {
    QueueSize::Bdp(1.0)
}

fn default_parallel() -> u16 {
    1
}

impl PathModel {
    /// A path that is the same in both directions.
    #[must_use]
    pub fn symmetric(link: LinkModel) -> Self {
        Self { forward: link, backward: None }
    }

    /// From there to here.
    #[must_use]
    pub fn backward(&self) -> &LinkModel {
        self.backward.as_ref().unwrap_or(&self.forward)
    }

    /// The shortest round trip, before the schedule changes it.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        self.forward.delay.0.saturating_add(self.backward().delay.0)
    }

    /// The longest IP packet that passes in both directions, in bytes.
    #[must_use]
    pub fn mtu(&self) -> u32 {
        self.forward.mtu.min(self.backward().mtu)
    }

    /// The two directions, forward and backward. All random decisions follow from `seed`.
    ///
    /// # Errors
    /// [`InvalidModel`] names the first impossible part of the model.
    pub fn links<P: Packet>(&self, seed: u64) -> Result<(Link<P>, Link<P>), InvalidModel> {
        let forward = Link::new(&self.forward, self.round_trip(), seed)?;
        let backward_seed = Random::new(seed, "backward", 0).word();
        Ok((forward, Link::new(self.backward(), self.round_trip(), backward_seed)?))
    }

    /// # Errors
    /// [`InvalidModel`] names the first impossible part of the model.
    pub fn validate(&self) -> Result<(), InvalidModel> {
        self.forward.validate(self.round_trip())?;
        self.backward().validate(self.round_trip())
    }
}

impl LinkModel {
    /// A clean link on Ethernet with a queue of one bandwidth-delay product.
    #[must_use]
    pub fn new(rate: Rate, delay: Duration) -> Self {
        Self {
            rate,
            delay: Span(delay),
            jitter: Jitter::None,
            mtu: default_mtu(),
            framing: default_framing(),
            queue: default_queue(),
            codel: None,
            loss: Loss::None,
            outages: None,
            corruption: Probability::ZERO,
            duplication: Probability::ZERO,
            reordering: None,
            cap: Cap::None,
            parallel: default_parallel(),
            tunnel: false,
            cross_traffic: CrossTraffic::None,
            schedule: Vec::new(),
        }
    }

    /// The bytes that the queue holds, if a round trip without queues takes `round_trip`.
    #[must_use]
    pub fn queue_bytes(&self, round_trip: Duration) -> u64 {
        match self.queue {
            QueueSize::Bytes(bytes) => bytes.0,
            QueueSize::Bdp(factor) => {
                let bytes = whole(self.rate.bytes_in(round_trip) as f64 * factor);
                bytes.max(QUEUE_PACKETS_MIN * self.segment_bytes_max())
            }
        }
    }

    /// The longest packet, with framing.
    pub(crate) fn segment_bytes_max(&self) -> u64 {
        u64::from(self.mtu) + u64::from(self.framing)
    }

    /// Checks the model of one direction, on a path of this round trip.
    ///
    /// # Errors
    /// [`InvalidModel`] names the first impossible part of the model.
    pub fn validate(&self, round_trip: Duration) -> Result<(), InvalidModel> {
        if !(MTU_MIN..=MTU_MAX).contains(&self.mtu) {
            return Err(InvalidModel::new("mtu", self.mtu, "68 to 65535 bytes"));
        }
        if self.framing > FRAMING_MAX {
            return Err(InvalidModel::new("framing", self.framing, "at most 1000 bytes"));
        }
        if !(1..=PARALLEL_MAX).contains(&self.parallel) {
            return Err(InvalidModel::new("parallel", self.parallel, "1 to 256 paths"));
        }
        if let QueueSize::Bdp(factor) = self.queue
            && !is_factor(&factor)
        {
            return Err(InvalidModel::new("queue", self.queue, "a multiple above zero and below a million"));
        }
        if self.queue_bytes(round_trip) < self.segment_bytes_max() {
            let expected = "at least one packet of the MTU, with framing";
            return Err(InvalidModel::new("queue", self.queue, expected));
        }
        self.validate_stages()
    }

    fn validate_stages(&self) -> Result<(), InvalidModel> {
        self.jitter.validate()?;
        self.codel.map_or(Ok(()), |codel| codel.validate())?;
        self.loss.validate()?;
        self.outages.map_or(Ok(()), |outages| outages.validate())?;
        self.cap.validate(self.segment_bytes_max())?;
        self.cross_traffic.validate(self.segment_bytes_max())?;
        schedule::validate(&self.schedule, self.parallel, self.segment_bytes_max())
    }
}
