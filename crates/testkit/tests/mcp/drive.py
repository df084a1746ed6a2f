"""Drives a server with the official client for Python: takes a plan, says what came of each step.

A step is a tool call, `list` of tools, `resources`, or `read` of a resource. `$name` in arguments is what an earlier step saved.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


def filled(value, known):
    if isinstance(value, str):
        return known.get(value[1:], value) if value.startswith("$") else value
    if isinstance(value, list):
        return [filled(one, known) for one in value]
    if isinstance(value, dict):
        return {name: filled(one, known) for name, one in value.items()}
    return value


def plain(model):
    return json.loads(model.model_dump_json(by_alias=True, exclude_none=True))


async def call(client, step, known):
    notes = []

    async def note(progress, total, message):
        notes.append([progress, message])

    arguments = filled(step.get("arguments", {}), known)
    for _ in range(600):
        called = client.call_tool(step["tool"], arguments, progress_callback=note if step.get("progress") else None)
        if step.get("cancel"):
            task = asyncio.ensure_future(called)
            while not notes:
                await asyncio.sleep(0.02)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return {"cancelled": True, "notes": notes}
            return {"cancelled": False}
        result = plain(await called)
        kind = (result.get("structuredContent") or {}).get("error", {}).get("kind")
        if not (step.get("again") and kind == "approval-needed"):
            break
        known["asked"] = True
        await asyncio.sleep(0.1)
    for name, field in step.get("save", {}).items():
        found = result.get("structuredContent", {})
        for part in field.split("."):
            found = found[int(part)] if isinstance(found, list) else found[part]
        known[name] = found
    return {"result": result, "notes": notes, "asked": known.pop("asked", False)}


async def main():
    plan = json.load(open(sys.argv[1]))
    if "url" in plan:
        headers = {"Authorization": "Bearer " + plan["token"]}
        server = streamable_http_client(plan["url"], http_client=create_mcp_http_client(headers=headers))
    else:
        server = StdioServerParameters(
            command=plan["command"], args=plan["args"], env=plan["env"], cwd=plan["cwd"]
        )
    said, known = [], {}
    async with Client(server, mode=plan["mode"], read_timeout_seconds=300, input_required_max_rounds=1000) as client:
        version = client.session.protocol_version
        for step in plan["steps"]:
            if "tool" in step:
                said.append(await call(client, step, known))
            elif "list" in step:
                said.append(plain(await client.list_tools()))
            elif "resources" in step:
                said.append(plain(await client.list_resources()))
            elif "read" in step:
                uri = step["read"].replace("$run", str(known.get("run"))).replace("$artifact", str(known.get("artifact")))
                said.append(plain(await client.read_resource(uri)))
    json.dump({"version": version, "said": said}, sys.stdout)


asyncio.run(main())
