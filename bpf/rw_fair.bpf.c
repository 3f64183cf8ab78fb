/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Fair-TCP (paper 000): the connections of a group have one congestion window, and equal shares of it. A connection
 * without a group is an ordinary one under Reno.
 *
 * A program may write to its own socket only. A change of the window therefore reaches another member when that is
 * acknowledged next. Nor may it write the round trip from which the kernel derives the retransmission timeout. */
#include "membership.h"

/* The tenths of a window that remain after a loss: Reno's, and CUBIC's. */
#define TENTHS 10
#define RENO_REMAINS 5
#define CUBIC_REMAINS 7

/* As many connections as a group behaves as, in parts: never more than send. */
static __always_inline __u64 flows_of(const struct group *group)
{
	__u64 sending = active_of(group) * (__u64)ONE;

	if (group->terms.mode == SINGLE)
		return ONE;
	if (group->terms.mode == WEIGHT && group->terms.weight >= ONE && group->terms.weight < sending)
		return group->terms.weight;
	return sending;
}

static __always_inline __u32 remains(const struct group *group)
{
	return group->terms.law == AGGREGATE_CUBIC ? CUBIC_REMAINS : RENO_REMAINS;
}

/* So much for each window: what the division leaves is counted the next time, so that large windows grow as well. */
static __always_inline __u64 per_window(__u64 amount, __u64 window, __u64 *left_over)
{
	amount += *left_over;
	*left_over = amount % window;
	return amount / window;
}

/* The cube root of a number below 2^63. */
static __always_inline __u32 cube_root(__u64 number)
{
	__u64 root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		__u64 higher = root | 1ull << bit;

		if (higher * higher * higher <= number)
			root = higher;
	}
	return root;
}

/* RFC 9438 §4.2: the window that CUBIC wants at this time. C = 0.4 segments per cubic second for each flow. */
static __always_inline __u64 cubic_window(const struct cubic *cubic, __u64 at_ms)
{
	bool is_before = at_ms < cubic->k_ms;
	__u64 off_ms = is_before ? cubic->k_ms - at_ms : at_ms - cubic->k_ms, by;

	if (off_ms > 100000)
		off_ms = 100000;
	/* 0.4 × flows × off³, from cubic milliseconds. */
	by = off_ms * off_ms * off_ms / 1000000 * cubic->flows * 4 / 10000;
	return is_before ? less(cubic->window_max, by) : cubic->window_max + by;
}

/* RFC 9438 §4.1 to §4.5, on the aggregate. The curve is that of the flows with which it began: were it that of those that
 * send now, it would jump whenever one begins or ends. */
static __always_inline void grow_as_cubic(struct group *group, __u32 acked, __u64 now_ns)
{
	__u64 flows = flows_of(group), rtt_ms = group->srtt / 65536000, wanted, slow;
	struct cubic *cubic = &group->cubic;

	if (cubic->began_ns == 0) {
		__u64 distance = less(cubic->window_max, group->window);

		cubic->began_ns = now_ns;
		cubic->window_reno = group->window;
		cubic->flows = flows;
		cubic->left_over = 0;
		if (distance == 0)
			cubic->window_max = group->window;
		/* (distance / 0.4 / flows) to the power of ⅓, in milliseconds. */
		cubic->k_ms = cube_root(distance * 2500000000ull / flows);
	}
	wanted = cubic_window(cubic, since(cubic->began_ns, now_ns) / 1000000 + rtt_ms);
	if (wanted > group->window + group->window / 2)
		wanted = group->window + group->window / 2;
	/* §4.3: α = 3 (1 − β) / (1 + β), and 1 once the window before the loss is reached again. */
	slow = cubic->window_reno < cubic->window_prior ? 9 * flows / 17 : flows;
	cubic->window_reno += per_window(acked * slow * ONE, group->window, &cubic->left_over);
	if (wanted > group->window)
		group->window += per_window(acked * (wanted - group->window) * ONE, group->window, &group->left_over);
	if (cubic->window_reno > group->window)
		group->window = cubic->window_reno;
}

