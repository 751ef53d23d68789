"""What scorers answer: a number, probabilities, a label or a list of labelled scores, as a score and a decision."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from likewise.core.errors import ModelError, bad_parameter

__all__ = ["plain_reply", "score_of_reply"]


def plain_reply(reply: Any) -> Any:
    """Return a reply as plain JSON values, as it goes to the cache.

    Examples
    --------
    >>> import numpy as np
    >>> plain_reply(np.float32(0.5)), plain_reply(np.array([[0.25, 0.75]])), plain_reply("yes")
    (0.5, [0.25, 0.75], 'yes')
    """
    if hasattr(reply, "detach"):  # a torch tensor, without importing torch
        reply = reply.detach().cpu().numpy()
    if isinstance(reply, (np.ndarray, np.generic)):
        reply = np.asarray(reply).squeeze().tolist()
    if isinstance(reply, (list, tuple)):
        values = [plain_reply(value) for value in reply]
        return values[0] if len(values) == 1 and isinstance(values[0], list) else values
    if isinstance(reply, dict):
        return {str(key): plain_reply(value) for key, value in reply.items()}
    if reply is None or isinstance(reply, (bool, int, float, str)):
        return reply
    raise ModelError(
        f"The scorer answered with {type(reply).__name__}; a number, probabilities or a label is needed."
    )


def score_of_reply(
    reply: Any, *, positive: Any = None, threshold: float | None = None
) -> tuple[float, str | None]:
    """Return the score and the decision that a reply stands for.

    Parameters
    ----------
    reply : plain JSON value
        A number; a list of probabilities; a label; or a list of ``{"label": …, "score": …}``.
    positive : label or int, optional
        The label whose score counts; of a list of probabilities, its place (the last by default).
    threshold : float, optional
        A score at least this large is decided "yes". Needed for decisions from numbers.

    Examples
    --------
    >>> score_of_reply(7, threshold=5), score_of_reply([0.2, 0.8]), score_of_reply("good", positive="good")
    ((7.0, 'yes'), (0.8, '1'), (1.0, 'good'))
    """
    decision: str | None = None
    if isinstance(reply, dict):
        reply = [reply]
    if isinstance(reply, str) or reply is None:
        if positive is None:
            raise bad_parameter(
                "audit_texts", "positive", allowed="the label that counts as 1, where the scorer answers labels",
                got=None,
            )  # fmt: skip
        score, decision = float(reply == positive), str(reply)
    elif isinstance(reply, list) and reply and all(isinstance(one, dict) for one in reply):
        score, decision = _labelled(reply, positive)
    elif isinstance(reply, list):
        if not reply or not all(isinstance(one, (int, float)) for one in reply):
            raise ModelError(f"The scorer answered {reply!r}; a list of probabilities is needed.")
        place = len(reply) - 1 if positive is None else int(positive)
        score, decision = float(reply[place]), str(int(np.argmax(reply)))
    else:
        score = float(reply)
    if not math.isfinite(score):
        raise ModelError(f"The scorer answered {reply!r}, which is not finite.")
    if threshold is not None:
        decision = "yes" if score >= threshold else "no"
    return score, decision


def _labelled(reply: list[dict[str, Any]], positive: Any) -> tuple[float, str]:
    try:
        scores = {one["label"]: float(one["score"]) for one in reply}
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"The scorer answered {reply!r}; label and score of each are needed.") from error
    if positive not in scores:
        raise ModelError(
            f"The scorer gave scores of {', '.join(map(str, scores))}, not of positive={positive!r}. Let it give all "
            "labels (transformers: top_k=None)."
        )
    return scores[positive], str(max(scores, key=lambda label: scores[label]))
