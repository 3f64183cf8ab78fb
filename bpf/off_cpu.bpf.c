/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Where in the kernel the threads of one process wait that are in one network namespace, and for how long: by the stack
 * with which a thread gives up its processor. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Set before loading. The only constant here: user space writes the section as a whole. */
const volatile struct {
	__u32 process;
	__u32 namespace_inode;
} wanted = {};

#define THREADS_MAX 16384
#define STACKS_MAX 16384
#define PLACES_MAX 16384
#define FRAMES_MAX 64

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, STACKS_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, FRAMES_MAX * sizeof(__u64));
} stacks SEC(".maps");

struct wait {
	__u64 begun_ns;
	__s64 stack;
};

/* Of each thread that waits. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, THREADS_MAX);
	__type(key, __u32);
	__type(value, struct wait);
} waits SEC(".maps");

struct place {
	__u32 thread;
	__u32 stack;
};

/* In user space: observe::OffCpuStack. */
struct total {
	__u64 waits;
	__u64 waited_ns;
	/* When the first wait began, and the last ended. */
	__u64 begun_ns;
	__u64 ended_ns;
	/* Of the thread, as it was called last. */
	char name[TASK_COMM_LEN];
};

/* Of each place where a thread waits. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PLACES_MAX);
	__type(key, struct place);
	__type(value, struct total);
} totals SEC(".maps");

static __always_inline bool is_wanted(const struct task_struct *task)
{
	const struct nsproxy *namespaces;

	if (task->tgid != wanted.process)
		return false;
	/* A thread that ends has none. */
	namespaces = task->nsproxy;
	return namespaces && namespaces->net_ns->ns.inum == wanted.namespace_inode;
}

/* Each returns whether there was room. */
static __always_inline bool begin(void *ctx, __u32 thread, __u64 now_ns)
{
	struct wait wait = { .begun_ns = now_ns, .stack = bpf_get_stackid(ctx, &stacks, 0) };

	return wait.stack >= 0 && bpf_map_update_elem(&waits, &thread, &wait, BPF_ANY) == 0;
}

static __always_inline bool end(struct task_struct *task, __u64 now_ns)
{
	__u32 thread = task->pid;
	struct wait *wait = bpf_map_lookup_elem(&waits, &thread);
	struct total nothing = {}, *total;
	struct place place = { .thread = thread };

	/* It did not wait, but was preempted; or it began to wait before there was anybody to see. */
	if (!wait)
		return true;
	place.stack = wait->stack;
	nothing.begun_ns = wait->begun_ns;
	/* Fails if there is one, which is as good. */
	bpf_map_update_elem(&totals, &place, &nothing, BPF_NOEXIST);
	total = bpf_map_lookup_elem(&totals, &place);
	if (total) {
		/* A thread is on one processor at a time, so nobody else changes it. */
		total->waits++;
		total->waited_ns += now_ns - wait->begun_ns;
		total->ended_ns = now_ns;
		bpf_probe_read_kernel(total->name, sizeof(total->name), task->comm);
	}
	bpf_map_delete_elem(&waits, &thread);
	return total != 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next, __u32 prev_state)
{
	__u64 now_ns = bpf_ktime_get_ns();
	bool had_room = true;

	if (is_wanted(next))
		had_room &= end(next, now_ns);
	/* In state 0 a thread could go on, if it were let. */
	if (!preempt && prev_state != 0 && is_wanted(prev))
		had_room &= begin(ctx, prev->pid, now_ns);
	count(now_ns, !had_room);
	return 0;
}
