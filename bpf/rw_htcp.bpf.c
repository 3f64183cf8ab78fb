/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* H-TCP (Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks", 2004, and draft-leith-tcp-htcp-06):
 * the window grows the faster, the longer ago the last loss was; a loss takes from it what empties the queue. Without the
 * scaling by the round trip, which the draft leaves open. */
#include "congestion.h"

#define SECOND_NS 1000000000ull

/* So long after a loss, the window grows as Reno's. */
#define LOW_SPEED_NS SECOND_NS

/* The parts of the window that remain after a loss. */
#define REMAINS_MIN (ONE / 2)
#define REMAINS_MAX (ONE * 4 / 5)

/* What is known since the last loss. */
struct since_loss {
	__u64 loss_ns;
	/* The most that was delivered in a second, and between the two losses before. */
	__u32 throughput_max;
	__u32 earlier_throughput_max;
	__u32 rtt_max_us;
	/* The part of the window that remained. */
	__u32 remains;
};

struct htcp {
	struct since_loss now;
	/* At the last loss, in case that it was none. */
	struct since_loss before;
	/* When the round trip began that is being counted, and the segments delivered until then. */
	__u64 round_began_ns;
	__u32 delivered;
	/* The shortest ever. */
	__u32 rtt_min_us;
};

static void init(struct sock *sk)
{
	struct htcp *htcp = law_state_of(sk);
	__u64 now_ns = now_of(sk);

	htcp->now.loss_ns = now_ns;
	htcp->now.remains = REMAINS_MIN;
	htcp->before = htcp->now;
	htcp->round_began_ns = now_ns;
	htcp->delivered = tcp_of(sk)->delivered;
}

/* The shortest round trip is of a path without a queue, the longest of one with a full queue. If the throughput has
 * changed by more than a fifth, the path is another one, or others have come or gone. */
static __always_inline __u32 remains(const struct htcp *htcp)
{
	__u64 now = htcp->now.throughput_max, earlier = htcp->now.earlier_throughput_max;

	if (htcp->now.rtt_max_us == 0 || earlier == 0 || now * 5 > earlier * 6 || now * 5 < earlier * 4)
		return REMAINS_MIN;
	return at_most(REMAINS_MAX, at_least(REMAINS_MIN, (__u64)htcp->rtt_min_us * ONE / htcp->now.rtt_max_us));
}

static __u32 after_loss(struct sock *sk)
{
	struct htcp *htcp = law_state_of(sk);

	htcp->before = htcp->now;
	htcp->now.remains = remains(htcp);
	htcp->now.loss_ns = now_of(sk);
	htcp->now.earlier_throughput_max = htcp->now.throughput_max;
	htcp->now.throughput_max = 0;
	htcp->now.rtt_max_us = 0;
	return tcp_of(sk)->snd_cwnd * (__u64)htcp->now.remains / ONE;
}

static __u64 growth(struct sock *sk)
{
	struct htcp *htcp = law_state_of(sk);
	__u64 since_ns = since(htcp->now.loss_ns, now_of(sk)), faster = ONE;

	if (since_ns > LOW_SPEED_NS) {
		__u64 beyond = (since_ns - LOW_SPEED_NS) / (SECOND_NS / ONE);

		faster += 10 * beyond + beyond * beyond / ONE / 4;
	}
	return 2 * (ONE - htcp->now.remains) * faster / ONE;
}

static void acknowledged(struct sock *sk, const struct ack_sample *sample)
{
	struct htcp *htcp = law_state_of(sk);
	struct tcp_sock *tcp = tcp_of(sk);
	__u64 now_ns = now_of(sk), round_ns = since(htcp->round_began_ns, now_ns);
	__u32 rtt_us = sample->rtt_us;

	if (sample->rtt_us <= 0 || ca_state_of(sk) > TCP_CA_DISORDER)
		return;
	if (htcp->rtt_min_us == 0 || rtt_us < htcp->rtt_min_us)
		htcp->rtt_min_us = rtt_us;
	htcp->now.rtt_max_us = at_least(htcp->now.rtt_max_us, rtt_us);
	if (round_ns >= (tcp->srtt_us >> 3) * 1000ull && round_ns > 0) {
		__u64 throughput = (tcp->delivered - htcp->delivered) * SECOND_NS / round_ns;

		htcp->now.throughput_max = at_least(htcp->now.throughput_max, throughput);
		htcp->delivered = tcp->delivered;
		htcp->round_began_ns = now_ns;
	}
}

/* The last loss was none. */
static __u32 undo(struct sock *sk)
{
	struct htcp *htcp = law_state_of(sk);

	htcp->now = htcp->before;
	return at_least(tcp_of(sk)->snd_cwnd, tcp_of(sk)->prior_cwnd);
}

CONTROL(rw_htcp, .init = init, .after_loss = after_loss, .growth = growth, .acknowledged = acknowledged, .undo = undo);
