import base64
import json
import zlib

BLOB = load_blob()
settings = json.loads(zlib.decompress(base64.b85decode(BLOB)))
print(settings["name"])
