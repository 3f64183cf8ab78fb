/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the congestion controls here have in common: Linux's hooks around a law, and a recorder of what they were told
 * and what they did. Windows are counted in segments. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Fixed point: so many parts make one. */
#define ONE 1024

/* No window is smaller, or a single loss would always end in a timeout. */
#define WINDOW_MIN 2

/* How a control reacts. The kernel itself repairs losses (RFC 6937) and begins again after timeouts. */
struct law {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	/* The window after a loss. */
	__u32 (*after_loss)(struct sock *sk);
	/* In congestion avoidance, by how much the window grows per round trip, in parts of a segment. */
	__u64 (*growth)(struct sock *sk);
	/* So many segments were acknowledged, and the window was used: instead of slow start and growth. */
	void (*increase)(struct sock *sk, __u32 acked);
	/* Segments were acknowledged, whether the window was used or not. */
	void (*acknowledged)(struct sock *sk, const struct ack_sample *sample);
	/* The congestion state changes. */
	void (*state)(struct sock *sk, __u8 state);
	void (*event)(struct sock *sk, enum tcp_ca_event event);
	/* The last reduction was a mistake: the window from now on, instead of that before it. */
	__u32 (*undo)(struct sock *sk);
	/* Fills the notes of a record. */
	void (*note)(struct sock *sk, __u64 *notes);
};

/* The kernel's room for a control's state of a connection. */
struct connection {
	/* Parts of a segment by which the window has yet to grow; 2^20 are one. */
	__u32 fraction;
	/* Records so far. */
	__u32 records;
	/* When the kernel made this call. */
	__u64 now_ns;
	/* The law's own. */
	__u64 law[11];
};

static __always_inline struct tcp_sock *tcp_of(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct connection *connection_of(struct sock *sk)
{
	return (struct connection *)tcp_of(sk)->inet_conn.icsk_ca_priv;
}

static __always_inline void *law_state_of(struct sock *sk)
{
	return connection_of(sk)->law;
}

/* The time of this call, for the law and for the record of it. */
static __always_inline __u64 now_of(struct sock *sk)
{
	return connection_of(sk)->now_ns;
}

/* The time from one call to another. Each connection has its own time, so that the earlier call may have the later one:
 * then it is zero. */
static __always_inline __u64 since(__u64 then_ns, __u64 now_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

static __always_inline __u8 ca_state_of(struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(&tcp_of(sk)->inet_conn, icsk_ca_state);
}

static __always_inline __u32 at_least(__u32 least, __u32 value)
{
	return value < least ? least : value;
}

static __always_inline __u32 at_most(__u32 most, __u32 value)
{
	return value > most ? most : value;
}

static __always_inline void set_window(struct sock *sk, __u32 segments)
{
	struct tcp_sock *tcp = tcp_of(sk);

	tcp->snd_cwnd = at_most(tcp->snd_cwnd_clamp, segments);
}

static __always_inline bool is_in_slow_start(struct sock *sk)
{
	return tcp_of(sk)->snd_cwnd < tcp_of(sk)->snd_ssthresh;
}

/* A window that is not used does not grow (RFC 7661): nothing shows that the path could carry more. In slow start, half
 * of it is enough, as it doubles in each round trip. */
static __always_inline bool is_window_used(struct sock *sk)
{
	struct tcp_sock *tcp = tcp_of(sk);

	if (BPF_CORE_READ_BITFIELD(tcp, is_cwnd_limited))
		return true;
	return is_in_slow_start(sk) && tcp->snd_cwnd < 2 * tcp->max_packets_out;
}

/* RFC 5681 §3.1. Returns how many acknowledged segments are left for congestion avoidance. */
static __always_inline __u32 slow_start(struct sock *sk, __u32 acked)
{
	struct tcp_sock *tcp = tcp_of(sk);
	__u32 window = at_most(tcp->snd_ssthresh, tcp->snd_cwnd + acked);
	__u32 left = acked - (window - tcp->snd_cwnd);

	set_window(sk, window);
	return left;
}

/* Grows the window by so many parts of a segment for each window that is acknowledged, and never faster than slow start. */
static __always_inline void grow(struct sock *sk, __u32 acked, __u64 parts)
{
	struct connection *connection = connection_of(sk);
	__u64 window = at_least(1, tcp_of(sk)->snd_cwnd);
	__u64 one = 1 << 20;
	__u64 increase = acked * parts * (one / ONE) / window;

	if (increase > acked * one)
		increase = acked * one;
	increase += connection->fraction;
	connection->fraction = increase % one;
	set_window(sk, window + increase / one);
}

/* Whose calls are recorded: nobody's unless user space says so. */
struct recording {
	__u32 namespace_inode;
	/* Of either end. */
	__u32 port;
	/* Records for which there was no room. */
	__u64 lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct recording);
} recording SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} records SEC(".maps");

