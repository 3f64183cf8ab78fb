//! How groups behave.

use super::*;
use crate::law::replay::beginning;

const RTT: Duration = Duration::from_millis(40);

/// A group in congestion avoidance whose members have these windows together, each at its share.
fn group(terms: GroupTerms, members: u32, window: f64) -> (Rc<RefCell<Aggregate>>, Vec<(Member, Flow)>) {
    let now = Instant::ZERO + RTT;
    let aggregate = Aggregate::new(terms, now);
    let first = Flow { window, ssthresh: 1.0, srtt: RTT, ..beginning(now) };
    let share = Flow { window: window / f64::from(members), ..first };
    let flows = (0..members).map(|number| if number == 0 { first } else { share });
    let joined = flows.map(|flow| (Member::join(&aggregate, &flow), share)).collect();
    (aggregate, joined)
}

#[test]
fn in_the_papers_mode_a_loss_takes_half_of_one_share() {
    let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
    let (member, flow) = &mut members[0];
    assert_eq!(member.ssthresh(flow), 50.0);
    assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (350.0, 50.0));
    // The others keep what they had.
    assert_eq!(aggregate.borrow_mut().share(), 100.0);
}

#[test]
fn a_group_that_behaves_as_one_is_halved_once_per_round_trip() {
    let (aggregate, mut members) =
        group(GroupTerms { mode: Mode::Single, ..GroupTerms::default() }, 4, 400.0);
    for (member, flow) in &mut members[..2] {
        member.ssthresh(flow);
    }
    assert_eq!(aggregate.borrow().window(), 200.0);
    for (member, flow) in &mut members[..2] {
        member.set_state(flow, State::Open);
    }
    let (member, flow) = &mut members[2];
    flow.now += RTT * 2;
    member.ssthresh(flow);
    assert_eq!(aggregate.borrow().window(), 100.0);
}

#[test]
fn a_timeout_takes_all_of_a_share_but_one_segment_although_the_kernel_tells_it_twice() {
    let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
    let (member, flow) = &mut members[0];
    member.ssthresh(flow);
    flow.window = 1.0;
    member.set_state(flow, State::Loss);
    assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (301.0, 1.0));
}

#[test]
fn what_a_mistaken_reduction_took_is_given_back() {
    let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
    let (member, flow) = &mut members[0];
    flow.prior_window = flow.window;
    flow.window = member.ssthresh(flow);
    assert_eq!(member.undo_cwnd(flow), 100.0);
    member.set_state(flow, State::Open);
    assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (400.0, 0.0));
}

#[test]
fn members_that_do_not_send_leave_their_share_to_the_others() {
    let (_, mut members) = group(GroupTerms::default(), 4, 400.0);
    let (member, flow) = &mut members[0];
    for _ in 0..3 {
        flow.now += RTT;
        member.cong_avoid(flow, 1);
    }
    assert!(flow.window >= 400.0, "{}", flow.window);
}

#[test]
fn one_that_leaves_takes_what_it_used_with_it() {
    let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
    let (mut member, flow) = members.remove(0);
    member.release(&flow);
    let mut group = aggregate.borrow_mut();
    assert_eq!((group.window(), group.share()), (300.0, 100.0));
}

#[test]
fn one_that_did_not_send_or_belongs_to_a_group_that_behaves_as_one_leaves_its_share_to_the_others() {
    let single = GroupTerms { mode: Mode::Single, ..GroupTerms::default() };
    for (terms, silence) in [(GroupTerms::default(), RTT * 100), (single, Duration::ZERO)] {
        let (aggregate, mut members) = group(terms, 4, 400.0);
        let (mut member, flow) = members.remove(0);
        member.release(&Flow { now: flow.now + silence, ..flow });
        assert_eq!(aggregate.borrow().window(), 400.0);
    }
}

#[test]
fn a_group_that_behaves_as_two_loses_no_more_than_two_however_many_members_one_event_hits() {
    let (aggregate, mut members) =
        group(GroupTerms { mode: Mode::Weight(2 * PARTS), ..GroupTerms::default() }, 4, 400.0);
    for (member, flow) in &mut members {
        member.ssthresh(flow);
    }
    // A quarter, and a quarter of the rest.
    assert_eq!(aggregate.borrow().window(), 225.0);
}

#[test]
fn a_window_of_which_all_is_held_for_repairs_does_not_grow_by_shares_of_nobody() {
    let (aggregate, mut members) = group(GroupTerms::default(), 1, 100.0);
    let (member, flow) = &mut members[0];
    member.ssthresh(flow);
    flow.window = 1.0;
    member.set_state(flow, State::Loss);
    flow.ssthresh = 50.0;
    member.cong_avoid(flow, 3);
    assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (4.0, 4.0));
}

#[test]
fn a_timeout_that_was_a_mistake_gives_back_what_has_not_grown_again() {
    let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
    let (member, flow) = &mut members[0];
    flow.prior_window = flow.window;
    flow.ssthresh = member.ssthresh(flow);
    flow.window = 1.0;
    member.set_state(flow, State::Loss);
    member.cong_avoid(flow, 7);
    assert_eq!(member.undo_cwnd(flow), 100.0);
    assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (400.0, 100.0));
}

