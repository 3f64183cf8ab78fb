//! Runs futures on one thread, in an order that depends on nothing but who woke them.

use crate::shared_cell::SharedCell;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

/// A future that nobody waits for.
pub type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Tasks and who of them was woken.
#[derive(Default)]
pub struct Executor {
    /// `None` in place of the one that is polled.
    tasks: RefCell<slab::Slab<Option<Entry>>>,
    woken: Woken,
    /// Those of one round. Kept, so that a round costs no allocation.
    round: RefCell<Vec<Key>>,
}

/// Tasks wake each other without end, and time stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restless;

/// More polls than anything needs at one instant.
const POLLS_MAX: usize = 1 << 20;

struct Entry {
    task: Task,
    waker: Waker,
}

#[derive(Clone, Default)]
struct Woken(SharedCell<Vec<Key>>);

/// A place in the table of tasks. A late wake-up for a task that is gone polls its successor once more than
/// necessary.
type Key = usize;

struct TaskWaker {
    key: Key,
    woken: Woken,
}

impl Woken {
    fn push(&self, key: Key) {
        let mut keys = self.0.lock();
        if keys.last() != Some(&key) {
            keys.push(key);
        }
    }

    fn take(&self, into: &mut Vec<Key>) {
        into.clear();
        std::mem::swap(into, &mut self.0.lock());
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.woken.push(self.key);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.push(self.key);
    }
}

impl Executor {
    /// Takes a task in; it is polled when [`Self::run`] is called, never before.
    pub fn spawn(&self, task: Task) {
        let mut tasks = self.tasks.borrow_mut();
        let vacant = tasks.vacant_entry();
        let key = vacant.key();
        let waker = Waker::from(Arc::new(TaskWaker { key, woken: self.woken.clone() }));
        vacant.insert(Some(Entry { task, waker }));
        self.woken.push(key);
    }

    /// Polls whoever was woken until nobody is any more.
    ///
    /// # Errors
    /// They do not come to rest.
    pub fn run(&self) -> Result<(), Restless> {
        let mut keys = self.round.borrow_mut();
        let mut polls = 0;
        while polls < POLLS_MAX {
            self.woken.take(&mut keys);
            if keys.is_empty() {
                return Ok(());
            }
            polls += keys.len();
            keys.iter().for_each(|key| self.poll(*key));
        }
        Err(Restless)
    }

    fn poll(&self, key: Key) {
        let taken = self.tasks.borrow_mut().get_mut(key).and_then(Option::take);
        let Some(mut entry) = taken else { return };
        match entry.task.as_mut().poll(&mut Context::from_waker(&entry.waker)) {
            Poll::Pending => {
                if let Some(place) = self.tasks.borrow_mut().get_mut(key) {
                    *place = Some(entry);
                }
            }
            Poll::Ready(()) => {
                drop(entry);
                self.tasks.borrow_mut().try_remove(key);
            }
        }
    }

    /// Drops every task, as a crash does.
    pub fn clear(&self) {
        // A task that is dropped may spawn another, or wake one.
        loop {
            let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
            if tasks.is_empty() {
                return;
            }
            drop(tasks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::rc::Rc;

    #[test]
    fn a_task_runs_when_it_is_woken_and_ends() {
        let executor = Executor::default();
        let (polls, waker) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(None)));
        let (counted, kept) = (Rc::clone(&polls), Rc::clone(&waker));
        executor.spawn(Box::pin(poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            *kept.borrow_mut() = Some(cx.waker().clone());
            if counted.get() < 2 { Poll::Pending } else { Poll::Ready(()) }
        })));
        assert_eq!(polls.get(), 0);
        assert_eq!(executor.run(), Ok(()));
        assert_eq!(executor.run(), Ok(()));
        assert_eq!(polls.get(), 1);
        let woken: Option<Waker> = waker.borrow_mut().take();
        woken.into_iter().for_each(Waker::wake);
        assert_eq!(executor.run(), Ok(()));
        assert_eq!(polls.get(), 2);
    }

    #[test]
    fn a_task_that_wakes_itself_without_end_is_noticed() {
        let executor = Executor::default();
        executor.spawn(Box::pin(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        })));
        assert_eq!(executor.run(), Err(Restless));
    }
}
