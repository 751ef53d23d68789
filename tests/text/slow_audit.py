"""An audit over HTTP in a process of its own, to be killed: slow_audit.py URL CACHE."""

import sys
import urllib.request

from likewise.text import CallLimits, NameSwap, audit_texts

TEXTS = [f"Emily has {n} years of practice." for n in range(12)]
EDITS = [
    NameSwap(names=("Lakisha",), gender="female"),
    NameSwap(names=("Aisha",), gender="female", label="name_two"),
]


def scorer_at(url):
    def score(text):
        request = urllib.request.Request(url, data=text.encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as reply:
            return float(reply.read())

    return score


def run(url, cache, **limits):
    waits = {"first_wait": 0.001, "longest_wait": 0.01}
    return audit_texts(
        scorer_at(url),
        TEXTS,
        edits=EDITS,
        placebos=[],
        cache=cache,
        name="fake",
        limits=CallLimits(**(waits | limits)),
    )


if __name__ == "__main__":
    run(*sys.argv[1:3])
