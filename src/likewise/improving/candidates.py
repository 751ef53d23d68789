"""Candidates for a fairer model: logistic regression, boosted trees, networks, and the user's own model."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from likewise.auditing.case import match_people, table_model
from likewise.auditing.sources import loaded_model
from likewise.core.errors import InputError, is_installed
from likewise.core.messages import Message
from likewise.core.plain import plain_settings
from likewise.data.case import People, plans_of
from likewise.improving.people import SplitData
from likewise.mitigation.twin_consensus import TwinConsensus
from likewise.models.model import Model, libraries_of

# The contract of a candidate: a name, how it is trained, and what to say about it.


class Candidate(ABC):
    """One way to get a model.

    Subclasses are small frozen dataclasses: they can be sent to a worker process, and `fit` depends on nothing but
    their fields, the people and the seed.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from likewise.improving import improve
    >>> from dataclasses import dataclass
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> random = np.random.default_rng(0)
    >>> people = pd.DataFrame(random.normal(size=(200, 2)), columns=["skill", "talk"])
    >>> people["sex"] = random.choice(["F", "M"], 200)
    >>> hired = (people["skill"] + (people["sex"] == "M") > 0.5).astype(int)
    >>> @dataclass(frozen=True)
    ... class SkillOnly(Candidate):
    ...     name = "skill only"
    ...     note = "Logistic regression of one column."
    ...     def settings(self, data):
    ...         return {}
    ...     def fit(self, data, rows, *, seed):
    ...         one = make_column_transformer(("passthrough", ["skill"]))
    ...         return make_pipeline(one, LogisticRegression()).fit(data.frame.iloc[rows], data.labels[rows])
    >>> result = improve(people, hired, sensitive_features=["sex"], candidates=[SkillOnly()], folds=2)
    >>> result.chosen, result.frame["changed decisions"].item()
    ('skill only', 0.0)
    """

    # How tables and pages call it, and one sentence about what it does.
    name: str
    note: str
    # Whether `fit` trains; else the model is ready and only asked.
    trained: ClassVar[bool] = True
    # Whether it is a linear model, which pictures mark.
    linear: ClassVar[bool] = False

    @property
    def suffix(self) -> str:
        """Ending of the model's file."""
        return ".safetensors"

    @abstractmethod
    def settings(self, data: SplitData) -> dict[str, Any]:
        """Return everything that determines the model besides the people and the seed, as JSON values."""

    @abstractmethod
    def fit(self, data: SplitData, rows: Any, *, seed: int) -> Any:
        """Return a model trained on some rows of the table; its `predict` takes the raw table."""

    def cost(self, n_people: int) -> float:
        """Return about how many CPU seconds a training takes, for the order of work and the time left."""
        return 1.0 + n_people / 5000


# The consensus of counterparts over a model, on the split data's sensitive columns and edits.


def twin_consensus(model: Any, data: SplitData) -> TwinConsensus:
    """Return a fitted model that answers for all twins of a person alike."""
    wrapped = TwinConsensus(
        model,
        sensitive_features={name: list(values) for name, values in data.twin_values.items()},
        edits=list(data.edits) or None,
    )
    return wrapped.fit(data.frame.iloc[data.train])


# Simple models: logistic regression, its regularisation chosen by cross-validation.

_REGULARISATIONS = (0.001, 0.01, 0.1, 1.0, 10.0)
_INNER_FOLDS = 3


