//! Running an operation on the spot, if it ends there.

use std::future::Future;
use std::task::{Context, Waker};
use tokio::runtime::Handle;

/// Polls the future here and now; what does not end at once goes on as a task of the runtime. From then on it runs
/// whatever happens to the caller.
pub(crate) fn start(runtime: &Handle, future: impl Future<Output = ()> + Send + 'static) {
    // What it begins may need the runtime's timers, whichever thread this is.
    let _entered = runtime.enter();
    let mut future = Box::pin(future);
    let mut context = Context::from_waker(Waker::noop());
    // The task polls it again and leaves its own waker.
    if future.as_mut().poll(&mut context).is_pending() {
        runtime.spawn(future);
    }
}
