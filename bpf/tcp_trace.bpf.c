/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What happens to TCP connections of one network namespace, event by event: segments that arrive, retransmissions,
 * changes of the congestion state, writes. */
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading: whose events, by the inode number of the namespace, and of which port if not zero; and for how
 * long what finds nothing new is passed over. The only constant here: user space writes the section as a whole. */
const volatile struct {
	__u32 namespace_inode;
	__u32 port;
	__u32 quiet_us;
} wanted = {};

enum kind { ARRIVED, RETRANSMITTED, CONGESTION_STATE, WRITTEN };

/* In user space: observe::TcpEvent. */
struct event {
	__u64 at_ns;
	__u64 cookie;
	__u64 unchanged_until_ns;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 srtt_us;
	__u32 snd_wnd;
	__u32 rcv_wnd;
	__u32 packets_out;
	__u32 notsent;
	__s32 wmem_queued;
	__s32 sndbuf;
	__u16 local_port;
	__u16 peer_port;
	__u8 kind;
	__u8 ca_state;
	__u8 writer_waits;
	__u8 unused[5];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

/* What was told last of a connection. */
struct told {
	__u64 at_ns;
	/* When the last event since then was passed over. */
	__u64 passed_over_at_ns;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u8 ca_state;
	__u8 writer_waits;
	__u8 kind;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct told);
} told SEC(".maps");

/* The bit of socket.flags that says that a writer waits for room (include/linux/net.h). */
#define SOCK_NOSPACE 2

static __always_inline bool is_wanted(const struct sock *sk)
{
	__u16 local = sk->__sk_common.skc_num, peer = bpf_ntohs(sk->__sk_common.skc_dport);

	if (sk->__sk_common.skc_net.net->ns.inum != wanted.namespace_inode)
		return false;
	return wanted.port == 0 || local == wanted.port || peer == wanted.port;
}

/* Of arrivals in a row, or writes in a row, those are passed over that find the connection as it was told, not long ago.
 * If it is not one of them, this is told now, and *unchanged_until_ns is when the last was passed over since the event
 * before, or zero. */
static __always_inline bool is_passed_over(struct sock *sk, const struct told *now, __u64 *unchanged_until_ns)
{
	struct told *last;

	if (wanted.quiet_us == 0)
		return false;
	last = bpf_sk_storage_get(&told, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!last)
		return false;
	if ((now->kind == ARRIVED || now->kind == WRITTEN) && last->kind == now->kind && last->at_ns != 0 &&
	    now->at_ns - last->at_ns < wanted.quiet_us * 1000ull && last->snd_cwnd == now->snd_cwnd &&
	    last->snd_ssthresh == now->snd_ssthresh && last->ca_state == now->ca_state &&
	    last->writer_waits == now->writer_waits) {
		last->passed_over_at_ns = now->at_ns;
		return true;
	}
	*unchanged_until_ns = last->passed_over_at_ns;
	*last = *now;
	return false;
}

/* Returns whether there was room. */
static __always_inline bool tell(struct sock *sk, enum kind kind, int state, __u64 at_ns)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	__u64 unchanged_until_ns = 0;
	struct told now = { .at_ns = at_ns, .kind = kind };
	struct event *event;

	if (!tcp)
		return true;
	now.snd_cwnd = tcp->snd_cwnd;
	now.snd_ssthresh = tcp->snd_ssthresh;
	now.ca_state = state < 0 ? BPF_CORE_READ_BITFIELD(&tcp->inet_conn, icsk_ca_state) : state;
	now.writer_waits = sk->sk_socket && (sk->sk_socket->flags >> SOCK_NOSPACE & 1);
	if (is_passed_over(sk, &now, &unchanged_until_ns))
		return true;
	event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
	if (!event)
		return false;
	__builtin_memset(event, 0, sizeof(*event));
	event->at_ns = at_ns;
	event->cookie = bpf_get_socket_cookie(sk);
	event->unchanged_until_ns = unchanged_until_ns;
	event->snd_cwnd = now.snd_cwnd;
	event->snd_ssthresh = now.snd_ssthresh;
	/* The kernel keeps eight times the value. */
	event->srtt_us = tcp->srtt_us >> 3;
	event->snd_wnd = tcp->snd_wnd;
	event->rcv_wnd = tcp->rcv_wnd;
	event->packets_out = tcp->packets_out;
	event->notsent = tcp->write_seq - tcp->snd_nxt;
	event->wmem_queued = sk->sk_wmem_queued;
	event->sndbuf = sk->sk_sndbuf;
	event->local_port = sk->__sk_common.skc_num;
	event->peer_port = bpf_ntohs(sk->__sk_common.skc_dport);
	event->kind = kind;
	event->ca_state = now.ca_state;
	event->writer_waits = now.writer_waits;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return true;
}

static __always_inline int observe(struct sock *sk, enum kind kind, int state)
{
	__u64 begun_ns = bpf_ktime_get_ns();

	count(begun_ns, is_wanted(sk) && !tell(sk, kind, state, begun_ns));
	return 0;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(tcp_probe, struct sock *sk)
{
	return observe(sk, ARRIVED, -1);
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(tcp_retransmit_skb, struct sock *sk)
{
	return observe(sk, RETRANSMITTED, -1);
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(tcp_cong_state_set, struct sock *sk, __u8 state)
{
	return observe(sk, CONGESTION_STATE, state);
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(tcp_sendmsg_locked, struct sock *sk)
{
	return observe(sk, WRITTEN, -1);
}
