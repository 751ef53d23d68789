"""`audit -o FOLDER/` and `replay`: the figures come again, and what has changed or is not asked for is refused."""

import contextlib
import hashlib
import json
import shutil

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _here(files_in_this_process):
    """Model files are loaded in this process."""


@pytest.fixture(scope="module")
def audited(tmp_path_factory, table, model):
    """A folder with a model, a table and the evidence of an audit of them, made once."""
    from likewise.cli.app import main

    folder = tmp_path_factory.mktemp("audited")
    shutil.copy(table, folder / "people.csv")
    shutil.copy(model, folder / "model.safetensors")
    with contextlib.chdir(folder), pytest.raises(SystemExit) as ended:
        main([
            "audit", "model.safetensors", "people.csv", "--target", "paid", "--sensitive", "sex", "--sensitive", "job",
            "--metric", "columns", "--set", "search=candidates", "--eps", "0", "--delta", "0.01", "--seed", "3",
            "-o", "evidence/", "-q",
        ])  # fmt: skip
    assert ended.value.code == 1
    return folder


@pytest.fixture
def evidence(run, tmp_path, audited):
    """The same as copies that a test may spoil, in the current folder."""
    shutil.copytree(audited, tmp_path, dirs_exist_ok=True)
    return tmp_path / "evidence" / "evidence.json"


def edit(path, change):
    """Change the evidence as somebody would who also writes its digest."""
    from likewise.core.files import sealed
    from likewise.core.plain import to_json

    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(to_json(sealed(document)), encoding="utf-8")


def test_every_file_that_was_read_or_written_is_compared(run, tmp_path, audited):
    """The file of --config could be changed; a folder could be added."""
    shutil.copytree(audited, tmp_path, dirs_exist_ok=True)
    (tmp_path / "options.toml").write_text('target = "paid"\n')
    words = ["model.safetensors", "people.csv", "--sensitive", "sex", "--config", "options.toml"]
    assert run("audit", *words, "-o", "second/", "-q").code == 0
    (tmp_path / "options.toml").write_text('target = "paid" \n')
    done = run("replay", "second")
    assert (done.code, "config" in done.err) == (2, True)
    (tmp_path / "options.toml").write_text('target = "paid"\n')
    (tmp_path / "second" / "more").mkdir()
    done = run("replay", "second")
    assert (done.code, "'more'" in done.err) == (2, True)


def test_a_signature_says_who_made_the_evidence(run, tmp_path, audited):
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    from cryptography.hazmat.primitives import serialization as keys

    shutil.copytree(audited, tmp_path, dirs_exist_ok=True)
    for name in ("own", "other"):
        key = ed25519.Ed25519PrivateKey.generate()
        pem, plain = keys.Encoding.PEM, keys.NoEncryption()
        private = key.private_bytes(pem, keys.PrivateFormat.PKCS8, plain)
        public = key.public_key().public_bytes(pem, keys.PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / f"{name}.pem").write_bytes(private)
        (tmp_path / f"{name}.pub").write_bytes(public)
    words = ["audit", "model.safetensors", "people.csv", "--target", "paid", "--sensitive", "sex", "-q"]
    assert "-o FOLDER/" in run(*words, "--sign", "own.pem").err
    for wrong in ("own.pub", "people.csv", "none.pem"):
        done = run(*words, "-o", "signed/", "--sign", wrong)
        assert (done.code, "openssl genpkey" in done.err, (tmp_path / "signed").exists()) == (2, True, False)
    assert run(*words, "-o", "signed/", "--sign", "own.pem").code == 0
    assert run("replay", "signed", "--verify-key", "own.pub").code == 0
    assert "another key" in run("replay", "signed", "--verify-key", "other.pub").err
    assert "by nobody" in run("replay", "evidence", "--verify-key", "own.pub").err
    signature = tmp_path / "signed" / "evidence.json.sig"
    data = bytearray(signature.read_bytes())
    data[0] ^= 1
    signature.write_bytes(data)
    assert "is not the signature" in run("replay", "signed").err
    signature.unlink()
    assert "evidence.json.sig" in run("replay", "signed").err
    # Whoever writes other evidence, digests and all, cannot write its signature.
    run(*words, "-o", "signed/", "--sign", "own.pem", "--force")
    edit(tmp_path / "signed" / "evidence.json", lambda d: d.update(name="another"))
    done = run("replay", "signed", "--verify-key", "own.pub")
    assert (done.code, "is not the signature" in done.err) == (2, True)


def test_the_figures_come_again_and_a_changed_one_is_seen(run, evidence, people):
    document = json.loads(evidence.read_text(encoding="utf-8"))
    assert document["run"]["options"]["seed"] == ["3"]
    assert document["run"]["options"]["sensitive"] == ["sex", "job"]
    assert [one["attribute"] for one in document["impact"]] == ["sex", "job", "sex × job"]
    assert sum(row["people"] for row in document["impact"][0]["rows"]) == len(people)
    done = run("replay", evidence)
    assert (done.code, done.out.strip()) == (
        0,
        f"Repeated: all {len(document['figures'])} figures are the same.",
    )
    edit(
        evidence,
        lambda d: d["figures"].update({"numbers.gap.value": d["figures"]["numbers.gap.value"] + 1e-3}),
    )
    done = run("replay", evidence)
    assert done.code == 1
    assert "Different: 1 of" in done.out
    assert "numbers.gap.value" in done.out


