# Does to the current folder what it is told, and says what the folder is then. Runs inside a sandbox.
#
# A deed names things by numbers, and means whichever of the things that are there has that number. What can't be done
# is left out: the order of deeds is random.
import errno, json, os, shutil, stat, sys


def everything(folder=b""):
    for name in sorted(os.listdir(folder or b".")):
        path = folder + b"/" + name if folder else name
        mode = os.lstat(path).st_mode
        yield path, mode
        if stat.S_ISDIR(mode):
            yield from everything(path)


def pick(number, fits):
    found = [path for path, mode in everything() if fits(mode)]
    return found[number % len(found)] if found else None


def file(number):
    return pick(number, stat.S_ISREG)


def leaf(number):
    return pick(number, lambda mode: not stat.S_ISDIR(mode))


def folder(number):
    return pick(number, stat.S_ISDIR)


def place(number, name):
    around = [b""] + [path for path, mode in everything() if stat.S_ISDIR(mode)]
    around = around[number % len(around)]
    return around + b"/" + name if around else name


def put(path, contents, how="wb"):
    with open(path, how) as out:
        out.write(contents)


def move(old, new):
    if (new + b"/").startswith(old + b"/"):
        return
    try:
        os.rename(old, new)
    except OSError as error:
        # As `mv` does it: an overlay does not rename folders of the host's.
        if error.errno != errno.EXDEV:
            raise
        shutil.copytree(old, new, symlinks=True)
        shutil.rmtree(old)


def replace_by_folder(path, contents):
    os.unlink(path)
    os.mkdir(path)
    put(path + b"/inside", contents)


def replace_by_file(path, contents):
    shutil.rmtree(path)
    put(path, contents)


def replace_by_link(path, target):
    shutil.rmtree(path)
    os.symlink(target, path)


def make_again(path, contents):
    shutil.rmtree(path)
    os.mkdir(path)
    put(path + b"/again", contents)


def rewrite(path):
    with open(path, "rb") as old:
        contents = old.read()
    put(path, contents)


def edit(path, number, line):
    with open(path, "rb") as old:
        lines = old.read().splitlines(keepends=True)
    at = number % (len(lines) + 1)
    lines[at:at + 1] = [line + b"\n"]
    put(path, b"".join(lines))


def read_only(path, contents):
    os.mkdir(path)
    put(path + b"/locked", contents)
    os.chmod(path, 0o555)


DEEDS = {
    "write": lambda a, b, text: put(file(a), text),
    "append": lambda a, b, text: put(file(a), text, "ab"),
    "truncate": lambda a, b, text: os.truncate(file(a), b % 8),
    "edit": lambda a, b, text: edit(file(a), b, text),
    "rewrite": lambda a, b, text: rewrite(file(a)),
    "add": lambda a, b, text: put(place(a, NAMES[b % len(NAMES)]), text),
    "delete": lambda a, b, text: os.unlink(leaf(a)),
    "delete-folder": lambda a, b, text: shutil.rmtree(folder(a)),
    "make-folder": lambda a, b, text: os.mkdir(place(a, NAMES[b % len(NAMES)])),
    "rename": lambda a, b, text: os.rename(leaf(a), place(a // 7, NAMES[b % len(NAMES)])),
    "rename-folder": lambda a, b, text: move(folder(a), place(a // 7, NAMES[b % len(NAMES)])),
    "change-mode": lambda a, b, text: os.chmod(file(a), [0o644, 0o755, 0o600, 0o444, 0o664, 0o400, 0o777][b % 7]),
    "change-folder": lambda a, b, text: os.chmod(folder(a), [0o755, 0o700, 0o775, 0o711][b % 4]),
    "link": lambda a, b, text: os.symlink(NAMES[a // 7 % len(NAMES)], place(a, NAMES[b % len(NAMES)])),
    "hard-link": lambda a, b, text: os.link(file(a), place(a // 7, NAMES[b % len(NAMES)])),
    "folder-for-file": lambda a, b, text: replace_by_folder(leaf(a), text),
    "file-for-folder": lambda a, b, text: replace_by_file(folder(a), text),
    "link-for-folder": lambda a, b, text: replace_by_link(folder(a), NAMES[b % len(NAMES)]),
    "make-again": lambda a, b, text: make_again(folder(a), text),
    "touch": lambda a, b, text: os.utime(leaf(a), follow_symlinks=False),
    "read-only-folder": lambda a, b, text: read_only(place(a, NAMES[b % len(NAMES)]), text),
}


def do(deeds):
    for name, a, b, text in deeds:
        try:
            DEEDS[name](a, b, bytes.fromhex(text))
        # Nothing there to do it to, or it can't be done to that.
        except (OSError, TypeError, shutil.Error):
            pass


def tell():
    for path, mode in everything():
        if stat.S_ISLNK(mode):
            kind, contents = "link", os.readlink(path)
        elif stat.S_ISDIR(mode):
            kind, contents = "folder", b""
        elif stat.S_ISREG(mode):
            kind = "file"
            with open(path, "rb") as file:
                contents = file.read()
        else:
            kind, contents = "special", b""
        print(kind, oct(stat.S_IMODE(mode))[2:], path.hex(), contents.hex() or "-")


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    NAMES = [bytes.fromhex(name) for name in told["names"]]
    if told["wait"]:
        # Somebody wants to do something of their own meanwhile.
        print("ready", flush=True)
        sys.stdin.readline()
    do(told["deeds"])
    tell()
    print("end")
