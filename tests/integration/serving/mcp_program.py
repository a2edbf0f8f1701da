"""A client of `fraganalyze mcp` with the package mcp: prints what it gets as JSON. Run by its interpreter."""

import asyncio
import json
import sys

from mcp import Client, ClientSession, StdioServerParameters, stdio_client


async def ask(session, trace, message):
    tools = await session.list_tools()
    holders = await session.call_tool("holders", {"trace": trace})
    explained = await session.call_tool("explain", {"message": message})
    failed = await session.call_tool("report", {"trace": "/no/such.ftrace"})
    return {
        "tools": [tool.name for tool in tools.tools],
        "holders": json.loads(holders.content[0].text),
        "explained": json.loads(explained.content[0].text),
        "failed": [failed.is_error, failed.content[0].text],
    }


async def main(analyzer, trace, message):
    server = StdioServerParameters(command=analyzer, args=["mcp"])
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        version = (await session.initialize()).protocol_version
        found = await ask(session, trace, message)
    async with Client(server) as client:
        again = await ask(client, trace, message)
    print(json.dumps({"version": version, "session": found, "client": again}))


asyncio.run(main(*sys.argv[1:]))