/* Linux's names of the hooks. */
enum hook { INIT, RELEASE, SSTHRESH, CONG_AVOID, PKTS_ACKED, SET_STATE, CWND_EVENT, UNDO_CWND };

/* In user space: congestion::Record. */
struct record {
	__u64 at_ns;
	__u64 notes[4];
	/* Of this connection, from zero: one that is missing was lost. */
	__u32 number;
	/* The hook's own: segments acknowledged; the new state; the event; the window that is returned. */
	__u32 argument;
	__s32 sample_rtt_us;
	__u32 window_before;
	__u32 window;
	__u32 ssthresh_before;
	__u32 ssthresh;
	__u32 prior_window;
	__u32 in_flight;
	__u32 delivered;
	__u32 srtt_us;
	__u32 min_rtt_us;
	__u16 local_port;
	__u16 peer_port;
	__u8 hook;
	__u8 ca_state;
	__u8 is_window_used;
	__u8 unused;
};

/* Unlike skc_num, it is still known when the socket ends. */
static __always_inline __u16 local_port_of(struct sock *sk)
{
	return bpf_ntohs(tcp_of(sk)->inet_conn.icsk_inet.inet_sport);
}

/* NULL if this socket's calls are not recorded. */
static __always_inline struct recording *recording_of(struct sock *sk)
{
	__u32 zero = 0;
	struct recording *wanted = bpf_map_lookup_elem(&recording, &zero);
	__u16 local = local_port_of(sk), peer = bpf_ntohs(sk->__sk_common.skc_dport);

	if (!wanted || wanted->namespace_inode == 0)
		return NULL;
	if (sk->__sk_common.skc_net.net->ns.inum != wanted->namespace_inode)
		return NULL;
	return wanted->port == 0 || local == wanted->port || peer == wanted->port ? wanted : NULL;
}

/* When the kernel made this call. It reads the clock itself before it handles a segment, sends data or runs a timer; not
 * before a socket gets a control or loses it. A restart after idle, and a path that takes smaller segments, come with the
 * time of what was before them. */
static __always_inline __u64 time_of_call(struct sock *sk, enum hook hook)
{
	return hook == INIT || hook == RELEASE ? bpf_ktime_get_ns() : tcp_of(sk)->tcp_mstamp * 1000;
}

/* Begins a call. If calls are recorded, returns a record with the state before the law acts; end_call() submits it. */
static __always_inline struct record *begin_call(struct sock *sk, enum hook hook, __u32 argument)
{
	struct tcp_sock *tcp = tcp_of(sk);
	struct recording *recording = recording_of(sk);
	struct record *record;
	__u32 number;

	connection_of(sk)->now_ns = time_of_call(sk, hook);
	if (!recording)
		return NULL;
	number = connection_of(sk)->records++;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&recording->lost, 1);
		return NULL;
	}
	__builtin_memset(record, 0, sizeof(*record));
	record->at_ns = now_of(sk);
	record->number = number;
	record->argument = argument;
	record->sample_rtt_us = -1;
	record->window_before = tcp->snd_cwnd;
	record->ssthresh_before = tcp->snd_ssthresh;
	record->prior_window = tcp->prior_cwnd;
	record->in_flight = tcp->packets_out;
	record->delivered = tcp->delivered;
	/* The kernel keeps eight times the value. */
	record->srtt_us = tcp->srtt_us >> 3;
	record->min_rtt_us = tcp->rtt_min.s[0].v;
	record->local_port = local_port_of(sk);
	record->peer_port = bpf_ntohs(sk->__sk_common.skc_dport);
	record->hook = hook;
	record->ca_state = ca_state_of(sk);
	record->is_window_used = is_window_used(sk);
	return record;
}

