//! What the persistent reservations of the unit may be (SPC-4 §5.12), and so which commands may be refused.
//!
//! One change is on its way at a time; while it is, and for as long as nobody knows what became of it, the unit may be
//! in more than one state. A command may be refused if any state that was possible during its life refuses it, and
//! may succeed if any admits it.

use super::attention_watch::Attention;
use scsi::{PersistentReserveOut, Register, ReservationKey, ReservationType, ReserveAction};
use std::collections::{BTreeSet, VecDeque};

/// One initiator port: a session that keeps its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

impl Port {
    /// Of a host, by their numbers.
    #[must_use]
    pub fn of(host: u16, path: u16) -> Self {
        Self(u32::from(host) << 8 | u32::from(path))
    }

    /// The key with which it registers.
    #[must_use]
    pub const fn key(self) -> ReservationKey {
        ReservationKey(0xa000 + self.0 as u64)
    }
}

/// What a port asks for, with the key that it is registered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// REGISTER AND IGNORE EXISTING KEY; `persist` is APTPL.
    Register {
        /// Whether it is to survive a crash.
        persist: bool,
    },
    /// The same with no key: the registration ends.
    Unregister,
    /// RESERVE, with the type of the reservation.
    Reserve(ReservationType),
    /// RELEASE, with the type of the reservation that should be held.
    Release(ReservationType),
    /// CLEAR: it ends the reservation and every registration.
    Clear,
    /// PREEMPT, or PREEMPT AND ABORT.
    Preempt {
        /// Whose key; `None` for no key.
        victim: Option<Port>,
        /// The reservation that follows.
        kind: ReservationType,
        /// Whether the tasks of whoever loses a registration are aborted.
        abort: bool,
    },
}

impl Change {
    /// What others may be told of it; the last of these, if it ends their registrations.
    #[must_use]
    pub fn attentions(self) -> BTreeSet<Attention> {
        use Attention::{
            ClearedByAnother, RegistrationsPreempted, ReservationsPreempted, ReservationsReleased,
        };
        match self {
            Self::Register { .. } | Self::Reserve(_) => BTreeSet::new(),
            Self::Unregister | Self::Release(_) => BTreeSet::from([ReservationsReleased]),
            Self::Clear => BTreeSet::from([ReservationsPreempted]),
            Self::Preempt { abort: false, .. } => {
                BTreeSet::from([ReservationsReleased, RegistrationsPreempted])
            }
            Self::Preempt { abort: true, .. } => {
                BTreeSet::from([ClearedByAnother, ReservationsReleased, RegistrationsPreempted])
            }
        }
    }

    /// The request of `port`.
    #[must_use]
    pub fn request(self, port: Port) -> PersistentReserveOut {
        let register = |new_key, persist| {
            let ignore_existing_key = true;
            ReserveAction::Register(Register { new_key, ignore_existing_key, persist, ..Register::default() })
        };
        let action = match self {
            Self::Register { persist } => register(port.key(), persist),
            Self::Unregister => register(ReservationKey::NONE, false),
            Self::Reserve(kind) => ReserveAction::Reserve(kind),
            Self::Release(kind) => ReserveAction::Release(kind),
            Self::Clear => ReserveAction::Clear,
            Self::Preempt { victim, kind, abort } => {
                let victim = victim.map_or(ReservationKey::NONE, Port::key);
                ReserveAction::Preempt { victim, kind: Some(kind), abort }
            }
        };
        PersistentReserveOut { key: port.key(), action }
    }
}

/// What a command does that a reservation may forbid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: TEST UNIT READY, and changes of reservations.
    None,
    /// It reads blocks.
    Read,
    /// It writes them, or makes them durable.
    Write,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// GOOD: the change was made.
    Done,
    /// RESERVATION CONFLICT: the port lacks the registration or the rights, and nothing changed.
    Conflict,
    /// CHECK CONDITION: it makes no sense.
    Invalid,
    /// No answer arrived: the change may have been made.
    Unknown,
}

/// One state of the unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// Ports that are registered, each with its own key.
    registered: BTreeSet<Port>,
    held: Option<(ReservationType, Port)>,
    persists: bool,
}

impl State {
    fn is_holder(&self, port: Port) -> bool {
        let holds = |(kind, holder): (ReservationType, Port)| kind.is_all_registrants() || holder == port;
        self.registered.contains(&port) && self.held.is_some_and(holds)
    }

