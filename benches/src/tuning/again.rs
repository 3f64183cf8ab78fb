//! Recorded runs, decided again: the tuner that is here now sees what each run's tuner was shown.

use anyhow::Context;
use lab::scsi_run::{SessionTerms, SliceSample};
use lab::{DecisionRecord, Folder, RunRecord, Sample};
use pdu::Instant;
use policy::tuner::Terms;
use std::fmt;

/// A run that is decided again. Beyond the first other decision, it no longer shows what that would have led to.
pub struct Again<'a> {
    record: &'a RunRecord,
    then: &'a [DecisionRecord],
    now: Vec<DecisionRecord>,
}

impl<'a> Again<'a> {
    /// `None` for a run without a tuner, or one of whose slices nothing was kept.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn of(folder: &Folder, record: &'a RunRecord) -> anyhow::Result<Option<Self>> {
        let (Some(session), Some(terms)) = (&record.session, terms_of(record)?) else { return Ok(None) };
        let samples = folder.samples(record)?;
        let slices: Vec<SliceSample> = slices_of(&samples).collect();
        Ok(terms.tuner.filter(|_| !slices.is_empty()).map(|tuner| {
            let mut tuner = tuner.0.begin(Terms { as_flows: terms.as_flows, ..Terms::default() });
            let decisions = slices.iter().filter_map(|sample| tuner.decide(&sample.slice));
            let now = decisions.map(|decision| DecisionRecord::of(&decision, Instant::ZERO)).collect();
            Self { record, then: &session.decisions, now }
        }))
    }

    /// The first decision that differs, by its number.
    #[must_use]
    pub fn first_other(&self) -> Option<usize> {
        let most = self.then.len().max(self.now.len());
        let what = |decision: &DecisionRecord| {
            (decision.connections_before, decision.connections, decision.bbr, decision.reason.clone())
        };
        (0..most).find(|number| self.then.get(*number).map(what) != self.now.get(*number).map(what))
    }
}

impl fmt::Display for Again<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { record, then, now } = self;
        let values: Vec<_> = record.values.iter().map(|(name, value)| format!("{name} {value}")).collect();
        write!(formatter, "| {} | {} | {} |", record.run, values.join(", "), then.len())?;
        let text = |decision: Option<&DecisionRecord>| match decision {
            Some(decision) => {
                format!(
                    "{} → {}: {}",
                    decision.connections_before, decision.connections, decision.explanation
                )
            }
            None => "nothing".to_owned(),
        };
        match self.first_other() {
            Some(number) => {
                let (then, now) = (text(then.get(number)), text(now.get(number)));
                write!(formatter, " decision {}: {now}; then {then} |", number + 1)
            }
            None => write!(formatter, " the same |"),
        }
    }
}

/// `None` of a run without a SCSI session of the lab's own.
fn terms_of(record: &RunRecord) -> anyhow::Result<Option<SessionTerms>> {
    let terms = record.setup.get("scsi").and_then(|scsi| scsi.get("session"));
    terms.map(|terms| terms.clone().try_into().context("the terms of a session")).transpose()
}

/// What a run's tuner was shown.
pub fn slices_of(samples: &[Sample]) -> impl Iterator<Item = SliceSample> {
    samples.iter().filter_map(|sample| match sample {
        Sample::Slice(slice) => Some(**slice),
        _ => None,
    })
}
