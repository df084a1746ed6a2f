#!/bin/busybox sh
# The first process of a guest whose control groups are all of version 2. Its argument says as whom belljar is tried.
# Each check prints `ok NAME` or `FAIL NAME why`; the last line is `end COUNT`. Nothing else decides.

# ---- a system to try it in

/bin/busybox mkdir -p /dev /proc /sys
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs none /dev
exec </dev/null >/dev/console 2>&1

# What the kernel unpacked can't be pivoted away from, and Linux before 6.3 maps owners in ext4, but not in memory.
if [ -e /brd.ko ]; then
    insmod /brd.ko rd_nr=2 rd_size=65536
    mke2fs /dev/ram0 >/dev/null
    mkdir /new
    mount -t ext4 /dev/ram0 /new
    mkdir /new/bin
    cp /bin/busybox /bin/belljar /new/bin/
    cp /init /new/
    exec switch_root /new /init "$@"
fi

top=/sys/fs/cgroup
mount -t proc none /proc
mount -t sysfs none /sys
mount -t cgroup2 -o nsdelegate none $top
mkswap /dev/ram1 >/dev/null
swapon /dev/ram1
mkdir -p /etc /root /tmp /work
chmod 1777 /tmp
printf '%s\n' root:x:0:0::/root:/bin/sh tester:x:1000:1000::/work:/bin/sh >/etc/passwd
printf '%s\n' root:x:0: tester:x:1000: >/etc/group
cd /work || exit
: >/work/output
: >/work/result

group() { mkdir "$top/$1"; }
# As systemd does it for `Delegate=yes`.
delegate() { chown tester:tester "$top/$1" "$top/$1"/cgroup.procs "$top/$1"/cgroup.subtree_control "$top/$1"/cgroup.threads; }
enable() { echo "$2" >"$top/$1/cgroup.subtree_control"; }

enable . '+cpu +memory'

# ---- how to ask

