/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Westwood+ (Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion
 * control", 2004): grows as Reno; after a loss, the window is what the measured bandwidth fills in the shortest round
 * trip. */
#include "congestion.h"

/* A sample of the bandwidth takes a round trip, but no less than this. */
#define SAMPLE_NS_MIN 50000000ull

#define SECOND_NS 1000000000ull

struct westwood {
	__u64 sample_began_ns;
	/* Segments per second, in parts; zero before the first sample. */
	__u64 bandwidth;
	/* Segments delivered until then. */
	__u32 delivered;
	__u32 rtt_min_us;
};

static void init(struct sock *sk)
{
	struct westwood *westwood = law_state_of(sk);

	westwood->sample_began_ns = now_of(sk);
	/* The handshake is no sample. */
	westwood->bandwidth = 0;
	westwood->delivered = tcp_of(sk)->delivered;
}

static __u32 after_loss(struct sock *sk)
{
	const struct westwood *westwood = law_state_of(sk);

	if (westwood->bandwidth == 0)
		return tcp_of(sk)->snd_cwnd / 2;
	return at_most(tcp_of(sk)->snd_cwnd, westwood->bandwidth * westwood->rtt_min_us / 1000000 / ONE);
}

static __u64 growth(struct sock *sk)
{
	return ONE;
}

static void acknowledged(struct sock *sk, const struct ack_sample *sample)
{
	struct westwood *westwood = law_state_of(sk);
	struct tcp_sock *tcp = tcp_of(sk);
	__u64 now_ns = now_of(sk), sample_ns = since(westwood->sample_began_ns, now_ns), bandwidth;

	if (sample->rtt_us > 0 && (westwood->rtt_min_us == 0 || (__u32)sample->rtt_us < westwood->rtt_min_us))
		westwood->rtt_min_us = sample->rtt_us;
	if (sample_ns < SAMPLE_NS_MIN || sample_ns < (tcp->srtt_us >> 3) * 1000ull)
		return;
	bandwidth = (tcp->delivered - westwood->delivered) * (__u64)ONE * SECOND_NS / sample_ns;
	if (westwood->bandwidth == 0)
		westwood->bandwidth = bandwidth;
	else
		westwood->bandwidth += ((__s64)bandwidth - (__s64)westwood->bandwidth) >> 3;
	westwood->delivered = tcp->delivered;
	westwood->sample_began_ns = now_ns;
}

CONTROL(rw_westwood, .init = init, .after_loss = after_loss, .growth = growth, .acknowledged = acknowledged);
