"""An agent: uses tools of an MCP server as its input says, one call per line, by the official SDK."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import Implementation


async def main():
    name, command, *args = sys.argv[1:]
    server = StdioServerParameters(command=command, args=args, env=dict(os.environ), cwd=os.getcwd())
    who = Implementation(name=name, version="1")
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, client_info=who) as session:
            await session.initialize()
            tools = await session.list_tools()
            say({"tools": [tool.model_dump(mode="json", by_alias=True) for tool in tools.tools]})
            loop = asyncio.get_running_loop()
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                asked = json.loads(line)
                result = await session.call_tool(asked["tool"], asked["args"])
                text = "\n".join(block.text for block in result.content)
                answer = result.model_dump(mode="json", by_alias=True)
                say({
                    "refused": bool(answer.get("isError")),
                    "text": text,
                    "value": answer.get("structuredContent"),
                })


def say(value):
    print(json.dumps(value), flush=True)


asyncio.run(main())