    fn refuses(&self, port: Port, access: Access) -> bool {
        let Some((kind, _)) = self.held else { return false };
        let excluded = match access {
            Access::None => false,
            Access::Read => kind.excludes_reading(),
            Access::Write => true,
        };
        let shares = kind.admits_registrants() && self.registered.contains(&port);
        excluded && !shares && !self.is_holder(port)
    }

    fn unregister(&mut self, port: Port) {
        self.registered.remove(&port);
        let registered = &self.registered;
        self.held.take_if(
            |(kind, holder)| {
                if kind.is_all_registrants() { registered.is_empty() } else { *holder == port }
            },
        );
    }

    fn after(&self, port: Port, change: Change) -> Result<Self, Answer> {
        let mut next = self.clone();
        let is_registered = self.registered.contains(&port);
        match change {
            Change::Register { persist } => {
                next.registered.insert(port);
                next.persists = persist;
                return Ok(next);
            }
            Change::Unregister => {
                if is_registered {
                    next.unregister(port);
                    next.persists = false;
                }
                return Ok(next);
            }
            _ if !is_registered => return Err(Answer::Conflict),
            Change::Reserve(kind) => match self.held {
                None => next.held = Some((kind, port)),
                Some((held, _)) if held == kind && self.is_holder(port) => {}
                Some(_) => return Err(Answer::Conflict),
            },
            Change::Release(kind) => match self.held {
                Some((held, _)) if self.is_holder(port) && held != kind => return Err(Answer::Invalid),
                Some(_) if self.is_holder(port) => next.held = None,
                _ => {}
            },
            Change::Clear => {
                next.registered.clear();
                next.held = None;
            }
            Change::Preempt { victim, kind, .. } => next.preempt(port, victim, kind)?,
        }
        Ok(next)
    }

    /// PREEMPT (SPC-4 §5.12.11): the victim loses its registration, and `port` takes the reservation that it held.
    fn preempt(&mut self, port: Port, victim: Option<Port>, kind: ReservationType) -> Result<(), Answer> {
        match (self.held, victim) {
            (Some((held, _)), None) if held.is_all_registrants() => {
                self.registered.retain(|other| *other == port);
                self.held = Some((kind, port));
            }
            (_, None) => return Err(Answer::Invalid),
            (Some((held, holder)), Some(victim)) if !held.is_all_registrants() && holder == victim => {
                self.registered.retain(|other| *other != victim || *other == port);
                self.held = Some((kind, port));
            }
            (_, Some(victim)) => {
                if !self.registered.contains(&victim) {
                    return Err(Answer::Conflict);
                }
                self.unregister(victim);
            }
        }
        Ok(())
    }

    fn after_crash(self) -> Self {
        if self.persists { self } else { Self::default() }
    }
}

/// Who is surely registered no more, and has no more tasks, since a PREEMPT AND ABORT was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempted {
    /// Who asked for it.
    pub by: Port,
    /// Whose registrations it took away.
    pub victims: BTreeSet<Port>,
}

#[derive(Debug)]
struct UnderWay {
    port: Port,
    change: Change,
    before: Vec<State>,
    /// The target died meanwhile: the answer says nothing more.
    crashed: bool,
}

/// A moment in the history of the reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version(usize);

/// What the reservations may have been, and may be.
#[derive(Debug)]
pub struct ReservationHistory {
    /// The possible states, after each change of what is possible.
    versions: Vec<Vec<State>>,
    under_way: Option<UnderWay>,
    /// Changes of unknown outcome. The target may still make them until it replaces their port's session.
    ghosts: Vec<(Port, Change)>,
    preempted: Option<Preempted>,
    /// Whose registrations the last change has surely ended, besides the one of who asked.
    ended: BTreeSet<Port>,
}

impl Default for ReservationHistory {
    fn default() -> Self {
        Self {
            versions: vec![vec![State::default()]],
            under_way: None,
            ghosts: Vec::new(),
            preempted: None,
            ended: BTreeSet::new(),
        }
    }
}

impl ReservationHistory {
    /// The present version.
    #[must_use]
    pub fn version(&self) -> Version {
        Version(self.versions.len().saturating_sub(1))
    }

    fn possible(&self) -> &[State] {
        self.versions.last().map_or(&[], Vec::as_slice)
    }

