#!/bin/bash
set -eu
python3 -c "import json,sys; print(json.load(sys.stdin)['name'])" < package.json
