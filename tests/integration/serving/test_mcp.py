"""`fraganalyze mcp`: its answers, line by line, and clients that send other things than requests."""

import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import real_process
from real_process import ANALYZER, SOURCE, environment

CLIENT = SOURCE / "tests" / "integration" / "process_life" / "client.py"
CARD = "1GiB,context=0"
MESSAGE = "CUDA out of memory. Tried to allocate 664.00 MiB. GPU 0 has a total capacity of 3.50 GiB"
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def call(number, tool, **arguments):
    return request(number, "tools/call", name=tool, arguments=arguments)


class Mcp(real_process.RealProcessTest):
    def exchange(self, *lines, timeout=120):
        """The answers to these lines. A line is bytes, or an object to send as JSON."""
        sent = b"".join(
            line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines
        )
        done = subprocess.run(
            [ANALYZER, "mcp"], input=sent, capture_output=True, timeout=timeout, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"Answers show source lines, command lines and host names", done.stderr)
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        for answer in answers:
            self.assertEqual(answer["jsonrpc"], "2.0")
            self.assertEqual(("result" in answer) + ("error" in answer), 1)
        return answers

    def ask(self, *lines):
        """The answers after the one to `initialize`."""
        first, *rest = self.exchange(request(0, "initialize", **INITIALIZE), *lines)
        self.assertIn("result", first)
        return rest

    def tool(self, tool, expect_error=False, **arguments):
        (answer,) = self.ask(call(1, tool, **arguments))
        result = answer["result"]
        (content,) = result["content"]
        self.assertEqual(result["isError"], expect_error, content["text"][:500])
        return content["text"] if expect_error else json.loads(content["text"])

    def record(self, *, killed=False):
        ending = "kill" if killed else "return"
        before = set(real_process.traces(self.folder))
        real_process.run(
            [sys.executable, CLIENT, self.folder / "log", "50", ending], env=environment(CARD, self.folder)
        )
        (trace,) = set(real_process.traces(self.folder)) - before
        return trace

    # ---- the protocol ---------------------------------------------------------------------------

    def test_a_known_version_is_confirmed_and_an_unknown_one_gets_the_newest(self):
        for wanted, answered in (
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-11-25", "2025-11-25"),
            ("1999-01-01", "2025-11-25"),
        ):
            (answer,) = self.exchange(request(7, "initialize", **INITIALIZE | {"protocolVersion": wanted}))
            self.assertEqual(answer["id"], 7)
            self.assertEqual(answer["result"]["protocolVersion"], answered)
            self.assertIn("command lines, host names", answer["result"]["instructions"])

    def test_the_tools_are_read_only_and_say_what_they_show(self):
        (answer,) = self.ask(request("list", "tools/list"))
        tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
        self.assertEqual(set(tools), {"report", "holders", "whatif", "replay", "explain", "compare"})
        for name, tool in tools.items():
            self.assertTrue(tool["annotations"]["readOnlyHint"])
            self.assertIs(tool["inputSchema"]["additionalProperties"], False)
            if name in ("report", "holders", "compare"):
                self.assertIn("Shows source lines, command lines and host names", tool["description"])

    def test_bad_lines_get_errors_and_the_next_request_is_answered(self):
        deep = b"[" * 100000 + b"\n"
        cases = (
            (b"no json\n", -32700),
            (b'{"a": "\xff\xfe"}\n', -32700),
            (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"\n', -32700),
            (deep, -32700),
            (b"x" * (5 << 20) + b"\n", -32700),
            (b"7\n", -32600),
            ([request(1, "ping")], -32600),
            ({"id": 1, "method": "ping"}, -32600),
            ({"jsonrpc": "2.0", "id": 1, "method": 5}, -32600),
            ({"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}, -32600),
            (request(1, "resources/list"), -32601),
            (request(1, "tools/call", name="remove"), -32602),
            (request(1, "tools/call", name=["report"]), -32602),
            (call(1, "report"), -32602),
            (call(1, "report", trace=7), -32602),
            (call(1, "report", trace="a", html="/tmp/page.html"), -32602),
            (call(1, "report", trace="a\0b"), -32602),
            (call(1, "report", trace="a", what_if="no"), -32602),
            (request(1, "tools/call", name="report", arguments=[]), -32602),
            ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}, -32602),
        )
        for line, code in cases:
            with self.subTest(str(line)[:80]):
                answers = self.ask(line, request("after", "ping"))
                self.assertEqual([answer.get("error", {}).get("code") for answer in answers], [code, None])
                self.assertEqual(answers[1]["id"], "after")

    def test_requests_before_initialize_are_refused_but_ping_is_answered(self):
        answers = self.exchange(request(1, "tools/list"), request(2, "ping"))
        self.assertEqual(answers[0]["error"]["code"], -32002)
        self.assertEqual(answers[1]["result"], {})

    def test_notifications_answers_and_empty_lines_get_no_answer(self):
        silent = [
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}},
            {"jsonrpc": "2.0", "id": 9, "result": {}},
            b"\n",
            b"  \r\n",
        ]
        self.assertEqual(len(self.ask(*silent, request(1, "ping"))), 1)

    def test_a_last_line_without_an_end_is_not_a_request(self):
        self.assertEqual(self.ask(json.dumps(request(1, "ping")).encode()), [])

    @real_process.not_sanitized
    def test_an_endless_line_takes_bounded_memory(self):
        limit = 1 << 30
        process = subprocess.Popen(
            [ANALYZER, "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        )
        for _ in range(200):
            process.stdin.write(b"y" * (1 << 20))
        output, _ = process.communicate(b"\n" + json.dumps(request(1, "ping")).encode() + b"\n", timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertEqual([json.loads(line)["id"] for line in output.splitlines()], [None, 1])

    def test_a_client_that_leaves_ends_the_server(self):
        process = subprocess.Popen([ANALYZER, "mcp"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdin.close()
        self.assertEqual(process.wait(timeout=30), 0)

    # ---- the tools ------------------------------------------------------------------------------

    def test_each_tool_has_the_json_of_its_command(self):
        trace = self.record()
        other = self.record()
        same = {
            "report": [trace],
            "whatif": ["whatif", trace],
            "replay": ["replay", trace],
        }
        for tool, words in same.items():
            with self.subTest(tool):
                told = json.loads(self.run_well([ANALYZER, *words, "--json", "-"]).stdout)
                self.assertEqual(self.tool(tool, trace=str(trace)), told)
        told = json.loads(self.run_well([ANALYZER, "compare", trace, other, "--json", "-"]).stdout)
        self.assertEqual(self.tool("compare", before=str(trace), after=str(other)), told)
        told = json.loads(self.run_well([ANALYZER, "explain", MESSAGE, "--json", "-"]).stdout)
        found = self.tool("explain", message=MESSAGE)
        self.assertEqual(found["messages"][0]["figures"], told["messages"][0]["figures"])
        told = self.report(trace)
        holders = self.tool("holders", trace=str(trace))
        self.assertEqual(holders["devices"][0]["holders_at_peak"], told["devices"][0]["holders_at_peak"])
        self.assertEqual(holders["source"]["process"], told["source"]["process"])
        smaller = self.tool("replay", trace=str(trace), capacity="1MiB")
        self.assertEqual(smaller["capacity_bytes"], 1 << 20)

    def test_a_failed_tool_answers_with_its_one_line(self):
        self.assertIn("no such file", self.tool("report", True, trace="/no/such.ftrace").lower())
        self.assertIn("no out-of-memory message", self.tool("explain", True, message="hello"))
        trace = self.record()
        self.assertIn("12XB", self.tool("replay", True, trace=str(trace), capacity="12XB"))
        self.assertIn("not a folder", self.tool("holders", True, trace=str(trace.parent)))

    def test_rules_that_fragtrace_brings_give_categories(self):
        trace = str(self.record())
        found = self.tool("report", trace=trace, what_if=False, categories="transformers")
        self.assertEqual(found["category_rules"]["file"], "transformers")
        self.assertIn("holders", self.tool("holders", trace=trace, categories="transformers")["devices"][0])
        secret = self.folder / "secret"
        secret.write_text("host: port password\n")
        for name in (str(secret), "transformers,", ""):
            (answer,) = self.ask(call(1, "report", trace=trace, categories=name))
            self.assertEqual(
                answer["error"], {"code": -32602, "message": "categories: give one of transformers"}
            )

    def test_a_message_is_never_taken_for_a_file(self):
        log = self.folder / "log of memory"
        log.write_text(MESSAGE)
        self.tool("explain", True, message=str(log))

    def test_names_and_values_that_look_like_options_are_none(self):
        page = self.folder / "page.html"
        trace = self.record()
        for arguments in (
            {"trace": f"--html={page}"},
            {"trace": "--help"},
            {"trace": str(trace), "capacity": f"1GiB --json={page}"},
            {"trace": str(trace), "conf": f"--json={page}"},
        ):
            tool = "replay" if "conf" in arguments else "report"
            self.tool(tool, True, **arguments)
            self.assertFalse(page.exists())

    def test_a_killed_programs_ring_stays(self):
        trace = self.record(killed=True)
        rings = list(self.folder.glob("*.ring"))
        self.assertEqual(len(rings), 1)
        before = trace.read_bytes()
        found = self.tool("report", trace=str(trace))
        self.assertEqual(found["source"]["ended"], "killed")
        self.assertTrue(rings[0].exists())
        self.assertEqual(trace.read_bytes(), before)
        self.run_well([ANALYZER, trace])  # the report moves the ring: the check above can fail
        self.assertFalse(rings[0].exists())

    def test_a_tool_that_crashes_or_is_killed_leaves_the_server(self):
        trace = self.record()
        process = subprocess.Popen(
            [ANALYZER, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def send(message):
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()

        send(request(0, "initialize", **INITIALIZE))
        process.stdout.readline()
        pipe = self.folder / "pipe.csv"
        os.mkfifo(pipe)
        send(call(1, "compare", before=str(trace), after=str(pipe)))
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        end = time.monotonic() + 30
        while not children.read_text().split() and time.monotonic() < end:
            time.sleep(0.01)
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        answer = json.loads(process.stdout.readline())
        self.assertEqual((answer["id"], answer["result"]["isError"]), (1, True))
        send(request(2, "ping"))
        self.assertEqual(json.loads(process.stdout.readline()), {"jsonrpc": "2.0", "id": 2, "result": {}})
        process.stdin.close()
        process.stdout.close()


if __name__ == "__main__":
    real_process.main()
