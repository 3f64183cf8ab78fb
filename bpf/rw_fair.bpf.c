/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Fair-TCP (paper 000): the connections of a group have one congestion window, and equal shares of it. A connection
 * without a group is an ordinary one under Reno.
 *
 * A program may write to its own socket only. A change of the window therefore reaches another member when that is
 * acknowledged next. Nor may it write the round trip from which the kernel derives the retransmission timeout. */
#include "ensemble.h"

/* The part of a window that remains after a loss: Reno's, and CUBIC's. */
#define RENO_REMAINS (ONE / 2)
#define CUBIC_REMAINS (ONE * 7 / 10)

/* As many connections as a group behaves as, in parts: never more than send. */
static __always_inline __u64 flows_of(const struct group *group)
{
	__u64 sending = active(group) * (__u64)ONE;

	if (group->mode == SINGLE)
		return ONE;
	if (group->mode == WEIGHT && group->weight > 0 && group->weight < sending)
		return group->weight;
	return sending;
}

static __always_inline __u32 remains(const struct group *group)
{
	return group->law == AGGREGATE_CUBIC ? CUBIC_REMAINS : RENO_REMAINS;
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

/* RFC 9438 §4.2: the window that CUBIC wants at this time, for so many flows: C = 0.4 segments per cubic second for each. */
static __always_inline __u64 cubic_window(const struct group *group, __u64 at_ms, __u64 flows)
{
	bool is_before = at_ms < group->cubic_k_ms;
	__u64 off_ms = is_before ? group->cubic_k_ms - at_ms : at_ms - group->cubic_k_ms, by;

	if (off_ms > 100000)
		off_ms = 100000;
	/* 0.4 × flows × off³, from cubic milliseconds. */
	by = off_ms * off_ms * off_ms / 1000000 * flows * 4 / 10000;
	return is_before ? less(group->cubic_window_max, by) : group->cubic_window_max + by;
}

/* RFC 9438 §4.1 to §4.5, on the aggregate. */
static __always_inline void grow_as_cubic(struct group *group, __u32 acked, __u64 now_ns)
{
	__u64 flows = flows_of(group), rtt_ms = group->srtt / 65536000, wanted, slow;

	if (group->cubic_began_ns == 0) {
		__u64 distance = less(group->cubic_window_max, group->window);

		group->cubic_began_ns = now_ns;
		group->cubic_window_reno = group->window;
		if (distance == 0)
			group->cubic_window_max = group->window;
		/* (distance / 0.4 / flows) to the power of ⅓, in milliseconds. */
		group->cubic_k_ms = cube_root(distance * 2500000000ull / flows);
	}
	wanted = cubic_window(group, (now_ns - group->cubic_began_ns) / 1000000 + rtt_ms, flows);
	if (wanted > group->window + group->window / 2)
		wanted = group->window + group->window / 2;
	/* §4.3: α = 3 (1 − β) / (1 + β), and 1 once the window of the last loss is reached again. */
	slow = group->cubic_window_reno < group->cubic_window_max ? 9 * flows / 17 : flows;
	group->cubic_window_reno += acked * slow * ONE / group->window;
	if (wanted > group->window)
		group->window += acked * (wanted - group->window) * ONE / group->window;
	if (group->cubic_window_reno > group->window)
		group->window = group->cubic_window_reno;
}

static __always_inline void grow_aggregate(struct group *group, __u32 acked, __u64 now_ns)
{
	__u64 parts = (__u64)acked * ONE;

	if (group->window < group->ssthresh) {
		group->window += parts < group->ssthresh - group->window ? parts : group->ssthresh - group->window;
		return;
	}
	if (group->law == AGGREGATE_CUBIC)
		grow_as_cubic(group, acked, now_ns);
	else
		group->window += parts * flows_of(group) / group->window;
}

/* Whether the group's window is left alone because it was reduced only just now: a loss that belongs to that. */
static __always_inline bool is_held(const struct group *group, __u64 now_ns)
{
	__u64 rtt_ns = (group->srtt >> 16) * 1000, since_ns = now_ns - group->last_cut_ns;

	if (group->mode == SINGLE)
		return since_ns < rtt_ns;
	return group->mode == CONSERVATIVE && since_ns < 2 * rtt_ns;
}

/* What a loss of a member takes from the aggregate. */
static __always_inline __u64 cut_of(const struct group *group, __u64 share, __u64 now_ns)
{
	__u64 lost = ONE - remains(group);

	if (is_held(group, now_ns))
		return 0;
	switch (group->mode) {
	case FAIR:
		return share * lost / ONE;
	case WEIGHT:
		return group->window * lost / flows_of(group);
	default:
		return group->window * lost / ONE;
	}
}

/* RFC 9438 §4.6 and §4.7. */
static __always_inline void remember_for_cubic(struct group *group)
{
	bool is_below = group->window < group->cubic_window_max;

	group->cubic_window_max = is_below ? group->window * (ONE + CUBIC_REMAINS) / (2 * ONE) : group->window;
	group->cubic_began_ns = 0;
}

static __u32 after_loss(struct sock *sk)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 share = (__u64)tcp_of(sk)->snd_cwnd * ONE, cut, now_ns = bpf_ktime_get_ns();
	__u32 window;

	if (!group)
		return tcp_of(sk)->snd_cwnd / 2;
	bpf_spin_lock(&group->lock);
	advance(group, now_ns);
	see(group, member, now_ns);
	cut = cut_of(group, share, now_ns);
	group->losses++;
	group->losses_expected += ONE / active(group);
	member->losses++;
	if (cut > 0) {
		remember_for_cubic(group);
		group->window = less(group->window, cut);
		group->ssthresh = group->window;
		group->last_cut_ns = now_ns;
		group->generation++;
	}
	member->cut = cut;
	member->generation = group->generation;
	window = group->mode == FAIR ? less(share, cut) / ONE : share_of(group);
	window = at_least(WINDOW_MIN, at_most(share / ONE, window));
	freeze(group, member, (__u64)window * ONE);
	changed(group, member);
	bpf_spin_unlock(&group->lock);
	return window;
}

