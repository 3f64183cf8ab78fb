/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What these programs use of the running kernel's types. Where the fields are is looked up when a program is loaded, in
 * the kernel's own description (BTF), so neither offsets nor other fields matter here. */
#pragma once

typedef signed char __s8;
typedef unsigned char __u8;
typedef signed short __s16;
typedef unsigned short __u16;
typedef signed int __s32;
typedef unsigned int __u32;
typedef signed long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP 1

struct bpf_spin_lock {
	__u32 val;
};

/* States of a connection's congestion control (include/uapi/linux/tcp.h). */
enum { TCP_CA_OPEN, TCP_CA_DISORDER, TCP_CA_CWR, TCP_CA_RECOVERY, TCP_CA_LOSS };

/* Before the first loss (include/net/tcp.h). */
#define TCP_INFINITE_SSTHRESH 0x7fffffff

/* A congestion control that any user may choose (include/net/tcp.h). */
#define TCP_CONG_NON_RESTRICTED 1

enum sk_pacing { SK_PACING_NONE, SK_PACING_NEEDED };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct nsproxy {
	struct net *net_ns;
};

#define TASK_COMM_LEN 16

struct task_struct {
	int pid;
	int tgid;
	char comm[TASK_COMM_LEN];
	struct nsproxy *nsproxy;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	__be32 skc_rcv_saddr;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct socket {
	unsigned long flags;
};

struct sock {
	struct sock_common __sk_common;
	int sk_wmem_queued;
	int sk_sndbuf;
	struct socket *sk_socket;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	__u32 sk_pacing_status;
	kuid_t sk_uid;
};

struct inet_sock {
	__be16 inet_sport;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u8 icsk_ca_state : 5;
	__u64 icsk_ca_priv[13];
};

struct minmax_sample {
	__u32 t;
	__u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 srtt_us;
	__u32 snd_wnd;
	__u32 rcv_wnd;
	__u32 packets_out;
	__u32 max_packets_out;
	__u8 is_cwnd_limited : 1;
	__u32 write_seq;
	__u32 snd_nxt;
	__u32 mss_cache;
	__u32 delivered;
	/* When the kernel last handled a segment, sent data or ran a timer, in microseconds. */
	__u64 tcp_mstamp;
	struct minmax rtt_min;
};

struct ack_sample {
	__u32 pkts_acked;
	__s32 rtt_us;
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
};

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	__u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
	__u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

#pragma clang attribute pop
