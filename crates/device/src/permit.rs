//! Permits: they bound the pieces of reads that one session and one address have in transit, and the work that one unit
//! does after its answers.

use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The permits of one session, address or unit. The longest waiter is served first.
pub(crate) struct Permits {
    free: Cell<usize>,
    /// Not empty only while no permit is free.
    waiting: RefCell<VecDeque<oneshot::Sender<Permit>>>,
}

/// One permit, until it is dropped.
pub(crate) struct Permit(Rc<Permits>);

/// The permits for one piece, of its session and of its address.
pub(crate) struct ReadPermit {
    _session: Permit,
    _peer: Permit,
}

impl ReadPermit {
    /// Both permits, if both are free.
    pub(crate) fn try_take(session: &Rc<Permits>, peer: &Rc<Permits>) -> Option<Self> {
        Some(Self { _session: session.try_take()?, _peer: peer.try_take()? })
    }

    /// Both permits, once they are free. Calls `let_go` before it waits for others of the same address, because a
    /// waiter must not hold what others wait for.
    pub(crate) async fn take(session: &Rc<Permits>, peer: &Rc<Permits>, let_go: impl FnOnce()) -> Self {
        let session = session.take().await;
        let peer = match peer.try_take() {
            Some(permit) => permit,
            None => {
                let_go();
                peer.take().await
            }
        };
        Self { _session: session, _peer: peer }
    }
}

impl Permits {
    pub(crate) fn new(permits: usize) -> Rc<Self> {
        Rc::new(Self { free: Cell::new(permits), waiting: RefCell::default() })
    }

    /// A permit, if one is free.
    pub(crate) fn try_take(self: &Rc<Self>) -> Option<Permit> {
        self.free.set(self.free.get().checked_sub(1)?);
        Some(Permit(Rc::clone(self)))
    }

    /// A permit, once one is free.
    pub(crate) async fn take(self: &Rc<Self>) -> Permit {
        loop {
            if let Some(permit) = self.try_take() {
                return permit;
            }
            let (sender, permit) = oneshot::channel();
            self.waiting.borrow_mut().push_back(sender);
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let waiting = self.0.waiting.borrow_mut().pop_front();
        match waiting {
            // If the waiter is gone, the dropped permit goes to the next in line.
            Some(waiting) => drop(waiting.send(Self(Rc::clone(&self.0)))),
            None => self.0.free.set(self.0.free.get() + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn no_more_permissions_are_given_than_there_are() {
        let permits = Permits::new(1);
        let first = permits.try_take();
        assert!(first.is_some() && permits.try_take().is_none());
        drop(first);
        assert!(permits.try_take().is_some());
    }

    #[test]
    fn who_waits_longest_gets_the_next_permission() {
        let permits = Permits::new(1);
        let held = permits.try_take();
        let (mut first, mut second) = (Box::pin(permits.take()), Box::pin(permits.take()));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop(held);
        assert!((&mut second).now_or_never().is_none());
        let held = (&mut first).now_or_never();
        assert!(held.is_some() && permits.try_take().is_none());
        drop(held);
        assert!((&mut second).now_or_never().is_some());
    }

    #[test]
    fn a_permission_is_not_lost_with_one_who_waited_for_it() {
        let permits = Permits::new(1);
        let held = permits.try_take();
        let mut gone = Box::pin(permits.take());
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        drop(held);
        assert!(permits.try_take().is_some());
    }
}
