//! Requests under way, in any order, and the two causes that hold the next one back: the bandwidth limit and an
//! interruption.

use crate::Error;
use crate::clock::{Clock, rate_now};
use crate::rate::{Schedule, TokenBucket};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The outside control over a copy in all its phases: bandwidth limit and interruption.
pub(crate) struct Control {
    clock: Arc<dyn Clock>,
    limit: Option<Schedule>,
    bucket: TokenBucket,
    interrupt: BoxFuture<'static, ()>,
    interrupted: bool,
    /// The wait before the token bucket is asked again.
    pause: Option<BoxFuture<'static, ()>>,
}

impl Control {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        limit: Option<Schedule>,
        interrupt: BoxFuture<'static, ()>,
    ) -> Self {
        Self { clock, limit, bucket: TokenBucket::default(), interrupt, interrupted: false, pause: None }
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Whether a request of `bytes` may begin now. If not, [`Outstanding::next`] says when to ask again.
    pub(crate) fn admit(&mut self, bytes: u64) -> bool {
        if self.interrupted || self.pause.is_some() {
            return false;
        }
        let rate = rate_now(self.limit.as_ref(), &*self.clock);
        match self.bucket.admit(self.clock.now(), rate, bytes) {
            Ok(()) => true,
            Err(again) => {
                self.pause = Some(self.clock.wait_until(again));
                false
            }
        }
    }

    /// Ends this phase and every later one once the interruption has come.
    fn check(&mut self, context: &mut Context<'_>) -> Result<(), Error> {
        self.interrupted = self.interrupted || self.interrupt.as_mut().poll(context).is_ready();
        if self.interrupted { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// A set of requests under way.
pub(crate) struct Outstanding<'a, T> {
    requests: FuturesUnordered<BoxFuture<'a, T>>,
    /// Requests that may never end, such as reading from a terminal.
    streams: FuturesUnordered<BoxFuture<'a, T>>,
}

/// The event that [`Outstanding::next`] returns.
pub(crate) enum Turn<T> {
    /// A request ended.
    Done(T),
    /// Requests that were held back may be admitted now.
    Look,
    /// Nothing is under way, and nothing is held back.
    Idle,
}

impl<'a, T> Outstanding<'a, T> {
    pub(crate) fn new() -> Self {
        Self { requests: FuturesUnordered::new(), streams: FuturesUnordered::new() }
    }

    pub(crate) fn start(&mut self, request: impl Future<Output = T> + Send + 'a) {
        self.requests.push(Box::pin(request));
    }

    /// Starts a request to a stream. A copy that ends early does not wait for it.
    pub(crate) fn start_streaming(&mut self, request: impl Future<Output = T> + Send + 'a) {
        self.streams.push(Box::pin(request));
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len() + self.streams.len()
    }

    /// Waits for the next event. After an interruption there is none: what was held back is never admitted, so that
    /// [`Turn::Idle`] would say that all was done.
    pub(crate) async fn next(&mut self, control: &mut Control) -> Result<Turn<T>, Error> {
        poll_fn(|context| {
            if let Err(interrupted) = control.check(context) {
                return Poll::Ready(Err(interrupted));
            }
            if let Some(pause) = &mut control.pause
                && pause.as_mut().poll(context).is_ready()
            {
                control.pause = None;
                return Poll::Ready(Ok(Turn::Look));
            }
            for requests in [&mut self.requests, &mut self.streams] {
                if let Poll::Ready(Some(done)) = requests.poll_next_unpin(context) {
                    return Poll::Ready(Ok(Turn::Done(done)));
                }
            }
            if self.len() == 0 && control.pause.is_none() {
                Poll::Ready(Ok(Turn::Idle))
            } else {
                Poll::Pending
            }
        })
        .await
    }

    /// Waits for all requests under way except those to streams, and drops their outcomes. After that, no write can
    /// change the destination any more.
    pub(crate) async fn drain(mut self) {
        while self.requests.next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::Timer;
    use futures_util::FutureExt;
    use std::pin::Pin;

    struct Midnight;

    impl Timer for Midnight {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn wait_until(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::pending())
        }
    }

    impl Clock for Midnight {
        fn time_of_day(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn next(control: &mut Control) -> Result<Turn<()>, Error> {
        Outstanding::new().next(control).now_or_never().expect("nothing is under way")
    }

    #[test]
    fn without_anything_under_way_a_phase_is_over() {
        let mut control = Control::new(Arc::new(Midnight), None, Box::pin(std::future::pending()));
        assert!(matches!(next(&mut control), Ok(Turn::Idle)));
    }

    #[test]
    fn a_phase_that_begins_after_an_interruption_is_interrupted_and_not_over() {
        let mut control = Control::new(Arc::new(Midnight), None, Box::pin(std::future::ready(())));
        for _phase in 0..2 {
            assert!(matches!(next(&mut control), Err(Error::Interrupted)));
        }
    }
}
