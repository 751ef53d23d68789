"""What several rooms of tests share."""

import pytest


@pytest.fixture
def files_in_this_process(monkeypatch, request):
    """Model files are loaded here: the process of their own is tested in tests/models, and costs seconds each time."""
    if "with_trial" in request.node.name:
        return
    from likewise.models import model_files

    read = model_files.read_model

    def here(source, **choices):
        return read(source, **{**choices, "trust": True})

    def tried(source, **choices):
        return here(source, sidecar=False, **choices)

    monkeypatch.setattr(model_files, "read_model", here)
    for room in ("estimators.boosting_files", "postprocessing.wrapped_models"):
        monkeypatch.setattr(f"likewise.{room}.read_tried", tried)
