"""`python -m bench.backend.catalog`: a server on standard input and output with three hundred tools of many trades.

One of them is asked for: `billing_get_invoice`. All answer with a record of some six hundred bytes, as such tools do.
"""

import json
import sys
from typing import Any

TRADES = ("billing", "calendar", "catalog", "contacts", "deploys", "files", "issues", "mail", "metrics", "orders")
VERBS = ("archive", "create", "delete", "get", "list", "move")
THINGS = ("invoice", "note", "label", "report", "record")
PLURAL = {"list"}


def tools() -> list[dict[str, Any]]:
    return [_tool(trade, verb, thing) for trade in TRADES for verb in VERBS for thing in THINGS]


def _tool(trade: str, verb: str, thing: str) -> dict[str, Any]:
    many = f"all {thing}s" if verb in PLURAL else f"one {thing} by its id"
    return {
        "name": f"{trade}_{verb}_{thing}",
        "description": f"{verb.capitalize()} {many} in the {trade} system. Needs the right to {verb} there.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": f"The id of the {thing}, as the {trade} system shows it"},
                "fields": {"type": "array", "items": {"type": "string"}, "description": "Which fields to return"},
                "dry_run": {"type": "boolean", "description": "Only say what would be done"},
            },
            "required": ["id"],
        },
    }


def _record(arguments: dict[str, Any]) -> dict[str, Any]:
    name = str(arguments.get("id", ""))
    number = int(name.rpartition("-")[2] or 0)
    return {
        "id": name,
        "total": 100 + number * 7,
        "currency": "EUR",
        "status": "paid" if number % 3 else "open",
        "customer": {"name": f"Customer {number}", "address": f"{number} Example Road", "city": "Springfield"},
        "lines": [{"article": f"A-{number}-{line}", "amount": line, "price": 7.5} for line in range(1, 6)],
        "notes": "Thank you for your order. Please pay within thirty days, and name the number of this invoice.",
    }


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        facts = {"serverInfo": {"name": "catalog", "version": "1"}, "capabilities": {"tools": {}}}
        return {"protocolVersion": params["protocolVersion"], **facts}
    if method == "tools/list":
        return {"tools": tools()}
    record = _record(params.get("arguments") or {})
    return {"content": [{"type": "text", "text": json.dumps(record)}], "structuredContent": record}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, reply = message["method"], {"jsonrpc": "2.0", "id": message["id"]}
        if method in ("initialize", "tools/list", "tools/call", "ping"):
            reply["result"] = answer(method, message.get("params") or {}) if method != "ping" else {}
        else:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