# Becomes belljar, as the one who tries, in that one's group: to be called in a process of its own.
jar() {
    echo 0 >"$top/$own/cgroup.procs"
    if [ "$who" = root ]; then exec belljar "$@"; fi
    exec su -s /bin/belljar -- "$who" "$@"
}
run() {
    : >/work/result
    (jar run -q --workspace-mode readonly --result-file /work/result "$@" >/work/output 2>&1)
}
# Of the last result: the value of a key, and what is said of a wall.
said() { sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p" /work/result; }
wall() { grep -o "{\"wall\":\"$1\"[^}]*}" /work/result; }

count=0
# check NAME [COMMAND]: the command is the name where there is no other.
check() {
    count=$((count + 1))
    name=$1
    [ $# -eq 1 ] || shift
    if why=$("$@" 2>&1); then echo "ok $name"; else echo "FAIL $name: $(echo $why)"; fi
}
# is WHAT VALUE WANTED: WANTED is a pattern.
is() {
    case $2 in $3) return 0 ;; esac
    echo "$1 is \`$2\`, not \`$3\`;" $(tail -n 3 /work/output | cut -c 1-300) $(cut -c 1-300 /work/result)
    return 1
}
within() { [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] || { echo "$1 is $2, not within $3 and $4"; return 1; }; }
# Up to ten seconds until a command says something, or nothing.
until_some() { for _ in $(seq 100); do [ -n "$("$@")" ] && return; sleep 0.1; done; echo "never: $*"; return 1; }
until_none() { for _ in $(seq 100); do [ -z "$("$@")" ] && return; sleep 0.1; done; echo "still: $("$@")"; return 1; }

groups() { find $top -name 'belljar-*'; }
sleepers() { pidof sleep; }
three_sleepers() { sleepers | grep -E '[0-9]+ [0-9]+ [0-9]+'; }
# The dead who only wait for this script to ask for them are in brackets.
remains() { groups; ps -o pid,args | grep -E '[0-9] [^[]*(belljar|4711)' | grep -v grep; }
nothing_is_left() { until_none remains; }

# ---- what is checked

doctor_says() { is doctor "$( (jar doctor --json) | grep -A 2 '"control groups"' | tr -d '\n')" "*$1*"; }
the_command_runs() { run -- echo hello; is exit $? 0 && is output "$(cat /work/output)" hello && nothing_is_left; }
memory_is_held() { run -- true; is memory "$(wall memory)" "*\"$1\"*$2*"; }
enough_memory_is_enough() {
    run --memory 64M -- dd if=/dev/zero of=/dev/null bs=24M count=1
    is exit $? 0 && is overrun "$(said overrun)" null && within peak "$(said peak_memory)" 25165824 67108864
}
memory_ends() {
    run --memory 64M "$@"
    is exit $? 137 && is overrun "$(said overrun)" '"memory"' && nothing_is_left
}
the_kernel_counts_it() {
    within kills "$(said out_of_memory_kills)" 1 9 && within peak "$(said peak_memory)" 60000000 67108864
}
processes_are_counted() {
    run --pids 60 -- sh -c 'for i in $(seq 40); do sleep 1 & echo $i; done'
    is output "$(tail -n 1 /work/output)" 40 || return
    run --pids 20 -- sh -c 'for i in $(seq 40); do sleep 1 & echo $i; done 2>/dev/null'
    within processes "$(tail -n 1 /work/output)" 10 20
}
processor_time_ends() {
    run --cpu-time 1s --timeout 30s -- sh -c 'while :; do :; done'
    is overrun "$(said overrun)" '"cpu-time"' && nothing_is_left
}
time_ends() {
    run --timeout 1s -- sh -c 'setsid sleep 4711 & sleep 4711'
    is exit $? 124 && is overrun "$(said overrun)" '"wall-time"' && nothing_is_left
}
killed_with_its_supervisor() {
    jar run -q --workspace-mode readonly -- sh -c 'setsid sleep 4711 & (setsid sleep 4711 &); sleep 4711' &
    until_some three_sleepers && until_some remains && kill -9 $! && nothing_is_left
}
killed_at_any_moment() {
    for moment in $(seq 5 5 100); do
        jar run -q --workspace-mode readonly --cpu-time 9s -- true &
        usleep "${moment}000"
        kill -9 $!
    done
    nothing_is_left
}
too_little_to_begin_with() { run --memory 100K -- true; within exit $? 1 255 && nothing_is_left; }
the_group_is_the_root_from_inside() {
    run -- cat /proc/self/cgroup
    is output "$(cat /work/output)" 0::/ || return
    run -- sh -c '{ find / -name "cgroup.*"; mount -t cgroup2 none /tmp && echo mounted; } 2>/dev/null; echo end'
    is output "$(cat /work/output)" end
}
# Whoever it starts, and however these try to get away, stays in the one group.
nobody_leaves() {
    jar run -q --workspace-mode readonly -- sh -c 'setsid sleep 4711 & (setsid sleep 4711 &); exec sleep 4711' &
    supervisor=$!
    until_some three_sleepers || return
    for pid in $(sleepers); do is "group of $pid" "$(cat /proc/$pid/cgroup)" "0::$1/belljar-*" || return; done
    kill -9 $supervisor && nothing_is_left
}
# Percent of a processor, by the group's own account: some too little if it takes time to ask, and some too much if the
# guest's clock ticked late just before.
share() {
    until_some groups || return
    set -- "$(groups)/cpu.stat"
    read -r since _ </proc/uptime
    read -r _ from <"$1"
    sleep 2
    read -r _ to <"$1"
    read -r until _ </proc/uptime
    echo $(((to - from) / 100 / (${until%.*}${until#*.} - ${since%.*}${since#*.})))
}
processors_are_shared() {
    jar run -q --workspace-mode readonly -- sh -c 'while :; do :; done' &
    free=$(share)
    kill -9 $!
    nothing_is_left || return
    jar run -q --workspace-mode readonly --cpus "$1" -- sh -c 'while :; do :; done & while :; do :; done' &
    held=$(share)
    kill -9 $!
    nothing_is_left || return
    within 'share without a limit' "$free" 80 150 && within 'share with a limit' "$held" "$2" "$3"
}
processors_are_refused() { run --cpus 0.5 -- true; is exit $? 125 && is output "$(cat /work/output)" '*wall `cpu`*'; }

# The argument is the group in which a sandbox's group must be.
in_a_group_of_its_own() {
    check the_command_runs
    check processors_are_not_divided_unasked is controllers "$(cat "$top$1/cgroup.subtree_control")" memory
    check memory_is_held_fully memory_is_held fully 'control group'
    check enough_memory_is_enough
    # Which would fit into memory and swap.
    check too_much_memory_is_the_end memory_ends -- dd if=/dev/zero of=/dev/null bs=100M count=1
    check the_kernel_counts_it
    check files_in_memory_are_memory memory_ends -- dd if=/dev/zero of=/tmp/file bs=1M count=200
    check too_little_to_begin_with
    check processes_are_counted
    check half_a_processor_is_half_a_processor processors_are_shared 0.5 25 70
    check processor_time_ends
    check time_ends
    check killed_with_its_supervisor
    check killed_at_any_moment
    check the_group_is_the_root_from_inside
    check nobody_leaves_its_group nobody_leaves "$1"
}

case $1 in
root)
    who=root
    # As systemd leaves it: sessions in a slice that counts memory, and processors only when somebody asks.
    group user.slice && group user.slice/session.scope && enable user.slice +memory
    own=user.slice/session.scope
    check doctor_names_the_slice doctor_says "v2, memory and cpu, below $top/user.slice\""
    in_a_group_of_its_own /user.slice
    own=.
    check doctor_names_the_root doctor_says "v2, memory and cpu, below $top\""
    check the_command_runs_in_the_root the_command_runs
    check memory_ends_in_the_root memory_ends -- dd if=/dev/zero of=/dev/null bs=200M count=1
    ;;
delegated)
    who=tester
    chown -R tester /work
    group delegated && group delegated/leaf && delegate delegated && delegate delegated/leaf
    own=delegated/leaf
    check doctor_names_the_delegated_group doctor_says "v2, memory and cpu, below $top/delegated\""
    in_a_group_of_its_own /delegated
    # Ours, but with ourselves in it: it can't be divided.
    group crowded && delegate crowded
    own=crowded
    check doctor_says_what_is_in_the_way doctor_says "\`$top/crowded\` can't give its children controllers*busy"
    check memory_is_held_partly memory_is_held partly 'give its children controllers'
    ;;
undelegated)
    who=tester
    chown -R tester /work
    group plain && group plain/leaf
    own=plain/leaf
    check doctor_says_what_is_missing doctor_says "\`$top/plain/leaf\` is not delegated to this user"
    check the_command_runs
    check memory_is_held_partly memory_is_held partly 'is not delegated to this user'
    check enough_memory_is_enough
    check too_much_memory_is_the_end memory_ends -- dd if=/dev/zero of=/dev/null bs=300M count=1
    check processes_are_counted
    check half_a_processor_is_refused processors_are_refused
    check processor_time_ends
    check time_ends
    check killed_with_its_supervisor
    check killed_at_any_moment
    check the_group_is_the_root_from_inside
    ;;
esac
echo "end $count"
poweroff -f