/* Whether the group was reduced only just now: the loss belongs to that. */
static __always_inline bool is_held(const struct group *group, __u64 now_ns)
{
	__u64 rtt_ns = rtt_ns_of(group), since_ns = since(group->last_cut_ns, now_ns);

	if (group->terms.mode == SINGLE)
		return since_ns < rtt_ns;
	return group->terms.mode == CONSERVATIVE && since_ns < 2 * rtt_ns;
}

/* RFC 8699 §5.3.2 changes nothing for two round trips after a reduction. */
static __always_inline void grow_aggregate(struct group *group, __u32 acked, __u64 now_ns)
{
	__u64 parts = (__u64)acked * ONE;

	if (group->terms.mode == CONSERVATIVE && is_held(group, now_ns))
		return;
	if (group->window < group->ssthresh) {
		group->window += parts < group->ssthresh - group->window ? parts : group->ssthresh - group->window;
		return;
	}
	if (group->terms.law == AGGREGATE_CUBIC)
		grow_as_cubic(group, acked, now_ns);
	else
		group->window += per_window(parts * flows_of(group), group->window, &group->left_over);
}

/* As so many flows, a group loses the part of one. However many members an event hits, no more flows lose than there are:
 * each once per round trip. */
static __always_inline __u64 cut_of_flow(struct group *group, __u64 now_ns)
{
	__u64 flows = flows_of(group), lost;

	if (since(group->round_began_ns, now_ns) >= rtt_ns_of(group)) {
		group->round_began_ns = now_ns;
		group->round_flows = 0;
	}
	lost = less(flows, group->round_flows);
	if (lost > ONE)
		lost = ONE;
	group->round_flows += lost;
	return group->window * lost / flows * (TENTHS - remains(group)) / TENTHS;
}

/* The amount that a loss of a member with this share cuts from the aggregate. */
static __always_inline __u64 cut_of(struct group *group, __u64 share, __u64 now_ns)
{
	__u64 lost = TENTHS - remains(group), window;

	if (is_held(group, now_ns))
		return 0;
	switch (group->terms.mode) {
	case FAIR:
		/* The member keeps whole segments. */
		window = at_least(WINDOW_MIN, share * remains(group) / TENTHS / ONE);
		return less(share, window * ONE);
	case WEIGHT:
		return cut_of_flow(group, now_ns);
	default:
		return group->window * lost / TENTHS;
	}
}

static __always_inline void reduce(struct group *group, __u64 cut, __u64 now_ns)
{
	struct cubic *cubic = &group->cubic;

	group->cubic_before = *cubic;
	group->ssthresh_before = group->ssthresh;
	/* RFC 9438 §4.6 and §4.7. Of one flow's cut, half is (1 − β) / 2 of its window. */
	cubic->window_prior = group->window;
	cubic->window_max = group->window < cubic->window_max ? group->window - cut / 2 : group->window;
	cubic->began_ns = 0;
	group->window -= cut;
	group->left_over = 0;
	group->ssthresh = group->window;
	group->last_cut_ns = now_ns;
	group->generation++;
}

static __u32 after_loss(struct sock *sk)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 share = (__u64)tcp_of(sk)->snd_cwnd * ONE, cut, now_ns = now_of(sk);
	__u32 window;

	if (!group)
		return tcp_of(sk)->snd_cwnd / 2;
	bpf_spin_lock(&group->lock);
	advance_epoch(group, now_ns);
	thaw(group, member);
	mark_active(group, member, now_ns);
	cut = cut_of(group, share, now_ns);
	if (cut > group->window)
		cut = group->window;
	group->losses++;
	member->losses++;
	if (cut > 0)
		reduce(group, cut, now_ns);
	member->cut = cut;
	member->generation = group->generation;
	window = group->terms.mode == FAIR ? less(share, cut) / ONE : share_of(group);
	window = at_least(WINDOW_MIN, at_most(share / ONE, window));
	freeze(group, member, (__u64)window * ONE);
	end_change(group, member);
	bpf_spin_unlock(&group->lock);
	return window;
}

/* A timeout leaves a member with the segments that are still under way. As many connections, the group loses the rest of its
 * share; as one, it has a segment for each member (RFC 3124), once per round trip, and not again while the member only
 * repeats what it has sent. */
