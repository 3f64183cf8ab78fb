# A job for scripts/vm: loads our controls and Debian's, and runs the experiment.
set -e
for law in bic htcp highspeed scalable westwood; do
  modprobe tcp_$law
done
modprobe veth
modprobe af_packet || true
mount -t bpf bpf /sys/fs/bpf
ropewalk cc load
ropewalk cc list
ropewalk lab run /files/beside_debian.toml --full --out /tmp/results || status=$?
ropewalk lab report /tmp/results --summary /tmp/summary.json >/dev/null
echo 'summary:'
cat /tmp/summary.json
# What is INVALID is in the summary, too.
exit "${status:-0}"
