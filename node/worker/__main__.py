"""The worker process, started by the gate with its order on standard input."""

import sys

from reflexarc.node.worker.main import main

sys.exit(main(sys.stdin.buffer.readline()))
