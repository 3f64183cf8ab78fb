//! What kept a session from moving more, as programs read it.

use policy::Diagnosis;
use serde::{Deserialize, Serialize};

/// A [`Diagnosis`]. All shares are from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiagnosisRecord {
    /// What limited the session: [`policy::Limit::name`].
    pub limit: String,
    /// The share of the time for which that was waited for.
    pub share: f64,
    /// What would help: [`policy::Change::name`]; `None` if nothing would, or if that cannot be known.
    #[serde(default)]
    pub remedy: Option<String>,
    /// How many times as fast the session would then be, unless something else limits it first.
    #[serde(default)]
    pub gain: Option<f64>,
    /// The share of the time in which the network carried what it could.
    pub network_share: f64,
    /// The share of the payload that was sent again.
    pub loss: f64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// The mean round-trip time.
    pub rtt_s: f64,
    /// The mean of the shortest ones.
    pub rtt_min_s: f64,
    /// The share of the busy time in which the receiver's window let nothing more be sent.
    pub receive_window_share: f64,
    /// The verdict is on data from the target.
    #[serde(default)]
    pub incoming: bool,
    /// The mean round-trip time that the receiver measured while data came.
    #[serde(default)]
    pub receive_rtt_s: f64,
    /// The mean of either when data was sent again or segments came out of order, in seconds; zero without losses.
    #[serde(default)]
    pub rtt_at_loss_s: f64,
    /// The share of segments from the target that came before others that precede them.
    #[serde(default)]
    pub out_of_order: f64,
}

impl From<Diagnosis> for DiagnosisRecord {
    fn from(diagnosis: Diagnosis) -> Self {
        let Diagnosis { limit, share, remedy, network_share, is_incoming, path } = diagnosis;
        let rtt_at_loss = if is_incoming { path.receive_rtt_at_loss } else { path.rtt_at_loss };
        Self {
            limit: limit.name().to_owned(),
            share,
            remedy: remedy.map(|remedy| remedy.change.name().to_owned()),
            gain: remedy.map(|remedy| remedy.gain),
            network_share,
            loss: path.loss,
            timeouts: path.timeouts,
            rtt_s: path.rtt.as_secs_f64(),
            rtt_min_s: path.rtt_min.as_secs_f64(),
            receive_window_share: path.receive_window_share,
            incoming: is_incoming,
            receive_rtt_s: path.receive_rtt.as_secs_f64(),
            rtt_at_loss_s: rtt_at_loss.as_secs_f64(),
            out_of_order: path.out_of_order,
        }
    }
}
