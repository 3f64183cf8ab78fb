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

struct sock_common {
	__be16 skc_dport;
	__u16 skc_num;
	possible_net_t skc_net;
};

struct socket {
	unsigned long flags;
};

struct sock {
	struct sock_common __sk_common;
	int sk_wmem_queued;
	int sk_sndbuf;
	struct socket *sk_socket;
};

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 srtt_us;
	__u32 snd_wnd;
	__u32 rcv_wnd;
	__u32 packets_out;
	__u32 write_seq;
	__u32 snd_nxt;
};

#pragma clang attribute pop
