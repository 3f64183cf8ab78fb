//! Limits of one flow: a policer drops packets above its rate, a shaper delays them.

use crate::counters::{Drops, Traffic};
use crate::model::InvalidModel;
use crate::packet::{Packet, take_first};
use crate::time::NEVER;
use crate::units::{Bytes, Rate};
use crate::virtual_clock::VirtualClock;
use serde::{Deserialize, Serialize};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

/// A limit that applies to each flow separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Cap {
    /// Every packet conforms.
    #[default]
    None,
    /// Drops packets that do not conform.
    Police {
        /// The long-term rate.
        rate: Rate,
        /// The bytes that may pass at once after a pause.
        burst: Bytes,
    },
    /// Delays packets that do not conform, in a queue of their flow.
    Shape {
        /// The long-term rate.
        rate: Rate,
        /// The bytes that may pass at once after a pause.
        burst: Bytes,
        /// The room for each flow's waiting packets.
        queue: Bytes,
    },
}

impl Cap {
    pub(crate) fn validate(&self, segment_bytes_max: u64) -> Result<(), InvalidModel> {
        let whole_packet = |name, bytes: Bytes| match bytes.0 >= segment_bytes_max {
            true => Ok(()),
            false => Err(InvalidModel::new(name, bytes, "at least one packet of the MTU, with framing")),
        };
        match *self {
            Self::None => Ok(()),
            Self::Police { burst, .. } => whole_packet("burst", burst),
            Self::Shape { burst, queue, .. } => {
                whole_packet("burst", burst)?;
                whole_packet("queue", queue)
            }
        }
    }
}

/// The cap of all flows, with the waiting packets.
#[derive(Debug)]
pub(crate) struct FlowCap<P> {
    cap: Cap,
    framing: u32,
    /// Flows that have used a part of their burst, and some whose burst is full again.
    flows: BTreeMap<u64, Flow>,
    /// The number of flows at which those with a full burst are forgotten; a new flow has a full burst too.
    flows_max: usize,
    waiting: BinaryHeap<Reverse<Waiting<P>>>,
    next_number: u64,
}

/// The least number of flows to remember before looking for those to forget.
const FLOWS_MIN: usize = 1024;

#[derive(Clone, Copy, Debug)]
struct Flow {
    bucket: TokenBucket,
    waiting_bytes: u64,
}

/// A burst, refilled at a rate.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    /// The clock is done when the bucket will be full.
    refill: VirtualClock,
    burst_ns: u64,
}

#[derive(Debug)]
struct Waiting<P> {
    leaves_ns: u64,
    number: u64,
    flow: u64,
    packet: P,
}

impl<P: Packet> FlowCap<P> {
    pub fn new(cap: Cap, framing: u32) -> Self {
        Self {
            cap,
            framing,
            flows: BTreeMap::new(),
            flows_max: FLOWS_MIN,
            waiting: BinaryHeap::new(),
            next_number: 0,
        }
    }

    /// Returns the part of the packet that may go on at once. The rest waits or is lost.
    pub fn admit(&mut self, now_ns: u64, flow: u64, packet: P, drops: &mut Drops) -> Option<P> {
        match self.cap {
            Cap::None => Some(packet),
            Cap::Police { rate, burst } => {
                self.police(now_ns, flow, TokenBucket::new(rate, burst), packet, drops)
            }
            Cap::Shape { rate, burst, queue } => {
                let bucket = TokenBucket::new(rate, burst);
                self.shape(now_ns, flow, bucket, queue.0, packet, drops)
            }
        }
    }

    /// Returns as many of the first segments as there are tokens for.
    fn police(
        &mut self,
        now_ns: u64,
        flow: u64,
        full: TokenBucket,
        packet: P,
        drops: &mut Drops,
    ) -> Option<P> {
        let framing = self.framing;
        let bucket = &mut self.flow(now_ns, flow, full).bucket;
        let size = packet.size();
        let conforming = (1..=size.segments()).rev();
        let mut conforming = conforming.map(|count| (count, size.first(count).traffic(framing).bytes));
        let conforming = conforming.find(|(_, bytes)| bucket.take_at_once(now_ns, *bytes));
        let mut rest = Some(packet);
        let first = take_first(&mut rest, conforming.map_or(0, |(count, _)| count));
        if let Some(dropped) = rest {
            drops.policer += dropped.size().traffic(framing);
        }
        first
    }

    /// Queues as many of the first segments as the flow's queue has room for.
    fn shape(
        &mut self,
        now_ns: u64,
        flow: u64,
        full: TokenBucket,
        queue_bytes: u64,
        packet: P,
        drops: &mut Drops,
    ) -> Option<P> {
        let framing = self.framing;
        let state = self.flow(now_ns, flow, full);
        let fitting = packet.size().fitting(framing, queue_bytes - state.waiting_bytes);
        let mut rest = Some(packet);
        let first = take_first(&mut rest, fitting);
        if let Some(dropped) = rest {
            drops.shaper += dropped.size().traffic(framing);
        }
        let packet = first?;
        let bytes = packet.size().traffic(framing).bytes;
        let leaves_ns = state.bucket.take(now_ns, bytes);
        if leaves_ns <= now_ns {
            return Some(packet);
        }
        state.waiting_bytes += bytes;
        let number = self.next_number;
        self.next_number += 1;
        self.waiting.push(Reverse(Waiting { leaves_ns, number, flow, packet }));
        None
    }

    fn flow(&mut self, now_ns: u64, flow: u64, full: TokenBucket) -> &mut Flow {
        if self.flows.len() >= self.flows_max {
            self.flows.retain(|_, flow| flow.bucket.refill.done_ns() > now_ns);
            self.flows_max = FLOWS_MIN.max(self.flows.len() * 2);
        }
        self.flows.entry(flow).or_insert(Flow { bucket: full, waiting_bytes: 0 })
    }

    /// When the next waiting packet leaves; [`NEVER`] if none waits.
    pub fn next_leaves_ns(&self) -> u64 {
        self.waiting.peek().map_or(NEVER, |Reverse(next)| next.leaves_ns)
    }

    /// Takes the next waiting packet, with its flow.
    pub fn leave(&mut self) -> Option<(u64, P)> {
        let Reverse(next) = self.waiting.pop()?;
        if let Some(flow) = self.flows.get_mut(&next.flow) {
            flow.waiting_bytes -= next.packet.size().traffic(self.framing).bytes;
        }
        Some((next.flow, next.packet))
    }

    /// All waiting packets.
    pub fn waiting(&self) -> Traffic {
        let waiting = self.waiting.iter().map(|Reverse(waiting)| waiting.packet.size());
        waiting.fold(Traffic::default(), |sum, size| sum + size.traffic(self.framing))
    }
}

impl TokenBucket {
    /// A full bucket.
    fn new(rate: Rate, burst: Bytes) -> Self {
        Self { refill: VirtualClock::new(rate), burst_ns: rate.time_ns(burst.0) }
    }

    /// Takes tokens that may not exist yet. Returns the time at which they will.
    fn take(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.refill.serve(now_ns, bytes).saturating_sub(self.burst_ns).max(now_ns)
    }

    /// Takes tokens only if they exist.
    fn take_at_once(&mut self, now_ns: u64, bytes: u64) -> bool {
        let mut after = *self;
        let are_there = after.take(now_ns, bytes) == now_ns;
        if are_there {
            *self = after;
        }
        are_there
    }
}

impl<P> Ord for Waiting<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.leaves_ns, self.number).cmp(&(other.leaves_ns, other.number))
    }
}

impl<P> PartialOrd for Waiting<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Waiting<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<P> Eq for Waiting<P> {}
