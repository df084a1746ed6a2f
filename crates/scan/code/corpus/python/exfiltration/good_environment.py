import json
import os
import urllib.request

payload = json.dumps({"user": os.environ.get("USER", "nobody")}).encode()
urllib.request.urlopen(urllib.request.Request("https://telemetry.example/e", data=payload))
