"""A disk that is full, in every verb that writes: a sentence, exit code 2, and nothing half written."""

import pytest

resource = pytest.importorskip("resource")

TOLD = ("--target", "paid", "--sensitive", "sex")
VERBS = {
    "inspect": ("inspect", "{table}", "-o", "out/columns.toml"),
    "datasets": ("datasets", "german", "-o", "out/german.csv"),
    "learn-metric": ("learn-metric", "{table}", *TOLD, "--no-diagnose", "-o", "out/metric.safetensors"),
    "train": ("train", "{table}", *TOLD, "--method", "baseline", "--steps", "2", "-o", "out/m.safetensors"),
    "page": ("audit", "{model}", "{table}", *TOLD, "-o", "out/a.html"),
    "result": ("audit", "{model}", "{table}", *TOLD, "-o", "out/a.json"),
    "evidence": ("audit", "{model}", "{table}", *TOLD, "-o", "out/evidence/"),
    "cache": ("audit-texts", "{table}", "--text", "job", "--scorer", "math:sqrt", "--names", "black-female", "--names",
              "white-female", "--cache", "out/replies"),
    "verify": ("verify", "{model}", "{table}", "--sensitive", "sex", "--budget-seconds", "0.2", "-o", "out/v.csv"),
    "person": ("person", "{model}", "{table}", *TOLD, "--row", "5", "--budget-seconds", "0.2", "-o", "out/p.html"),
    "recourse": ("recourse", "{model}", "{table}", *TOLD, "--sample", "2", "--budget-seconds", "0.1", "-o", "out/r.html"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(files_in_this_process):
    """Model files are loaded in this process."""


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_is_a_sentence_and_leaves_nothing(verb, run, table, model, tmp_path, monkeypatch):
    """`train` ended with "something unforeseen". A limit on the size of files stands for the disk."""
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "compiled"))
    words = [word.format(table=table, model=model) for word in VERBS[verb]]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        done = run(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (done.code, done.err.count("Error: "), "unforeseen" in done.err) == (2, 1, False), done.err
    # The remedy was to remove the replies, which may have been paid for.
    assert "not a file of replies" not in done.err
    assert [path.name for path in (tmp_path / "out").rglob("*")] == []