@dataclass(frozen=True)
class LogisticCandidate(Candidate):
    """Logistic regression of all columns, or without the sensitive ones."""

    name: str
    note: str
    blind: bool

    suffix = ".skops"
    linear: ClassVar[bool] = True

    def settings(self, data: SplitData) -> dict[str, Any]:
        """Whether it is blind; the rest is fixed."""
        return {"blind": self.blind, "C": list(_REGULARISATIONS), "folds": _INNER_FOLDS}

    def fit(self, data: SplitData, rows: Any, *, seed: int) -> Any:
        """Choose the regularisation by the cross-validated log loss, and train on all rows."""
        from sklearn.compose import make_column_transformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        frame = data.frame.iloc[rows]
        used = [name for name in frame if not (self.blind and name in data.sensitive)]
        numbers = [name for name in used if frame[name].dtype.kind in "biuf"]
        words = [name for name in used if name not in numbers]
        encoder = make_column_transformer(
            (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words)
        )
        search = GridSearchCV(
            LogisticRegression(class_weight="balanced", max_iter=2000),
            {"C": list(_REGULARISATIONS)},
            scoring="neg_log_loss",
            cv=StratifiedKFold(_INNER_FOLDS, shuffle=True, random_state=seed),
        )
        search.fit(encoder.fit_transform(frame), data.labels[rows])
        found = make_pipeline(encoder, search.best_estimator_)
        return twin_consensus(found, data) if self.blind and data.edits else found


# Boosted trees: plain, with the consensus of counterparts, and fair at several strengths.


