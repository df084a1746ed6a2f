# The variables of a context: written by one, taken up by others in sandboxes of their own. This is code of the guest's side, as the
# kernel is: whoever reads the bytes was asked by nobody outside to believe them.
import sys

_here = sys.path.pop(0) if sys.path and sys.path[0] == "" else None

import builtins, io, marshal, mmap, os, struct, types

try:
    # All that is needed of it, without what the module around it imports.
    import _pickle as pickle
except ImportError:
    import pickle

if _here is not None:
    sys.path.insert(0, _here)

# At the start of the bytes: what they are, and where the list of what is in them is, and this code, as it was compiled.
HEAD, MAGIC = struct.Struct("<8sQQQQ"), b"belljar1"
START, ALIGNED = 64, 64
# Smaller buffers are as fast in the pickle itself.
APART = 64 << 10
MOST_LEFT = 1000
NOT_VARIABLES = {"__builtins__", "__name__", "__doc__", "__package__", "__loader__", "__spec__"}
HEAP_TYPE = 1 << 9


class TooLarge(Exception):
    pass


class Nothing:
    """A closure's cell that has no value yet."""


class Everything:
    """The namespace itself."""


def module_named(name):
    # `importlib` would be a tenth of what a branch takes to begin, for two lines.
    __import__(name)
    return sys.modules[name]


# How things that pickle does not take, or takes by a name that is not there on the other side, are written.

def is_found(thing):
    module = sys.modules.get(getattr(thing, "__module__", None))
    if module is None or module is sys.modules["__main__"]:
        return False
    found = module
    for name in getattr(thing, "__qualname__", thing.__name__).split("."):
        found = getattr(found, name, None)
    return found is thing


def names_in(code):
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_in(constant)
    return names


def of_function(function):
    if is_found(function):
        return NotImplemented
    home, where, used = function.__globals__, None, None
    module = sys.modules.get(home.get("__name__"))
    if module is not None and module.__dict__ is home:
        where = home["__name__"]
    else:
        # Made by `exec` or the like: it gets what it names of there.
        used = {name: home[name] for name in names_in(function.__code__) if name in home}
    cells = function.__closure__ or ()
    contents = []
    for cell in cells:
        try:
            contents.append(cell.cell_contents)
        except ValueError:
            contents.append(Nothing)
    state = {"__defaults__": function.__defaults__, "__kwdefaults__": function.__kwdefaults__, "__doc__": function.__doc__,
             "__module__": function.__module__, "__name__": function.__name__, "__qualname__": function.__qualname__}
    if getattr(function, "__annotate__", None) is not None:
        state["__annotate__"] = function.__annotate__
    elif function.__annotations__:
        state["__annotations__"] = function.__annotations__
    if getattr(function, "__type_params__", ()):
        state["__type_params__"] = function.__type_params__
    more = (state, function.__dict__, contents, used)
    return make_function, (marshal.dumps(function.__code__), where, id(home), cells), more, None, None, fill_function


namespaces = {}


def make_function(code, where, home, cells):
    code = marshal.loads(code)
    if where is not None:
        space = module_named(where).__dict__
    else:
        space = namespaces.setdefault(home, {"__builtins__": builtins})
    return types.FunctionType(code, space, code.co_name, None, tuple(cells))


def fill_function(function, more):
    state, attributes, contents, used = more
    for cell, content in zip(function.__closure__ or (), contents):
        if content is not Nothing:
            cell.cell_contents = content
    if used:
        function.__globals__.update(used)
    for name, value in state.items():
        setattr(function, name, value)
    function.__dict__.update(attributes)


# Filled by the functions that have it, which may be what is in it.
def of_cell(cell):
    return make_cell, ()


def make_cell():
    return types.CellType()


def of_code(code):
    return marshal.loads, (marshal.dumps(code),)


def of_module(module):
    name = module.__name__
    if sys.modules.get(name) is not module:
        raise pickle.PicklingError("the module `%s` is not one that can be imported" % name)
    return module_named, (name,)


def of_class(kind):
    if not kind.__flags__ & HEAP_TYPE:
        # Some of the language's own have a name only there.
        hidden = [name for name, known in vars(types).items() if known is kind]
        return (getattr, (types, hidden[0])) if hidden and not hasattr(builtins, kind.__name__) else NotImplemented
    if kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__:
        return NotImplemented
    enum = sys.modules.get("enum")
    if enum is not None and isinstance(kind, enum.EnumMeta):
        return of_enum(kind)
    slots = (types.MemberDescriptorType, types.GetSetDescriptorType)
    members = {}
    for name, member in kind.__dict__.items():
        if name in ("__dict__", "__weakref__", "_abc_impl") or isinstance(member, slots) and member.__objclass__ is kind:
            continue
        members[name] = member
    first = {name: members.pop(name) for name in ("__module__", "__slots__", "__orig_bases__") if name in members}
    first["__qualname__"] = kind.__qualname__
    return make_class, (type(kind), kind.__name__, kind.__bases__, first), members, None, None, fill_class


