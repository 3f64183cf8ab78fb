//! `struct membership` and `struct order` of `bpf/membership.h` and `struct group` of `bpf/group.h`, as bytes.

use crate::{Control, Group, GroupKey};
use policy::law::{AggregateLaw, Fast, GroupTerms, Mode, PARTS, Sharing};
use std::net::{IpAddr, Ipv6Addr};

const MEMBERSHIP_BYTES: usize = 24;

/// The size of `struct group`.
pub(crate) const GROUP_BYTES: u32 = 360;

const ORDER_BYTES: usize = 16;
const TERMS_BYTES: usize = 8;

/// What the programs read of the group of a connection.
pub(crate) fn membership(place: u32, group: u64, terms: GroupTerms) -> [u8; MEMBERSHIP_BYTES] {
    let mut bytes = [0; MEMBERSHIP_BYTES];
    // After the lock.
    bytes[4..8].copy_from_slice(&place.to_ne_bytes());
    bytes[8..16].copy_from_slice(&group.to_ne_bytes());
    bytes[16..].copy_from_slice(&terms_as_bytes(terms));
    bytes
}

/// What the programs read of the administrator's order for a group.
pub(crate) fn order(group: u64, terms: GroupTerms) -> [u8; ORDER_BYTES] {
    let mut bytes = [0; ORDER_BYTES];
    bytes[..8].copy_from_slice(&group.to_ne_bytes());
    bytes[8..].copy_from_slice(&terms_as_bytes(terms));
    bytes
}

fn terms_as_bytes(terms: GroupTerms) -> [u8; TERMS_BYTES] {
    let (mode, weight) = match terms.mode {
        Mode::Fair => (FAIR, 0),
        Mode::Weight(parts) => (WEIGHT, parts),
        Mode::Single => (SINGLE, 0),
        Mode::Conservative => (CONSERVATIVE, 0),
    };
    let (law, sharing) = (terms.law == AggregateLaw::Cubic, terms.sharing == Sharing::Equal);
    let mut bytes = [terms.is_of_host.into(), mode, law.into(), sharing.into(), 0, 0, 0, 0];
    // FAST has an alpha, and no weight.
    bytes[4..].copy_from_slice(&terms.alpha.unwrap_or(weight).to_ne_bytes());
    bytes
}

/// `enum mode`.
const FAIR: u8 = 0;
const WEIGHT: u8 = 1;
const SINGLE: u8 = 2;
const CONSERVATIVE: u8 = 3;

/// The place of its group that the programs have noted for a connection; zero: none.
pub(crate) fn place(membership: &[u8]) -> u32 {
    let mut fields = Fields(membership);
    fields.u32().and_then(|_lock| fields.u32()).unwrap_or(0)
}

fn terms(fields: &mut Fields<'_>, control: Control) -> Option<GroupTerms> {
    let (_is_of_host, mode, law, sharing) = (fields.u8()?, fields.u8()?, fields.u8()?, fields.u8()?);
    let weight = fields.u32()?;
    if control == Control::Fast {
        let alpha = if weight == 0 { Fast::ALPHA } else { weight };
        return Some(GroupTerms { alpha: Some(alpha), ..GroupTerms::default() });
    }
    let mode = match mode {
        FAIR => Mode::Fair,
        WEIGHT => Mode::Weight(weight),
        SINGLE => Mode::Single,
        CONSERVATIVE => Mode::Conservative,
        _ => return None,
    };
    let law = if law == 0 { AggregateLaw::Reno } else { AggregateLaw::Cubic };
    let sharing = if sharing == 0 { Sharing::ByActivity } else { Sharing::Equal };
    Some(GroupTerms { mode, law, sharing, ..GroupTerms::default() })
}

/// What the programs say of a group; `None` if there is none.
pub(crate) fn group(bytes: &[u8]) -> Option<Group> {
    let mut fields = Fields(bytes);
    let (_lock, members) = (fields.u32()?, fields.u32()?);
    if members == 0 {
        return None;
    }
    let (group, local_address) = (fields.u64()?, fields.address()?);
    let (user, namespace_inode) = (fields.u32()?, fields.u32()?);
    let control = if fields.u32()? == 0 { Control::Fair } else { Control::Fast };
    let (is_of_host, _changes) = (fields.u32()? != 0, fields.u64()?);
    let (window, ssthresh, frozen) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let _epoch_active_cut_timeout_min_rtt: [u64; 5] = fields.u64s()?;
    let _left_over_and_round: [u64; 3] = fields.u64s()?;
    let srtt = fields.u64()?;
    let _cubic: [u64; 7] = fields.u64s()?;
    let _ssthresh_and_cubic_before: [u64; 8] = fields.u64s()?;
    let (_delivered, _epoch) = (fields.u64()?, fields.u32()?);
    let (seen, seen_before, repairing_members) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (_rtt, _rtt_before, min_rtt_us) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let _generation = fields.u32()?;
    let terms = GroupTerms { is_of_host, ..terms(&mut fields, control)? };
    let (losses, timeouts, undone) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (raised_shares, split_members, peer_port) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let peer = (fields.address()?, u16::try_from(peer_port).ok()?).into();
    let sending = members.saturating_sub(repairing_members).min(seen.max(seen_before));
    let sharers = match terms.sharing {
        Sharing::ByActivity => sending,
        Sharing::Equal => members.saturating_sub(repairing_members),
    };
    let has_window = control == Control::Fair;
    Some(Group {
        key: GroupKey { user, namespace_inode, control, group, local_address },
        peer,
        terms,
        members,
        active_members: members.min(sending + repairing_members),
        repairing_members,
        window_segments: has_window.then(|| segments(window)),
        ssthresh_segments: (has_window && ssthresh < UNLIMITED).then(|| segments(ssthresh)),
        share_segments: has_window
            .then(|| segments(window.saturating_sub(frozen)) / f64::from(sharers.max(1))),
        srtt_us: srtt >> 16,
        min_rtt_us,
        losses,
        timeouts,
        undone,
        raised_shares,
        split_members,
    })
}

/// The kernel's slow start threshold before the first loss.
const UNLIMITED: u64 = 0x7fff_ffff * PARTS as u64;

fn segments(parts: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no window has so many segments")]
    let parts = parts as f64;
    parts / f64::from(PARTS)
}

/// Reads fields one after the other, as C lays them out.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl Fields<'_> {
    pub fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*word))
    }

    fn u64s<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.u64()?;
        }
        Some(words)
    }

    /// An IPv4 address is there as one of IPv6 that maps it.
    fn address(&mut self) -> Option<IpAddr> {
        let (octets, rest) = self.0.split_first_chunk::<16>()?;
        self.0 = rest;
        Some(Ipv6Addr::from(*octets).to_canonical())
    }

    pub fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
}