PENALTIES = (0.5, 1.5, 4.0)
DEPTHS = (1, 2, 4, 6)
# People held out in turn to choose the depth and the number of rounds.
_TRIALS, _HELD_OUT = 3, 0.25
# More people do not make the choice of a depth better, and are enough to hold some out for the number of rounds.
MOST_TO_TUNE = 6000
# What was found for a table, since several candidates are the same trees.
_TUNED: WeakKeyDictionary[SplitData, dict[Any, tuple[int, int]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class BoostingCandidate(Candidate):
    """Boosted trees, as `FairBoostingClassifier` grows them; of several depths the best on people held out."""

    name: str
    note: str
    blind: bool = True
    consensus: bool = False
    choices: Mapping[str, Any] = field(default_factory=dict)
    depths: tuple[int, ...] = ()

    suffix = ".ubj"

    def settings(self, data: SplitData) -> dict[str, Any]:
        """Every parameter of the trees but the metric, which is the split data's."""
        stored = plain_settings(self._estimator(data, 0).set_params(metric=None))
        return {"consensus": self.consensus, "depths": list(self.depths), "estimator": stored}

    def fit(self, data: SplitData, rows: Any, *, seed: int) -> Any:
        """Grow the trees, as deep and as many as are best for people held out."""
        grown = self._estimator(data, seed)
        if len(rows) <= MOST_TO_TUNE or self.depths:
            depth, rounds = self._tuned(data, rows, seed)
            grown.set_params(max_depth=depth)
            if len(rows) <= MOST_TO_TUNE:
                grown.set_params(n_estimators=rounds, validation=None)
        grown.fit(data.frame.iloc[rows], data.labels[rows])
        return twin_consensus(grown, data) if self.consensus else grown

    def _tuned(self, data: SplitData, rows: Any, seed: int) -> tuple[int, int]:
        """Depth and rounds at which the goal is least, in the mean over several groups of people held out.

        The depth is that of trees without a penalty: all of its strengths share it.
        """
        strength = self.choices.get("group_penalty")
        if strength and len(self.depths) > 1:
            without = {name: value for name, value in self.choices.items() if name != "group_penalty"}
            depth, _ = replace(self, choices=without)._tuned(data, rows, seed)
            return replace(self, depths=(depth,))._tuned(data, rows, seed)
        known = _TUNED.setdefault(data, {})
        key = rows.tobytes(), seed, self.blind, self.depths, repr(sorted(self.choices.items()))
        if key not in known:
            known[key] = self._least(data, rows, seed)
        return known[key]

    def _least(self, data: SplitData, rows: Any, seed: int) -> tuple[int, int]:
        some = np.sort(np.random.default_rng([seed, 3]).permutation(rows)[:MOST_TO_TUNE])
        frame, labels = data.frame.iloc[some], data.labels[some]
        found = {}
        for depth in self.depths or (self._estimator(data, seed).max_depth,):
            courses = []
            for trial in range(_TRIALS):
                trees = self._estimator(data, seed + trial).set_params(max_depth=depth, validation=_HELD_OUT)
                courses.append(trees.fit(frame, labels).history_["held_out"])
            goal = np.mean([course[: min(map(len, courses))] for course in courses], axis=0)[1:]
            found[depth, int(goal.argmin()) + 1] = float(goal.min())
        return min(found, key=lambda choice: found[choice])

    def cost(self, n_people: int) -> float:
        """CPU seconds, measured on Adult; a robust objective looks for worst cases in each round."""
        slower = 3.0 if self.choices.get("eps") else 1.0 + 0.5 * len(self.depths)
        return 1.0 + slower * n_people / 6000 + (n_people / 3000 if self.consensus else 0.0)

    def _estimator(self, data: SplitData, seed: int) -> Any:
        from likewise.training import FairBoostingClassifier

        named: dict[str, Any] = {}
        if self.blind:
            named["sensitive_features"] = list(data.sensitive)
            named["edits"] = list(data.edits) or None
        if self.choices.get("eps"):
            named["metric"] = data.metric
        return FairBoostingClassifier(**named, **self.choices, random_state=seed)


def boosting_candidates(data: SplitData) -> tuple[Candidate, ...]:
    """Return plain boosting first, then ever stronger ones."""
    named = ", ".join(data.sensitive)
    found = [
        BoostingCandidate("Boosting", Message("improve.about_boosting"), blind=False, depths=DEPTHS),
        BoostingCandidate(
            "Boosting, twin consensus",
            Message("improve.about_consensus", columns=named),
            blind=False,
            consensus=True,
            depths=DEPTHS,
        ),
        BoostingCandidate("Fair boosting", Message("improve.about_fair", columns=named), depths=DEPTHS),
        BoostingCandidate(
            "Fair boosting, depth 2", Message("improve.about_fair", columns=named), choices={"max_depth": 2}
        ),
    ]
    if data.eps > 0:
        found.append(
            BoostingCandidate(
                f"Fair boosting, ε = {data.eps:g}",
                Message("improve.about_fair_eps", eps=data.eps),
                choices={"eps": data.eps},
            )
        )
    if len(data.groups) == len(data.sensitive):
        found += [
            BoostingCandidate(
                f"Fair boosting, penalty {strength:g}",
                Message("improve.about_penalty", strength=strength),
                choices={"group_penalty": strength},
                depths=DEPTHS,
            )
            for strength in PENALTIES
        ]
    return tuple(found)


# Networks and a linear model: SenSR, SenSeI, Project.


@dataclass(frozen=True)
class NetworkCandidate(Candidate):
    """An estimator of `likewise.training` that is given the fair metric."""

    name: str
    note: str
    estimator: str
    seconds: float
    choices: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, data: SplitData) -> dict[str, Any]:
        """Every parameter but the metric and the domain, which are the split data's."""
        estimator = self._estimator(data, 0).set_params(metric=None, domain=None)
        return {"estimator": plain_settings(estimator)}

    def fit(self, data: SplitData, rows: Any, *, seed: int) -> Any:
        """Train it."""
        return self._estimator(data, seed).fit(data.frame.iloc[rows], data.labels[rows])

    def cost(self, n_people: int) -> float:
        """CPU seconds: steps are of batches, whatever the number of people."""
        return self.seconds + n_people / 20_000

    def _estimator(self, data: SplitData, seed: int) -> Any:
        from likewise import training

        build = getattr(training, self.estimator)
        return build(metric=data.metric, domain=data.domain, random_state=seed, **self.choices)


def network_candidates(data: SplitData) -> tuple[Candidate, ...]:
    """Return the networks on their defaults, which the table decides, SenSR at the ε that is measured, and the linear model."""
    robust = NetworkCandidate(
        f"SenSR, ε = {data.eps:g}",
        Message("improve.about_sensr_eps", eps=data.eps),
        "SenSRClassifier",
        6.0,
        {"eps": data.eps},
    )
    return (
        NetworkCandidate("SenSR", Message("improve.about_sensr"), "SenSRClassifier", 6.0),
        *([robust] if data.eps > 0 else ()),
        NetworkCandidate("SenSeI", Message("improve.about_sensei"), "SenSeIClassifier", 8.0),
        NetworkCandidate(
            "Project, logistic",
            Message("improve.about_project"),
            "ProjectClassifier",
            3.0,
            {"hidden_layer_sizes": (), "lr": 0.01},
        ),
    )


NAME = "Your model"
_SUFFIXES = {"xgboost": ".ubj", "lightgbm": ".txt", "catboost": ".cbm", "onnx": ".onnx", "sklearn": ".skops"}


@dataclass(frozen=True, eq=False)
class GivenModel(Candidate):
    """A model that came ready."""

    name: str
    note: str
    model: Model
    consensus: bool
    native: Any = None
    trained: ClassVar[bool] = False

    def settings(self, data: SplitData) -> dict[str, Any]:
        """Its answers about the people of the table: whatever gives the same answers is the same model here."""
        answers = np.asarray(self.model.predict_proba(data.frame), dtype=np.float64).round(6) + 0.0
        digest = hashlib.sha256(answers.tobytes()).hexdigest()[:16]
        return {"consensus": self.consensus, "answers": digest}

    @property
    def suffix(self) -> str:
        """Of its library's own format."""
        roots = libraries_of(self.native)
        return next((ending for name, ending in _SUFFIXES.items() if name in roots), ".safetensors")

    def fit(self, data: SplitData, rows: Any, *, seed: int) -> Any:
        """Return the model, which no rows change."""
        if not self.consensus:
            return self.model
        wrapped = twin_consensus(self.model, data)
        return _of_native(self.native, wrapped, data) or wrapped

    def cost(self, n_people: int) -> float:
        """Only predictions."""
        return 1.0


def given_candidates(model: Any, data: SplitData, *, favourable: Any = None) -> tuple[Candidate, ...]:
    """Return the user's model as it is and with the consensus of twins."""
    loaded = loaded_model(model, data.frame)
    people = People(data.frame, data.labels, plans_of(data.domain))
    matched = match_people(
        loaded,
        people,
        needed=data.sensitive,
        metric=data.metric,
        domain=data.domain,
        loss="cross_entropy",
        favourable=favourable,
    ).matched
    if matched.model.loss.regression:
        raise InputError("improve: 'model' is a regression. Pass a classifier.")
    table = table_model(matched)
    plain = "As it is. Where it was trained on people of this table, its accuracy is flattered."
    twins = "Your model, asked about all twins of a person; the answer is their mean. Not trained again."
    return (
        GivenModel(NAME, plain, table, consensus=False, native=loaded.native),
        GivenModel(f"{NAME}, twin consensus", twins, table, consensus=True, native=loaded.native),
    )


def _of_native(native: Any, wrapped: TwinConsensus, data: SplitData) -> TwinConsensus | None:
    """The same consensus of the model as it was given, which can be written to a file; None if it answers otherwise."""
    some = data.frame.iloc[data.train[:50]]
    try:
        found = twin_consensus(native, data)
        same = np.allclose(found.predict_proba(some), wrapped.predict_proba(some), rtol=0, atol=1e-9)
        named = found.predict(some).tolist() == wrapped.predict(some).tolist()
    except Exception:  # whatever a model does with rows that are not its own
        return None
    return found if same and named else None


def trained_candidates(data: SplitData) -> tuple[Candidate, ...]:
    """Return the candidates that are trained, in the order of tables; networks only if torch is installed."""
    networks = network_candidates(data) if is_installed("torch") else ()
    logistic = (
        LogisticCandidate("Logistic regression", Message("improve.about_logistic"), blind=False),
        LogisticCandidate("Logistic regression, blind", Message("improve.about_logistic_blind"), blind=True),
    )
    return (*boosting_candidates(data), *logistic, *networks)
