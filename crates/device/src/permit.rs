//! Permits: they bound the bytes of reads that one session and one host have in memory, and the work that one unit does
//! after its answers.

use futures_channel::oneshot;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The permits of one session, host or unit. The longest waiter is served first: nobody takes permits, however few,
/// while another waits.
pub(crate) struct Permits {
    free: Cell<usize>,
    waiting: RefCell<VecDeque<Waiter>>,
}

struct Waiter {
    permits: usize,
    sender: oneshot::Sender<Permit>,
}

/// Some permits, until they are dropped.
pub(crate) struct Permit {
    permits: usize,
    source: Rc<Permits>,
}

impl Permits {
    pub(crate) fn new(permits: usize) -> Rc<Self> {
        Rc::new(Self { free: Cell::new(permits), waiting: RefCell::default() })
    }

    /// So many permits, if they are free and nobody waits.
    pub(crate) fn try_take(self: &Rc<Self>, permits: usize) -> Option<Permit> {
        if self.waiting.borrow().is_empty() { self.take_free(permits) } else { None }
    }

    /// So many permits, once they are free. There must be as many, or this never ends.
    pub(crate) async fn take(self: &Rc<Self>, permits: usize) -> Permit {
        // A waiter that goes away may have been the only obstacle of those behind it. Declared before the receiver, and
        // therefore dropped after it.
        let _serve = ServeOnDrop(self);
        loop {
            if let Some(permit) = self.try_take(permits) {
                return permit;
            }
            let (sender, receiver) = oneshot::channel();
            self.waiting.borrow_mut().push_back(Waiter { permits, sender });
            if let Ok(permit) = receiver.await {
                return permit;
            }
        }
    }

    fn take_free(self: &Rc<Self>, permits: usize) -> Option<Permit> {
        self.free.set(self.free.get().checked_sub(permits)?);
        Some(Permit { permits, source: Rc::clone(self) })
    }

    /// Gives free permits to those who wait.
    fn serve(self: &Rc<Self>) {
        while let Some((waiter, permit)) = self.next_served() {
            // If the waiter goes away meanwhile, its permits come back.
            drop(waiter.sender.send(permit));
        }
    }

    /// The longest waiter that is still there, if there are enough permits for it.
    fn next_served(self: &Rc<Self>) -> Option<(Waiter, Permit)> {
        let mut waiting = self.waiting.borrow_mut();
        while waiting.front()?.sender.is_canceled() {
            waiting.pop_front();
        }
        let permit = self.take_free(waiting.front()?.permits)?;
        Some((waiting.pop_front()?, permit))
    }
}

impl Permit {
    /// Takes so many permits out.
    pub(crate) fn split(&mut self, permits: usize) -> Self {
        let permits = permits.min(self.permits);
        self.permits -= permits;
        Self { permits, source: Rc::clone(&self.source) }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.source.free.update(|free| free + self.permits);
        self.source.serve();
    }
}

struct ServeOnDrop<'a>(&'a Rc<Permits>);

impl Drop for ServeOnDrop<'_> {
    fn drop(&mut self) {
        self.0.serve();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn no_more_permits_are_given_than_there_are() {
        let permits = Permits::new(3);
        let first = permits.try_take(2);
        assert!(first.is_some() && permits.try_take(2).is_none());
        drop(first);
        assert!(permits.try_take(3).is_some());
    }

    #[test]
    fn a_part_of_a_permit_can_be_returned_alone() {
        let permits = Permits::new(4);
        let mut whole = permits.try_take(4).unwrap();
        let part = whole.split(3);
        drop(whole);
        assert!(permits.try_take(2).is_none());
        assert!(permits.try_take(1).is_some());
        drop(part);
        assert!(permits.try_take(4).is_some());
    }

    #[test]
    fn who_waits_longest_gets_the_next_permit() {
        let permits = Permits::new(1);
        let held = permits.try_take(1);
        let (mut first, mut second) = (Box::pin(permits.take(1)), Box::pin(permits.take(1)));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop(held);
        assert!((&mut second).now_or_never().is_none());
        let held = (&mut first).now_or_never();
        assert!(held.is_some() && permits.try_take(1).is_none());
        drop(held);
        assert!((&mut second).now_or_never().is_some());
    }

    #[test]
    fn who_needs_many_permits_is_not_overtaken_by_those_who_need_few() {
        let permits = Permits::new(4);
        let (one, others) = (permits.try_take(1), permits.try_take(3));
        let (mut many, mut few) = (Box::pin(permits.take(4)), Box::pin(permits.take(1)));
        assert!((&mut many).now_or_never().is_none() && (&mut few).now_or_never().is_none());
        drop(one);
        assert!(permits.try_take(1).is_none() && (&mut few).now_or_never().is_none());
        drop(others);
        let many = (&mut many).now_or_never();
        assert!(many.is_some() && (&mut few).now_or_never().is_none());
        drop(many);
        assert!((&mut few).now_or_never().is_some());
    }

    #[test]
    fn a_permit_is_not_lost_with_one_who_waited_for_it() {
        let permits = Permits::new(1);
        let held = permits.try_take(1);
        let mut gone = Box::pin(permits.take(1));
        assert!((&mut gone).now_or_never().is_none());
        drop(gone);
        drop(held);
        assert!(permits.try_take(1).is_some());
    }

    #[test]
    fn a_waiter_that_goes_away_makes_way_for_those_behind_it() {
        let permits = Permits::new(2);
        let _held = permits.try_take(1);
        let (mut gone, mut next) = (Box::pin(permits.take(2)), Box::pin(permits.take(1)));
        assert!((&mut gone).now_or_never().is_none() && (&mut next).now_or_never().is_none());
        drop(gone);
        assert!((&mut next).now_or_never().is_some());
    }
}
