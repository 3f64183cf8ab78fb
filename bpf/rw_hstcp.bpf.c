/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* HighSpeed TCP (RFC 3649): the larger the window, the faster it grows and the less of it a loss takes. */
#include "congestion.h"

/* The first window that grows by i + 1 segments per round trip, and the part of it that a loss takes: a(w) and b(w) of
 * RFC 3649 §5 with Low_Window 38, High_Window 83000, High_P 10^-7 and High_Decrease 0.1. */
static const struct row {
	__u32 window;
	__u32 cut;
} rows[] = {
	{ 38, 512 }, { 118, 452 }, { 221, 418 }, { 347, 394 }, { 494, 375 }, { 662, 360 }, { 849, 347 },
	{ 1056, 335 }, { 1282, 325 }, { 1527, 315 }, { 1791, 307 }, { 2073, 299 }, { 2375, 292 }, { 2695, 285 },
	{ 3035, 279 }, { 3395, 273 }, { 3774, 267 }, { 4173, 262 }, { 4592, 257 }, { 5032, 252 }, { 5493, 247 },
	{ 5975, 243 }, { 6479, 238 }, { 7005, 234 }, { 7554, 230 }, { 8126, 226 }, { 8722, 222 }, { 9342, 219 },
	{ 9987, 215 }, { 10658, 212 }, { 11355, 208 }, { 12080, 205 }, { 12832, 202 }, { 13613, 199 }, { 14424, 196 },
	{ 15265, 193 }, { 16138, 190 }, { 17044, 187 }, { 17984, 184 }, { 18959, 181 }, { 19971, 178 },
	{ 21020, 176 }, { 22110, 173 }, { 23240, 170 }, { 24413, 168 }, { 25632, 165 }, { 26897, 162 },
	{ 28211, 160 }, { 29578, 157 }, { 30998, 155 }, { 32477, 152 }, { 34015, 150 }, { 35618, 147 },
	{ 37289, 145 }, { 39032, 143 }, { 40853, 140 }, { 42756, 138 }, { 44748, 135 }, { 46836, 133 },
	{ 49027, 130 }, { 51330, 128 }, { 53757, 126 }, { 56318, 123 }, { 59029, 121 }, { 61906, 118 },
	{ 64970, 115 }, { 68246, 113 }, { 71765, 110 }, { 75567, 107 }, { 79705, 105 }, { 84250, 102 }, { 89302, 99 },
	{ 95010, 95 },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The last row that a window has reached; the first for a window that reaches none. */
static __always_inline __u32 row_of(__u32 window)
{
	__u32 row = 0;

	while (row + 1 < ROWS && window >= rows[row + 1].window)
		row++;
	return row;
}

/* How far a window is from this row to the next, in parts. */
static __always_inline __u64 beyond(__u32 row, __u32 window)
{
	if (window <= rows[row].window || row + 1 >= ROWS)
		return 0;
	return (window - rows[row].window) * (__u64)ONE / (rows[row + 1].window - rows[row].window);
}

static __u32 after_loss(struct sock *sk)
{
	__u32 window = tcp_of(sk)->snd_cwnd, row = row_of(window);
	__u64 cut = rows[row].cut;

	if (row + 1 < ROWS)
		cut -= (rows[row].cut - rows[row + 1].cut) * beyond(row, window) / ONE;
	return window - window * cut / ONE;
}

static __u64 growth(struct sock *sk)
{
	__u32 window = tcp_of(sk)->snd_cwnd, row = row_of(window);

	return (row + 1) * (__u64)ONE + beyond(row, window);
}

CONTROL(rw_hstcp, .after_loss = after_loss, .growth = growth);
