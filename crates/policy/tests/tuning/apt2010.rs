//! The tuner of paper 003 doubles, and then searches.

use crate::model::{LOSSY, Path, Session};
use ropewalk_policy::Limit;
use ropewalk_policy::tuner::{Apt2010, Reason, TUNED_CONNECTIONS_MAX, Terms};

#[test]
fn apt2010_doubles_and_then_searches_by_golden_sections() {
    // The most at 24: each moves 700 kB/s, and each beyond that number costs something.
    let moves = |connections: u32| {
        let excess = connections.saturating_sub(24);
        7e5 * f64::from(connections.min(24)) - 1e5 * f64::from(excess)
    };
    let mut session = Session::begin(Apt2010::new(Terms::default()));
    for _ in 0..240 {
        session.slice(moves(session.connections), Limit::Losses);
    }
    let tried: Vec<u32> = session.decisions.iter().map(|decision| decision.connections).collect();
    assert_eq!(tried[..5], [2, 4, 8, 16, 32]);
    let end = session.decisions.last().unwrap();
    assert_eq!(end.reason, Reason::Found);
    assert!((23..=25).contains(&end.connections), "{tried:?}");
}

#[test]
fn apt2010_passes_over_what_was_moved_while_connections_were_broken() {
    let mut session = Session::begin(Apt2010::new(Terms::default()));
    for slice in 0..240 {
        let asked = session.connections;
        // For more than a chunk.
        session.connections = if slice % 40 >= 32 { 1 } else { asked };
        session.slice(7e5 * f64::from(session.connections.min(12)), Limit::Losses);
        session.connections = session.decisions.last().map_or(1, |decision| decision.connections);
    }
    assert!((6..=24).contains(&session.connections), "{:?}", session.decisions);
}

#[test]
fn apt2010_ends_at_the_ceiling_if_the_most_is_there() {
    let mut session = Session::begin(Apt2010::new(Terms::default()));
    session.work(&Path { of_each: 1e5, ..LOSSY }, 120);
    assert_eq!(session.connections, TUNED_CONNECTIONS_MAX, "{:?}", session.decisions);
}
