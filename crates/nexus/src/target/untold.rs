//! What is still to be told to one I_T_L nexus: unit attention conditions, and the deferred error of commands that were
//! answered before it was known (SPC-4).

use scsi::Sense;

use super::unit_attention::UnitAttentions;

/// All of it. Each thing is pending once at most, which bounds it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Untold {
    pub attentions: UnitAttentions,
    /// No reset takes its place: what was lost stays lost.
    deferred_error: Option<Sense>,
}

impl Untold {
    /// Makes a deferred error pending. The first that was not told stands for all.
    pub(crate) fn defer(&mut self, error: Sense) {
        self.deferred_error.get_or_insert(error.deferred());
    }

    /// The deferred error; it is pending no more.
    pub(crate) fn take_deferred(&mut self) -> Option<Sense> {
        self.deferred_error.take()
    }

    /// The next thing to tell; it is pending no more.
    pub(crate) fn take(&mut self) -> Option<Sense> {
        let attention = self.attentions.take();
        attention.map(super::UnitAttention::sense).or_else(|| self.deferred_error.take())
    }
}
