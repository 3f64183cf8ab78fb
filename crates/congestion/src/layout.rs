//! `struct membership` and `struct group` of `bpf/ensemble.h`, as bytes.

use crate::{Control, Group, GroupKey};
use policy::law::{AggregateLaw, GroupTerms, Mode, PARTS, Sharing};

const MEMBERSHIP_BYTES: usize = 32;

/// The size of `struct group`.
pub(crate) const GROUP_BYTES: u32 = 320;

/// What the programs read of the group of a connection.
pub(crate) fn membership(group: u64, terms: GroupTerms) -> [u8; MEMBERSHIP_BYTES] {
    let (mode, weight) = match terms.mode {
        Mode::Fair => (FAIR, 0),
        Mode::Weight(parts) => (WEIGHT, parts),
        Mode::Single => (SINGLE, 0),
        Mode::Conservative => (CONSERVATIVE, 0),
    };
    let (law, sharing) = (terms.law == AggregateLaw::Cubic, terms.sharing == Sharing::Equal);
    let mut bytes = [0; MEMBERSHIP_BYTES];
    // After the lock.
    bytes[8..16].copy_from_slice(&group.to_ne_bytes());
    bytes[16..20].copy_from_slice(&[terms.is_of_host.into(), mode, law.into(), sharing.into()]);
    bytes[20..24].copy_from_slice(&weight.to_ne_bytes());
    bytes[24..28].copy_from_slice(&terms.alpha.unwrap_or(0).to_ne_bytes());
    bytes
}

/// `enum mode`.
const FAIR: u8 = 0;
const WEIGHT: u8 = 1;
const SINGLE: u8 = 2;
const CONSERVATIVE: u8 = 3;

/// Whether the programs have given the connection a place in a group.
pub(crate) fn has_place(membership: &[u8]) -> bool {
    let mut fields = Fields(membership);
    fields.u32().and_then(|_lock| fields.u32()).is_some_and(|place| place != 0)
}

fn terms(mode: u8, law: u8, sharing: u8, weight: u32) -> Option<GroupTerms> {
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
    let (group, _local_address) = (fields.u64()?, fields.u64()?);
    let (user, namespace_inode) = (fields.u32()?, fields.u32()?);
    let control = if fields.u32()? == 0 { Control::Fair } else { Control::Fast };
    let (is_of_host, _changes) = (fields.u32()? != 0, fields.u64()?);
    let (window, ssthresh, frozen) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let _epoch_active_cut_timeout_min_rtt: [u64; 5] = fields.u64s()?;
    let _left_over_and_round: [u64; 3] = fields.u64s()?;
    let srtt = fields.u64()?;
    let _cubic: [u64; 6] = fields.u64s()?;
    let _ssthresh_and_cubic_before: [u64; 7] = fields.u64s()?;
    let (_delivered, _epoch) = (fields.u64()?, fields.u32()?);
    let (seen, seen_before, repairing_members) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (_rtt, _rtt_before, min_rtt_us) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (_generation, weight) = (fields.u32()?, fields.u32()?);
    let (mode, law, sharing, _unused) = (fields.u8()?, fields.u8()?, fields.u8()?, fields.u8()?);
    let (losses, timeouts, undone) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let (raised_shares, split_members, peer_port) = (fields.u32()?, fields.u32()?, fields.u32()?);
    let sending = members.saturating_sub(repairing_members).min(seen.max(seen_before));
    let terms = GroupTerms { is_of_host, ..terms(mode, law, sharing, weight)? };
    let sharers = match terms.sharing {
        Sharing::ByActivity => sending,
        Sharing::Equal => members.saturating_sub(repairing_members),
    };
    let has_window = control == Control::Fair;
    Some(Group {
        key: GroupKey { user, namespace_inode, control, group },
        peer_port: u16::try_from(peer_port).ok()?,
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

    pub fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
}
