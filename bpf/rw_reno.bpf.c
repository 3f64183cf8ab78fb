/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Reno (RFC 5681 §3.1): one segment more per round trip, half of the window after a loss. */
#include "congestion.h"

static __u32 after_loss(struct sock *sk)
{
	return tcp_of(sk)->snd_cwnd / 2;
}

static __u64 growth(struct sock *sk)
{
	return ONE;
}

CONTROL(rw_reno, .after_loss = after_loss, .growth = growth);
