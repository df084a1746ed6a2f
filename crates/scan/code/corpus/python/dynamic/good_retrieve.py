import importlib
import urllib.request

urllib.request.urlretrieve("https://cdn.example/words.txt", "/tmp/words.txt")
with open("/tmp/words.txt") as words:
    print(len(words.readlines()))


def plugins(names):
    return [importlib.import_module(name) for name in names]


def kinds(base):
    return {kind.__name__: kind for kind in base.__subclasses__()}