def make_class(meta, name, bases, first):
    return types.new_class(name, bases, {"metaclass": meta}, lambda space: space.update(first))


def fill_class(kind, members):
    for name, member in members.items():
        type.__setattr__(kind, name, member)


# What the metaclass makes by itself.
OF_ENUMS = {
    "_generate_next_value_", "_member_names_", "_member_map_", "_value2member_map_", "_unhashable_values_", "_member_type_",
    "_unhashable_values_map_", "_hashable_values_", "_value_repr_", "_use_args_", "_new_member_", "__new__", "_boundary_",
    "_flag_mask_", "_singles_mask_", "_all_bits_", "_inverted_", "__module__", "__qualname__", "__dict__", "__weakref__",
}


def of_enum(kind):
    values = {name: member._value_ for name, member in kind.__members__.items()}
    members = {name: member for name, member in kind.__dict__.items() if name not in values and name not in OF_ENUMS}
    about = (type(kind), kind.__name__, kind.__bases__, {"__module__": kind.__module__, "__qualname__": kind.__qualname__})
    return make_enum, about + (values,), members, None, None, fill_class


def make_enum(meta, name, bases, first, values):
    space = meta.__prepare__(name, bases)
    for key, value in list(first.items()) + list(values.items()):
        space[key] = value
    return meta.__new__(meta, name, bases, space)


def of_property(it):
    return property, (it.fget, it.fset, it.fdel, it.__doc__)


def of_wrapped(method):
    return type(method), (method.__func__,)


def of_proxy(proxy):
    return types.MappingProxyType, (dict(proxy),)


def of_cache(cached):
    if is_found(cached):
        return NotImplemented
    # Older versions do not tell whether types count.
    how = cached.cache_parameters() if hasattr(cached, "cache_parameters") else {"maxsize": cached.cache_info().maxsize}
    return make_cache, (cached.__wrapped__, how)


def make_cache(function, how):
    import functools
    return functools.lru_cache(**how)(function)


def of_cached_property(it):
    return make_cached_property, (it.func, it.attrname)


def make_cached_property(function, name):
    import functools
    made = functools.cached_property(function)
    made.attrname = name
    return made


def of_stream(stream):
    for name in ("stdout", "stderr", "stdin"):
        if stream is getattr(sys, name):
            return getattr, (sys, name)
    return NotImplemented


def of_type_variable(variable):
    if is_found(variable):
        return NotImplemented
    about = (variable.__name__,) + variable.__constraints__
    return make_type_variable, (about, variable.__bound__, variable.__covariant__, variable.__contravariant__)


def make_type_variable(about, bound, covariant, contravariant):
    return sys.modules["typing"].TypeVar(*about, bound=bound, covariant=covariant, contravariant=contravariant)


def of_new_type(kind):
    if is_found(kind):
        return NotImplemented
    return type(kind), (kind.__name__, kind.__supertype__)


