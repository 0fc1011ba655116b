"""`serve`: the store as a page on this machine."""

from __future__ import annotations

import argparse

from agentsignals.cli.verb import Verb


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=int, metavar="N", help="where to listen (default 8321, or any free one; 0: any free one)"
    )
    parser.add_argument("--open", action="store_true", help="open it in the browser")


def run(options: argparse.Namespace) -> int:
    """Serves until Ctrl-C, which is how it ends."""
    from agentsignals.cli.output import json_text
    from agentsignals.ui.server import started

    with started(options.store, options.port) as server:
        if options.json:
            print(json_text({"url": server.url, "store": str(server.readings.folder)}), flush=True)
        else:
            print(f"{server.url}  serves {server.readings.folder}; Ctrl-C ends it", flush=True)
        if options.open:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


VERB = Verb("serve", "the store as a web page on 127.0.0.1, read only", "serve --open", arguments, run)