/* Ends a call. Its record has the state after the law has acted. */
static __always_inline void end_call(struct sock *sk, const struct law *law, struct record *record)
{
	if (!record)
		return;
	record->window = tcp_of(sk)->snd_cwnd;
	record->ssthresh = tcp_of(sk)->snd_ssthresh;
	if (law->note)
		law->note(sk, record->notes);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static __always_inline void hook_init(struct sock *sk, const struct law *law)
{
	struct record *record = begin_call(sk, INIT, 0);

	if (law->init)
		law->init(sk);
	end_call(sk, law, record);
}

static __always_inline void hook_release(struct sock *sk, const struct law *law)
{
	struct record *record = begin_call(sk, RELEASE, 0);

	if (law->release)
		law->release(sk);
	end_call(sk, law, record);
}

static __always_inline __u32 hook_ssthresh(struct sock *sk, const struct law *law)
{
	struct record *record = begin_call(sk, SSTHRESH, 0);
	__u32 window = at_least(WINDOW_MIN, law->after_loss(sk));

	connection_of(sk)->fraction = 0;
	if (record)
		record->argument = window;
	end_call(sk, law, record);
	return window;
}

static __always_inline void hook_cong_avoid(struct sock *sk, const struct law *law, __u32 acked)
{
	struct record *record = begin_call(sk, CONG_AVOID, acked);

	if (!is_window_used(sk)) {
	} else if (law->increase) {
		law->increase(sk, acked);
	} else {
		if (is_in_slow_start(sk))
			acked = slow_start(sk, acked);
		if (acked > 0)
			grow(sk, acked, law->growth(sk));
	}
	end_call(sk, law, record);
}

static __always_inline void hook_pkts_acked(struct sock *sk, const struct law *law, const struct ack_sample *sample)
{
	struct record *record;

	if (!law->acknowledged)
		return;
	record = begin_call(sk, PKTS_ACKED, sample->pkts_acked);
	if (record)
		record->sample_rtt_us = sample->rtt_us;
	law->acknowledged(sk, sample);
	end_call(sk, law, record);
}

static __always_inline void hook_set_state(struct sock *sk, const struct law *law, __u8 state)
{
	struct record *record = begin_call(sk, SET_STATE, state);

	if (law->state)
		law->state(sk, state);
	end_call(sk, law, record);
}

static __always_inline void hook_cwnd_event(struct sock *sk, const struct law *law, enum tcp_ca_event event)
{
	struct record *record;

	if (event > CA_EVENT_LOSS)
		return;
	record = begin_call(sk, CWND_EVENT, event);
	if (law->event)
		law->event(sk, event);
	end_call(sk, law, record);
}

static __always_inline __u32 hook_undo_cwnd(struct sock *sk, const struct law *law)
{
	struct record *record = begin_call(sk, UNDO_CWND, 0);
	__u32 window = at_least(tcp_of(sk)->snd_cwnd, tcp_of(sk)->prior_cwnd);

	if (law->undo)
		window = law->undo(sk);
	if (record)
		record->argument = window;
	end_call(sk, law, record);
	return window;
}

/* Defines the congestion control of this name, which follows a law: the members of struct law are the arguments. */
#define CONTROL(control, ...)                                                                                              \
	static const struct law law = { __VA_ARGS__ };                                                                      \
                                                                                                                            \
	SEC("struct_ops")                                                                                                   \
	void BPF_PROG(control##_init, struct sock *sk)                                                                      \
	{                                                                                                                   \
		hook_init(sk, &law);                                                                                        \
	}                                                                                                                   \
	SEC("struct_ops")                                                                                                   \
	void BPF_PROG(control##_release, struct sock *sk)                                                                   \
	{                                                                                                                   \
		hook_release(sk, &law);                                                                                     \
	}                                                                                                                   \
	SEC("struct_ops")                                                                                                   \
	__u32 BPF_PROG(control##_ssthresh, struct sock *sk)                                                                 \
	{                                                                                                                   \
		return hook_ssthresh(sk, &law);                                                                             \
	}                                                                                                                   \
	SEC("struct_ops")                                                                                                   \
	void BPF_PROG(control##_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)                                        \
	{                                                                                                                   \
		hook_cong_avoid(sk, &law, acked);                                                                           \
	}                                                                                                                   \
	SEC("struct_ops")                                                                                                   \
	void BPF_PROG(control##_pkts_acked, struct sock *sk, const struct ack_sample *sample)                               \
	{                                                                                                                   \
		hook_pkts_acked(sk, &law, sample);                                                                          \
	}                                                                                                                   \
	SEC("struct_ops")                                                                                                   \
	void BPF_PROG(control##_set_state, struct sock *sk, __u8 state)                                                     \
	{                                                                                                                   \
		hook_set_state(sk, &law, state);                                                                            \
	}                                                                                                                   \
	SEC("struct_ops")                                                                                                   \
	void BPF_PROG(control##_cwnd_event, struct sock *sk, enum tcp_ca_event event)                                       \
	{                                                                                                                   \
		hook_cwnd_event(sk, &law, event);                                                                           \
	}                                                                                                                   \
	SEC("struct_ops")                                                                                                   \
	__u32 BPF_PROG(control##_undo_cwnd, struct sock *sk)                                                                \
	{                                                                                                                   \
		return hook_undo_cwnd(sk, &law);                                                                            \
	}                                                                                                                   \
	SEC(".struct_ops.link")                                                                                             \
	struct tcp_congestion_ops control = {                                                                               \
		.init = (void *)control##_init,                                                                             \
		.release = (void *)control##_release,                                                                       \
		.ssthresh = (void *)control##_ssthresh,                                                                     \
		.cong_avoid = (void *)control##_cong_avoid,                                                                 \
		.pkts_acked = (void *)control##_pkts_acked,                                                                 \
		.set_state = (void *)control##_set_state,                                                                   \
		.cwnd_event = (void *)control##_cwnd_event,                                                                 \
		.undo_cwnd = (void *)control##_undo_cwnd,                                                                   \
		.name = #control,                                                                                           \
		.flags = TCP_CONG_NON_RESTRICTED,                                                                           \
	}
