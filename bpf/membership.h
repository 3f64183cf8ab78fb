/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which connections have a group: those of one user to one place.
 *
 * User space names a socket's group in its storage and then chooses the congestion control. Blocks of groups are never
 * deleted: one without members is free for another group. */
#pragma once
#include "group.h"

/* What the owner of a socket wants of its group. Whoever has the socket may change it at any time. */
struct membership {
	/* Never taken. The kernel refuses to freeze a map whose values have a lock; otherwise any user could freeze this one
	 * for everybody (BPF_MAP_FREEZE). */
	struct bpf_spin_lock lock;
	/* The group's place, counted from one, which the programs write here; zero: the socket has none. */
	__u32 place;
	/* The number of the group among those of this user in this network namespace; zero: no group. */
	__u64 group;
	struct terms terms;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct membership);
} memberships SEC(".maps");

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

/* User space has them in these sizes (congestion/src/layout.rs). */
_Static_assert(sizeof(struct membership) == 24 && sizeof(struct order) == 16, "other sizes");

/* A block without members is looked for in so many places. */
#define PLACES 8

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
	group->cubic.flows = ONE;
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

/* Takes over the terms that the administrator or the owner of a member has changed. Members whose owners want different
 * things do not take turns. */
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
	if (group->terms.law != terms.law)
		group->cubic.began_ns = 0;
	group->terms = terms;
	bpf_spin_unlock(&group->lock);
}

/* Takes the socket out of its group. In the paper's mode, what this one uses of the window leaves with it, and so it does
 * with one that is on another path. Else the others have it: the path is as before. */
static __always_inline void leave(struct sock *sk, bool is_split)
{
	struct member *member = member_of(sk);
	struct group *group = group_at(member->place);
	__u64 now_ns = now_of(sk), taken = 0;
	bool is_taking;

	if (!group)
		return;
	bpf_spin_lock(&group->lock);
	is_taking = group->terms.mode == FAIR || is_split;
	advance_epoch(group, now_ns);
	if (is_taking && member->frozen > 0)
		taken = member->frozen;
	else if (is_taking && is_sending(group, member, now_ns) && group->members > 1)
		taken = (__u64)share_of(group) * ONE;
	take(group, taken);
	/* Whoever undoes a reduction from before does not restore what was then. */
	group->generation += taken > 0;
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
