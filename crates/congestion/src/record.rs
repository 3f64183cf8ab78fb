//! What a control was told, and what it did.

use pdu::Duration;
use policy::law::replay::Event;
#[cfg(feature = "bpf")]
use {
    pdu::Instant,
    policy::law::replay::Hook,
    policy::law::{Flow, State},
};

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// In no particular order of connections.
    pub records: Vec<Record>,
    /// Records for which there was no room.
    pub lost: u64,
}

/// One call of one of Linux's hooks. Its time is by the machine's monotonic clock: that of the call for `Init` and `Release`,
/// and otherwise when the kernel last read that clock for this connection, in whole microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Its connection: the port here, and the peer's.
    pub ports: (u16, u16),
    /// The number of this record among those of the connection, from zero.
    pub number: u32,
    /// What was called, and what the connection was before and after.
    pub event: Event,
    /// Segments under way.
    pub in_flight: u32,
    /// The shortest round trip of the last minutes.
    pub min_rtt: Duration,
    /// The group after it, if the connection has one.
    pub group: Option<GroupState>,
}

/// A group after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupState {
    /// Its place among all groups.
    pub place: u32,
    /// The number of the change, from one: the lock lets one follow the other.
    pub change: u64,
    /// The aggregate window, in parts of a segment.
    pub window_parts: u64,
    /// The part of it that members hold while they repair losses.
    pub frozen_parts: u64,
    /// What this connection holds of that.
    pub own_frozen_parts: u64,
    /// Members, and those that send.
    pub members: (u16, u16),
}

#[cfg(feature = "bpf")]
impl Record {
    /// From `struct record` of `bpf/congestion.h`; `None` if it is none of ours.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut fields = crate::layout::Fields(bytes);
        let at_ns = fields.u64()?;
        let notes = [fields.u64()?, fields.u64()?, fields.u64()?, fields.u64()?];
        let (number, argument, sample_rtt_us) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let (window_before, window) = (fields.u32()?, fields.u32()?);
        let (ssthresh_before, ssthresh) = (fields.u32()?, fields.u32()?);
        let (prior_window, in_flight, delivered) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let (srtt_us, min_rtt_us, ports) = (fields.u32()?, fields.u32()?, fields.u32()?.to_ne_bytes());
        let (hook, ca_state, is_window_used) = (fields.u8()?, fields.u8()?, fields.u8()?);
        let [a, b, c, d] = ports;
        let flow = Flow {
            now: Instant::ZERO + Duration::from_nanos(at_ns),
            window: window_before.into(),
            ssthresh: ssthresh_before.into(),
            prior_window: prior_window.into(),
            delivered,
            srtt: Duration::from_micros(srtt_us.into()),
            is_window_used: is_window_used != 0,
            state: state(ca_state.into()),
        };
        let hook = hook_of(hook, argument, sample_rtt_us)?;
        Some(Self {
            ports: (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])),
            number,
            event: Event { flow, hook, window, ssthresh },
            in_flight,
            min_rtt: Duration::from_micros(min_rtt_us.into()),
            group: GroupState::from_notes(notes),
        })
    }
}

/// The kernel's `icsk_ca_state`.
#[cfg(feature = "bpf")]
fn state(ca_state: u32) -> State {
    match ca_state {
        0 => State::Open,
        1 => State::Disorder,
        2 => State::Cwr,
        3 => State::Recovery,
        _ => State::Loss,
    }
}

#[cfg(feature = "bpf")]
fn hook_of(hook: u8, argument: u32, sample_rtt_us: u32) -> Option<Hook> {
    // CA_EVENT_TX_START
    const TX_START: u32 = 0;
    // Without a sample it is -1.
    let rtt_us = Some(sample_rtt_us).filter(|us| (1..=i32::MAX as u32).contains(us));
    Some(match hook {
        0 => Hook::Init,
        1 => Hook::Release,
        2 => Hook::Ssthresh(argument),
        3 => Hook::CongAvoid(argument),
        4 => Hook::PktsAcked(rtt_us.map(|us| Duration::from_micros(us.into()))),
        5 => Hook::SetState(state(argument)),
        6 if argument == TX_START => Hook::TxStart,
        6 => Hook::Other,
        7 => Hook::UndoCwnd(argument),
        _ => return None,
    })
}

#[cfg(feature = "bpf")]
impl GroupState {
    fn from_notes([change, window_parts, frozen, members]: [u64; 4]) -> Option<Self> {
        let place = u32::try_from(members >> 32).ok().filter(|place| *place != 0)?;
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are wanted")]
        let members = ((members >> 16) as u16, members as u16);
        let (frozen_parts, own_frozen_parts) = (frozen & u64::from(u32::MAX), frozen >> 32);
        Some(Self { place, change, window_parts, frozen_parts, own_frozen_parts, members })
    }
}
