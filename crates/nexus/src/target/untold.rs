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
}

impl Untold {
    /// Makes a deferred error pending. The first unreported one stands for all.
    pub(crate) fn defer(&mut self, error: Sense) {
        self.deferred_error.get_or_insert(error.deferred());
    }

    /// Takes the deferred error.
    pub(crate) fn take_deferred(&mut self) -> Option<Sense> {
        self.deferred_error.take()
    }

    /// Takes the next report.
    pub(crate) fn take(&mut self) -> Option<Sense> {
        let attention = self.attentions.take();
        attention.map(super::UnitAttention::sense).or_else(|| self.deferred_error.take())
    }
}
