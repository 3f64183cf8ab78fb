/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* BIC (Xu, Harfoush and Rhee, "Binary Increase Congestion Control for Fast Long-Distance Networks", 2004): after a loss,
 * a search for the window at which it happened, fast while far from it and slow close to it; then on beyond it. The
 * constants are those of Linux since 2.6.8. */
#include "congestion.h"

/* Up to this window, Reno. */
#define LOW_WINDOW 14
/* The part of a window that remains after a loss. */
#define REMAINS 819
/* Segments per round trip, at most (Smax) and at least (Smin, in parts). */
#define GROWTH_MAX 16
#define GROWTH_MIN (ONE / 5)
/* A step of the search goes so many times as far as what remains of the way. */
#define STEPS 4
/* Without a loss so far, the window grows by a twentieth of itself per round trip. */
#define FIRST_STEPS 20

struct bic {
	/* Where the last loss happened, or a little below if the losses come earlier and earlier; zero before the first. */
	__u32 window_max;
	/* Before the last loss. */
	__u32 earlier_window_max;
};

static __u32 after_loss(struct sock *sk)
{
	struct bic *bic = law_state_of(sk);
	__u32 window = tcp_of(sk)->snd_cwnd;

	bic->earlier_window_max = bic->window_max;
	/* Fast convergence: others want a share. */
	bic->window_max = window < bic->window_max ? window * (ONE + REMAINS) / (2 * ONE) : window;
	return window <= LOW_WINDOW ? window / 2 : window * REMAINS / ONE;
}

static __u64 growth(struct sock *sk)
{
	const struct bic *bic = law_state_of(sk);
	__u32 window = tcp_of(sk)->snd_cwnd, max = bic->window_max, step;
	__u64 parts;

	if (window <= LOW_WINDOW)
		return ONE;
	if (window < max) {
		step = (max - window) / STEPS;
		parts = step > GROWTH_MAX ? GROWTH_MAX * ONE : step > 1 ? step * ONE : GROWTH_MIN;
	} else if (window < max + STEPS) {
		parts = GROWTH_MIN;
	} else if (window < max + GROWTH_MAX * (STEPS - 1)) {
		parts = (window - max) * ONE / (STEPS - 1);
	} else {
		parts = GROWTH_MAX * ONE;
	}
	if (max == 0 && parts < window * ONE / FIRST_STEPS)
		parts = window * ONE / FIRST_STEPS;
	return parts;
}

/* After a timeout, the search begins again. */
static void state(struct sock *sk, __u8 state)
{
	struct bic *bic = law_state_of(sk);

	if (state == TCP_CA_LOSS)
		bic->window_max = 0;
}

static __u32 undo(struct sock *sk)
{
	struct bic *bic = law_state_of(sk);

	bic->window_max = bic->earlier_window_max;
	return at_least(tcp_of(sk)->snd_cwnd, tcp_of(sk)->prior_cwnd);
}

CONTROL(rw_bic, .after_loss = after_loss, .growth = growth, .state = state, .undo = undo);
