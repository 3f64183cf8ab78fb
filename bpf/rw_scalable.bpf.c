/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Scalable TCP (Tom Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", 2003): the window grows
 * by a hundredth of what is acknowledged, so that the time to recover from a loss does not depend on it. */
#include "congestion.h"

/* Below it, the law would be slower than Reno's. */
#define WINDOW_OF_ONE_SEGMENT 100

static __u32 after_loss(struct sock *sk)
{
	__u32 window = tcp_of(sk)->snd_cwnd;

	return window - window / 8;
}

static __u64 growth(struct sock *sk)
{
	return at_least(WINDOW_OF_ONE_SEGMENT, tcp_of(sk)->snd_cwnd) * (__u64)ONE / WINDOW_OF_ONE_SEGMENT;
}

CONTROL(rw_scalable, .after_loss = after_loss, .growth = growth);
