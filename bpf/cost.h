/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What the programs of a file cost, counted by themselves, on each processor apart. */
#pragma once

struct cost {
	__u64 calls;
	__u64 busy_ns;
	/* For which there was no room. */
	__u64 lost;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cost);
} costs SEC(".maps");

/* Counts a call that began then. */
static __always_inline void count(__u64 begun_ns, bool is_lost)
{
	__u32 zero = 0;
	struct cost *cost = bpf_map_lookup_elem(&costs, &zero);

	if (!cost)
		return;
	cost->lost += is_lost;
	cost->calls++;
	cost->busy_ns += bpf_ktime_get_ns() - begun_ns;
}
