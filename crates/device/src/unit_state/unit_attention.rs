//! Unit attention conditions: reports that an initiator must get before it continues (SAM-5).

use scsi::{AdditionalSense, Sense};

/// An event at a logical unit, in SAM-5's order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitAttention {
    /// The unit has come up, as far as this initiator can know.
    PowerOn,
    /// The whole target was reset.
    TargetReset,
    /// The unit was reset.
    LogicalUnitReset,
    /// The nexus was lost and has come back.
    NexusLoss,
    /// Another initiator cleared the task set.
    CommandsClearedByAnotherInitiator,
    /// Commands were lost with a connection or a session (RFC 7143 §11.14.5).
    CommandsClearedByProtocolEvent,
    /// The medium was ejected and one was loaded.
    MediumMayHaveChanged,
    /// MODE SENSE now returns other parameters.
    ModeParametersChanged,
    /// Another initiator has cleared the persistent reservations.
    ReservationsPreempted,
    /// A persistent reservation has ended that this initiator could rely on.
    ReservationsReleased,
    /// Another initiator has ended this one's registration.
    RegistrationsPreempted,
    /// Little space is left to allocate (SBC-3).
    SoftThresholdReached,
}

impl UnitAttention {
    /// Its additional sense code.
    #[must_use]
    pub const fn additional(self) -> AdditionalSense {
        match self {
            Self::PowerOn => AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED,
            Self::TargetReset => AdditionalSense::SCSI_BUS_RESET_OCCURRED,
            Self::LogicalUnitReset => AdditionalSense::BUS_DEVICE_RESET_FUNCTION_OCCURRED,
            Self::NexusLoss => AdditionalSense::I_T_NEXUS_LOSS_OCCURRED,
            Self::CommandsClearedByAnotherInitiator => AdditionalSense::COMMANDS_CLEARED_BY_ANOTHER_INITIATOR,
            Self::CommandsClearedByProtocolEvent => {
                AdditionalSense::SOME_COMMANDS_CLEARED_BY_ISCSI_PROTOCOL_EVENT
            }
            Self::MediumMayHaveChanged => AdditionalSense::NOT_READY_TO_READY_CHANGE_MEDIUM_MAY_HAVE_CHANGED,
            Self::ModeParametersChanged => AdditionalSense::MODE_PARAMETERS_CHANGED,
            Self::ReservationsPreempted => AdditionalSense::RESERVATIONS_PREEMPTED,
            Self::ReservationsReleased => AdditionalSense::RESERVATIONS_RELEASED,
            Self::RegistrationsPreempted => AdditionalSense::REGISTRATIONS_PREEMPTED,
            Self::SoftThresholdReached => AdditionalSense::THIN_PROVISIONING_SOFT_THRESHOLD_REACHED,
        }
    }

    /// Its sense data.
    #[must_use]
    pub const fn sense(self) -> Sense {
        Sense::unit_attention(self.additional())
    }

    /// Whether it results from a function that aborted the tasks of many.
    const fn follows_abort(self) -> bool {
        matches!(self, Self::TargetReset | Self::LogicalUnitReset | Self::CommandsClearedByAnotherInitiator)
    }

    /// Whether an initiator that gets it forgets all it knew, so that lesser conditions need no report.
    const fn is_reset(self) -> bool {
        matches!(self, Self::PowerOn | Self::TargetReset | Self::LogicalUnitReset)
    }
}

/// The conditions pending for one I_T_L nexus. Each is pending at most once, which bounds them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnitAttentions {
    /// In ascending order: the first is reported first.
    pending: Vec<UnitAttention>,
    /// Many tasks were aborted, and nothing was reported since.
    follows_abort: bool,
    /// The last report was the first since then, and its fence was not taken yet.
    wants_fence: bool,
}

impl UnitAttentions {
    /// Makes a condition pending. A reset replaces all pending conditions; while a greater reset is pending, a lesser
    /// one adds nothing.
    pub(crate) fn establish(&mut self, attention: UnitAttention) {
        self.follows_abort |= attention.follows_abort();
        if attention.is_reset() {
            let greatest = self.pending.first().copied().filter(|first| first.is_reset());
            self.pending = vec![greatest.map_or(attention, |greatest| greatest.min(attention))];
        } else if let Err(place) = self.pending.binary_search(&attention) {
            self.pending.insert(place, attention);
        }
    }

    /// Takes the next condition to report.
    pub(crate) fn take(&mut self) -> Option<UnitAttention> {
        (!self.pending.is_empty()).then(|| self.take_first())
    }

    /// Takes the next condition if it has precedence over RESERVATION CONFLICT.
    pub(crate) fn take_reset(&mut self) -> Option<UnitAttention> {
        let first =
            self.pending.first().filter(|first| first.is_reset() || **first == UnitAttention::NexusLoss);
        first.is_some().then(|| self.take_first())
    }

    fn take_first(&mut self) -> UnitAttention {
        self.wants_fence = core::mem::take(&mut self.follows_abort);
        self.pending.remove(0)
    }

    /// Whether the last report was the first unit attention after many tasks were aborted.
    pub(crate) fn take_fence(&mut self) -> bool {
        core::mem::take(&mut self.wants_fence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(mut attentions: UnitAttentions) -> Vec<UnitAttention> {
        core::iter::from_fn(|| attentions.take()).collect()
    }

    fn established(all: &[UnitAttention]) -> UnitAttentions {
        let mut attentions = UnitAttentions::default();
        all.iter().for_each(|attention| attentions.establish(*attention));
        attentions
    }

    #[test]
    fn each_condition_is_told_once() {
        let changed = UnitAttention::ModeParametersChanged;
        assert_eq!(told(established(&[changed, changed])), [changed]);
    }

    #[test]
    fn conditions_are_told_by_precedence() {
        let (lost, cleared) = (UnitAttention::NexusLoss, UnitAttention::CommandsClearedByProtocolEvent);
        assert_eq!(told(established(&[cleared, lost])), [lost, cleared]);
    }

    #[test]
    fn the_first_attention_after_an_abort_is_fenced_whichever_it_is() {
        use UnitAttention::{LogicalUnitReset, ModeParametersChanged, PowerOn};
        let mut attentions = established(&[PowerOn, ModeParametersChanged]);
        assert!(attentions.take().is_some() && !attentions.take_fence());
        attentions.establish(LogicalUnitReset);
        attentions.establish(PowerOn);
        attentions.establish(ModeParametersChanged);
        assert_eq!((attentions.take(), attentions.take_fence()), (Some(PowerOn), true));
        assert_eq!((attentions.take(), attentions.take_fence()), (Some(ModeParametersChanged), false));
    }

    #[test]
    fn a_reset_takes_the_place_of_all_that_was_pending() {
        let (changed, reset) = (UnitAttention::ModeParametersChanged, UnitAttention::LogicalUnitReset);
        assert_eq!(told(established(&[changed, reset])), [reset]);
    }

    #[test]
    fn a_greater_reset_is_not_hidden_by_a_lesser_one() {
        let (power_on, reset) = (UnitAttention::PowerOn, UnitAttention::LogicalUnitReset);
        assert_eq!(told(established(&[power_on, reset])), [power_on]);
        assert_eq!(told(established(&[reset, power_on])), [power_on]);
    }
}