    fn become_possible(&mut self, states: impl IntoIterator<Item = State>) {
        let mut coming: VecDeque<State> = states.into_iter().collect();
        let mut possible: Vec<State> = Vec::new();
        while let Some(state) = coming.pop_front() {
            if possible.contains(&state) {
                continue;
            }
            coming.extend(self.ghosts.iter().filter_map(|(port, change)| state.after(*port, *change).ok()));
            possible.push(state);
        }
        self.versions.push(possible);
    }

    /// Whether a change can be asked for.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.under_way.is_none()
    }

    /// Whether somebody may hold a reservation.
    #[must_use]
    pub fn may_be_held(&self) -> bool {
        self.possible().iter().any(|state| state.held.is_some())
    }

    /// Whether a port is surely registered.
    #[must_use]
    pub fn is_registered(&self, port: Port) -> bool {
        self.possible().iter().all(|state| state.registered.contains(&port))
    }

    /// What is held, as far as one may believe it, and by whom.
    #[must_use]
    pub fn held(&self) -> Option<(ReservationType, Port)> {
        self.possible().first()?.held
    }

    /// Whether registrations would survive a crash; `None` if there are none.
    #[must_use]
    pub fn persists(&self) -> Option<bool> {
        let state = self.possible().first()?;
        (!state.registered.is_empty()).then_some(state.persists)
    }

    /// A change is sent.
    pub fn begin(&mut self, port: Port, change: Change) {
        let before = self.possible().to_vec();
        let after: Vec<State> = before.iter().filter_map(|state| state.after(port, change).ok()).collect();
        self.become_possible(before.iter().cloned().chain(after));
        self.under_way = Some(UnderWay { port, change, before, crashed: false });
    }

    /// A change is over.
    ///
    /// # Errors
    /// No state that was possible leads to this answer.
    pub fn end(&mut self, answer: Answer) -> Result<(), String> {
        let Some(UnderWay { port, change, before, crashed }) = self.under_way.take() else { return Ok(()) };
        if answer == Answer::Unknown {
            self.ghosts.push((port, change));
            return Ok(());
        }
        // The answer came from a session that has replaced those before it.
        self.ghosts.retain(|(other, _)| *other != port);
        if crashed {
            return Ok(());
        }
        let outcomes = before.iter().map(|state| (state, state.after(port, change)));
        let states: Vec<State> = outcomes
            .filter_map(|(state, outcome)| match outcome {
                Ok(next) if answer == Answer::Done => Some(next),
                Err(refused) if answer == refused => Some(state.clone()),
                _ => None,
            })
            .collect();
        if states.is_empty() {
            return Err(format!("{change:?} of {port:?} was answered with {answer:?}, after {before:?}"));
        }
        let lose = |victim: &Port| *victim != port && !may_be_registered(&states, *victim);
        self.ended = surely_registered(&before).into_iter().filter(lose).collect();
        if matches!((change, answer), (Change::Preempt { abort: true, .. }, Answer::Done)) {
            self.preempted = Some(Preempted { by: port, victims: self.ended.clone() });
        }
        self.become_possible(states);
        Ok(())
    }

    /// Every session that was lost has been replaced, so nothing comes of old changes any more.
    pub fn lay_ghosts(&mut self) {
        self.ghosts.clear();
    }

    /// The other ports whose registrations the last change has surely ended, once.
    pub fn take_ended(&mut self) -> BTreeSet<Port> {
        std::mem::take(&mut self.ended)
    }

    /// What the last PREEMPT AND ABORT did, once.
    pub fn take_preempted(&mut self) -> Option<Preempted> {
        self.preempted.take()
    }

    /// The target lost its memory. A change that is under way may not have arrived there: then it is still to come.
    pub fn crash(&mut self) {
        let mut states: Vec<State> = self.possible().iter().cloned().map(State::after_crash).collect();
        if let Some(UnderWay { port, change, .. }) = self.under_way {
            let later: Vec<State> =
                states.iter().filter_map(|state| state.after(port, change).ok()).collect();
            states.extend(later);
        }
        self.ghosts.clear();
        self.become_possible(states);
        if let Some(under_way) = &mut self.under_way {
            under_way.crashed = true;
        }
    }

    /// A command that was sent at `begun` was refused with RESERVATION CONFLICT, or was not.
    ///
    /// # Errors
    /// No state that was possible since then does that.
    pub fn judge(&self, begun: Version, port: Port, access: Access, refused: bool) -> Result<(), String> {
        let mut states = self.versions.iter().skip(begun.0).flatten();
        if states.any(|state| state.refuses(port, access) == refused) {
            return Ok(());
        }
        let what = if refused { "RESERVATION CONFLICT" } else { "no RESERVATION CONFLICT" };
        Err(format!("{what} for {access:?} of {port:?}, although {:?}", self.possible()))
    }
}

