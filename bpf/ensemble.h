/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Ensembles: connections of one user to one place that share what they know of the path (RFC 9040; paper 000).
 *
 * User space names a socket's group in its storage and then chooses the congestion control. Blocks of groups are never
 * deleted: one without members is free for another group. */
#pragma once
#include "congestion.h"

/* What the owner of a socket wants of its group. Whoever has the socket may change it at any time. */
struct membership {
	/* The number of the group among those of this user in this network namespace; zero: no group. */
	__u64 group;
	/* All connections to the peer's host, whatever their number. */
	__u8 is_of_host;
	/* enum mode, enum aggregate_law, enum sharing. */
	__u8 mode;
	__u8 law;
	__u8 sharing;
	/* The flows as which the group behaves, in parts, if the mode is WEIGHT. */
	__u32 weight;
	/* The segments that each connection under FAST keeps in the queue; zero: the usual number. */
	__u32 alpha;
};

/* FAIR is the paper's: as aggressive as so many connections. SINGLE: as one. CONSERVATIVE: RFC 8699 §5.3.2. */
enum mode { FAIR, WEIGHT, SINGLE, CONSERVATIVE };

/* The law of the aggregate window. */
enum aggregate_law { AGGREGATE_RENO, AGGREGATE_CUBIC };

/* Whether members that do not send have a share, as in the paper. */
enum sharing { BY_ACTIVITY, EQUAL };

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct membership);
} memberships SEC(".maps");

enum control { CONTROL_FAIR, CONTROL_FAST };

/* User and namespace are the socket's own, so that nobody can join a group of somebody else. */
struct group_key {
	__u64 group;
	__u32 user;
	__u32 namespace_inode;
	__u32 control;
	__u32 unused;
};

/* The state of a group. In user space: congestion::Group. Windows are in parts of a segment. */
struct group {
	struct bpf_spin_lock lock;
	/* Zero: free. */
	__u32 members;
	struct group_key key;
	/* Changes so far, each made under the lock. */
	__u64 changes;
	/* The aggregate's. */
	__u64 window;
	__u64 ssthresh;
	/* Of it, what members have that repair losses. */
	__u64 frozen;
	/* Members that have sent are counted anew in each epoch, which takes a round trip. */
	__u64 epoch_began_ns;
	__u64 last_active_ns;
	__u64 last_cut_ns;
	__u64 min_rtt_at_ns;
	/* 2^16 are one microsecond. */
	__u64 srtt;
	/* The growth of CUBIC (RFC 9438), since the window last began to grow; zero: it has not yet. */
	__u64 cubic_began_ns;
	__u64 cubic_window_max;
	__u64 cubic_window_reno;
	/* Of the round trips of this epoch. */
	__u64 rtt_sum_us;
	/* Losses that a member that always sends should have had, in parts. */
	__u64 losses_expected;
	__u32 cubic_k_ms;
	__u32 epoch;
	__u32 seen;
	__u32 seen_before;
	__u32 frozen_members;
	__u32 rtt_samples;
	/* Of the epoch before. */
	__u32 rtt_mean_us;
	__u32 min_rtt_us;
	/* Reductions of the window so far. */
	__u32 generation;
	__u32 weight;
	__u8 mode;
	__u8 law;
	__u8 sharing;
	__u8 unused;
	/* For people. */
	__u32 losses;
	__u32 timeouts;
	__u32 undone;
	/* Shares raised to the smallest window. */
	__u32 raised;
	/* Members that left because their path is another one. */
	__u32 split;
	__u32 peer_port;
};

#define GROUPS 1024

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUPS);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

/* A connection's state in its group. */
struct member {
	/* Its group's place in the array, counted from one; zero: it has none. */
	__u32 place;
	/* When it was last counted. */
	__u32 epoch;
	/* What it has while it repairs losses, in parts; zero: it does not. */
	__u32 frozen;
	/* What its last loss took from the aggregate, and the group's generation then. */
	__u32 cut;
	__u32 generation;
	/* Its losses, and the group's expectation when it joined. */
	__u32 losses;
	__u64 losses_expected;
	/* The group as this member last changed it. */
	__u64 changes;
	__u64 window;
	__u64 frozen_of_all;
	__u32 members;
	__u32 active;
	/* Epochs since one of its round trips was like the others'. */
	__u32 apart;
};

_Static_assert(sizeof(struct member) <= sizeof(((struct connection *)0)->law), "the kernel has no more room");

/* A window that no measurement justifies (RFC 6928). */
#define FIRST_WINDOW 10

/* A block without members is looked for in so many places. */
#define PLACES 8

static __always_inline struct member *member_of(struct sock *sk)
{
	return law_state_of(sk);
}

static __always_inline struct group *group_at(__u32 place)
{
	__u32 index = place - 1;

	return place == 0 ? NULL : bpf_map_lookup_elem(&groups, &index);
}

static __always_inline __u64 less(__u64 from, __u64 amount)
{
	return from > amount ? from - amount : 0;
}

