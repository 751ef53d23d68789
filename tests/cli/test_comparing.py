"""`likewise improve --compare`: models side by side, searched by the same means."""

import likewise as lw


def test_models_with_and_without_gradients_are_searched_alike():
    """Broke once: gaps by candidates stood beside gaps by gradient, .054 and .137 for the same network."""
    import torch

    from likewise.cli.improve import Setting, _searched_alike
    from likewise.models.matching import Matched

    notes = []

    class Notes:
        def note(self, text):
            notes.append(text)

    setting = Setting(None, None, None, None, {}, "auto", {})
    net = Matched(lw.as_model(torch.nn.Linear(2, 2)), None, ())
    rule = Matched(lw.as_model(lambda X: X[:, 0]), None, ())
    assert _searched_alike(setting, {"net": net}, Notes()).search == "auto"
    assert _searched_alike(setting, {"rule": rule}, Notes()).search == "auto"
    assert notes == []
    assert _searched_alike(setting, {"net": net, "rule": rule}, Notes()).search == "candidates"
    assert "rule has no gradient" in notes[0]
