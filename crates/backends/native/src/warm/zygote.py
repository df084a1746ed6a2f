# A warm interpreter outside of any sandbox. It runs nothing but this: for each order it makes a copy of itself, which goes into
# a sandbox that stands already, takes the same walls upon itself, and only then is told what to run.
#
# Its host does not believe it that the walls are up: it looks at what the kernel says of the copy before it hands over any code.
# `random` is not used here: loaded, it seeds itself anew in each copy.
import _signal, atexit, base64, ctypes, fcntl, gc, json, os, random, resource, select, signal, socket, struct, sys, time, types

PRELOADED = sys.argv[1:]
NEW_USER, NEW_PROCESSES, NEW_MOUNTS = 0x10000000, 0x20000000, 0x00020000
# In the order in which they are sent; the mounts last, because our root changes with them.
OTHERS = (("net", 0x40000000), ("ipc", 0x08000000), ("uts", 0x04000000), ("cgroup", 0x02000000), ("pid", NEW_PROCESSES), ("mnt", NEW_MOUNTS))
PARENT_NAMESPACE = 0xB702
SET_DUMPABLE, DROP_BOUNDING, SET_SECUREBITS, SUBREAPER, NO_NEW_PRIVILEGES, AMBIENT = 4, 24, 28, 36, 38, 47
DIE_WITH_PARENT = 1
# Neither user id 0, nor a change of user, nor an ambient raise gives a capability; all locked.
SECUREBITS = 0b11001111
INVALID, NO_SUCH_CALL, REFUSED_BY_PARENT = 22, 38, 133
# Records as the first process of a sandbox sends them.
USED, FAILED, ENDED, PROVEN = 1, 2, 5, 6
LARGEST = 1 << 20

# Made once: types that every copy makes for itself cost it a tenth of a millisecond each.
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


NO_CAPABILITIES = (ctypes.byref((ctypes.c_uint32 * 2)(0x20080522, 0)), ctypes.byref((ctypes.c_uint32 * 6)()))

kernel = ctypes.CDLL(None, use_errno=True).syscall
kernel.restype = ctypes.c_long


def call(number, *words):
    result = kernel(ctypes.c_long(number), *(ctypes.c_long(word) if isinstance(word, int) else word for word in words))
    if result < 0:
        raise OSError(ctypes.get_errno(), "the kernel refused call %d" % number)
    return result


def record(kind, small, large):
    return struct.pack("<IIQ", kind, small, large)


def enter(order, offered):
    """Into the sandbox's namespaces; of these, that of processes holds for whoever is forked next."""
    calls = order["calls"]
    # The one that owns mounts, processes and network: to whoever made it, it gives power over those, and over nothing else.
    owner = fcntl.ioctl(offered["user"], PARENT_NAMESPACE)
    call(calls["setns"], owner, NEW_USER)
    for name, kind in OTHERS:
        call(calls["setns"], offered[name], kind)
    if order["become"]:
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)


def take_walls(order, offered, entrances):
    # Groups first, and not before there is a copy: whoever lacks memory in there is ended with all who share theirs.
    for entrance in entrances:
        os.write(entrance, b"0")
    calls = order["calls"]
    os.setsid()
    call(calls["setns"], offered["user"], NEW_USER)
    try:
        call(calls["keyctl"], 1, 0)
    except OSError as error:
        # A kernel without keyrings has none to leave.
        if error.errno != NO_SUCH_CALL:
            raise
    call(calls["prctl"], SET_SECUREBITS, SECUREBITS, 0, 0, 0)
    for capability in range(64):
        try:
            call(calls["prctl"], DROP_BOUNDING, capability, 0, 0, 0)
        except OSError as error:
            if error.errno != INVALID or capability == 0:
                raise
            break
    call(calls["prctl"], AMBIENT, 4, 0, 0, 0)
    call(calls["capset"], *NO_CAPABILITIES)
    call(calls["prctl"], NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    for which, value in order["limits"]:
        highest = resource.getrlimit(which)[1]
        value = value if highest == resource.RLIM_INFINITY else min(value, highest)
        resource.setrlimit(which, (value, value))
    if order["processors"]:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: order["processors"]])
    if "landlock" in offered:
        call(calls["landlock_restrict_self"], offered["landlock"], 0)
    # A change of identity hides our own files in /proc from us.
    call(calls["prctl"], SET_DUMPABLE, 1, 0, 0, 0)


