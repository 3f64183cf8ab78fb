//! The reports pending for one I_T_L nexus: unit attention conditions, and the deferred error of commands that were
//! answered before it was known (SPC-4).

use scsi::Sense;

use super::unit_attention::UnitAttentions;

/// The pending reports. Each is pending at most once, which bounds them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Untold {
    pub attentions: UnitAttentions,
    /// A reset does not replace it: lost data stays lost.
    deferred_error: Option<Sense>,
    /// The deferred error was told just now, and nobody has asked.
    wants_fence: bool,
}

impl Untold {
    /// Makes a deferred error pending. The first unreported one stands for all.
    pub(crate) fn defer(&mut self, error: Sense) {
        self.deferred_error.get_or_insert(error.deferred());
    }

    /// Takes the deferred error.
    pub(crate) fn take_deferred(&mut self) -> Option<Sense> {
        let error = self.deferred_error.take();
        self.wants_fence |= error.is_some();
        error
    }

    /// Whether the response that tells what was told just now is fenced: the first unit attention after many tasks were
    /// aborted, and a deferred error. On another connection a flush that began later, and succeeded, would overtake that.
    pub(crate) fn take_fence(&mut self) -> bool {
        let follows_abort = self.attentions.take_fence();
        core::mem::take(&mut self.wants_fence) || follows_abort
    }

    /// Takes the next report.
    pub(crate) fn take(&mut self) -> Option<Sense> {
        let attention = self.attentions.take();
        attention.map(super::UnitAttention::sense).or_else(|| self.take_deferred())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deferred_error_is_fenced_once_whoever_takes_it() {
        for take in [Untold::take, Untold::take_deferred] {
            let mut untold = Untold::default();
            untold.defer(Sense::FLUSH_FAILED);
            assert!(!untold.take_fence(), "it is not told yet");
            assert!(take(&mut untold).is_some());
            assert_eq!([untold.take_fence(), untold.take_fence()], [true, false]);
        }
    }
}
