import base64
import marshal
import zlib

BLOB = load_blob()
code = marshal.loads(zlib.decompress(base64.b85decode(BLOB)))
exec(code)
