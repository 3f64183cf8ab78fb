//! Random loss on the line, with one decision for each segment.

use crate::model::InvalidModel;
use crate::random::Random;
use crate::units::Probability;
use serde::{Deserialize, Serialize};

/// How packets are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum Loss {
    /// The line loses no packet at random.
    #[default]
    None,
    /// Each packet is lost with this probability, independently of the others (Bernoulli).
    Random(Probability),
    /// Loss in bursts: the simple Gilbert model, described by its effect.
    Bursts {
        /// The long-term share of packets that is lost.
        rate: Probability,
        /// The mean number of packets lost in a row, at least 1.
        length: f64,
    },
    /// Loss in bursts: a chain of two states, each with a loss rate of its own.
    GilbertElliott(GilbertElliott),
}

/// The parameters of the Gilbert–Elliott model. The present state decides whether a packet is lost; after it, the state
/// may change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// p: the probability to go from the good state to the bad one.
    pub enter_bad: Probability,
    /// r: the probability to go from the bad state to the good one.
    pub leave_bad: Probability,
    /// Loss in the good state: 0 in the simple model.
    #[serde(default)]
    pub loss_in_good: Probability,
    /// Loss in the bad state: 1 in the simple model.
    pub loss_in_bad: Probability,
}

impl GilbertElliott {
    /// The simple model with this mean loss rate and this mean length of bursts. `None` if there is no such model: a
    /// burst is at least one packet, and there must be enough packets between bursts.
    #[must_use]
    pub fn of_bursts(rate: Probability, length: f64) -> Option<Self> {
        if !(length >= 1.0 && rate.fraction() < 1.0) {
            return None;
        }
        let leave = 1.0 / length;
        let enter = rate.fraction() * leave / (1.0 - rate.fraction());
        Some(Self {
            enter_bad: Probability::new(enter)?,
            leave_bad: Probability::new(leave)?,
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::new(1.0)?,
        })
    }

    /// The long-term share of packets that is lost.
    #[cfg(test)]
    fn mean_loss(&self) -> f64 {
        let (enter, leave) = (self.enter_bad.fraction(), self.leave_bad.fraction());
        let bad = if enter + leave > 0.0 { enter / (enter + leave) } else { 0.0 };
        bad * self.loss_in_bad.fraction() + (1.0 - bad) * self.loss_in_good.fraction()
    }
}

impl Loss {
    pub(crate) fn validate(&self) -> Result<(), InvalidModel> {
        match self {
            Self::Bursts { rate, length } if GilbertElliott::of_bursts(*rate, *length).is_none() => {
                let problem = format!("{rate} in bursts of {length}");
                Err(InvalidModel::new(
                    "loss",
                    problem,
                    "bursts of at least one packet, with others between them",
                ))
            }
            Self::GilbertElliott(model) if model.leave_bad == Probability::ZERO => {
                Err(InvalidModel::new("leave_bad", 0, "above zero: else the bad state lasts for ever"))
            }
            Self::None | Self::Random(_) | Self::Bursts { .. } | Self::GilbertElliott(_) => Ok(()),
        }
    }
}

/// Decides packet by packet.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    model: Model,
    is_bad: bool,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
enum Model {
    None,
    Random(Probability),
    GilbertElliott(GilbertElliott),
}

impl Model {
    fn new(loss: Loss) -> Self {
        match loss {
            Loss::None => Self::None,
            Loss::Random(probability) => Self::Random(probability),
            Loss::Bursts { rate, length } => {
                GilbertElliott::of_bursts(rate, length).map_or(Self::None, Self::GilbertElliott)
            }
            Loss::GilbertElliott(model) => Self::GilbertElliott(model),
        }
    }
}

impl LossProcess {
    /// A loss process that begins in the good state.
    pub fn new(loss: Loss, random: Random) -> Self {
        Self { model: Model::new(loss), is_bad: false, random }
    }

    /// Changes the kind of loss from now on.
    pub fn set(&mut self, loss: Loss) {
        self.model = Model::new(loss);
        self.is_bad = false;
    }

    pub fn is_none(&self) -> bool {
        matches!(self.model, Model::None)
    }

