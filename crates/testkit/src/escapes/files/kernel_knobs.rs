//! Opens the kernel's knobs for writing. Writes nothing: that it opens is enough.

use model::Wall;

use super::support;
use crate::{Attack, Control};

pub const ATTACK: Attack = Attack {
    id: "files/kernel_knobs",
    wall: Wall::User,
    about: "open the kernel's settings under /proc and /sys for writing",
    flags: &[],
    prepare: |_| Ok(()),
    inside: |inside| {
        let knobs = [
            "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/kernel/modprobe",
            "/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/yama/ptrace_scope",
            "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/drop_caches", "/proc/sys/fs/file-max",
            "/proc/sys/fs/protected_symlinks", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces",
            "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/sys/fs/binfmt_misc/register",
            "/proc/self/root/proc/sys/kernel/core_pattern", "/proc/thread-self/../../../../sys/kernel/core_pattern",
            "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/cgroup.procs",
            "/sys/devices/system/cpu/cpu1/online", "/sys/devices/system/memory/auto_online_blocks",
            "/sys/devices/system/cpu/smt/control", "/sys/kernel/mm/transparent_hugepage/enabled",
        ];
        support::loot_opened(inside, &knobs, &support::for_writing())
    },
    judge: Some(support::nothing_gained),
    control: Control::BareAsRoot,
};
