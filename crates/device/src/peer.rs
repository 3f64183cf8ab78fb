//! What one address may hold of a target's memory, whichever sessions it has: so that something is left to others.

use crate::logical_unit::TRANSFER_BYTES_MAX;
use crate::memory::Memory;
use crate::permit::Permits;
use crate::read::pieces_per_peer;
use framing::Quota;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

/// An address no longer gets memory for writes when it holds this part of all, so that no one of three others is kept
/// from anything by it. What is set aside for its unsolicited data does not count.
const WRITE_SHARE_DIVISOR: usize = 4;

/// Bounds that the sessions from one address share. Names can be invented; addresses cannot, as TCP wants an answer.
pub(crate) struct Peer {
    /// For data of writes that was asked for.
    pub writes: Quota,
    /// For pieces of reads that are on their way.
    pub read_pieces: Rc<Permits>,
}

/// The addresses that have sessions.
#[derive(Default)]
pub(crate) struct Peers(RefCell<HashMap<IpAddr, Rc<Peer>>>);

impl Peers {
    /// The bounds of an address within what all share.
    pub(crate) fn at(&self, address: IpAddr, memory: &Memory) -> Rc<Peer> {
        let budget_bytes = memory.transfers.budget_bytes();
        let mut peers = self.0.borrow_mut();
        // Those whose sessions have ended.
        peers.retain(|_, peer| Rc::strong_count(peer) > 1);
        let new = || {
            // One command of the longest kind must always fit.
            let bytes = (budget_bytes / WRITE_SHARE_DIVISOR).max(TRANSFER_BYTES_MAX as usize);
            let read_pieces = Permits::new(pieces_per_peer(budget_bytes));
            Rc::new(Peer { writes: memory.writes.part(bytes), read_pieces })
        };
        Rc::clone(peers.entry(address.to_canonical()).or_insert_with(new))
    }
}