def test_changed_or_missing_files_are_named_before_anything_runs(run, evidence, tmp_path, monkeypatch):
    def never(*given, **choices):
        raise AssertionError("a file was loaded")

    monkeypatch.setattr("likewise.models.model_files.read_model", never)
    assert "read no file of its metric" in run("replay", evidence, "--metric", "odd").err
    people = tmp_path / "people.csv"
    text = people.read_text(encoding="utf-8")
    people.write_text(text + text.splitlines()[-1] + "\n", encoding="utf-8")
    done = run("replay", evidence)
    assert done.code == 2
    assert "The table 'people.csv' is not the one that was audited" in done.err
    people.rename(tmp_path / "moved.csv")
    done = run("replay", evidence)
    assert done.code == 2
    assert "The table 'people.csv' is not there. Say where it is now: --table." in done.err
    (tmp_path / "moved.csv").write_text(text, encoding="utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"another")
    done = run("replay", evidence, "--table", "moved.csv")
    assert done.code == 2
    assert "The model 'model.safetensors' is not the one that was audited" in done.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["run"]["options"].update({"trust": ["pickle"]}), "'--trust', which a replay never"),
        (lambda d: d["run"]["options"].update({"config": ["evil.toml"]}), "'--config', which a replay never"),
        (lambda d: d["run"]["options"].update({"output": ["page.html"]}), "'--output', which a replay never"),
        (lambda d: d["run"]["options"].update({"engine": ["dask:tcp://x:1"]}), "'--engine', which a replay never"),
        (lambda d: d["run"]["options"].update({"set": ["search=--output=x"]}), "refuses: Invalid value for '--set'"),
        (lambda d: d["run"]["inputs"]["model"].update(path="antigravity:x", sha256=None), "which is code"),
        (lambda d: d["run"]["inputs"]["table"].update(path="/proc/kcore"), "outside the current folder"),
        (lambda d: d["run"]["inputs"]["model"].update(path="../model.onnx"), "outside the current folder"),
        (lambda d: d["run"]["inputs"]["table"].update(path="a\0b"), "outside the current folder"),
        (
            lambda d: (
                d["run"]["inputs"].update(metric={"path": "/etc/passwd", "sha256": "0"}),
                d["run"]["options"].update(metric=["/etc/passwd"]),
            ),
            "names a metric outside the current folder",
        ),
        (
            lambda d: (
                d["run"]["inputs"].update({"file of rules /dev/zero": {"path": "/dev/zero", "sha256": "0"}}),
                d["run"]["options"].update(rules=["/dev/zero"]),
            ),
            "names a file of rules /dev/zero outside the current folder",
        ),
        (lambda d: d["run"]["options"].update(metric=["/etc/passwd"]), "different files for its metric"),
        (lambda d: d.update(run=None), "does not say how the audit was run"),
        (lambda d: d["run"].update(verb="train"), "must be one of 'audit'"),
    ],
)  # fmt: skip
def test_evidence_of_a_stranger_runs_nothing_it_should_not(run, evidence, change, said):
    edit(evidence, change)
    done = run("replay", evidence)
    assert done.code == 2
    assert said in done.err


def test_evidence_is_refused_before_work_where_something_else_stands(run, tmp_path, table, model):
    (tmp_path / "evidence").mkdir()
    done = run("audit", model, table, "--target", "paid", "--sensitive", "sex", "-o", "evidence/")
    assert done.code == 2
    assert "holds no evidence" in done.err


def test_people_who_do_not_tell_are_counted_as_unknown(run, tmp_path, people):
    from sklearn.linear_model import LogisticRegression
    from skops.io import dump

    dump(LogisticRegression().fit(people[["age", "hours"]], people["paid"]), tmp_path / "model.skops")
    silent = people.assign(sex=np.where(people.index < 7, None, people["sex"]))
    silent.to_csv(tmp_path / "silent.csv", index=False)
    done = run(
        "audit", "model.skops", "silent.csv", "--target", "paid", "--sensitive", "sex", "--eps", "0",
        "--set", "search=candidates", "-o", "evidence/", "-q", "--force",
    )  # fmt: skip
    assert done.code == 0, done.err
    document = json.loads((tmp_path / "evidence" / "evidence.json").read_text(encoding="utf-8"))
    (table,) = document["impact"]
    assert table["unknown"] == 7
    assert sum(row["people"] for row in table["rows"]) == len(people) - 7


def test_impact_ratios_are_of_the_favourable_decision(run, tmp_path, table, model, people):
    """Broke once: the second class was taken for selected, whatever was named as favourable."""
    import likewise as lw

    asked = ("--sensitive", "sex", "--favourable", "no", "-o", "evidence/", "-q")
    assert run("audit", model, table, *asked).code == 0
    document = json.loads((tmp_path / "evidence" / "evidence.json").read_text(encoding="utf-8"))
    decided = np.asarray(lw.load_model(model).predict(people.drop(columns="paid")))
    for row in document["impact"][0]["rows"]:
        inside = (people["sex"] == row["category"]).to_numpy()
        assert row["selected"] == (decided[inside] == "no").sum()


def test_a_link_beside_the_model_does_not_tell_of_a_file_elsewhere(run, evidence, tmp_path, tmp_path_factory):
    """Twelve digits of the digest of any file were told."""
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_text("secret")
    (tmp_path / "model.safetensors.more").symlink_to(secret)
    done = run("replay", evidence)
    assert done.code == 2
    assert "outside the current folder" in done.err
    assert hashlib.sha256(b"secret").hexdigest()[:8] not in done.err