#[test]
fn under_cubic_what_leaves_a_group_does_not_come_back_with_the_next_acknowledgement() {
    let terms = GroupTerms { law: AggregateLaw::Cubic, ..GroupTerms::default() };
    let (aggregate, mut members) = group(terms, 4, 400.0);
    let (member, flow) = &mut members[0];
    member.cong_avoid(flow, 1);
    let (mut member, flow) = members.remove(0);
    member.release(&flow);
    let (member, flow) = &mut members[0];
    member.cong_avoid(flow, 1);
    let window = aggregate.borrow().window();
    assert!((300.0..302.0).contains(&window), "{window}");
}

#[test]
fn one_that_leaves_does_not_send_the_others_back_to_slow_start() {
    let (aggregate, mut members) = group(GroupTerms::default(), 4, 400.0);
    aggregate.borrow_mut().ssthresh = 350.0;
    let (mut member, flow) = members.remove(0);
    member.release(&flow);
    let (member, flow) = &mut members[0];
    member.cong_avoid(flow, 1);
    let window = aggregate.borrow().window();
    assert!((300.0..300.1).contains(&window), "{window}");
}

/// A group that behaves as one, after a loss and a timeout of one of its members that has 100 of its 400 segments.
fn single_after_timeout() -> (Rc<RefCell<Aggregate>>, Vec<(Member, Flow)>) {
    let (aggregate, mut members) =
        group(GroupTerms { mode: Mode::Single, ..GroupTerms::default() }, 4, 400.0);
    let (member, flow) = &mut members[0];
    flow.prior_window = flow.window;
    flow.ssthresh = member.ssthresh(flow);
    flow.window = 1.0;
    member.set_state(flow, State::Loss);
    flow.state = State::Loss;
    (aggregate, members)
}

#[test]
fn as_one_a_group_has_a_segment_for_each_member_after_a_timeout_however_often_that_is_repeated() {
    let (aggregate, mut members) = single_after_timeout();
    assert_eq!(aggregate.borrow().window(), 4.0);
    aggregate.borrow_mut().window = 200.0;
    let (member, flow) = &mut members[0];
    flow.now += RTT * 10;
    member.set_state(flow, State::Loss);
    assert_eq!(aggregate.borrow().window(), 200.0);
}

#[test]
fn as_one_a_group_gets_back_no_more_than_it_had_when_a_timeout_was_a_mistake() {
    let (aggregate, mut members) = single_after_timeout();
    // The others have made it grow again.
    aggregate.borrow_mut().window = 200.0;
    let (member, flow) = &mut members[0];
    member.undo_cwnd(flow);
    assert_eq!(aggregate.borrow().window(), 400.0);
}

#[test]
fn a_mistake_is_not_given_back_when_another_member_has_timed_out_since() {
    let (aggregate, mut members) =
        group(GroupTerms { mode: Mode::Single, ..GroupTerms::default() }, 4, 400.0);
    let (member, flow) = &mut members[0];
    member.ssthresh(flow);
    let (member, flow) = &mut members[1];
    flow.now += RTT / 2;
    flow.window = 1.0;
    member.freeze(50.0);
    member.set_state(flow, State::Loss);
    assert_eq!(aggregate.borrow().window(), 4.0);
    let (member, flow) = &mut members[0];
    member.undo_cwnd(flow);
    assert_eq!(aggregate.borrow().window(), 4.0);
}

#[test]
fn one_that_joins_while_it_repairs_losses_brings_its_window_and_keeps_it() {
    let (aggregate, _members) = group(GroupTerms::default(), 4, 400.0);
    let flow = Flow { window: 30.0, state: State::Recovery, srtt: RTT, ..beginning(Instant::ZERO + RTT) };
    let mut member = Member::join(&aggregate, &flow);
    assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (430.0, 30.0));
    assert_eq!(aggregate.borrow_mut().share(), 100.0);
    member.set_state(&flow, State::Open);
    assert_eq!((aggregate.borrow().window(), aggregate.borrow().frozen()), (430.0, 0.0));
}

#[test]
fn a_fair_group_grows_by_a_segment_for_each_member_per_round_trip_and_a_single_one_by_one() {
    for (mode, grown) in [(Mode::Fair, 4.0), (Mode::Single, 1.0), (Mode::Weight(5 * PARTS / 2), 2.5)] {
        let (aggregate, mut members) = group(GroupTerms { mode, ..GroupTerms::default() }, 4, 400.0);
        for (member, flow) in &mut members {
            member.cong_avoid(flow, 100);
        }
        let window = aggregate.borrow().window();
        assert!((window - 400.0 - grown).abs() < 0.05, "{mode:?}: {window}");
    }
}

#[test]
fn cubic_on_the_aggregate_comes_back_to_the_window_of_the_loss_after_k() {
    let terms = GroupTerms { law: AggregateLaw::Cubic, mode: Mode::Single, ..GroupTerms::default() };
    let (aggregate, mut members) = group(terms, 1, 1000.0);
    let (member, flow) = &mut members[0];
    flow.window = member.ssthresh(flow);
    member.set_state(flow, State::Open);
    // K = ∛(300 / 0.4) = 9.1 s.
    let begun = flow.now;
    while aggregate.borrow().window() < 995.0 {
        flow.now += RTT;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small window")]
        let acked = flow.window as u32;
        member.cong_avoid(flow, acked);
    }
    let took = flow.now.saturating_duration_since(begun).as_secs_f64();
    assert!((6.5..9.5).contains(&took), "{took}");
}
