/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* FAST TCP (Wei, Jin, Low and Hegde, "FAST TCP: Motivation, Architecture, Algorithms, Performance", 2006): each connection
 * keeps alpha segments in the queue, which it knows from the round trip. The connections of a group have the shortest
 * round trip in common: one that begins over a full queue would take the queue for a part of the path. */
#include "membership.h"

/* The segments in the queue, unless the owner of the socket or the administrator says otherwise. In user space:
 * policy::law::Fast::ALPHA. */
#define ALPHA 50

struct fast {
	struct member member;
	/* While it lasts, the window moves from one number of segments to another. */
	__u64 step_ends_ns;
	__u32 from;
	__u32 to;
	__u32 base_rtt_us;
	/* Smoothed; 16 are a microsecond. */
	__u32 rtt;
};

_Static_assert(sizeof(struct fast) <= sizeof(((struct connection *)0)->law), "the kernel has no more room");

static __always_inline __u32 alpha_of(struct sock *sk)
{
	struct group *group = group_at(((struct fast *)law_state_of(sk))->member.place);
	struct membership *wanted;
	__u32 alpha = 0;

	if (group) {
		alpha = group->terms.alpha;
	} else {
		wanted = bpf_sk_storage_get(&memberships, sk, 0, 0);
		if (wanted)
			alpha = wanted->terms.alpha;
	}
	return alpha > 0 ? alpha : ALPHA;
}

static void init(struct sock *sk)
{
	join(sk, CONTROL_FAST);
}

static void release(struct sock *sk)
{
	leave(sk, false);
}

static __u32 after_loss(struct sock *sk)
{
	struct fast *fast = law_state_of(sk);
	struct group *group = group_at(fast->member.place);

	fast->step_ends_ns = 0;
	if (group) {
		bpf_spin_lock(&group->lock);
		group->losses++;
		fast->member.losses++;
		end_change(group, &fast->member);
		bpf_spin_unlock(&group->lock);
	}
	return tcp_of(sk)->snd_cwnd / 2;
}

static void state(struct sock *sk, __u8 state)
{
	struct fast *fast = law_state_of(sk);
	struct group *group = group_at(fast->member.place);

	if (!group || state != TCP_CA_LOSS)
		return;
	bpf_spin_lock(&group->lock);
	group->timeouts++;
	end_change(group, &fast->member);
	bpf_spin_unlock(&group->lock);
}

/* The part of the window that the path holds without a queue. */
static __always_inline __u32 without_queue(const struct fast *fast, __u32 window)
{
	__u64 rtt = at_least(1, fast->rtt);

	return window * (fast->base_rtt_us * 16ull) / rtt;
}

/* Every other round trip, half of the way to the window that has alpha segments in the queue. */
static __always_inline void plan(struct sock *sk, struct fast *fast, __u32 alpha, __u64 now_ns)
{
	__u32 window = tcp_of(sk)->snd_cwnd;

	fast->from = window;
	fast->to = at_most(2 * window, (window + without_queue(fast, window) + alpha) / 2);
	fast->to = at_least(WINDOW_MIN, fast->to);
	fast->step_ends_ns = now_ns + 2000ull * (tcp_of(sk)->srtt_us >> 3);
	connection_of(sk)->fraction = 0;
}

/* The reverse of grow(). */
static __always_inline void shrink(struct sock *sk, __u32 acked, __u64 parts)
{
	struct connection *connection = connection_of(sk);
	__u64 window = at_least(1, tcp_of(sk)->snd_cwnd), one = 1 << 20;
	__u64 decrease = acked * parts * (one / ONE) / window + connection->fraction;

	connection->fraction = decrease % one;
	set_window(sk, at_least(WINDOW_MIN, less(window, decrease / one)));
}

static void increase(struct sock *sk, __u32 acked)
{
	struct fast *fast = law_state_of(sk);
	struct tcp_sock *tcp = tcp_of(sk);
	__u32 alpha = alpha_of(sk);
	__u64 now_ns = now_of(sk);

	if (is_in_slow_start(sk)) {
		/* The queue holds what it should. */
		if (fast->rtt > 0 && less(tcp->snd_cwnd, without_queue(fast, tcp->snd_cwnd)) >= alpha)
			tcp->snd_ssthresh = tcp->snd_cwnd;
		else
			acked = slow_start(sk, acked);
	}
	if (is_in_slow_start(sk) || fast->rtt == 0)
		return;
	if (now_ns >= fast->step_ends_ns)
		plan(sk, fast, alpha, now_ns);
	if (fast->to > fast->from)
		grow(sk, acked, (fast->to - fast->from) * (__u64)ONE / 2);
	else
		shrink(sk, acked, (fast->from - fast->to) * (__u64)ONE / 2);
}

/* Takes over the group's shortest round trip, and gives it its own. A member on another path leaves. */
static __always_inline void share_base_rtt(struct sock *sk, struct group *group, __u32 acked, __s32 rtt_us)
{
	struct fast *fast = law_state_of(sk);
	bool is_used = is_window_used(sk);
	__u64 now_ns = now_of(sk);
	struct heard heard;

	bpf_spin_lock(&group->lock);
	heard = hear(group, &fast->member, acked, rtt_us, is_used, now_ns);
	fast->base_rtt_us = at_most(fast->base_rtt_us, group->min_rtt_us);
	group->min_rtt_us = fast->base_rtt_us;
	end_change(group, &fast->member);
	bpf_spin_unlock(&group->lock);
	if (heard.is_apart) {
		split(sk);
		fast->base_rtt_us = rtt_us;
	} else if (heard.is_new_epoch) {
		renew_terms(sk, group);
	}
}

static void acknowledged(struct sock *sk, const struct ack_sample *sample)
{
	struct fast *fast = law_state_of(sk);
	struct group *group = group_at(fast->member.place);
	__u32 window = tcp_of(sk)->snd_cwnd, rtt = sample->rtt_us * 16, weight;
	__s32 rtt_us = sample->rtt_us;

	if (rtt_us <= 0)
		return;
	if (fast->base_rtt_us == 0 || (__u32)rtt_us < fast->base_rtt_us)
		fast->base_rtt_us = rtt_us;
	if (group)
		share_base_rtt(sk, group, sample->pkts_acked, rtt_us);
	/* Each counts for the smaller of 3/window and 1/4. */
	weight = at_least(12, window);
	if (fast->rtt == 0)
		fast->rtt = rtt;
	else if (rtt > fast->rtt)
		fast->rtt += (rtt - fast->rtt) * 3ull / weight;
	else
		fast->rtt -= (fast->rtt - rtt) * 3ull / weight;
}

CONTROL(rw_fast, .init = init, .release = release, .after_loss = after_loss, .increase = increase,
	.acknowledged = acknowledged, .state = state, .note = note_group);