fn surely_registered(states: &[State]) -> BTreeSet<Port> {
    let mut sets = states.iter().map(|state| state.registered.clone());
    let first = sets.next().unwrap_or_default();
    sets.fold(first, |common, set| common.intersection(&set).copied().collect())
}

fn may_be_registered(states: &[State], port: Port) -> bool {
    states.iter().any(|state| state.registered.contains(&port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Port = Port(1);
    const OTHER: Port = Port(2);
    const KIND: ReservationType = ReservationType::WriteExclusive;

    fn does(history: &mut ReservationHistory, port: Port, change: Change) {
        history.begin(port, change);
        assert_eq!(history.end(Answer::Done), Ok(()));
    }

    fn reserved(persist: bool) -> ReservationHistory {
        let mut history = ReservationHistory::default();
        does(&mut history, ONE, Change::Register { persist });
        does(&mut history, ONE, Change::Reserve(KIND));
        history
    }

    #[test]
    fn whom_a_reservation_excludes_is_refused_and_nobody_else() {
        let history = reserved(false);
        let now = history.version();
        assert_eq!(history.judge(now, OTHER, Access::Write, true), Ok(()));
        assert!(history.judge(now, OTHER, Access::Write, false).is_err());
        assert!(history.judge(now, OTHER, Access::Read, true).is_err());
        assert!(history.judge(now, ONE, Access::Write, true).is_err());
    }

    #[test]
    fn while_a_change_is_under_way_both_may_be() {
        let mut history = reserved(false);
        history.begin(ONE, Change::Release(KIND));
        let now = history.version();
        for refused in [false, true] {
            assert_eq!(history.judge(now, OTHER, Access::Write, refused), Ok(()));
        }
        assert_eq!(history.end(Answer::Done), Ok(()));
        assert!(history.judge(history.version(), OTHER, Access::Write, true).is_err());
    }

    #[test]
    fn what_is_to_persist_survives_a_crash_and_nothing_else() {
        for persist in [false, true] {
            let mut history = reserved(persist);
            history.crash();
            assert_eq!(history.may_be_held(), persist);
        }
    }

    #[test]
    fn a_change_that_is_under_way_at_a_crash_may_be_made_after_it() {
        let mut history = ReservationHistory::default();
        history.begin(ONE, Change::Register { persist: false });
        history.crash();
        assert_eq!(history.end(Answer::Done), Ok(()));
        let registered: Vec<bool> =
            history.possible().iter().map(|state| state.registered.contains(&ONE)).collect();
        assert_eq!(registered, [false, true]);
    }

    #[test]
    fn a_change_of_unknown_end_may_be_made_later_until_its_port_is_answered() {
        let mut history = reserved(false);
        does(&mut history, OTHER, Change::Register { persist: false });
        history.begin(ONE, Change::Release(KIND));
        assert_eq!(history.end(Answer::Unknown), Ok(()));
        history.begin(OTHER, Change::Reserve(KIND));
        assert_eq!(history.end(Answer::Conflict), Ok(()));
        assert_eq!(history.judge(history.version(), OTHER, Access::Write, false), Ok(()));
        does(&mut history, ONE, Change::Register { persist: false });
        history.begin(OTHER, Change::Reserve(KIND));
        assert_eq!(history.end(Answer::Conflict), Ok(()));
        assert!(history.judge(history.version(), OTHER, Access::Write, false).is_err());
    }

    #[test]
    fn an_answer_that_nothing_explains_is_wrong() {
        let mut history = reserved(false);
        history.begin(OTHER, Change::Clear);
        assert!(history.end(Answer::Done).is_err());
        history.begin(OTHER, Change::Clear);
        assert_eq!(history.end(Answer::Conflict), Ok(()));
    }

    #[test]
    fn preempting_a_holder_takes_its_place() {
        let mut history = reserved(false);
        does(&mut history, OTHER, Change::Register { persist: false });
        does(&mut history, OTHER, Change::Preempt { victim: Some(ONE), kind: KIND, abort: false });
        assert_eq!(history.held(), Some((KIND, OTHER)));
        assert!(!history.is_registered(ONE));
    }
}
