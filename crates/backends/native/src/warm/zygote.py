# A warm interpreter outside of any sandbox. It runs nothing but this: for each order it makes a copy of itself, which goes into
# a sandbox that stands already, takes the same walls upon itself, and only then is told what to run.
#
# Its host does not believe it that the walls are up: it looks at what the kernel says of the copy before it hands over any code.
import atexit, base64, ctypes, fcntl, gc, json, os, random, resource, select, signal, socket, struct, sys, time, types

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

kernel = ctypes.CDLL(None, use_errno=True).syscall
kernel.restype = ctypes.c_long


def call(number, *words):
    result = kernel(ctypes.c_long(number), *(ctypes.c_long(word) if isinstance(word, int) else word for word in words))
    if result < 0:
        raise OSError(ctypes.get_errno(), "the kernel refused call %d" % number)
    return result


def record(kind, small, large):
    return struct.pack("<IIQ", kind, small, large)


def take_walls(order, offered, entrances, told):
    calls = order["calls"]
    for entrance in entrances:
        os.write(entrance, b"0")
    # The one that owns mounts, processes and network: to whoever made it, it gives power over those, and over nothing else.
    owner = fcntl.ioctl(offered["user"], PARENT_NAMESPACE)
    call(calls["setns"], owner, NEW_USER)
    for name, kind in OTHERS:
        call(calls["setns"], offered[name], kind)
    if order["become"]:
        os.setgroups([])
        os.setresgid(0, 0, 0)
        os.setresuid(0, 0, 0)
    child = os.fork()
    if child:
        os.write(told, struct.pack("<I", child))
        os._exit(0)
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
    call(calls["capset"], ctypes.byref((ctypes.c_uint32 * 2)(0x20080522, 0)), ctypes.byref((ctypes.c_uint32 * 6)()))
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
    instructions = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    header = Program(len(program) // 8, ctypes.addressof(instructions))
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


def come_in(order, descriptors, told):
    """In a copy of the zygote. Does not return."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    report, _, control, *rest = descriptors
    names = order["offered"]
    offered, entrances = dict(zip(names, rest)), rest[len(names):]
    take_walls(order, offered, entrances, told)
    # From here on nothing but input, output and the way to our host.
    low, high = sorted((report, control))
    for first, last in ((3, low), (low + 1, high), (high + 1, 1 << 16)):
        os.closerange(first, last)
    control = socket.socket(fileno=control)
    take_filter(order, control)
    rehearse()
    os.write(report, record(PROVEN, 1, 0))
    os.close(report)
    told, streams, _, _ = socket.recv_fds(control, LARGEST, 3)
    control.close()
    if not told or len(streams) != 3:
        os._exit(125)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    run(json.loads(told))


def rehearse():
    """What every run does, with lines of our own: the pages that it writes to are this process's own when there is a run."""
    os.environ["LC_CTYPE"] = json.loads('{"environment": [["LC_CTYPE", "C.UTF-8"]]}')["environment"][0][1]
    sys.path.insert(0, os.path.dirname(os.path.realpath(os.path.abspath("/usr/a.py"))))
    del sys.path[0]
    random.seed()
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


def run(order):
    """What whoever sent the order wants to be run, as the interpreter itself would. Does not return."""
    os.environ.clear()
    for name, value in order["environment"]:
        os.environ[name] = value
    # As an interpreter that begins without any language does.
    if not any(os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG")):
        os.environ["LC_CTYPE"] = "C.UTF-8"
    if "TZ" in os.environ:
        time.tzset()
    os.chdir(order["directory"])
    arguments = order["arguments"]
    script = os.path.abspath(arguments[1])
    sys.argv, sys.orig_argv = arguments[1:], arguments
    sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
    # A copy has the same numbers ahead as all others.
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    main = types.ModuleType("__main__")
    main.__file__ = script
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
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


class Zygote:
    def __init__(self):
        # It came as our input; what is copied has none.
        self.door = socket.socket(fileno=os.dup(0))
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.close(nothing)
        # Copies that run, by their number: where their end is told, and where they are told of signals.
        self.alive = {}
        self.tells = {}
        # Copies on their way in, by the number of the half of them that stays outside; and ends that came before their beginning.
        self.coming = {}
        self.early = {}
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
            for descriptor in ready:
                if descriptor == self.door.fileno():
                    self.take_order()
                # Not one that was closed this very moment.
                elif descriptor in self.tells:
                    self.pass_signal_on(descriptor)

    def take_order(self):
        order, descriptors, flags, _ = socket.recv_fds(self.door, LARGEST, 64, socket.MSG_CMSG_CLOEXEC)
        if not order:
            # Nobody is there any more to work for.
            os._exit(0)
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or len(descriptors) < 3:
            for descriptor in descriptors:
                os.close(descriptor)
            return
        tells, told = os.pipe2(os.O_CLOEXEC)
        copy = os.fork()
        if copy == 0:
            try:
                come_in(json.loads(order), descriptors, told)
            except BaseException as error:
                failed = error.errno if isinstance(error, OSError) and error.errno else 5
                os.write(descriptors[0], record(FAILED, 255, failed))
            finally:
                os._exit(125)
        os.close(told)
        report, tell, *others = descriptors
        for descriptor in others:
            os.close(descriptor)
        # Not waited for: it takes milliseconds, and others may end meanwhile.
        self.coming[copy] = (tells, report, tell)

    def is_inside(self, tells, report, tell):
        """The half that stays outside has ended, and has told the number of the other before."""
        inside = os.read(tells, 4)
        os.close(tells)
        if len(inside) != 4:
            os.close(report)
            os.close(tell)
            return
        inside = struct.unpack("<I", inside)[0]
        self.alive[inside] = (report, tell)
        self.tells[tell] = inside
        self.poll.register(tell, select.POLLIN)
        if inside in self.early:
            self.ended(inside, *self.early.pop(inside))

    def pass_signal_on(self, tell):
        inside = self.tells.get(tell)
        numbers = os.read(tell, 64)
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
            if ended in self.coming:
                self.is_inside(*self.coming.pop(ended))
            elif ended in self.alive:
                self.ended(ended, status, used)
            else:
                self.early[ended] = (status, used)

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
    zygote = Zygote()
    # Often enough that the interpreter has made what it runs often faster, and has no more to change about it.
    for _ in range(32):
        rehearse()
    gc.collect()
    gc.freeze()
    zygote.serve()


begin()