/* In recovery the kernel moves the window (RFC 6937), which is not shared out meanwhile. After a timeout it begins again
 * with the segments that are still under way. */
static void state(struct sock *sk, __u8 state)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 window = (__u64)tcp_of(sk)->snd_cwnd * ONE, before, now_ns = bpf_ktime_get_ns();

	if (!group)
		return;
	bpf_spin_lock(&group->lock);
	advance(group, now_ns);
	before = member->frozen > 0 ? member->frozen : window;
	if (state < TCP_CA_CWR) {
		thaw(group, member);
	} else if (state == TCP_CA_LOSS) {
		group->timeouts++;
		member->cut += less(before, window);
		group->window = less(group->window, less(before, window));
		freeze(group, member, window);
	} else {
		freeze(group, member, before);
	}
	changed(group, member);
	bpf_spin_unlock(&group->lock);
}

/* The window was used. A member that begins again after a timeout grows by itself, and the aggregate with it. */
static void increase(struct sock *sk, __u32 acked)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u32 window = tcp_of(sk)->snd_cwnd, acked_now = acked, share, ssthresh;
	__u64 now_ns = bpf_ktime_get_ns(), grown;
	bool is_by_itself = !group || member->frozen > 0;

	if (is_by_itself) {
		if (is_in_slow_start(sk))
			acked = slow_start(sk, acked);
		if (acked > 0)
			grow(sk, acked, ONE);
	}
	if (!group)
		return;
	grown = less(tcp_of(sk)->snd_cwnd, window) * ONE;
	bpf_spin_lock(&group->lock);
	advance(group, now_ns);
	see(group, member, now_ns);
	if (is_by_itself) {
		group->window += grown;
		freeze(group, member, member->frozen + grown);
	} else {
		grow_aggregate(group, acked_now, now_ns);
	}
	share = share_of(group);
	ssthresh = at_least(WINDOW_MIN, group->ssthresh / ONE / active(group));
	changed(group, member);
	bpf_spin_unlock(&group->lock);
	if (is_by_itself)
		return;
	set_window(sk, share);
	tcp_of(sk)->snd_ssthresh = ssthresh;
}