def take_filter(order, control):
    program = base64.b64decode(order["filter"])
    header = Program(len(program) // 8, program)
    # With a listener, which is our host's.
    listener = call(order["calls"]["seccomp"], 1, 1 << 3, ctypes.byref(header))
    socket.send_fds(control, [b"armed"], [listener])
    os.close(listener)
    try:
        call(order["calls"]["bpf"], 0x7FFFFFFF, 0, 0)
    except OSError as error:
        if error.errno == REFUSED_BY_PARENT:
            return
    os._exit(125)


def copy_into(order, descriptors):
    """In a process that ends after this: leaves a copy of the zygote in the sandbox; which one it is, or 0."""
    report, _, control, *rest = descriptors
    try:
        order = json.loads(order)
        names = order["offered"]
        offered, entrances = dict(zip(names, rest)), rest[len(names):]
        enter(order, offered)
        copy = os.fork()
        if copy == 0:
            try:
                come_in(order, report, control, offered, entrances)
            except BaseException as error:
                fail(report, error)
            finally:
                os._exit(125)
        return copy
    except BaseException as error:
        fail(report, error)
        return 0


def fail(report, error):
    failed = error.errno if isinstance(error, OSError) and error.errno else 5
    try:
        os.write(report, record(FAILED, 255, failed))
    except OSError:
        # Whoever was to hear it is gone.
        pass


def come_in(order, report, control, offered, entrances):
    """In the copy. Does not return."""
    # By what is below `signal`, which makes names of all numbers.
    _signal.set_wakeup_fd(-1)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    for number in (_signal.SIGCHLD, _signal.SIGTERM, _signal.SIGHUP):
        _signal.signal(number, _signal.SIG_DFL)
    take_walls(order, offered, entrances)
    # From here on nothing but input, output and the way to our host.
    low, high = sorted((report, control))
    for first, last in ((3, low), (low + 1, high), (high + 1, 1 << 16)):
        os.closerange(first, last)
    control = socket.socket(fileno=control)
    take_filter(order, control)
    # What will be run in all likelihood, but for the code. Only now, and only here: the zygote hears nothing of it.
    likely = hear(control, 0)[0]
    settled = settle(json.loads(likely))
    rehearse()
    # What was there before the run is not looked through at its end.
    gc.freeze()
    os.write(report, record(PROVEN, 1, 0))
    os.close(report)
    told, streams = hear(control, 3)
    control.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    run(*(settled if told == likely else settle(json.loads(told))))


def hear(control, count):
    told, streams, flags, _ = socket.recv_fds(control, LARGEST, count)
    if not told or len(streams) != count or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        os._exit(125)
    return told, streams


def rehearse():
    """What every run does, with lines of our own: the pages that it writes to are this process's own when there is a run."""
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    with open(os.devnull, "rb") as file:
        file.read()
    # To nobody: whoever is to hear it comes later.
    exec(compile("def a(b):\n    return [b + 1 for b in range(b)]\nprint(len(a(2)), 'a', {1: 2})\n", "a", "exec", dont_inherit=True), main.__dict__)
    main.__dict__.clear()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()


# What is searched for modules before there is a script.
SEARCHED = list(sys.path)
# As large as one is.
MADE_UP = {"environment": [["REHEARSED_%d" % number, "/of/some/length" * 4] for number in range(16)], "directory": "/", "arguments": ["a", "/usr/a.py"]}


def settle(order):
    """Everything of a run but its code and its streams; what `run` is told."""
    os.environ.clear()
    for name, value in order["environment"]:
        os.environ[name] = value
    # As an interpreter that begins without any language does.
    if not any(os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")):
        os.environ["LC_CTYPE"] = "C.UTF-8"
    # Also for whoever had another one before.
    time.tzset()
    os.chdir(order["directory"])
    arguments = order["arguments"]
    script = os.path.abspath(arguments[1])
    sys.argv, sys.orig_argv = arguments[1:], arguments
    # Never the script itself: it may come later, and whoever looks for it now would be told of its absence then, too.
    sys.path[:] = [os.path.realpath(os.path.dirname(script)), *SEARCHED]
    main = types.ModuleType("__main__")
    main.__file__ = script
    main.__builtins__ = __builtins__
    return script, main


def run(script, main):
    """What whoever sent the order wants to be run, as the interpreter itself would. Does not return."""
    # A copy has the same numbers ahead as all others. Those of `random` are new with each fork, by its own doing.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    sys.modules["__main__"] = main
    if os.path.islink(script):
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    code = 0
    try:
        try:
            with open(script, "rb") as file:
                text = file.read()
        except OSError as error:
            print("%s: can't open file %r: [Errno %d] %s" % (sys.executable, script, error.errno, error.strerror), file=sys.stderr)
            raise SystemExit(2)
        exec(compile(text, script, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as error:
        code = exit_code(error.code)
    except BaseException as error:
        # Without our own part of the way to it.
        trace = error.__traceback__.tb_next
        error = error.with_traceback(trace)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error, trace)
        code = -2 if isinstance(error, KeyboardInterrupt) else 1
    end(main, code)


def exit_code(code):
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def end(main, code):
    """As the interpreter ends, but that it does not take itself apart."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        # Files that nobody closed are written now.
        main.__dict__.clear()
        sys.last_value = sys.last_traceback = None
        gc.collect()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            code = code or 120
    if code == -2:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code)


class Halfway:
    """A process to go into namespaces from, and to end: nobody comes back out of them. It works in our own memory while we stand
    still, like that of a `vfork`: to fork it would copy all of us twice for each copy, and a third of their cost is that."""

    SHARED, WAITS, ALL_KINDS = 0x100, 0x4000, 0x40000000
    ASIDE = 256 << 10

    def __init__(self):
        self.work, self.result = None, 0
        self.shares = self.can_share()

    def can_share(self):
        try:
            # Beside our own frames: an interpreter may measure how deep it is by where it is.
            with open("/proc/self/maps") as maps:
                stack = next(line for line in maps if line.endswith("[stack]\n"))
            self.frames = (int(stack.split("-")[0], 16) - self.ASIDE) & ~63
            self.clone = ctypes.PyDLL(None, use_errno=True).clone
            self.begin = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self.do)
            self.clone.argtypes = (type(self.begin), ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        except (AttributeError, MemoryError, OSError, StopIteration, ValueError):
            return False
        # Tried by somebody who may fall over it.
        self.shares = True
        child = os.fork()
        if child == 0:
            signal.alarm(5)
            try:
                good = all(self.go(lambda: self.forks(number)) == number for number in range(1, 4))
                os._exit(0 if good else 1)
            finally:
                os._exit(1)
        return os.waitpid(child, 0)[1] == 0

    def forks(self, number):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        return number

    def do(self, _):
        # No error comes back this way: whoever tells of one that nobody catches would do it there, in our memory.
        try:
            self.result = self.work()
        except BaseException:
            self.result = 0
        return 0

    def go(self, work):
        """What `work` comes to, which is a number and no error, done in a process that is gone after it; 0 if there was none."""
        self.work, self.result = work, 0
        if self.shares:
            child = self.clone(self.begin, self.frames, self.SHARED | self.WAITS, None)
            if child < 0:
                raise OSError(ctypes.get_errno(), "no process can be made")
        else:
            child = self.forked()
        if os.waitpid(child, self.ALL_KINDS)[1] and self.shares:
            # Ended in the midst of our own memory: nobody knows what that is like now. Whoever began us begins another.
            os._exit(1)
        self.work = None
        return self.result

    def forked(self):
        # Told over a pipe: memory that is one for whoever is forked would be one with what a copy runs.
        tells, told = os.pipe2(os.O_CLOEXEC)
        try:
            child = os.fork()
            if child == 0:
                try:
                    self.do(None)
                    os.write(told, struct.pack("<q", self.result))
                finally:
                    os._exit(0)
            os.close(told)
            told = None
            number = os.read(tells, 8)
            self.result = struct.unpack("<q", number)[0] if len(number) == 8 else 0
            return child
        finally:
            for end in (tells, told):
                if end is not None:
                    os.close(end)


class Zygote:
    def __init__(self):
        self.halfway = Halfway()
        # It came as our input; what is copied has none.
        self.door = socket.socket(fileno=os.dup(0))
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.close(nothing)
        # Copies that run, by their number: where their end is told, and where they are told of signals.
        self.alive = {}
        self.tells = {}
        self.poll = select.poll()
        self.poll.register(self.door, select.POLLIN)
        self.woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.poll.register(self.woken, select.POLLIN)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self):
        while True:
            ready = [descriptor for descriptor, _ in self.poll.poll()]
            # Somebody waits for an end; nobody for another copy.
            if self.woken in ready:
                os.read(self.woken, 4096)
                self.reap()
            # Not one that was closed this very moment.
            for descriptor in self.tells.keys() & set(ready):
                self.pass_signal_on(descriptor)
            # Last: what comes with an order may have the number of what was closed.
            if self.door.fileno() in ready:
                self.take_order()

    def take_order(self):
        order, descriptors, flags, _ = socket.recv_fds(self.door, LARGEST, 64, socket.MSG_CMSG_CLOEXEC)
        if not order:
            # Nobody is there any more to work for.
            os._exit(0)
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or len(descriptors) < 3:
            for descriptor in descriptors:
                os.close(descriptor)
            return
        report, tell, *others = descriptors
        try:
            inside = self.halfway.go(lambda: copy_into(order, descriptors))
        except OSError as error:
            fail(report, error)
            inside = 0
        for descriptor in others if inside else descriptors:
            os.close(descriptor)
        if inside:
            self.alive[inside] = (report, tell)
            self.tells[tell] = inside
            os.set_blocking(tell, False)
            self.poll.register(tell, select.POLLIN)

    def pass_signal_on(self, tell):
        inside = self.tells.get(tell)
        try:
            numbers = os.read(tell, 64)
        except BlockingIOError:
            return
        if not numbers:
            self.poll.unregister(tell)
        for number in numbers:
            try:
                os.killpg(inside, number)
            except (ProcessLookupError, PermissionError):
                pass

    def reap(self):
        while True:
            try:
                ended, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not ended:
                return
            if ended in self.alive:
                self.ended(ended, status, used)

    def ended(self, inside, status, used):
        report, tell = self.alive.pop(inside)
        del self.tells[tell]
        try:
            self.poll.unregister(tell)
        except KeyError:
            pass
        status = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status) << 8
        said = record(USED, 0, int(used.ru_utime * 1e9)) + record(USED, 1, int(used.ru_stime * 1e9))
        try:
            os.write(report, said + record(ENDED, 0, status))
        except BrokenPipeError:
            pass
        os.close(report)
        os.close(tell)


def begin():
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    prctl = int(os.environ.pop("BELLJAR_PRCTL"))
    call(prctl, SUBREAPER, 1, 0, 0, 0)
    call(prctl, DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    for name in PRELOADED:
        try:
            __import__(name)
        except Exception:
            # Whoever wants it will be told by their own import.
            pass
    # No copy has anything of it: neither do those that are forked from here.
    os.environ.clear()
    zygote = Zygote()
    # Often enough that the interpreter has made what it runs often faster, and has no more to change about it.
    for _ in range(32):
        settle(json.loads(json.dumps(MADE_UP)))
        rehearse()
    os.environ.clear()
    gc.collect()
    gc.freeze()
    zygote.serve()


begin()
