//! Targets whose connections are of one pool.

use crate::model::{LOSSY, Path, Session};
use ropewalk_policy::tuner::{Guided, Pool, Pooled, TUNED_CONNECTIONS_MAX, Terms};

/// A path that needs more connections than there may be.
const NEEDS_ALL: Path = Path { of_each: 1e5, ..LOSSY };

fn pooled(pool: &Pool) -> Session<Pooled> {
    Session::begin(pool.join(Box::new(Guided::new(Terms::default()))))
}

#[test]
fn targets_of_one_pool_have_as_many_connections_together_as_one_alone_may_have() {
    let pool = Pool::default();
    let (mut first, mut second) = (pooled(&pool), pooled(&pool));
    for _ in 0..120 {
        first.work(&NEEDS_ALL, 1);
        second.work(&NEEDS_ALL, 1);
        assert!(first.connections + second.connections <= TUNED_CONNECTIONS_MAX);
    }
    let decisions = (&first.decisions, &second.decisions);
    assert_eq!(first.connections + second.connections, TUNED_CONNECTIONS_MAX, "{decisions:?}");
}

#[test]
fn the_connections_of_a_target_that_is_done_are_there_for_the_others() {
    let pool = Pool::default();
    let (mut first, mut second) = (pooled(&pool), pooled(&pool));
    first.work(&NEEDS_ALL, 60);
    second.work(&NEEDS_ALL, 10);
    assert_eq!((first.connections, second.connections), (48, 16), "{:?}", second.decisions);
    drop(first);
    second.work(&NEEDS_ALL, 60);
    assert_eq!(second.connections, TUNED_CONNECTIONS_MAX, "{:?}", second.decisions);
}