/* Epochs in a row after which a member with other round trips is on another path. */
#define APART_EPOCHS 16

/* Whether a member's path is another one than the others': its round trips are, or its losses are twice what they would be
 * if all had the same, and by four standard deviations no chance. */
static __always_inline bool is_apart(const struct group *group, const struct member *member)
{
	__u64 expected = (group->losses_expected - member->losses_expected) / ONE, lost = member->losses;

	if (member->apart >= APART_EPOCHS)
		return true;
	return lost > 2 * expected && (lost - expected) * (lost - expected) > 16 * expected + 64;
}

static void acknowledged(struct sock *sk, const struct ack_sample *sample)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u32 share;
	__s32 rtt_us = sample->rtt_us;
	__u64 now_ns = bpf_ktime_get_ns();
	bool is_split = false, is_new_epoch;
	struct membership *wanted;

	if (!group)
		return;
	bpf_spin_lock(&group->lock);
	advance(group, now_ns);
	is_new_epoch = member->epoch != group->epoch;
	see(group, member, now_ns);
	measure(group, rtt_us, now_ns);
	member->apart += is_new_epoch;
	if (rtt_us > 0 && is_like_the_others(group, rtt_us))
		member->apart = 0;
	if (is_new_epoch && group->members > 1)
		is_split = is_apart(group, member);
	share = share_of(group);
	changed(group, member);
	bpf_spin_unlock(&group->lock);
	if (member->frozen == 0 && share < tcp_of(sk)->snd_cwnd)
		set_window(sk, share);
	if (is_split) {
		leave(sk, true);
	} else if (is_new_epoch) {
		wanted = bpf_sk_storage_get(&memberships, sk, 0, 0);
		if (wanted)
			renew(group, wanted);
	}
}

/* A member that begins to send again takes its share at once, although the kernel has reduced its window meanwhile: the
 * others know the path. If all were silent, the aggregate is halved for each timeout. */
static void event(struct sock *sk, enum tcp_ca_event event)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 now_ns = bpf_ktime_get_ns(), silent_ns, timeout_ns;
	struct tcp_sock *tcp = tcp_of(sk);
	__u32 share;

	if (!group || event != CA_EVENT_TX_START)
		return;
	bpf_spin_lock(&group->lock);
	advance(group, now_ns);
	silent_ns = now_ns - group->last_active_ns;
	timeout_ns = 200000000ull + (group->srtt >> 16) * 1000;
	for (int i = 0; i < 8 && silent_ns > timeout_ns; i++) {
		silent_ns -= timeout_ns;
		if (group->window > FIRST_WINDOW * ONE)
			group->window = group->window / 2 > FIRST_WINDOW * ONE ? group->window / 2 : FIRST_WINDOW * ONE;
	}
	see(group, member, now_ns);
	share = share_of(group);
	changed(group, member);
	bpf_spin_unlock(&group->lock);
	if (member->frozen > 0)
		return;
	set_window(sk, share);
	/* The kernel computes the rate anew when the first acknowledgement arrives. */
	if (tcp->srtt_us > 0)
		sk->sk_pacing_rate = (__u64)share * tcp->mss_cache * 1000000 / at_least(1, tcp->srtt_us >> 3);
}

/* The last loss was none: its cut is given back. If the whole group was reduced, and again since, it stays. */
static __u32 undo(struct sock *sk)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u32 window = at_least(tcp_of(sk)->snd_cwnd, tcp_of(sk)->prior_cwnd);
	__u64 now_ns = bpf_ktime_get_ns();

	if (!group)
		return window;
	bpf_spin_lock(&group->lock);
	advance(group, now_ns);
	if (group->mode == FAIR || group->mode == WEIGHT || group->generation == member->generation) {
		group->window += member->cut;
		if (group->ssthresh < group->window)
			group->ssthresh = group->window;
		if (member->frozen > 0)
			freeze(group, member, (__u64)window * ONE);
		group->undone++;
	}
	member->cut = 0;
	changed(group, member);
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
