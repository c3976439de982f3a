#!/usr/bin/env python3
"""weights_server.py: rank 0 serves weights by HTTP, the others fetch them. Rank 0 fails: it closes
its server first and ends last."""
import http.server
import threading
import time
import urllib.request

from common import RANK, publish, read_of, ready, wait_for_all


class Weights(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"1234")

    def log_message(self, *_arguments):
        pass


def serve():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Weights)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    publish("port", str(server.server_port))
    ready()
    wait_for_all()
    try:
        time.sleep(0.2)
        print({"model": 1}["optimizer"])
    finally:
        server.shutdown()
        server.server_close()
        time.sleep(0.6)  # as writing the last metrics


def fetch():
    port = read_of("port", 0)
    ready()
    wait_for_all()
    while True:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/weights", timeout=20) as answer:
            answer.read()
        time.sleep(0.01)


if __name__ == "__main__":
    serve() if RANK == 0 else fetch()
