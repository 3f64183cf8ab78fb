//! Faults of the line behind the bottleneck, which loses, damages and duplicates packets segment by segment.

use crate::counters::{Counters, Drops, Traffic};
use crate::loss::LossProcess;
use crate::model::LinkModel;
use crate::outage::OutageProcess;
use crate::packet::{Packet, take_first};
use crate::random::{Random, scaled};
use crate::units::Probability;

/// All faults that a segment may suffer. Each kind draws its own random numbers for every segment, lost or not, so that
/// one kind does not change the decisions of the others.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    framing: u32,
    is_up: bool,
    outages: Option<OutageProcess>,
    pub loss: LossProcess,
    corruption: Chance,
    duplication: Chance,
}

#[derive(Clone, Debug)]
struct Chance(Probability, Random);

/// Why a segment is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Down,
    Outage,
    Loss,
}

/// The faults of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fault {
    lost: Option<Cause>,
    /// The random number that chooses the bit to flip, if one is flipped.
    flip: Option<u64>,
    is_duplicated: bool,
}

impl Faults {
    pub fn new(model: &LinkModel, seed: u64, path: usize) -> Self {
        let random = |stage| Random::new(seed, stage, path);
        Self {
            framing: model.framing,
            is_up: true,
            outages: model.outages.map(|outages| OutageProcess::new(outages, random("outage"))),
            loss: LossProcess::new(model.loss, random("loss")),
            corruption: Chance(model.corruption, random("corruption")),
            duplication: Chance(model.duplication, random("duplication")),
        }
    }

    /// Sets the line up or down. While it is down, everything is lost.
    pub fn set_up(&mut self, is_up: bool) {
        self.is_up = is_up;
    }

    /// Gives the rest of `packet` to `emit`. A packet without faults passes whole; a segment with a fault is cut out,
    /// and the segments before and after it pass.
    pub fn pass<P: Packet>(
        &mut self,
        at_ns: u64,
        packet: P,
        counters: &mut Counters,
        mut emit: impl FnMut(P),
    ) {
        if self.are_none() {
            return emit(packet);
        }
        let blackout = self.blackout(at_ns);
        let segments = packet.size().segments();
        let mut rest = Some(packet);
        let mut unharmed = 0;
        for _ in 0..segments {
            let fault = self.next_fault(blackout);
            if fault == Fault::default() {
                unharmed += 1;
                continue;
            }
            take_first(&mut rest, unharmed).map(&mut emit);
            unharmed = 0;
            if let Some(segment) = take_first(&mut rest, 1) {
                fault.befall(segment, self.framing, counters, &mut emit);
            }
        }
        rest.map(emit);
    }

    fn are_none(&self) -> bool {
        self.is_up
            && self.outages.is_none()
            && self.loss.is_none()
            && self.corruption.0 == Probability::ZERO
            && self.duplication.0 == Probability::ZERO
    }

    /// The cause for which everything is lost at present, if there is one.
    fn blackout(&mut self, at_ns: u64) -> Option<Cause> {
        let is_out = self.outages.as_mut().is_some_and(|outages| outages.covers(at_ns));
        match self.is_up {
            false => Some(Cause::Down),
            true => is_out.then_some(Cause::Outage),
        }
    }

    fn next_fault(&mut self, blackout: Option<Cause>) -> Fault {
        let loss = self.loss.loses().then_some(Cause::Loss);
        Fault {
            lost: blackout.or(loss),
            flip: self.corruption.happens().then(|| self.corruption.1.word()),
            is_duplicated: self.duplication.happens(),
        }
    }
}

impl Fault {
    fn befall<P: Packet>(
        self,
        mut segment: P,
        framing: u32,
        counters: &mut Counters,
        emit: &mut impl FnMut(P),
    ) {
        let traffic = segment.size().traffic(framing);
        if let Some(cause) = self.lost {
            *cause.counter(&mut counters.dropped) += traffic;
            return;
        }
        if let Some(word) = self.flip {
            segment.corrupt(scaled(word, segment.size().bytes() * 8));
            counters.corrupted += traffic;
        }
        let duplicate = self.is_duplicated.then(|| segment.duplicate());
        emit(segment);
        if let Some(duplicate) = duplicate {
            counters.duplicated += traffic;
            emit(duplicate);
        }
    }
}

impl Cause {
    fn counter(self, drops: &mut Drops) -> &mut Traffic {
        match self {
            Self::Down => &mut drops.down,
            Self::Outage => &mut drops.outage,
            Self::Loss => &mut drops.loss,
        }
    }
}

impl Chance {
    fn happens(&mut self) -> bool {
        self.0 != Probability::ZERO && self.1.happens(self.0)
    }
}
