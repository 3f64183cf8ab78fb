//! What a control was told, and what it did.

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// In no particular order of connections.
    pub records: Vec<Record>,
    /// Records for which there was no room.
    pub lost: u64,
}

/// One call of one of Linux's hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When, on the machine's monotonic clock.
    pub at_ns: u64,
    /// Its connection: the port here, and the peer's.
    pub ports: (u16, u16),
    /// The number of this record among those of the connection, from zero.
    pub number: u32,
    /// What was called.
    pub hook: Hook,
    /// The kernel's `icsk_ca_state`.
    pub ca_state: u8,
    /// Whether the window was used, so that it may grow.
    pub is_window_used: bool,
    /// The window before, in segments, and after.
    pub window: (u32, u32),
    /// The slow start threshold before and after.
    pub ssthresh: (u32, u32),
    /// The window before the last reduction.
    pub prior_window: u32,
    /// Segments under way.
    pub in_flight: u32,
    /// Segments delivered since the connection began.
    pub delivered: u32,
    /// The smoothed round trip.
    pub srtt_us: u32,
    /// The shortest round trip of the last minutes.
    pub min_rtt_us: u32,
    /// The group after it, if the connection has one.
    pub group: Option<GroupState>,
}

/// Linux's hooks, and what they are told or return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// The control begins.
    Init,
    /// It ends.
    Release,
    /// A loss; the new slow start threshold.
    Ssthresh(u32),
    /// So many segments were acknowledged.
    CongAvoid(u32),
    /// So many segments were acknowledged, with this round trip in microseconds if one was measured.
    PktsAcked(u32, Option<u32>),
    /// The new `icsk_ca_state`.
    SetState(u8),
    /// The kernel's `enum tcp_ca_event`.
    CwndEvent(u32),
    /// A loss was none; the new window.
    UndoCwnd(u32),
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
        let (window, ssthresh) = ((fields.u32()?, fields.u32()?), (fields.u32()?, fields.u32()?));
        let (prior_window, in_flight, delivered) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let (srtt_us, min_rtt_us, ports) = (fields.u32()?, fields.u32()?, fields.u32()?.to_ne_bytes());
        let (hook, ca_state, is_window_used) = (fields.u8()?, fields.u8()?, fields.u8()?);
        let [a, b, c, d] = ports;
        Some(Self {
            at_ns,
            ports: (u16::from_ne_bytes([a, b]), u16::from_ne_bytes([c, d])),
            number,
            hook: Hook::from_numbers(hook, argument, sample_rtt_us)?,
            ca_state,
            is_window_used: is_window_used != 0,
            window,
            ssthresh,
            prior_window,
            in_flight,
            delivered,
            srtt_us,
            min_rtt_us,
            group: GroupState::from_notes(notes),
        })
    }
}

#[cfg(feature = "bpf")]
impl Hook {
    fn from_numbers(hook: u8, argument: u32, sample_rtt_us: u32) -> Option<Self> {
        // Without a sample it is -1.
        let rtt_us = Some(sample_rtt_us).filter(|us| (1..=i32::MAX as u32).contains(us));
        Some(match hook {
            0 => Self::Init,
            1 => Self::Release,
            2 => Self::Ssthresh(argument),
            3 => Self::CongAvoid(argument),
            4 => Self::PktsAcked(argument, rtt_us),
            5 => Self::SetState(u8::try_from(argument).ok()?),
            6 => Self::CwndEvent(argument),
            7 => Self::UndoCwnd(argument),
            _ => return None,
        })
    }
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
