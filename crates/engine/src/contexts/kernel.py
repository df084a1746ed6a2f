# A context: takes cells on its input, runs each where those before it ran, and tells results on descriptor 3.
# It runs inside the sandbox, beside the code of the guest: whatever it tells is checked outside.
import sys

# First of all: a file in the workspace must not take the place of what this needs itself.
_here = sys.path.pop(0) if sys.path and sys.path[0] == "" else None

# Little else is imported before somebody needs it: `signal`, `linecache`, `json` and `socket` bring half a library with them, which
# takes as long as all that an interpreter does before.
import _ast, _signal, builtins, io, os, struct, types

if _here is not None:
    sys.path.insert(0, _here)


def _kernel():
    KINDS = ["text", "html", "markdown", "latex", "svg", "json", "png", "jpeg", "plotly"]
    MIME = {
        "text/plain": "text", "text/html": "html", "text/markdown": "markdown", "text/latex": "latex",
        "image/svg+xml": "svg", "application/json": "json", "image/png": "png", "image/jpeg": "jpeg",
        "application/vnd.plotly.v1+json": "plotly",
    }
    METHODS = [
        ("html", "_repr_html_"), ("markdown", "_repr_markdown_"), ("latex", "_repr_latex_"), ("svg", "_repr_svg_"),
        ("json", "_repr_json_"), ("png", "_repr_png_"), ("jpeg", "_repr_jpeg_"),
    ]
    MOST_PART, MOST_BYTES, MOST_PARTS, MOST_TEXT, MOST_ERROR = 8 << 20, 16 << 20, 1000, 1 << 20, 60000
    AWAITS, IS_COROUTINE = _ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, 0x80
    own = os.getpid()

    # Of the language's own library, whatever lies in the workspace.
    def needed(name):
        if name not in sys.modules:
            before = sys.path[:]
            sys.path[:] = [part for part in before if part not in ("", ".")]
            try:
                __import__(name)
            finally:
                sys.path[:] = before
        return sys.modules[name]

    write, pack = os.write, struct.pack

    # Cells come on what was the input; the code that they bring has none.
    control = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.set_inheritable(3, False)
    os.set_inheritable(4, False)
    sys.stdin = open(0, "r", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)

    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    sys.argv = [""]
    os.environ.setdefault("MPLBACKEND", "module://belljar_figures")
    # `earlier`: cells of the context that this one began as a branch of.
    state = {"running": False, "loop": None, "earlier": 0}
    began_with = dict(os.environ)
    shown, count = [], {"bytes": 0, "parts": 0, "left": 0}

    def keep(result, is_value, kind, data):
        if isinstance(data, str):
            data = data.encode("utf-8", "replace")
        if len(data) > MOST_PART or count["bytes"] + len(data) > MOST_BYTES or count["parts"] >= MOST_PARTS:
            count["left"] += 1
            return
        count["bytes"] += len(data)
        count["parts"] += 1
        shown.append((result, is_value, KINDS.index(kind), bytes(data)))

    def as_bytes(kind, data):
        if kind in ("png", "jpeg"):
            return needed("base64").b64decode(data) if isinstance(data, str) else data
        if kind in ("json", "plotly"):
            return data if isinstance(data, str) and kind == "plotly" else needed("json").dumps(data, default=str)
        return data if isinstance(data, str) else str(data)

    def parts_of(value):
        parts = {}
        kind = type(value)
        bundle = getattr(kind, "_repr_mimebundle_", None)
        if (kind.__module__ or "").startswith("plotly.") and hasattr(value, "to_plotly_json"):
            parts["plotly"] = value.to_json()
            parts["html"] = value.to_html(include_plotlyjs="cdn", full_html=False)
            bundle = None
        elif callable(bundle):
            try:
                told = value._repr_mimebundle_(include=None, exclude=None)
                told = told[0] if isinstance(told, tuple) else told
                for mime, data in (told or {}).items():
                    if mime in MIME and data is not None:
                        parts[MIME[mime]] = as_bytes(MIME[mime], data)
            except Exception:
                parts = {}
        if not parts:
            for name, method in METHODS:
                if isinstance(value, type) or not callable(getattr(kind, method, None)):
                    continue
                try:
                    data = getattr(value, method)()
                    data = data[0] if isinstance(data, tuple) else data
                    if data is not None:
                        parts[name] = as_bytes(name, data)
                except Exception:
                    pass
        if "text" not in parts:
            try:
                parts["text"] = repr(value)
            except Exception as error:
                parts["text"] = "<%s: repr failed: %s>" % (kind.__name__, error)
        if len(parts["text"]) > MOST_TEXT:
            parts["text"] = parts["text"][:MOST_TEXT] + "…"
            count["left"] += 1
        return parts

    def show(value, is_value=False):
        result = len(set(part[0] for part in shown)) + count["left"]
        for kind, data in parts_of(value).items():
            keep(result, is_value, kind, data)

    def display(*values, **_):
        for value in values:
            show(value)

    builtins.display = display

    def show_figures(*_, **__):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if figure.get_axes() or figure.texts:
                out = io.BytesIO()
                figure.savefig(out, format="png", bbox_inches="tight")
                result = len(set(part[0] for part in shown)) + count["left"]
                keep(result, False, "png", out.getvalue())
        pyplot.close("all")

    # Figures are drawn to memory, and shown when somebody wants that or when the cell is over.
    class Figures:
        """What matplotlib takes for a kind of screen. Made when it is first needed: most code draws nothing."""

        def find_spec(self, name, path=None, target=None):
            if name != "belljar_figures":
                return None
            import importlib.util
            return importlib.util.spec_from_loader(name, self)

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            module.FigureCanvas = FigureCanvasAgg
            module.show = show_figures

    sys.meta_path.append(Figures())

    # Lines of cells, for tracebacks: whoever shows some finds them where those of files are kept.
    lines = {}

    def remember(name, of_cell):
        lines[name] = (sum(map(len, of_cell)), None, of_cell, name)
        tell_lines(sys.modules.get("linecache"), {name: lines[name]})

    def tell_lines(module, new=lines):
        cache = getattr(module, "cache", None)
        if isinstance(cache, dict):
            cache.update(new)

    def show_here(module):
        # Plotly shows figures in a browser, which is not here.
        module.show = lambda figure, *_, **__: show(figure)

    class WhenImported:
        """What is changed about a module as soon as somebody imports it."""

        changes = {"linecache": tell_lines, "plotly.io": show_here}

        def find_spec(self, name, path=None, target=None):
            change = self.changes.pop(name, None)
            if change is None:
                return None
            for finder in list(sys.meta_path):
                finds = getattr(finder, "find_spec", None)
                spec = finds(name, path, target) if finds and finder is not self else None
                if spec is not None:
                    break
            if spec is not None and spec.loader is not None:
                run = spec.loader.exec_module

                def exec_module(module):
                    run(module)
                    change(module)

                spec.loader.exec_module = exec_module
            return spec

    sys.meta_path.insert(0, WhenImported())

    def on_interrupt(*_):
        if state["running"]:
            raise KeyboardInterrupt
    _signal.signal(_signal.SIGINT, on_interrupt)

    def run(code, name):
        tree = compile(code, name, "exec", _ast.PyCF_ONLY_AST)
        value = None
        last = tree.body[-1] if tree.body else None
        is_value = isinstance(last, _ast.Expr) and not code.rstrip().endswith(";")
        if is_value:
            tree.body.pop()
        def evaluate(compiled):
            told = eval(compiled, main.__dict__)
            if compiled.co_flags & IS_COROUTINE:
                asyncio = needed("asyncio")
                if state["loop"] is None:
                    state["loop"] = asyncio.new_event_loop()
                    asyncio.set_event_loop(state["loop"])
                return state["loop"].run_until_complete(told)
            return told

        if tree.body:
            evaluate(compile(tree, name, "exec", AWAITS))
        if is_value:
            value = evaluate(compile(_ast.Expression(last.value), name, "eval", AWAITS))
            if value is not None:
                main.__dict__["_"] = value
        return value

    # Variables that go out to, or come in from, a descriptor: one that is handed over on a socket on which nothing can be said.
    def deal(code, cell, deed, most):
        socket = needed("_socket")
        parcels = socket.socket(fileno=os.dup(4))
        try:
            _, along, _, _ = parcels.recvmsg(16, socket.CMSG_SPACE(4))
        finally:
            parcels.close()
        parcel, = struct.unpack("i", along[0][2])
        try:
            module = types.ModuleType("belljar_branch")
            sys.modules["belljar_branch"] = module
            module.COMPILED = compile(code, "<string>", "exec")
            exec(module.COMPILED, module.__dict__)
            if deed == b"save":
                told = module.save(main, parcel, most, state["earlier"] + cell, began_with, lines)
            else:
                told, state["earlier"] = module.load(main, parcel, remember)
            plain = '{"variables": %d, "left": []}' % told["variables"]
            keep(0, True, "json", needed("json").dumps(told) if told["left"] else plain)
        finally:
            os.close(parcel)

    def told_error(error):
        kind, trace = type(error), error.__traceback__
        try:
            traceback = needed("traceback")
            whole = traceback.TracebackException(kind, error, trace)
            one, seen = whole, 0
            while one is not None and seen < 100:
                # What leads from here to the cell, and back by a signal, says nothing of it.
                frames = [frame for frame in one.stack if frame.filename != "<string>"]
                cells = any(frame.filename.startswith("<cell ") for frame in frames)
                one.stack = traceback.StackSummary.from_list(frames if cells or one is not whole else [])
                one, seen = one.__cause__ or one.__context__, seen + 1
            lines = "".join(whole.format())
        except Exception:
            lines = kind.__name__ + "\n"
        try:
            value = str(error)
        except Exception:
            value = ""
        if len(lines) > MOST_ERROR:
            lines = lines[:MOST_ERROR // 2] + "\n…\n" + lines[-MOST_ERROR // 2:]
        return kind.__name__[:200], value[:MOST_ERROR // 4], lines

    def tell(cell, kind, body):
        frame = pack("<IBQ", 9 + len(body), kind, cell) + body
        while frame:
            frame = frame[write(3, frame):]

    def text(words):
        words = words.encode("utf-8", "replace")
        return pack("<I", len(words)) + words

    while True:
        line = control.readline()
        if not line:
            os._exit(0)
        if line == b"interrupt\n":
            continue
        cell, length, *deed = line.split()
        cell, length = int(cell), int(length)
        code = control.read(length).decode("utf-8", "replace")
        name = "<cell %d>" % (state["earlier"] + cell)
        if not deed:
            remember(name, code.splitlines(True))
        shown.clear()
        count.update(bytes=0, parts=0, left=0)
        error, interrupted = None, False
        _signal.signal(_signal.SIGINT, on_interrupt)
        try:
            state["running"] = True
            try:
                value = deal(code, cell, deed[0], int(deed[1])) if deed else run(code, name)
                if value is not None:
                    show(value, True)
                show_figures()
            except BaseException as raised:
                if os.getpid() != own:
                    raise
                interrupted = isinstance(raised, KeyboardInterrupt)
                error = told_error(raised)
                try:
                    show_figures()
                except Exception:
                    pass
            finally:
                state["running"] = False
        except BaseException as raised:
            if os.getpid() == own:
                state["running"] = False
                interrupted, error = isinstance(raised, KeyboardInterrupt), told_error(raised)
        if os.getpid() != own:
            # The code made a copy of us that came back from it as if it were us.
            os._exit(1 if error else 0)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        for result, is_value, kind, data in shown:
            tell(cell, 1, pack("<IBB", result, is_value, kind) + data)
        if error is not None:
            tell(cell, 2, text(error[0]) + text(error[1]) + error[2].encode("utf-8", "replace"))
        tell(cell, 3, pack("<BBI", 1 if error else 0, interrupted, min(count["left"], 2**32 - 1)))
        value = error = None


_kernel()
