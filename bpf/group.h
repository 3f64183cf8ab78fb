/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The state that the connections of a group have in common (RFC 9040; paper 000): one window, and who sends. */
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
	union {
		/* The flows as which the group behaves, in parts, if the mode is WEIGHT. */
		__u32 weight;
		/* The segments that each connection under FAST keeps in the queue; zero: the usual number. */
		__u32 alpha;
	};
};

/* FAIR is the paper's: as aggressive as so many connections. SINGLE: as one. CONSERVATIVE: RFC 8699 §5.3.2. */
enum mode { FAIR, WEIGHT, SINGLE, CONSERVATIVE };

/* The law of the aggregate window. */
enum aggregate_law { AGGREGATE_RENO, AGGREGATE_CUBIC };

/* Whether members that do not send have a share, as in the paper. */
enum sharing { BY_ACTIVITY, EQUAL };

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
	/* As so many flows, in parts: those that send when the window begins to grow. */
	__u64 flows;
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
	/* Under WEIGHT: when this round trip began, and how many flows have been reduced in it, in parts. */
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

/* User space has it in this size (congestion/src/layout.rs). */
_Static_assert(sizeof(struct group) == 360, "another size");

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

/* A member is on another path if, for so many epochs in which it used its window, none of its round trips came near the
 * group's shortest. */
#define APART_EPOCHS 16

/* Ends the count of such epochs where a round trip is near. */
static __always_inline void compare_rtt(const struct group *group, struct member *member, __s32 rtt_us)
{
	__u32 shortest_us = group->epoch_rtt_before_us;

	if (rtt_us > 0 && (shortest_us == 0 || (__u32)rtt_us <= shortest_us + shortest_us / 4 + 1000))
		member->apart = 0;
}

/* With fewer losses, their number says little. */
#define LOSSES_MIN 16

/* Whether a member loses more than four times as large a part of what it sends as the others do, by more than four standard
 * deviations. */
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

/* What an acknowledgement tells of a member. */
struct heard {
	/* It is the member's first of an epoch. */
	bool is_new_epoch;
	/* The member is on another path than the others. */
	bool is_apart;
};

/* A member's segments are acknowledged. Epochs in which it did not use its window say nothing of its path. */
static __always_inline struct heard hear(struct group *group, struct member *member, __u32 acked, __s32 rtt_us, bool is_used,
					 __u64 now_ns)
{
	struct heard heard;
	bool is_counted;

	advance_epoch(group, now_ns);
	heard.is_new_epoch = member->frozen == 0 && member->epoch != group->epoch;
	is_counted = heard.is_new_epoch && is_used;
	mark_active(group, member, now_ns);
	/* Before it wraps, the comparison of losses begins anew. */
	if (member->delivered + acked < member->delivered) {
		member->delivered = 0;
		member->losses = 0;
		member->group_delivered = group->delivered;
		member->group_losses = group->losses;
	}
	member->delivered += acked;
	group->delivered += acked;
	measure(group, rtt_us, now_ns);
	member->apart += is_counted;
	compare_rtt(group, member, rtt_us);
	heard.is_apart = is_counted && is_on_another_path(group, member);
	return heard;
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

/* Fills a record's notes with a member's group. */
static void note_group(struct sock *sk, __u64 *notes)
{
	const struct member *member = member_of(sk);

	notes[0] = member->change;
	notes[1] = member->group_window;
	notes[2] = (__u64)member->frozen << 32 | member->group_frozen;
	notes[3] = (__u64)member->place << 32 | (__u32)member->members << 16 | member->active;
}
