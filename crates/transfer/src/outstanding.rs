//! Requests under way, in any order, and the two causes that hold the next one back: the bandwidth limit and an
//! interruption.

use crate::clock::{Clock, rate_now};
use crate::rate::{Schedule, TokenBucket};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

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

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted
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
    /// Requests that were held back may be admitted now, or never will be ([`Control::is_interrupted`]).
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

    pub(crate) async fn next(&mut self, control: &mut Control) -> Turn<T> {
        poll_fn(|context| {
            if !control.interrupted && control.interrupt.as_mut().poll(context).is_ready() {
                control.interrupted = true;
                control.pause = None;
                return Poll::Ready(Turn::Look);
            }
            if let Some(pause) = &mut control.pause
                && pause.as_mut().poll(context).is_ready()
            {
                control.pause = None;
                return Poll::Ready(Turn::Look);
            }
            for requests in [&mut self.requests, &mut self.streams] {
                if let Poll::Ready(Some(done)) = requests.poll_next_unpin(context) {
                    return Poll::Ready(Turn::Done(done));
                }
            }
            if self.len() == 0 && control.pause.is_none() { Poll::Ready(Turn::Idle) } else { Poll::Pending }
        })
        .await
    }

    /// Waits for all requests under way except those to streams, and drops their outcomes. After that, no write can
    /// change the destination any more.
    pub(crate) async fn drain(mut self) {
        while self.requests.next().await.is_some() {}
    }
}