static __always_inline void time_out(struct group *group, struct member *member, __u64 held, __u64 window,
				     bool is_repeated, __u64 now_ns)
{
	__u64 rtt_ns = rtt_ns_of(group), least = (__u64)group->members * ONE;

	group->timeouts++;
	if (group->terms.mode == FAIR || group->terms.mode == WEIGHT) {
		member->cut += less(held, window);
		take(group, less(held, window));
		if (held > window)
			group->ssthresh = group->window;
	} else if (!is_repeated && window < held && since(group->last_timeout_ns, now_ns) >= rtt_ns) {
		/* What an undo restores, unless this member's loss has noted it, and nobody has reduced the window since. */
		if (member->cut == 0 || member->generation != group->generation) {
			member->cut = 0;
			group->ssthresh_before = group->ssthresh;
			group->cubic_before = group->cubic;
		}
		member->cut += less(group->window, least);
		/* Up to half of what was there, the window doubles in each round trip. */
		group->window -= less(group->window, least);
		group->cubic.began_ns = 0;
		group->last_timeout_ns = now_ns;
		member->generation = ++group->generation;
	}
	freeze(group, member, window);
}

/* In recovery the kernel moves the window (RFC 6937), which is not shared out meanwhile. */
static void state(struct sock *sk, __u8 state)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 window = (__u64)tcp_of(sk)->snd_cwnd * ONE, held, now_ns = now_of(sk);
	bool is_repeated = ca_state_of(sk) == TCP_CA_LOSS;

	if (!group)
		return;
	bpf_spin_lock(&group->lock);
	advance_epoch(group, now_ns);
	held = member->frozen > 0 ? member->frozen : window;
	if (state < TCP_CA_CWR)
		thaw(group, member);
	else if (state == TCP_CA_LOSS)
		time_out(group, member, held, window, is_repeated, now_ns);
	else
		freeze(group, member, held);
	end_change(group, member);
	bpf_spin_unlock(&group->lock);
}

/* The window was used. A member that begins again after a timeout grows by itself, and the aggregate with it. */
static void increase(struct sock *sk, __u32 acked)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	struct tcp_sock *tcp = tcp_of(sk);
	__u32 before = tcp->snd_cwnd, left = acked, share;
	bool is_by_itself = !group || member->frozen > 0;
	__u64 now_ns = now_of(sk), grown, ssthresh;

	if (is_by_itself) {
		if (is_in_slow_start(sk))
			left = slow_start(sk, acked);
		if (left > 0)
			grow(sk, left, ONE);
	}
	if (!group)
		return;
	grown = less(tcp->snd_cwnd, before) * ONE;
	bpf_spin_lock(&group->lock);
	advance_epoch(group, now_ns);
	mark_active(group, member, now_ns);
	if (is_by_itself) {
		group->window += grown;
		/* What has grown again is not given back, should the timeout prove a mistake. */
		member->cut = less(member->cut, grown);
		freeze(group, member, member->frozen + grown);
	} else {
		grow_aggregate(group, acked, now_ns);
	}
	share = share_of(group);
	ssthresh = group->ssthresh / ONE;
	if (ssthresh < TCP_INFINITE_SSTHRESH)
		ssthresh = at_least(WINDOW_MIN, ssthresh / active_of(group));
	end_change(group, member);
	bpf_spin_unlock(&group->lock);
	if (is_by_itself)
		return;
	set_window(sk, share);
	tcp->snd_ssthresh = ssthresh;
}

static void acknowledged(struct sock *sk, const struct ack_sample *sample)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u32 acked = sample->pkts_acked, share;
	bool is_used = is_window_used(sk);
	__s32 rtt_us = sample->rtt_us;
	__u64 now_ns = now_of(sk);
	struct heard heard;

	if (!group)
		return;
	bpf_spin_lock(&group->lock);
	heard = hear(group, member, acked, rtt_us, is_used, now_ns);
	share = share_of(group);
	end_change(group, member);
	bpf_spin_unlock(&group->lock);
	if (member->frozen == 0 && share < tcp_of(sk)->snd_cwnd)
		set_window(sk, share);
	if (heard.is_apart)
		split(sk);
	else if (heard.is_new_epoch)
		renew_terms(sk, group);
}

