//! Programs that start the program in their arguments, and the options that stand before it.

/// How to find what a wrapper starts.
pub(crate) struct Wrapper {
    /// In the way of getopt: `n:` takes a value, `d::` may have one attached.
    pub short: &'static str,
    /// `unset=` takes a value, `groups=?` may have one attached.
    pub long: &'static [&'static str],
    /// Words between the options and the program.
    pub before: usize,
    /// `NAME=value` may stand before the program.
    pub assigns: bool,
    /// Every option with two dashes stands alone, or has its value attached.
    pub any_long: bool,
    pub starts: Starts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Starts {
    /// The words that remain.
    Words,
    /// The words that remain, joined and given to a shell.
    Line,
}

const fn words(short: &'static str, long: &'static [&'static str], before: usize) -> Wrapper {
    Wrapper { short, long, before, assigns: false, any_long: false, starts: Starts::Words }
}

/// The wrapper of this name. Programs that need more than a table are in `start`.
pub(crate) fn wrapper(name: &str) -> Option<Wrapper> {
    Some(match name {
        "sudo" => Wrapper {
            assigns: true,
            ..words(
                "ABbC:c:D:Eeg:Hh:iKklNnPp:R:r:SsT:t:U:u:Vva:",
                &[
                    "askpass", "auth-type=", "background", "bell", "chdir=", "chroot=", "close-from=",
                    "command-timeout=", "edit", "group=", "help", "host=", "list", "login", "login-class=",
                    "no-update", "non-interactive", "other-user=", "preserve-env=?", "preserve-groups", "prompt=",
                    "remove-timestamp", "reset-timestamp", "role=", "set-home", "shell", "stdin", "type=", "user=",
                    "validate", "version",
                ],
                0,
            )
        },
        "doas" => words("a:C:Lnsu:", &[], 0),
        "pkexec" => words("u:", &["user=", "disable-internal-agent", "keep-cwd"], 0),
        "gosu" | "su-exec" => words("", &[], 1),
        "nohup" => words("", &["help", "version"], 0),
        "nice" => words("n:0123456789", &["adjustment="], 0),
        "ionice" => words("c:n:p:P:tu:", &["class=", "classdata=", "pid=", "pgid=", "ignore", "uid="], 0),
        "chrt" => words(
            "abdfioprRvmT:P:D:",
            &[
                "all-tasks", "batch", "deadline", "fifo", "idle", "other", "rr", "reset-on-fork", "verbose",
                "sched-runtime=", "sched-period=", "sched-deadline=", "pid",
            ],
            1,
        ),
        "taskset" => words("acp", &["all-tasks", "cpu-list", "pid"], 1),
        "time" => words("af:o:pqvV", &["append", "format=", "output=", "portability", "quiet", "verbose"], 0),
        "timeout" => words("fk:ps:v", &["foreground", "kill-after=", "preserve-status", "signal=", "verbose"], 1),
        "stdbuf" => words("e:i:o:", &["error=", "input=", "output="], 0),
        "setsid" => words("cfw", &["ctty", "fork", "wait"], 0),
        "chroot" => words("", &["groups=", "userspec=", "skip-chdir"], 1),
        "unshare" => words(
            "CcfG:iMmnprR:S:TUuw:l:",
            &[
                "mount=?", "uts=?", "ipc=?", "net=?", "pid=?", "user=?", "cgroup=?", "time=?", "fork", "map-root-user",
                "map-current-user", "map-auto", "map-user=", "map-group=", "map-users=", "map-groups=", "mount-proc=?",
                "mount-binfmt=?", "kill-child=?", "keep-caps", "setgroups=", "root=", "wd=", "setuid=", "setgid=",
                "propagation=", "load-interp=", "monotonic=", "boottime=",
            ],
            0,
        ),
        "nsenter" => words(
            "aC::eFG::i::m::n::p::r::S:T::t:U::u::w::W:Z",
            &[
                "all", "target=", "mount=?", "uts=?", "ipc=?", "net=?", "pid=?", "cgroup=?", "user=?", "time=?",
                "setuid=", "setgid=?", "preserve-credentials", "root=?", "wd=?", "wdns=", "env", "no-fork",
                "follow-context", "keep-caps", "user-parent", "net-socket=",
            ],
            0,
        ),
        "watch" => Wrapper {
            starts: Starts::Line,
            ..words(
                "bcd::egn:pq:rtwxC",
                &[
                    "beep", "color", "no-color", "differences=?", "errexit", "chgexit", "equexit=", "interval=",
                    "precise", "no-rerun", "no-title", "no-wrap", "exec",
                ],
                0,
            )
        },
        "strace" | "ltrace" => words(
            "a:b:cCdDe:E:fFhiI:kno:O:p:P:qrs:S:tTu:U:vVwxX:yYzZl:L:A:",
            &[
                "absolute-timestamps=?", "follow-forks", "output-separately", "output=", "output-append-mode",
                "summary-only", "summary", "summary-sort-by=", "trace=", "trace-path=", "signal=", "status=",
                "quiet=?", "string-limit=", "decode-fds=?", "decode-pids=?", "const-print-style=", "interruptible=",
                "user=", "env=", "no-abbrev", "syscall-times=?", "relative-timestamps=?", "stack-traces", "columns=",
                "daemonize=?", "seccomp-bpf", "strings-in-hex=?", "failed-only", "successful-only", "abbrev=",
                "verbose=", "raw=", "read=", "write=", "fault=", "inject=", "kvm=", "attach=", "tips=?", "detach-on=",
                "debug",
            ],
            0,
        ),
        "entr" => words("acdnprsxz", &[], 0),
        "dumb-init" => words("cr:v", &["single-child", "rewrite=", "verbose"], 0),
        "tini" => words("gp:svwe:", &[], 0),
        "busybox" | "toybox" => words("", &[], 0),
        "fakeroot" => words("l:s:i:ub:h", &["lib=", "faked=", "unknown-is-real"], 0),
        "fakechroot" => words("se:c:", &["use-system-libs", "environment=", "config-dir="], 0),
        "setpriv" => words(
            "dhV",
            &[
                "dump", "groups=", "list-caps", "no-new-privs", "nnp", "rgid=", "regid=", "egid=", "ruid=", "reuid=",
                "euid=", "clear-groups", "keep-groups", "init-groups", "inh-caps=", "ambient-caps=", "bounding-set=",
                "pdeathsig=", "ptracer=", "securebits=", "selinux-label=", "apparmor-profile=", "landlock-access=",
                "landlock-rule=", "seccomp-filter=", "reset-env",
            ],
            0,
        ),
        "linux32" | "linux64" | "i386" | "i486" | "i586" | "i686" | "x86_64" | "uname26" | "setarch" => words(
            "BFILRSTXZ3v",
            &[
                "32bit", "fdpic-funcptrs", "short-inode", "addr-compat-layout", "addr-no-randomize", "whole-seconds",
                "sticky-timeouts", "read-implies-exec", "mmap-page-zero", "3gb", "4gb", "uname-2.6", "verbose",
            ],
            0,
        ),
        "prlimit" => words(
            "c::d::e::f::i::l::m::n::q::r::s::t::u::v::x::y::p:o:",
            &[
                "core=?", "data=?", "nice=?", "fsize=?", "sigpending=?", "memlock=?", "rss=?", "nofile=?",
                "msgqueue=?", "rtprio=?", "stack=?", "cpu=?", "nproc=?", "as=?", "locks=?", "rttime=?", "pid=",
                "output=", "noheadings", "raw", "verbose",
            ],
            0,
        ),
        "choom" => words("n:p:", &["adjust=", "pid="], 0),
        "uclampset" => words("m:M:sapRv", &["all-tasks", "system", "reset-on-fork", "verbose", "pid="], 0),
        "systemd-run" => words(
            "u:p:tPqGdSE:H:M:rC",
            &[
                "scope", "unit=", "property=", "description=", "slice=", "slice-inherit", "uid=", "gid=", "nice=",
                "setenv=", "user", "system", "pty", "pty-late", "pipe", "quiet", "wait", "collect", "shell",
                "same-dir", "working-directory=", "service-type=", "remain-after-exit", "send-sighup", "no-block",
                "no-ask-password", "on-active=", "on-boot=", "on-startup=", "on-unit-active=", "on-unit-inactive=",
                "on-calendar=", "on-clock-change", "on-timezone-change", "timer-property=", "path-property=",
                "socket-property=", "host=", "machine=", "expand-environment=", "background=", "ignore-failure",
            ],
            0,
        ),
        "systemd-inhibit" => words("", &["what=", "who=", "why=", "mode=", "no-pager", "no-legend"], 0),
        "systemd-cat" => words("t:p:", &["identifier=", "priority=", "stderr-priority=", "level-prefix="], 0),
        "chpst" => words("u:U:b:e:/:C:n:l:L:m:d:o:p:f:c:r:t:vVP012", &[], 0),
        "softlimit" => words("a:c:d:f:l:m:o:p:r:s:t:", &[], 0),
        "setuidgid" | "envuidgid" | "envdir" | "s6-setuidgid" | "s6-envuidgid" | "s6-envdir" => words("", &[], 1),
        "setlock" => words("nNxX", &[], 1),
        "firejail" => words("c", FIREJAIL, 0),
        "proot" => words(
            "r:b:m:q:w:v:k:0S:R:i:VhH",
            &["rootfs=", "bind=", "qemu=", "cwd=", "kernel-release=", "root-id", "change-id=", "link2symlink"],
            0,
        ),
        "valgrind" => Wrapper { any_long: true, ..words("qvhd", &[], 0) },
        "gdbserver" => Wrapper { any_long: true, ..words("", &[], 1) },
        "rlwrap" => words("a::A::b:cC:D:e:E:f:F:g:H:hiIlm::M:nNO:oP:p::q:rRsS:t:T:uUvwW::X:z:", &[], 0),
        "unbuffer" => words("p", &[], 0),
        "cgexec" => words("g:b", &["sticky"], 0),
        "numactl" => words(
            "ai:p:P:c:N:C:m:bHsS:L:lw:",
            &[
                "all", "interleave=", "preferred=", "preferred-many=", "physcpubind=", "cpunodebind=", "membind=",
                "localalloc", "balancing", "weighted-interleave=",
            ],
            0,
        ),
        "xvfb-run" => words(
            "ae:f:hn:lp:s:w:",
            &["auto-servernum", "error-file=", "auth-file=", "server-num=", "listen-tcp", "server-args=", "wait="],
            0,
        ),
        "dbus-run-session" => words("", &["config-file=", "dbus-daemon="], 0),
        "catchsegv" | "eatmydata" | "torsocks" | "torify" | "dbus-launch" => words("", &[], 0),
        "proxychains" | "proxychains4" => words("qf:", &[], 0),
        "faketime" => words("mpf:", &[], 1),
        "trickle" => words("d:u:sw:l:t:", &[], 0),
        "caffeinate" => words("disumt:w:", &[], 0),
        "gtimeout" => words("fk:ps:v", &["foreground", "kill-after=", "preserve-status", "signal=", "verbose"], 1),
        "gnice" => words("n:0123456789", &["adjustment="], 0),
        "gstdbuf" => words("e:i:o:", &["error=", "input=", "output="], 0),
        // Of the shell itself.
        "exec" => words("a:cl", &[], 0),
        "command" => words("pvV", &[], 0),
        "builtin" | "nocorrect" | "noglob" | "-" => words("", &[], 0),
        loader if is_loader(loader) => words(
            "",
            &[
                "library-path=", "preload=", "argv0=", "audit=", "inhibit-rpath=", "inhibit-cache",
                "glibc-hwcaps-mask=", "glibc-hwcaps-prepend=", "list", "verify", "list-tunables", "list-diagnostics",
            ],
            0,
        ),
        _ => return None,
    })
}

const FIREJAIL: &[&str] = &[
    "quiet", "noprofile", "private=?", "net=", "profile=", "seccomp=?", "noroot", "caps.drop=", "whitelist=",
    "blacklist=", "read-only=", "read-write=", "shell=", "name=", "overlay", "overlay-tmpfs", "debug", "allusers",
];

fn is_loader(name: &str) -> bool {
    name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so" || name.starts_with("ld-2.")
}

/// What `env` takes.
pub(crate) const ENV: Wrapper = Wrapper {
    assigns: true,
    ..words(
        "0C:iS:u:v",
        &[
            "null", "chdir=", "ignore-environment", "split-string=", "unset=", "debug", "block-signal=?",
            "default-signal=?", "ignore-signal=?", "list-signal-handling", "argv0=",
        ],
        0,
    )
};

pub(crate) const XARGS: Wrapper = words(
    "0a:d:E:e::I:i::L:l::n:oP:prs:tx",
    &[
        "null", "arg-file=", "delimiter=", "eof=?", "replace=?", "max-lines=?", "max-args=", "max-procs=",
        "interactive", "no-run-if-empty", "max-chars=", "show-limits", "verbose", "exit", "open-tty",
        "process-slot-var=",
    ],
    0,
);

pub(crate) const PARALLEL: Wrapper = Wrapper {
    starts: Starts::Line,
    ..words(
        "0a:C:d:E:I:j:J:kL:l::M:mN:n:P:qrS:s:tuvXx",
        &[
            "jobs=", "keep-order", "null", "arg-file=", "colsep=", "delimiter=", "halt=", "joblog=", "tag", "verbose",
            "dry-run", "quote", "no-run-if-empty", "max-args=", "max-procs=", "line-buffer", "lb", "progress", "bar",
            "eta", "timeout=", "retries=", "delay=", "ungroup", "group", "will-cite", "resume", "pipe", "block=",
            "max-replace-args=", "sshlogin=", "results=", "silent",
        ],
        0,
    )
};

pub(crate) const FLOCK: Wrapper = words(
    "E:Fenosuw:x",
    &[
        "shared", "exclusive", "unlock", "nonblock", "nb", "timeout=", "wait=", "conflict-exit-code=", "close",
        "no-fork", "verbose",
    ],
    1,
);

pub(crate) const RUNUSER: Wrapper = words(
    "c:fg:G:lmps:u:w:PT",
    &[
        "command=", "fast", "group=", "supp-group=", "login", "preserve-environment", "shell=", "user=", "pty",
        "no-pty", "session-command=", "whitelist-environment=",
    ],
    0,
);

pub(crate) const SCRIPT: Wrapper = words(
    "aB:c:E:efI:m:O:o:qT:t::",
    &[
        "append", "command=", "echo=", "flush", "force", "log-in=", "log-out=", "log-io=", "log-timing=",
        "logging-format=", "output-limit=", "quiet", "return", "timing=?",
    ],
    0,
);

pub(crate) const START_STOP_DAEMON: Wrapper = words(
    "SKTHx:a:n:u:g:c:r:d:N:P:I:k:p:mbCoqtvR:s:O:",
    &[
        "start", "stop", "status", "exec=", "startas=", "name=", "user=", "group=", "chuid=", "chroot=", "chdir=",
        "nicelevel=", "procsched=", "iosched=", "umask=", "pidfile=", "make-pidfile", "remove-pidfile", "background",
        "no-close", "oknodo", "quiet", "test", "verbose", "retry=", "signal=", "output=", "notify-await",
        "notify-timeout=", "ppid=", "pid=",
    ],
    0,
);

/// Of those subcommands of `perf` that start something.
pub(crate) const PERF: Wrapper = words(
    "ade:r:o:p:t:u:C:F:gvq",
    &[
        "event=", "repeat=", "output=", "pid=", "call-graph=", "freq=", "all-cpus", "detailed", "null", "verbose",
        "quiet", "sync", "big-num", "field-separator=", "metrics=", "topdown", "interval-print=", "timeout=", "delay=",
    ],
    0,
);

pub(crate) const SCREEN: Wrapper = words("aAc:dDe:fh:ilLmOp:qQrRs:S:t:T:UvwxX", &[], 0);

/// Of those subcommands of `tmux` that start something.
pub(crate) const TMUX: Wrapper = words("AbBCdDEhIkKPvXZc:e:f:F:l:n:N:p:s:S:t:T:x:y:", &[], 0);

/// What an option is, and its value where that is attached.
pub(crate) enum Taken<'a> {
    /// Without a value, or with one attached.
    Alone,
    /// Its value is the next word.
    Next,
    /// Not of the table.
    Unknown(&'a str),
}

impl Wrapper {
    /// Takes apart `word`, which begins with `-`. Calls `seen` for each option with the value attached to it.
    pub(crate) fn option<'a>(&self, word: &'a str, mut seen: impl FnMut(&'a str, Option<&'a str>)) -> Taken<'a> {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            if self.any_long {
                seen(name, value);
                return Taken::Alone;
            }
            let bare = |known: &str| known.trim_end_matches('?').trim_end_matches('=').to_owned();
            // GNU takes any beginning of a name that fits only one.
            let exact = self.long.iter().find(|known| bare(known) == name);
            let mut starting = self.long.iter().filter(|known| known.starts_with(name));
            let found = match (exact, starting.next(), starting.next()) {
                (Some(known), _, _) | (None, Some(known), None) => *known,
                _ => return Taken::Unknown(word),
            };
            let Some(full) = known_name(found) else { return Taken::Unknown(word) };
            if found.ends_with('=') && value.is_none() {
                seen(full, None);
                return Taken::Next;
            }
            seen(full, value);
            return Taken::Alone;
        }
        let letters = word.get(1..).unwrap_or_default();
        for (at, letter) in letters.char_indices() {
            let Some(place) = self.short.find(letter).filter(|_| letter != ':') else { return Taken::Unknown(word) };
            let after = &self.short[place + letter.len_utf8()..];
            let end = at + letter.len_utf8();
            let (name, rest) = (&letters[at..end], &letters[end..]);
            if after.starts_with("::") {
                seen(name, (!rest.is_empty()).then_some(rest));
                return Taken::Alone;
            }
            if after.starts_with(':') {
                seen(name, (!rest.is_empty()).then_some(rest));
                return if rest.is_empty() { Taken::Next } else { Taken::Alone };
            }
            seen(name, None);
        }
        Taken::Alone
    }
}

fn known_name(found: &'static str) -> Option<&'static str> {
    found.split(['=', '?']).next()
}
