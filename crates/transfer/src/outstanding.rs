//! Requests under way, in any order, and what can hold the next one back: the limit on bandwidth and the user.

use crate::clock::{Clock, rate_now};
use crate::rate::{Schedule, TokenBucket};
use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;

/// What paces a copy from outside, over all its phases.
pub(crate) struct Control {
    clock: Arc<dyn Clock>,
    limit: Option<Schedule>,
    bucket: TokenBucket,
    interrupt: BoxFuture<'static, ()>,
    interrupted: bool,
    /// Until the bucket is worth asking again.
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

    /// Whether a request that moves so many bytes may begin now. If not, [`Outstanding::next`] says when to ask.
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
    /// What may never end, such as reading from a terminal.
    streams: FuturesUnordered<BoxFuture<'a, T>>,
}

/// What happened.
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

    /// A request to a stream, which is not waited for when a copy ends early.
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

    /// Waits for all that is under way, but for streams, and drops the outcomes: no write is left that could still
    /// change the destination.
    pub(crate) async fn drain(mut self) {
        while self.requests.next().await.is_some() {}
    }
}