static __always_inline __u64 hashed(const struct group_key *key)
{
	__u64 hash = key->group ^ ((__u64)key->user << 32 | key->namespace_inode) ^ (__u64)key->control << 56;

	hash *= 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

#define AF_INET6 10

/* The host at the other end, as a group's number. */
static __always_inline __u64 host_of(struct sock *sk)
{
	__u64 host = 0;

	if (sk->__sk_common.skc_family != AF_INET6)
		return 1ull << 32 | sk->__sk_common.skc_daddr;
	for (int i = 0; i < 4; i++)
		host = host * 0x100000001b3ull + sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
	return host | 1;
}

/* What follows is done under the group's lock. */

/* How long an epoch takes at least. */
#define EPOCH_NS_MIN 10000000ull

/* Begins a new epoch if the last one is over. */
static __always_inline void advance(struct group *group, __u64 now_ns)
{
	__u64 length_ns = (group->srtt >> 16) * 1000, passed_ns = now_ns - group->epoch_began_ns;

	if (length_ns < EPOCH_NS_MIN)
		length_ns = EPOCH_NS_MIN;
	if (passed_ns < length_ns)
		return;
	group->seen_before = passed_ns < 2 * length_ns ? group->seen : 0;
	group->seen = 0;
	group->epoch++;
	group->epoch_began_ns = now_ns;
	if (group->rtt_samples > 0)
		group->rtt_mean_us = group->rtt_sum_us / group->rtt_samples;
	group->rtt_sum_us = 0;
	group->rtt_samples = 0;
}

/* A member sends or is acknowledged. */
static __always_inline void see(struct group *group, struct member *member, __u64 now_ns)
{
	if (member->epoch != group->epoch) {
		member->epoch = group->epoch;
		group->seen++;
	}
	group->last_active_ns = now_ns;
}

/* Members among which the window is shared out. */
static __always_inline __u32 active(const struct group *group)
{
	__u32 seen = at_least(group->seen, group->seen_before);

	return group->sharing == EQUAL ? group->members : at_least(1, at_most(group->members, seen));
}

/* The share of each member that does not repair losses, in segments. */
static __always_inline __u32 share_of(struct group *group)
{
	__u64 shared = less(group->window, group->frozen) / ONE;
	__u32 share = shared / at_least(1, less(active(group), group->frozen_members));

	if (share >= WINDOW_MIN)
		return share;
	group->raised++;
	return WINDOW_MIN;
}

/* Sets aside what a member has while it repairs losses. */
static __always_inline void freeze(struct group *group, struct member *member, __u64 parts)
{
	group->frozen_members += member->frozen == 0;
	group->frozen = less(group->frozen, member->frozen) + parts;
	member->frozen = parts;
}

/* Shares it out again. */
static __always_inline void thaw(struct group *group, struct member *member)
{
	group->frozen_members -= member->frozen > 0;
	group->frozen = less(group->frozen, member->frozen);
	member->frozen = 0;
}

/* Ends a change, and notes what the group is then. */
static __always_inline void changed(struct group *group, struct member *member)
{
	member->changes = ++group->changes;
	member->window = group->window;
	member->frozen_of_all = group->frozen;
	member->members = group->members;
	member->active = active(group);
}

/* The recent round trips of all members: each has a weight as if one connection had measured all (RFC 7323, appendix
 * G). */
static __always_inline void measure(struct group *group, __s32 rtt_us, __u64 now_ns)
{
	__u64 rtt = (__u64)rtt_us << 16, samples = group->window / ONE / 2;

	if (rtt_us <= 0)
		return;
	if (group->min_rtt_us == 0 || (__u32)rtt_us <= group->min_rtt_us ||
	    now_ns - group->min_rtt_at_ns > 10000000000ull) {
		group->min_rtt_us = rtt_us;
		group->min_rtt_at_ns = now_ns;
	}
	group->rtt_sum_us += rtt_us;
	group->rtt_samples++;
	samples = samples < 1 ? 8 : 8 * samples;
	if (group->srtt == 0)
		group->srtt = rtt;
	else if (rtt > group->srtt)
		group->srtt += (rtt - group->srtt) / samples;
	else
		group->srtt -= (group->srtt - rtt) / samples;
}

/* Whether a round trip is like those of the epoch before, of all members. */
static __always_inline bool is_like_the_others(const struct group *group, __u32 rtt_us)
{
	__u32 mean_us = group->rtt_mean_us;
	__u32 off_us = rtt_us > mean_us ? rtt_us - mean_us : mean_us - rtt_us;

	return mean_us == 0 || off_us <= mean_us / 4 + 1000;
}

static __always_inline bool is_same(const struct group_key *a, const struct group_key *b)
{
	return a->group == b->group && a->user == b->user && a->namespace_inode == b->namespace_inode &&
	       a->control == b->control;
}

static __always_inline void want(struct group *group, const struct membership *wanted)
{
	group->mode = wanted->mode;
	group->law = wanted->law;
	group->sharing = wanted->sharing;
	group->weight = wanted->weight;
}

/* Makes a free block this group's, which begins with its first member. */
static __always_inline void found(struct group *group, const struct group_key *key, struct sock *sk, __u64 now_ns)
{
	struct tcp_sock *tcp = tcp_of(sk);

	group->key = *key;
	group->window = 0;
	group->ssthresh = (__u64)tcp->snd_ssthresh * ONE;
	group->frozen = 0;
	group->epoch_began_ns = now_ns;
	group->epoch = 1;
	group->seen = 0;
	group->seen_before = 0;
	group->frozen_members = 0;
	group->srtt = (__u64)(tcp->srtt_us >> 3) << 16;
	group->rtt_sum_us = 0;
	group->rtt_samples = 0;
	group->rtt_mean_us = 0;
	group->min_rtt_us = 0;
	group->cubic_began_ns = 0;
	group->cubic_window_max = 0;
	group->changes = 0;
	group->generation = 0;
	group->last_cut_ns = 0;
	group->losses = 0;
	group->losses_expected = 0;
	group->timeouts = 0;
	group->undone = 0;
	group->raised = 0;
	group->split = 0;
	group->peer_port = bpf_ntohs(sk->__sk_common.skc_dport);
}

/* Up to here. */

/* Makes the socket a member of the group that its owner named, or of none if no block is free. */
static __always_inline void join(struct sock *sk, enum control control)
{
	struct membership *wanted = bpf_sk_storage_get(&memberships, sk, 0, 0);
	struct member *member = member_of(sk);
	__u32 window = tcp_of(sk)->snd_cwnd * ONE, place = 0;
	bool is_repairing = ca_state_of(sk) > TCP_CA_DISORDER;
	__u64 now_ns = bpf_ktime_get_ns();
	struct membership terms;
	struct group_key key;
	struct group *group;
	__u64 first;

	if (!wanted || (wanted->group == 0 && !wanted->is_of_host))
		return;
	terms = *wanted;
	key.group = terms.is_of_host ? host_of(sk) : terms.group;
	key.user = sk->sk_uid.val;
	key.namespace_inode = sk->__sk_common.skc_net.net->ns.inum;
	key.control = control;
	key.unused = 0;
	first = hashed(&key);
	/* First the group itself, wherever it is; then a free block. */
	for (__u32 attempt = 0; attempt < 2 * PLACES && place == 0; attempt++) {
		__u32 index = (first + attempt % PLACES) % GROUPS;
		bool is_mine, is_free;

		group = bpf_map_lookup_elem(&groups, &index);
		if (!group)
			return;
		bpf_spin_lock(&group->lock);
		is_mine = group->members > 0 && is_same(&group->key, &key);
		is_free = group->members == 0 && attempt >= PLACES;
		if (is_mine || is_free) {
			if (is_free)
				found(group, &key, sk, now_ns);
			want(group, &terms);
			/* The first brings its window, and so does one that repairs losses. The others have a share. */
			if (is_free || is_repairing)
				group->window += window;
			if (is_repairing)
				freeze(group, member, window);
			group->members++;
			advance(group, now_ns);
			see(group, member, now_ns);
			member->losses_expected = group->losses_expected;
			changed(group, member);
			place = index + 1;
		}
		bpf_spin_unlock(&group->lock);
	}
	member->place = place;
	/* No acknowledgements space out what a new share allows. */
	if (place != 0 && sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Takes over what the owner of a member has changed. */
static __always_inline void renew(struct group *group, const struct membership *wanted)
{
	struct membership terms = *wanted;

	bpf_spin_lock(&group->lock);
	want(group, &terms);
	bpf_spin_unlock(&group->lock);
}

/* Takes the socket out of its group. What it uses of the window leaves with it. */
static __always_inline void leave(struct sock *sk, bool is_split)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 now_ns = bpf_ktime_get_ns();

	if (!group)
		return;
	bpf_spin_lock(&group->lock);
	advance(group, now_ns);
	if (member->frozen > 0)
		group->window = less(group->window, member->frozen);
	else if (group->epoch - member->epoch <= 1 && group->members > 1)
		group->window = less(group->window, (__u64)share_of(group) * ONE);
	thaw(group, member);
	if (member->epoch == group->epoch)
		group->seen = less(group->seen, 1);
	group->seen_before = less(group->seen_before, 1);
	group->members = less(group->members, 1);
	group->split += is_split;
	changed(group, member);
	bpf_spin_unlock(&group->lock);
	member->place = 0;
}

/* What a member's records note of its group. */
static void note_group(struct sock *sk, __u64 *notes)
{
	const struct member *member = member_of(sk);

	notes[0] = member->changes;
	notes[1] = member->window;
	notes[2] = member->frozen_of_all;
	notes[3] = (__u64)member->place << 32 | (__u64)(member->members & 0xffff) << 16 | (member->active & 0xffff);
}
