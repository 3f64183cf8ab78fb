/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Ensembles: connections of one user to one place that share what they know of the path (RFC 9040; paper 000).
 *
 * User space names a socket's group in its storage and then chooses the congestion control. Blocks of groups are never
 * deleted: one without members is free for another group. */
#pragma once
#include "congestion.h"

/* How a group behaves. */
struct terms {
	/* All connections from the same local address to the peer's host are in it, whatever their number. */
	__u8 is_of_host;
	/* enum mode, enum aggregate_law, enum sharing. */
	__u8 mode;
	__u8 law;
	__u8 sharing;
	/* The flows as which the group behaves, in parts, if the mode is WEIGHT. */
	__u32 weight;
};

/* What the owner of a socket wants of its group. Whoever has the socket may change it at any time, and any user may write
 * to the map: the lock is there because a map with one cannot be frozen (BPF_MAP_FREEZE) against the others. */
struct membership {
	struct bpf_spin_lock lock;
	/* The group's place, counted from one, which the programs write here; zero: the socket has none. */
	__u32 place;
	/* The number of the group among those of this user in this network namespace; zero: no group. */
	__u64 group;
	struct terms terms;
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

/* An IPv6 address, or an IPv4 address as one (RFC 4291 §2.5.5.2). */
struct address {
	__u32 words[4];
};

/* User, namespace and local address are the socket's own, so that nobody can join a group of somebody else, and
 * connections over different interfaces do not share one. */
struct group_key {
	__u64 group;
	struct address local;
	__u32 user;
	__u32 namespace_inode;
	__u32 control;
	__u32 is_of_host;
};

/* CUBIC's growth (RFC 9438) of a group's window, since the last reduction. */
struct cubic {
	/* Zero: the window has not yet begun to grow. */
	__u64 began_ns;
	/* W_max, cwnd_prior and W_est. */
	__u64 window_max;
	__u64 window_prior;
	__u64 window_reno;
	__u64 k_ms;
	/* What divisions left of W_est's growth. */
	__u64 left_over;
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
	/* The part of the window that members hold while they repair losses. */
	__u64 frozen;
	/* Members that send are counted anew in each epoch, which takes a round trip. */
	__u64 epoch_began_ns;
	__u64 last_active_ns;
	__u64 last_cut_ns;
	__u64 last_timeout_ns;
	__u64 min_rtt_at_ns;
	/* What divisions left of the window's growth. */
	__u64 left_over;
	/* Under WEIGHT: a round trip, and as many flows as have lost in it, in parts. */
	__u64 round_began_ns;
	__u64 round_flows;
	/* 2^16 are one microsecond. */
	__u64 srtt;
	struct cubic cubic;
	/* Before the last reduction. */
	__u64 ssthresh_before;
	struct cubic cubic_before;
	/* Segments acknowledged so far, of all members. */
	__u64 delivered;
	__u32 epoch;
	/* Members that sent in this epoch and in the one before, without those that repair losses. */
	__u32 seen;
	__u32 seen_before;
	__u32 frozen_members;
	/* The shortest round trip of this epoch and of the one before. */
	__u32 epoch_rtt_us;
	__u32 epoch_rtt_before_us;
	__u32 min_rtt_us;
	/* Reductions of the window so far. */
	__u32 generation;
	struct terms terms;
	/* For people. */
	__u32 losses;
	__u32 timeouts;
	__u32 undone;
	/* Shares raised to the smallest window. */
	__u32 raised;
	/* Members that left because their path is another one. */
	__u32 split;
	__u32 peer_port;
	struct address peer;
};

#define GROUPS 1024

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUPS);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

/* What the administrator wants of a group, whatever its members' owners want. */
struct order {
	/* Its number; zero: there is no order. */
	__u64 group;
	struct terms terms;
};

/* That of the group in each place. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GROUPS);
	__type(key, __u32);
	__type(value, struct order);
} orders SEC(".maps");

/* User space has them in this size (congestion/src/layout.rs). */
_Static_assert(sizeof(struct membership) == 32 && sizeof(struct group) == 344 && sizeof(struct order) == 16, "other sizes");

