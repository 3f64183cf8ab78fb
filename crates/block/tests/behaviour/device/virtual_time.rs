//! Time that passes when the test says so.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ropewalk_block::Timer;

/// Clones show the same time.
#[derive(Clone, Default)]
pub struct VirtualTime(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now: Duration,
    alarms: Vec<(Duration, Waker)>,
}

impl VirtualTime {
    pub fn advance_to(&self, time: Duration) {
        let mut state = self.0.lock().unwrap();
        state.now = time;
        let (due, later) = state.alarms.drain(..).partition(|(at, _)| *at <= time);
        state.alarms = later;
        drop(state);
        let due: Vec<(Duration, Waker)> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }

    /// Advances to the next alarm; whether there was one.
    pub fn advance(&self) -> bool {
        let next = self.0.lock().unwrap().alarms.iter().map(|(at, _)| *at).min();
        next.inspect(|at| self.advance_to(*at)).is_some()
    }
}

impl Timer for VirtualTime {
    fn now(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    fn wait_until(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Alarm { clock: self.clone(), time })
    }
}

struct Alarm {
    clock: VirtualTime,
    time: Duration,
}

impl Future for Alarm {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.0.lock().unwrap();
        if state.now >= self.time {
            return Poll::Ready(());
        }
        state.alarms.push((self.time, context.waker().clone()));
        Poll::Pending
    }
}
