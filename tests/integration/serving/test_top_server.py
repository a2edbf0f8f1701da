"""`fragtrace top --serve`: its figures, and clients that ask for other things or ask badly."""

import contextlib
import json
import os
import re
import socket
import time

import real_process
from metrics import figures, get, recorded_process, server
from real_process import LAUNCHER, MIB


def raw(port, data, timeout=30):
    """Everything that the server answers to these bytes, until it closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        connection.sendall(data)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                answer += piece
        return answer


class TopServer(real_process.RealProcessTest):
    def wait_until(self, holds):
        end = time.monotonic() + 30
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def test_figures_equal_those_of_top_and_count_failed_requests(self):
        steps = ["alloc=67108864", "alloc=1048576", "refused", "refused"]
        with recorded_process(self.folder, *steps, RANK=3) as process, server("--serve", ":0") as found:
            _, port, said = found
            self.assertIn("every user of this machine", said)
            self.assertIn("No command lines, no host names, no sources", said)
            status, headers, text = get(port)
            self.assertEqual(status, 200)
            self.assertEqual(headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            labels = f'process="{process.pid}",rank="3"'
            of = {name: value for (name, owner), value in figures(text).items() if owner.startswith(labels)}
            done = self.run_well([LAUNCHER, "top", process.pid, "--once", "--json"])
            (line,) = map(json.loads, done.stdout.splitlines())
            self.assertEqual(of["fragtrace_allocated_bytes"], line["allocated_bytes"])
            self.assertEqual(of["fragtrace_allocated_bytes"], 65 * MIB)
            self.assertEqual(of["fragtrace_reserved_bytes"], line["reserved_bytes"])
            self.assertEqual(of["fragtrace_largest_free_block_bytes"], line["largest_hole_bytes"])
            self.assertEqual(of["fragtrace_ooms_total"], 2)
            self.assertEqual(of["fragtrace_retries_total"], 0)
            self.assertEqual(of["fragtrace_events_lost_total"], 0)
            self.assertEqual(of["fragtrace_events_total"], line["events"])
            # The card has 1 GiB, of which the context takes 128 MiB. The driver gives pages of 2 MiB.
            self.assertAlmostEqual(of["fragtrace_headroom_bytes"], (1024 - 128 - 65) * MIB, delta=4 * MIB)
            self.assertNotIn(os.uname().nodename, text)
            self.assertNotIn("client.py", text)

    def test_jobs_on_different_cards_have_different_labels_although_both_see_device_0(self):
        cards = {}
        for visible in ("0", "1"):
            variables = {"card": "1GiB,count=2", "CUDA_VISIBLE_DEVICES": visible}
            with recorded_process(self.folder, "alloc=4096", **variables) as process:
                with server(str(process.pid), "--serve", ":0") as (_, port, _):
                    owners = {labels for name, labels in figures(get(port)[2]) if name.endswith("ed_bytes")}
                (labels,) = owners
                self.assertIn('device="0"', labels)
                cards[visible] = re.search('uuid="(GPU-[^"]+)"', labels)[1]
        self.assertNotEqual(cards["0"], cards["1"])

    def test_a_mistyped_option_is_named_and_not_the_word_after_it(self):
        for arguments, said in (
            (["--srve", ":1"], "--srve is no option; did you mean '--serve'?"),
            ([":1"], "':1' is no process id; give a number such as 4711"),
            (["0"], "'0' is no process id"),
        ):
            done = self.run_well([LAUNCHER, "top", *arguments], 2)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_processes_appear_and_disappear(self):
        with server("--serve", ":0") as (_, port, _):
            with recorded_process(self.folder, "alloc=4096") as process:
                mine = f'process="{process.pid}"'
                self.wait_until(lambda: mine in get(port)[2])
            self.wait_until(lambda: mine not in get(port)[2])

    def test_with_a_process_id_it_ends_with_the_process(self):
        with contextlib.ExitStack() as stack:
            process = stack.enter_context(recorded_process(self.folder, "alloc=4096"))
            stack.enter_context(recorded_process(self.folder, "alloc=8192"))
            top, port, said = stack.enter_context(server(str(process.pid), "--serve", "127.0.0.1:0"))
            self.assertIn(f"process {process.pid}", said)
            owners = {re.match(r'process="(\d+)"', labels)[1] for _, labels in figures(get(port)[2])}
            self.assertEqual(owners, {str(process.pid)})
            process.kill()
            self.assertEqual(top.wait(timeout=30), 0)

    def test_other_paths_methods_and_hosts_are_refused(self):
        with server("--serve", ":0") as (_, port, _):
            for path in ("/", "/metrics/", "/etc/passwd", "/../metrics", "//metrics", "*"):
                self.assertEqual(get(port, path)[0], 404, path)
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD"):
                self.assertEqual(get(port, method=method)[0], 405, method)
            self.assertEqual(get(port, "/metrics?name=x")[0], 200)
            self.assertEqual(get(port, headers={"Host": "rebound.example.org"})[0], 403)
            for host in ("localhost", f"localhost:{port}", "127.0.0.1", "[::1]:80", "LOCALHOST"):
                self.assertEqual(get(port, headers={"Host": host})[0], 200, host)

    def test_bad_requests_are_answered_or_dropped_and_the_next_one_is_served(self):
        with server("--serve", ":0") as (_, port, _):
            self.assertIn(b" 400 ", raw(port, b"hello\r\n\r\n"))
            self.assertIn(b" 400 ", raw(port, b"\r\n\r\n"))
            self.assertIn(b" 400 ", raw(port, b"GET /metrics HTTP/2.0\r\n\r\n"))
            self.assertIn(b" 400 ", raw(port, b"\0" * 100 + b"\r\n\r\n"))
            self.assertIn(b" 431 ", raw(port, b"GET /metrics HTTP/1.1\r\nA: " + b"a" * 9000))
            self.assertIn(b" 200 ", raw(port, b"GET /metrics HTTP/1.0\r\n\r\n"))
            with contextlib.suppress(OSError):
                raw(port, b"GET /metrics HTTP/1.1\r\nA: " + b"a" * (50 * MIB))
            self.assertEqual(get(port)[0], 200)

    def test_slow_and_silent_clients_are_dropped_after_five_seconds(self):
        with server("--serve", ":0") as (_, port, _):
            begin = time.monotonic()
            silent = socket.create_connection(("127.0.0.1", port), timeout=30)
            slow = socket.create_connection(("127.0.0.1", port), timeout=30)
            slow.sendall(b"GET /metrics")
            self.assertEqual(get(port)[0], 200)
            self.assertLess(time.monotonic() - begin, 4)
            for connection in (silent, slow):
                self.assertEqual(connection.recv(1), b"")
                connection.close()
            self.assertGreater(time.monotonic() - begin, 4)

    def test_many_connections_wait_for_their_turn_and_take_no_descriptors(self):
        with server("--serve", ":0") as (top, port, _):
            connections = []
            with contextlib.suppress(OSError):
                for _ in range(200):
                    connections.append(socket.create_connection(("127.0.0.1", port), timeout=1))
            time.sleep(0.5)
            self.assertLess(len(os.listdir(f"/proc/{top.pid}/fd")), 50)
            for connection in connections:
                connection.close()
            self.assertEqual(get(port)[0], 200)

    def test_a_client_that_does_not_read_does_not_stop_others(self):
        with server("--serve", ":0") as (_, port, _):
            lazy = socket.create_connection(("127.0.0.1", port), timeout=30)
            self.addCleanup(lazy.close)
            lazy.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            self.assertEqual(get(port)[0], 200)

    def test_addresses(self):
        with server("--serve", "0.0.0.0:0") as (_, port, said):
            self.assertIn("everybody who can reach this address", said)
            self.assertEqual(get(port, headers={"Host": "node7.example.org"})[0], 200)
        for where in ("9464", "name:9464", ":x", ":70000", "[::1:80", "1.2.3:4", ""):
            done = self.run_well([LAUNCHER, "top", f"--serve={where}"], 2)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for more in ("--once", "--json"):
            self.run_well([LAUNCHER, "top", "--serve", ":0", more], 2)
        with server("--serve", ":0") as (_, port, _):
            done = self.run_well([LAUNCHER, "top", "--serve", f":{port}"], 2)
            self.assertIn("cannot listen", done.stderr)


if __name__ == "__main__":
    real_process.main()
