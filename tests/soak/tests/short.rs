//! A soak of seconds: what a thousand sessions must stand in minutes, fifty must in seconds.

#![expect(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use ropewalk_soak::{Plan, run};
use std::time::Duration;

#[test]
fn broken_connections_are_hidden_from_fifty_clients() {
    check(&Plan { breaks_per_second: 20.0, ..short() });
}

#[test]
fn a_target_that_is_stopped_under_load_and_started_again_at_once_loses_nothing() {
    check(&Plan { breaks_per_second: 0.0, restarts: 2, ..short() });
}

fn short() -> Plan {
    Plan { sessions: 50, duration: Duration::from_secs(10), commands_per_second: 1000.0, ..Plan::default() }
}

fn check(plan: &Plan) {
    let outcome = run(plan, |_| {}).unwrap();
    let complaints: Vec<String> = outcome.complaints().iter().map(ToString::to_string).collect();
    assert!(complaints.is_empty(), "{}\n{}", outcome.table(), complaints.join("\n"));
    assert!(plan.breaks_per_second == 0.0 || outcome.broken > 0);
}