/* A connection's state in its group. */
struct member {
	/* Its group's place in the array, counted from one; zero: it has none. */
	__u32 place;
	/* When it was last counted. */
	__u32 epoch;
	/* The window that it holds while it repairs losses, in parts; zero: it does not. */
	__u32 frozen;
	/* The amount that its last loss cut from the aggregate, and the group's generation then. */
	__u32 cut;
	__u32 generation;
	/* Its losses and its acknowledged segments, and the group's when it joined. */
	__u32 losses;
	__u32 delivered;
	__u32 group_losses;
	__u64 group_delivered;
	/* Epochs since one of its round trips was like the others'. */
	__u32 apart;
	/* The terms that the group took over when this member last saw other ones. */
	__u32 terms;
	/* For the recorder: the group as this member last changed it. */
	__u32 change;
	__u32 group_window;
	__u32 group_frozen;
	__u16 members;
	__u16 active;
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

#define AF_INET6 10

static __always_inline struct address address_of(struct sock *sk, const struct in6_addr *address, __be32 ipv4)
{
	struct address mapped = { { 0, 0, bpf_htonl(0xffff), ipv4 } };

	if (sk->__sk_common.skc_family == AF_INET6)
		for (int i = 0; i < 4; i++)
			mapped.words[i] = address->in6_u.u6_addr32[i];
	return mapped;
}

static __always_inline struct address peer_address_of(struct sock *sk)
{
	return address_of(sk, &sk->__sk_common.skc_v6_daddr, sk->__sk_common.skc_daddr);
}

static __always_inline struct address local_address_of(struct sock *sk)
{
	return address_of(sk, &sk->__sk_common.skc_v6_rcv_saddr, sk->__sk_common.skc_rcv_saddr);
}

/* An address as a number. */
static __always_inline __u64 number_of(const struct address *address)
{
	__u64 number = 0;

	for (int i = 0; i < 4; i++)
		number = number * 0x100000001b3ull + address->words[i];
	return number;
}

static __always_inline __u64 hashed(const struct group_key *key)
{
	__u64 hash = key->group ^ ((__u64)key->user << 32 | key->namespace_inode) ^ (__u64)key->control << 56;

	hash = (hash ^ number_of(&key->local)) * 0x9e3779b97f4a7c15ull ^ key->is_of_host;
	hash *= 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

/* Callers of the following functions hold the group's lock. */

/* How long an epoch takes at least. */
#define EPOCH_NS_MIN 10000000ull

static __always_inline __u64 rtt_ns_of(const struct group *group)
{
	return (group->srtt >> 16) * 1000;
}

static __always_inline __u64 epoch_ns_of(const struct group *group)
{
	__u64 rtt_ns = rtt_ns_of(group);

	return rtt_ns < EPOCH_NS_MIN ? EPOCH_NS_MIN : rtt_ns;
}

/* Begins a new epoch if the last one is over. After a silence, those count that sent before it. */
static __always_inline void advance_epoch(struct group *group, __u64 now_ns)
{
	if (since(group->epoch_began_ns, now_ns) < epoch_ns_of(group))
		return;
	group->seen_before = group->seen;
	group->seen = 0;
	group->epoch++;
	group->epoch_began_ns = now_ns;
	group->epoch_rtt_before_us = group->epoch_rtt_us;
	group->epoch_rtt_us = 0;
}

/* A member sends or is acknowledged. */
static __always_inline void mark_active(struct group *group, struct member *member, __u64 now_ns)
{
	if (now_ns > group->last_active_ns)
		group->last_active_ns = now_ns;
	if (member->frozen > 0 || member->epoch == group->epoch)
		return;
	member->epoch = group->epoch;
	group->seen++;
}

/* Members among which the window is shared out. */
static __always_inline __u32 sharers_of(const struct group *group)
{
	__u32 others = less(group->members, group->frozen_members);

	if (group->terms.sharing == BY_ACTIVITY)
		others = at_most(others, at_least(group->seen, group->seen_before));
	return at_least(1, others);
}

/* Members that send. */
static __always_inline __u32 active_of(const struct group *group)
{
	return at_most(group->members, sharers_of(group) + group->frozen_members);
}

/* The share of each member that does not repair losses, in segments. A window that is too small for shares of the smallest
 * size grows, unless nobody is there to have one. */
static __always_inline __u32 share_of(struct group *group)
{
	__u32 sharers = sharers_of(group);
	__u32 share = less(group->window, group->frozen) / ONE / sharers;

	if (share >= WINDOW_MIN)
		return share;
	if (group->frozen_members >= group->members)
		return WINDOW_MIN;
	group->window = group->frozen + (__u64)WINDOW_MIN * ONE * sharers;
	group->raised++;
	return WINDOW_MIN;
}

/* Sets aside what a member holds while it repairs losses. */
static __always_inline void freeze(struct group *group, struct member *member, __u64 parts)
{
	if (member->frozen == 0) {
		group->frozen_members++;
		group->seen = less(group->seen, member->epoch == group->epoch);
	}
	group->frozen = less(group->frozen, member->frozen) + parts;
	member->frozen = parts;
}

/* Shares it out again. */
static __always_inline void thaw(struct group *group, struct member *member)
{
	if (member->frozen == 0)
		return;
	group->frozen_members = less(group->frozen_members, 1);
	group->frozen = less(group->frozen, member->frozen);
	member->frozen = 0;
	/* It is counted again as soon as it sends. */
	member->epoch = group->epoch - 1;
}

/* Ends a change, and notes for the recorder what the group is then. */
static __always_inline void end_change(struct group *group, struct member *member)
{
	member->change = ++group->changes;
	member->group_window = group->window;
	member->group_frozen = group->frozen;
	member->members = group->members;
	member->active = active_of(group);
}

/* The recent round trips of all members: each has a weight as if one connection had measured all (RFC 7323, appendix
 * G). */
static __always_inline void measure(struct group *group, __s32 rtt_us, __u64 now_ns)
{
	__u64 rtt = (__u64)rtt_us << 16, samples = group->window / ONE / 2;

	if (rtt_us <= 0)
		return;
	if (group->min_rtt_us == 0 || (__u32)rtt_us <= group->min_rtt_us ||
	    since(group->min_rtt_at_ns, now_ns) > 10000000000ull) {
		group->min_rtt_us = rtt_us;
		group->min_rtt_at_ns = now_ns;
	}
	if (group->epoch_rtt_us == 0 || (__u32)rtt_us < group->epoch_rtt_us)
		group->epoch_rtt_us = rtt_us;
	samples = samples < 1 ? 8 : 8 * samples;
	if (group->srtt == 0)
		group->srtt = rtt;
	else if (rtt > group->srtt)
		group->srtt += (rtt - group->srtt) / samples;
	else
		group->srtt -= (group->srtt - rtt) / samples;
}

/* A member with no round trip like the shortest of the others for so many epochs, in which it used its window, is on another
 * path. */
#define APART_EPOCHS 16

/* Counts such epochs of a member. */
static __always_inline void compare_rtt(const struct group *group, struct member *member, __s32 rtt_us)
{
	__u32 shortest_us = group->epoch_rtt_before_us;

	if (rtt_us > 0 && (shortest_us == 0 || (__u32)rtt_us <= shortest_us + shortest_us / 4 + 1000))
		member->apart = 0;
}

/* With fewer losses, their number says little. */
#define LOSSES_MIN 16

/* Whether a member loses four times as much of what it sends as the others, and by four standard deviations no chance. */
static __always_inline bool has_other_losses(const struct group *group, const struct member *member)
{
	__u64 lost = member->losses, sent = member->delivered;
	__u64 others_lost = less(group->losses - member->group_losses, lost);
	__u64 others_sent = less(group->delivered - member->group_delivered, sent);
	__u64 share, expected, variance;

	if (lost < LOSSES_MIN || others_sent == 0 || lost * others_sent <= 4 * others_lost * sent)
		return false;
	/* Of all losses, in parts. */
	share = sent * ONE / (sent + others_sent);
	expected = (lost + others_lost) * share / ONE;
	variance = expected * (ONE - share) / ONE;
	return lost > expected && (lost - expected) * (lost - expected) > 16 * variance;
}

static __always_inline bool is_on_another_path(const struct group *group, const struct member *member)
{
	if (group->members < 2)
		return false;
	return member->apart >= APART_EPOCHS || has_other_losses(group, member);
}

static __always_inline bool is_same_address(const struct address *a, const struct address *b)
{
	return a->words[0] == b->words[0] && a->words[1] == b->words[1] && a->words[2] == b->words[2] &&
	       a->words[3] == b->words[3];
}

static __always_inline bool is_same(const struct group_key *a, const struct group_key *b)
{
	return a->group == b->group && a->user == b->user && a->namespace_inode == b->namespace_inode &&
	       a->control == b->control && a->is_of_host == b->is_of_host && is_same_address(&a->local, &b->local);
}

/* All terms of a group in one number. */
static __always_inline __u32 number_of_terms(const struct terms *terms)
{
	return terms->weight << 6 | terms->sharing << 4 | terms->law << 3 | terms->mode;
}

/* How a group is to behave: as the administrator orders, or else as the owner of a member wants. */
static __always_inline struct terms terms_for(const struct group *group, const struct membership *wanted,
					      const struct order *order)
{
	return order && order->group != 0 && order->group == group->key.group ? order->terms : wanted->terms;
}

static __always_inline struct order *order_at(__u32 place)
{
	__u32 index = place - 1;

	return bpf_map_lookup_elem(&orders, &index);
}

/* Gives a free block to a group, which begins with its first member. */
static __always_inline void start_group(struct group *group, const struct group_key *key, const struct address *peer,
					struct sock *sk, __u64 now_ns)
{
	struct tcp_sock *tcp = tcp_of(sk);

	group->key = *key;
	group->window = 0;
	group->ssthresh = (__u64)tcp->snd_ssthresh * ONE;
	group->frozen = 0;
	group->epoch_began_ns = now_ns;
	group->last_active_ns = now_ns;
	group->epoch = 1;
	group->seen = 0;
	group->seen_before = 0;
	group->frozen_members = 0;
	group->srtt = (__u64)(tcp->srtt_us >> 3) << 16;
	group->epoch_rtt_us = 0;
	group->epoch_rtt_before_us = 0;
	group->min_rtt_us = 0;
	group->cubic.began_ns = 0;
	group->cubic.window_max = 0;
	group->cubic.window_prior = 0;
	group->cubic.left_over = 0;
	group->cubic_before = group->cubic;
	group->left_over = 0;
	group->round_began_ns = 0;
	group->ssthresh_before = group->ssthresh;
	group->changes = 0;
	group->generation = 0;
	group->last_cut_ns = 0;
	group->last_timeout_ns = 0;
	group->losses = 0;
	group->delivered = 0;
	group->timeouts = 0;
	group->undone = 0;
	group->raised = 0;
	group->split = 0;
	group->peer_port = bpf_ntohs(sk->__sk_common.skc_dport);
	group->peer = *peer;
}

/* Makes the socket a member of the group that its owner named, or of none if no block is free. */
static __always_inline void join(struct sock *sk, enum control control)
{
	struct membership *wanted = bpf_sk_storage_get(&memberships, sk, 0, 0);
	struct member *member = member_of(sk);
	__u32 window = tcp_of(sk)->snd_cwnd * ONE, place = 0;
	bool is_repairing = ca_state_of(sk) > TCP_CA_DISORDER;
	__u64 now_ns = now_of(sk);
	struct address peer = peer_address_of(sk);
	struct group_key key;
	struct group *group;
	struct order *order;
	struct terms terms;
	__u64 first;

	if (!wanted || (wanted->group == 0 && !wanted->terms.is_of_host))
		return;
	key.group = wanted->terms.is_of_host ? number_of(&peer) : wanted->group;
	key.local = local_address_of(sk);
	key.user = sk->sk_uid.val;
	key.namespace_inode = sk->__sk_common.skc_net.net->ns.inum;
	key.control = control;
	key.is_of_host = wanted->terms.is_of_host;
	first = hashed(&key);
	/* First the group itself, wherever it is; then a free block. */
	for (__u32 attempt = 0; attempt < 2 * PLACES && place == 0; attempt++) {
		__u32 index = (first + attempt % PLACES) % GROUPS;
		bool is_mine, is_free;

		group = group_at(index + 1);
		order = order_at(index + 1);
		if (!group || !order)
			return;
		bpf_spin_lock(&group->lock);
		is_mine = group->members > 0 && is_same(&group->key, &key);
		is_free = group->members == 0 && attempt >= PLACES;
		if (is_mine || is_free) {
			if (is_free) {
				start_group(group, &key, &peer, sk, now_ns);
				order->group = 0;
			}
			terms = terms_for(group, wanted, order);
			group->terms = terms;
			/* The first brings its window, and so does one that repairs losses. The others have a share. Under
			 * FAST, each has a window of its own. */
			if (is_free || is_repairing)
				group->window += window;
			if (is_repairing && control == CONTROL_FAIR)
				freeze(group, member, window);
			group->members++;
			advance_epoch(group, now_ns);
			mark_active(group, member, now_ns);
			member->group_losses = group->losses;
			member->group_delivered = group->delivered;
			end_change(group, member);
			member->terms = number_of_terms(&terms);
			place = index + 1;
		}
		bpf_spin_unlock(&group->lock);
	}
	member->place = place;
	wanted->place = place;
	/* No acknowledgements space out what a new share allows. */
	if (place != 0 && sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* Takes over the terms that the administrator or the owner of a member has changed. Members whose owners want different things do not
 * take turns. */
static __always_inline void renew_terms(struct sock *sk, struct group *group)
{
	struct membership *wanted = bpf_sk_storage_get(&memberships, sk, 0, 0);
	struct member *member = member_of(sk);
	struct terms terms;

	if (!wanted)
		return;
	wanted->place = member->place;
	terms = terms_for(group, wanted, order_at(member->place));
	if (number_of_terms(&terms) == member->terms)
		return;
	member->terms = number_of_terms(&terms);
	bpf_spin_lock(&group->lock);
	group->terms = terms;
	bpf_spin_unlock(&group->lock);
}

/* Whether a member has sent in this epoch or the one before, and not long ago. */
static __always_inline bool is_sending(const struct group *group, const struct member *member, __u64 now_ns)
{
	return group->epoch - member->epoch <= 1 && since(group->last_active_ns, now_ns) <= 2 * epoch_ns_of(group);
}

/* Takes an amount out of the window. The window does not grow again at once, neither to the slow start threshold, if it has
 * been there, nor to what CUBIC had in mind. */
static __always_inline void take(struct group *group, __u64 parts)
{
	bool has_been_there = group->window >= group->ssthresh;

	if (parts == 0)
		return;
	group->window = less(group->window, parts);
	if (has_been_there && group->window < group->ssthresh)
		group->ssthresh = group->window;
	group->cubic.began_ns = 0;
}

/* Takes the socket out of its group. In the paper's mode, what this one uses of the window leaves with it, and so it does
 * with one that is on another path. Else the others have it: the path is as before. */
static __always_inline void leave(struct sock *sk, bool is_split)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 now_ns = now_of(sk);
	bool is_taking;

	if (!group)
		return;
	bpf_spin_lock(&group->lock);
	is_taking = group->terms.mode == FAIR || is_split;
	advance_epoch(group, now_ns);
	if (is_taking && member->frozen > 0)
		take(group, member->frozen);
	else if (is_taking && is_sending(group, member, now_ns) && group->members > 1)
		take(group, (__u64)share_of(group) * ONE);
	if (member->frozen == 0)
		group->seen = less(group->seen, member->epoch == group->epoch);
	thaw(group, member);
	group->members = less(group->members, 1);
	group->split += is_split;
	end_change(group, member);
	bpf_spin_unlock(&group->lock);
}

/* The member's path is another one. It goes on alone. */
static __always_inline void split(struct sock *sk)
{
	struct membership *wanted = bpf_sk_storage_get(&memberships, sk, 0, 0);

	leave(sk, true);
	if (wanted)
		wanted->place = 0;
	member_of(sk)->place = 0;
}

/* Fills a record's notes with a member's group. */
static void note_group(struct sock *sk, __u64 *notes)
{
	const struct member *member = member_of(sk);

	notes[0] = member->change;
	notes[1] = member->group_window;
	notes[2] = (__u64)member->frozen << 32 | member->group_frozen;
	notes[3] = (__u64)member->place << 32 | (__u32)member->members << 16 | member->active;
}