    /// Whether the next packet is lost.
    pub fn loses(&mut self) -> bool {
        match self.model {
            Model::None => false,
            Model::Random(probability) => self.random.happens(probability),
            Model::GilbertElliott(model) => {
                let (loss, change) = match self.is_bad {
                    false => (model.loss_in_good, model.enter_bad),
                    true => (model.loss_in_bad, model.leave_bad),
                };
                let is_lost = self.random.happens(loss);
                self.is_bad ^= self.random.happens(change);
                is_lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: u32 = 1_000_000;

    fn p(fraction: f64) -> Probability {
        Probability::new(fraction).unwrap()
    }

    /// For each packet, whether it was lost.
    fn fates(loss: Loss) -> Vec<bool> {
        let mut process = LossProcess::new(loss, Random::new(1, "loss", 0));
        (0..PACKETS).map(|_| process.loses()).collect()
    }

    fn lost(fates: &[bool]) -> f64 {
        fates.iter().filter(|is_lost| **is_lost).count() as f64
    }

    /// The lengths of all runs of losses.
    fn bursts(fates: &[bool]) -> Vec<f64> {
        let runs = fates.chunk_by(|one, next| one == next);
        runs.filter(|run| run[0]).map(|run| run.len() as f64).collect()
    }

    #[test]
    fn random_loss_meets_its_rate() {
        for rate in [0.0001, 0.027, 0.5] {
            let sigma = (f64::from(PACKETS) * rate * (1.0 - rate)).sqrt();
            let lost = lost(&fates(Loss::Random(p(rate))));
            assert!((lost - f64::from(PACKETS) * rate).abs() < 6.0 * sigma, "{lost} at {rate}");
        }
    }

    #[test]
    fn bursts_have_their_mean_rate_and_their_mean_length() {
        for (rate, length) in [(0.027, 2.0), (0.027, 4.0), (0.001, 10.0)] {
            let fates = fates(Loss::Bursts { rate: p(rate), length });
            // The chain forgets with the factor 1 - p - r, which widens the variance of independent losses.
            let chain = GilbertElliott::of_bursts(p(rate), length).unwrap();
            let memory = 1.0 - chain.enter_bad.fraction() - chain.leave_bad.fraction();
            let widened = (1.0 + memory) / (1.0 - memory);
            let sigma = (f64::from(PACKETS) * rate * (1.0 - rate) * widened).sqrt();
            assert!((lost(&fates) - f64::from(PACKETS) * rate).abs() < 6.0 * sigma, "rate {rate}");
            // Lengths are geometric with a variance of (1 - r) / r².
            let bursts = bursts(&fates);
            let mean = bursts.iter().sum::<f64>() / bursts.len() as f64;
            let sigma = (length * (length - 1.0) / bursts.len() as f64).sqrt();
            assert!((mean - length).abs() < 6.0 * sigma, "length {mean}, not {length}");
        }
    }

    #[test]
    fn the_helper_gives_the_textbook_parameters() {
        let model = GilbertElliott::of_bursts(p(0.027), 2.0).unwrap();
        assert!((model.enter_bad.fraction() - 0.013_87).abs() < 1e-5);
        assert_eq!(model.leave_bad, p(0.5));
        assert!((model.mean_loss() - 0.027).abs() < 1e-12);
    }

    #[test]
    fn both_states_may_lose_some() {
        let model = GilbertElliott {
            enter_bad: p(0.01),
            leave_bad: p(0.1),
            loss_in_good: p(0.001),
            loss_in_bad: p(0.3),
        };
        let expected = f64::from(PACKETS) * model.mean_loss();
        let lost = lost(&fates(Loss::GilbertElliott(model)));
        assert!((lost - expected).abs() < 0.05 * expected, "{lost}, not {expected}");
    }

    #[test]
    fn impossible_bursts_are_refused() {
        let refused = |rate, length| Loss::Bursts { rate: p(rate), length }.validate().is_err();
        assert!(refused(0.1, 0.5) && refused(1.0, 2.0) && refused(0.9, 2.0) && refused(0.1, f64::NAN));
        assert!(!refused(0.027, 2.0));
    }
}