# Things of which there is one, told apart by being that one.
ONLY = ["MISSING", "KW_ONLY", "_HAS_DEFAULT_FACTORY", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR"]


def of_only(thing):
    module = sys.modules["dataclasses"]
    for name in ONLY:
        if thing is getattr(module, name, None):
            return getattr, (module, name)
    return NotImplemented


def ways():
    found = {
        types.FunctionType: of_function, types.CellType: of_cell, types.CodeType: of_code, types.ModuleType: of_module,
        property: of_property, classmethod: of_wrapped, staticmethod: of_wrapped, types.MappingProxyType: of_proxy,
        io.TextIOWrapper: of_stream,
    }
    functools, typing, dataclasses = map(sys.modules.get, ("functools", "typing", "dataclasses"))
    if functools is not None:
        found[type(functools.lru_cache(lambda: None))] = of_cache
        found[functools.cached_property] = of_cached_property
    if typing is not None:
        found[typing.TypeVar] = of_type_variable
        if isinstance(typing.NewType, type):
            found[typing.NewType] = of_new_type
    for name in ONLY:
        if dataclasses is not None and hasattr(dataclasses, name):
            found[type(getattr(dataclasses, name))] = of_only
    return found


class Saver(pickle.Pickler):
    def __init__(self, stream, known, apart):
        super().__init__(stream, 5, buffer_callback=apart)
        self.known = known

    def reducer_override(self, thing):
        way = self.known.get(type(thing))
        if way is not None:
            return way(thing)
        if isinstance(thing, type):
            return of_class(thing)
        if isinstance(thing, types.ModuleType):
            return of_module(thing)
        return NotImplemented


class Stream:
    """Pickles, one after the other; and what was written apart from them."""

    def __init__(self, descriptor, most):
        self.descriptor, self.most, self.at, self.held, self.buffers = descriptor, most, START, 0, []

    def room(self, size):
        # With some for the list of what is in it.
        if self.at + self.held + size + (1 << 20) > self.most:
            raise TooLarge("there is room for %d MiB of variables" % (self.most >> 20))

    def write(self, data):
        view = memoryview(data).cast("B")
        size = view.nbytes
        self.room(size)
        if self.descriptor is not None:
            while view.nbytes:
                written = os.pwrite(self.descriptor, view, self.at)
                self.at += written
                view = view[written:]
        return size

    def apart(self, buffer):
        view = buffer.raw()
        if view.nbytes < APART:
            return True
        self.room(view.nbytes + ALIGNED)
        self.held += view.nbytes + ALIGNED
        self.buffers.append(view)
        return False


def why(error):
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text = str(error) or type(error).__name__
    return text if isinstance(error, (TypeError, pickle.PickleError, TooLarge)) else "%s: %s" % (type(error).__name__, text)


def shown(left):
    return [{"name": str(name)[:200], "why": str(reason)[:500]} for name, reason in left[:MOST_LEFT]]


def save(main, descriptor, most, cells, environment, lines):
    """`cells`: of how many it is; `environment`: the variables that it began with; `lines`: of its cells, as tracebacks show them."""
    everything = main.__dict__
    left, known = [], ways()
    values = {name: value for name, value in everything.items() if name not in NOT_VARIABLES}

    def attempt(pickler, name):
        value = values[name]
        try:
            pickler.dump(Everything if value is everything else value)
            return True
        except Exception as error:
            if name != "_":
                left.append((name, why(error)))
            del values[name]
            return False

    looked = False
    while True:
        stream, variables = Stream(descriptor, most), []
        pickler = Saver(stream, known, stream.apart)
        for name in list(values):
            if not attempt(pickler, name):
                break
            variables.append((name, stream.at, len(stream.buffers)))
        else:
            break
        # What one that fails has written is in the way of those after it. So all are tried apart, and then written anew.
        if not looked:
            looked = True
            for name in list(values)[len(variables):]:
                trial = Stream(None, most)
                attempt(Saver(trial, known, trial.apart), name)
    del pickler
    buffers, at = [], stream.at
    for view in stream.buffers:
        at += -at % ALIGNED
        buffers.append((at, view.nbytes, view.readonly))
        rest = view
        while rest.nbytes:
            written = os.pwrite(descriptor, rest, at)
            at += written
            rest = rest[written:]
    index = {"variables": variables, "buffers": buffers, "around": around(cells, environment, lines)}
    index = pickle.dumps(index, 4)
    if at + len(index) + (1 << 16) > most:
        raise TooLarge("there is room for %d MiB of variables" % (most >> 20))
    code = marshal.dumps(COMPILED)
    os.pwrite(descriptor, index + code, at)
    os.pwrite(descriptor, HEAD.pack(MAGIC, at, len(index), at + len(index), len(code)), 0)
    return {"variables": len(variables), "left": shown(left)}


def around(cells, environment, lines):
    """What belongs to a context besides its variables."""
    changed = {name: os.environ.get(name) for name in set(os.environ) | set(environment)
               if os.environ.get(name) != environment.get(name)}
    # Modules of folders that it was in before: the way there is not among those that imports go.
    files = [getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if "." not in name]
    files = [os.path.dirname(file) if os.path.basename(file) == "__init__.py" else file for file in files if isinstance(file, str)]
    places = {os.path.dirname(file) for file in files} - set(sys.path)
    found = {"path": [part for part in sys.path if isinstance(part, str)], "places": sorted(places), "environment": changed,
             "cells": cells, "lines": {name: known[2] for name, known in lines.items()}}
    try:
        found["folder"] = os.getcwd()
    except OSError:
        pass
    if "random" in sys.modules:
        found["random"] = sys.modules["random"].getstate()
    for name, tell in (("numpy", numbers), ("matplotlib", settings)):
        try:
            if name in sys.modules:
                told = tell(sys.modules[name])
                pickle.dumps(told, 4)
                found[name] = told
        except Exception:
            pass
    return found


def numbers(numpy):
    return numpy.random.get_state() if "numpy.random" in sys.modules else None


def settings(matplotlib):
    known = matplotlib.rcParams
    return {name: dict.__getitem__(known, name) for name in known if name != "backend"}


class Source:
    """The bytes of pickles. With a descriptor, what is large is read from it, rather than over pages that are first mapped."""

    def __init__(self, view, at, descriptor=None):
        self.view, self.at, self.descriptor = view, at, descriptor

    def read(self, size=-1):
        end = len(self.view) if size < 0 else self.at + size
        data = bytes(self.view[self.at:end])
        self.at += len(data)
        return data

    def readinto(self, buffer):
        size = min(len(buffer), len(self.view) - self.at)
        if self.descriptor is not None and size >= APART:
            size = os.preadv(self.descriptor, [buffer[:size]], self.at)
        else:
            buffer[:size] = self.view[self.at:self.at + size]
        self.at += size
        return size

    def readline(self):
        line = bytearray()
        while not line.endswith(b"\n"):
            byte = self.read(1)
            if not byte:
                break
            line += byte
        return bytes(line)


def take_up(main, descriptor, remember):
    """With what is told of it, how many cells there were before."""
    magic, at, length, _, _ = HEAD.unpack(os.pread(descriptor, HEAD.size, 0))
    if magic != MAGIC:
        raise ValueError("these are no variables of a context")
    # Its own: what is written to is copied page by page, and nobody else sees it.
    view = memoryview(mmap.mmap(descriptor, at + length, access=mmap.ACCESS_COPY))
    index = pickle.loads(view[at:at + length])
    here, left = index["around"], []
    sys.path[:] = here["path"]
    for name, value in here["environment"].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    for name, lines in here["lines"].items():
        remember(name, lines)
    try:
        if "folder" in here:
            os.chdir(here["folder"])
    except OSError as error:
        left.append(("(working directory)", why(error)))
    buffers = []
    for begins, size, readonly in index["buffers"]:
        part = view[begins:begins + size]
        buffers.append(part.toreadonly() if readonly else part)
    sys.path += here["places"]
    try:
        take(main.__dict__, index["variables"], buffers, Source(view, START, descriptor), left)
    finally:
        sys.path[:] = here["path"]
    for name, put in (("random", lambda state: sys.modules["random"].setstate(state)),
                      ("numpy", lambda state: module_named("numpy.random").set_state(state)),
                      ("matplotlib", lambda known: dict.update(sys.modules["matplotlib"].rcParams, known))):
        try:
            if here.get(name) is not None and name in sys.modules:
                put(here[name])
        except Exception as error:
            left.append(("(%s)" % name, why(error)))
    return {"variables": len(index["variables"]), "left": shown(left)}, here["cells"]


def take(space, variables, buffers, source, left):
    begins, view = START, source.view
    reader = pickle.Unpickler(source, buffers=iter(buffers))
    # From the first that fails on: what its pickle would have made, by number, and how many things there are before the next.
    missing, before = set(), None
    for name, end, apart in variables:
        needs, makes = looked_into(view[begins:end]) if before is not None else (set(), 0)
        try:
            if needs & missing:
                raise pickle.UnpicklingError("it shares something with what stayed behind")
            value = reader.load()
            space[name] = space if value is Everything else value
            before = None if before is None else before + makes
        except Exception as error:
            if name != "_":
                left.append((name, why(error)))
            if before is None:
                before, makes = (looked_into(view[first:last])[1] for first, last in ((START, begins), (begins, end)))
            missing |= set(range(before, before + makes))
            before += makes
            reader = Reader(reader.memo.copy(), before, Source(view, end, source.descriptor), buffers[apart:])
        begins = end


class Reader(pickle.Unpickler):
    """One that goes on after what could not be read, with the same numbers for what was."""

    def __init__(self, known, count, source, buffers):
        super().__init__(source, buffers=iter(buffers))
        self.known = known
        # There is no other way in that all versions have: a pickle of things that are asked for by number.
        numbers = b"".join(b"J" + number.to_bytes(4, "little") + b"Q\x940" for number in range(count))
        view, at = source.view, source.at
        source.view, source.at = memoryview(b"\x80\x05" + numbers + b"N."), 0
        self.load()
        source.view, source.at = view, at

    def persistent_load(self, number):
        return self.known.get(number)


def looked_into(data):
    """Which earlier things it refers to, and how many it adds."""
    import pickletools
    needs, makes, rest = set(), 0, io.BytesIO(bytes(data))
    while rest.tell() < len(data):
        for code, argument, _ in pickletools.genops(rest):
            if code.name in ("BINGET", "LONG_BINGET"):
                needs.add(argument)
            makes += code.name == "MEMOIZE"
    return needs, makes
