#!/usr/bin/env python3
"""Makes a trace of a run from the record: belljar log --run ID --json | record.py PROCESSORS >> NAME.trace

Of programs only names are kept: where they lie, and what they were told, is nobody's business here."""
import json
import os
import sys
from datetime import datetime

entries = [json.loads(line) for line in sys.stdin]
begin = next(entry["at"] for entry in entries if entry["type"] == "sandbox.opening")
moment = lambda text: datetime.fromisoformat(text.replace("Z", "+00:00"))
after = lambda entry: (moment(entry["at"]) - moment(begin)).total_seconds()
name = lambda word: os.path.basename(word).replace(" ", "_") or "-"
print("processors", sys.argv[1]) if len(sys.argv) > 1 else None
for entry in entries:
    data = entry["data"]
    match entry["type"]:
        case "program.started":
            words = [name(word) for word in data["arguments"][:3]] or [name(data["program"])]
            print("started", f"{max(after(entry), 0):.3f}", *words)
        case "run.sample":
            numbers = [data[key] for key in ("memory", "processes", "read", "written", "output", "denials")]
            print("sample", f'{data["after"]:.3f}', f'{data["processor"]:.3f}', *numbers)
        case "call.denied":
            print("denied", data["call"], data["times"])
        case "run.ended":
            usage = data["usage"]
            print("ended", f'{usage["wall_time"]:.3f}', f'{usage["user_time"] + usage["system_time"]:.3f}')