/* If all were silent, the aggregate is halved for each timeout, and CUBIC begins anew; if it stays, CUBIC's time stands
 * still. */
static __always_inline void rest(struct group *group, __u64 silent_ns)
{
	__u64 timeout_ns = 200000000ull + rtt_ns_of(group);
	__u64 least = (__u64)FIRST_WINDOW * ONE * group->members;

	if (silent_ns <= timeout_ns)
		return;
	if (group->window > least)
		group->cubic.began_ns = 0;
	else if (group->cubic.began_ns > 0)
		group->cubic.began_ns += silent_ns;
	for (int i = 0; i < 8 && silent_ns > timeout_ns && group->window > least; i++) {
		silent_ns -= timeout_ns;
		group->window = group->window / 2 > least ? group->window / 2 : least;
	}
}

/* A member that begins to send again takes its share at once, although the kernel has reduced its window meanwhile: the
 * others know the path. */
static void event(struct sock *sk, enum tcp_ca_event event)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 now_ns = now_of(sk), rate;
	struct tcp_sock *tcp = tcp_of(sk);
	bool is_new_epoch;
	__u32 share;

	if (!group || event != CA_EVENT_TX_START || member->frozen > 0)
		return;
	bpf_spin_lock(&group->lock);
	rest(group, since(group->last_active_ns, now_ns));
	advance_epoch(group, now_ns);
	is_new_epoch = member->epoch != group->epoch;
	mark_active(group, member, now_ns);
	share = share_of(group);
	end_change(group, member);
	bpf_spin_unlock(&group->lock);
	set_window(sk, share);
	if (is_new_epoch)
		renew_terms(sk, group);
	if (tcp->srtt_us == 0)
		return;
	/* The kernel computes the rate anew when the first acknowledgement arrives. */
	rate = (__u64)share * tcp->mss_cache * 1000000 / at_least(1, tcp->srtt_us >> 3);
	sk->sk_pacing_rate = rate < sk->sk_max_pacing_rate ? rate : sk->sk_max_pacing_rate;
}

/* Gives back what a loss has cut. Where the whole group was reduced, others may have made it grow again meanwhile: then it
 * has no more than it had. */
static __always_inline void give_back(struct group *group, struct member *member)
{
	__u64 before = group->window, most = group->cubic.window_prior;

	group->window += member->cut;
	if (group->terms.mode == WEIGHT && member->cut > 0)
		group->round_flows = less(group->round_flows, ONE);
	if (group->terms.mode == FAIR || group->terms.mode == WEIGHT)
		return;
	if (most < before)
		most = before;
	if (group->window > most)
		group->window = most;
}

/* The last loss was none: its cut is given back. If the whole group was reduced, and again since, it stays. */
static __u32 undo(struct sock *sk)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u32 window = at_least(tcp_of(sk)->snd_cwnd, tcp_of(sk)->prior_cwnd);
	__u64 now_ns = now_of(sk);
	bool is_last;

	if (!group)
		return window;
	bpf_spin_lock(&group->lock);
	advance_epoch(group, now_ns);
	is_last = group->generation == member->generation;
	if (is_last || group->terms.mode == FAIR || group->terms.mode == WEIGHT) {
		give_back(group, member);
		if (is_last && member->cut > 0) {
			group->ssthresh = group->ssthresh_before;
			group->cubic = group->cubic_before;
		} else if (group->ssthresh < group->window) {
			group->ssthresh = group->window;
		}
		if (member->frozen > 0)
			freeze(group, member, (__u64)window * ONE);
		group->undone++;
	}
	member->cut = 0;
	end_change(group, member);
	bpf_spin_unlock(&group->lock);
	return window;
}

static void init(struct sock *sk)
{
	join(sk, CONTROL_FAIR);
}

static void release(struct sock *sk)
{
	leave(sk, false);
}

CONTROL(rw_fair, .init = init, .release = release, .after_loss = after_loss, .increase = increase,
	.acknowledged = acknowledged, .state = state, .event = event, .undo = undo, .note = note_group);
