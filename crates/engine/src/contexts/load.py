# Goes on with the code that lies beside the variables, compiled: whoever wrote those wrote it, and it runs where they are used.
import marshal, os, struct


def load(main, descriptor, remember):
    magic, _, _, at, length = struct.unpack("<8sQQQQ", os.pread(descriptor, 40, 0))
    if magic != b"belljar1":
        raise ValueError("these are no variables of a context")
    exec(marshal.loads(os.pread(descriptor, length, at)), globals())
    return take_up(main, descriptor, remember)
