"""`likewise train`: a model that treats comparable people alike, in a file that `likewise audit` reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.app import agreeing, grouped
from likewise.cli.options import COUNT, PEOPLE, example, option, options, verb
from likewise.cli.output import Outputs, outputs, say
from likewise.cli.reading import read_training_table
from likewise.core.errors import InputError, NotConvergedError
from likewise.core.launch import launched
from likewise.core.progress import Progress

if TYPE_CHECKING:
    import pandas as pd

    from likewise.data.case import People
    from likewise.data.tabular import TabularDomain
    from likewise.fair_metrics import FairMetric

# The methods that `train` and `improve --compare` know by name.


@dataclass(frozen=True)
class Method:
    """One way to train."""

    estimator: str
    title: str
    needs: str = ""


METHODS = {
    "baseline": Method("MLPBaselineClassifier", "Baseline"),
    "project": Method("ProjectClassifier", "Project", "metric"),
    "sensr": Method("SenSRClassifier", "SenSR", "metric"),
    "sensei": Method("SenSeIClassifier", "SenSeI", "metric"),
    "wasserstein": Method("WassersteinRobustClassifier", "Wasserstein robust"),
    "adversarial": Method("AdversarialDebiasingClassifier", "Adversarial debiasing", "attributes"),
    "cocl": Method("CoCLClassifier", "CoCL", "attributes"),
}


def train_method(
    name: str,
    frame: pd.DataFrame,
    y: Any,
    *,
    domain: TabularDomain,
    metric: FairMetric | None,
    sensitive: Sequence[str],
    progress: bool,
    seed: int,
    **choices: Any,
) -> Any:
    """Train one method on a table."""
    from likewise import training

    method = METHODS[name]
    if method.needs == "metric":
        choices["metric"] = metric
    if method.needs == "attributes":
        choices["attributes"] = list(sensitive)
    build = getattr(training, method.estimator)
    how = training.TrainingConfig(progress=progress)
    estimator = build(domain=domain, training=how, random_state=seed, **choices)
    outside = [column for column in sensitive if column not in domain.groups_]
    extra = frame[outside] if outside and method.needs == "attributes" else None
    return estimator.fit(frame[list(domain.feature_names_in_)], y, sensitive_features=extra)


@verb(
    "train",
    epilog=example(
        PEOPLE,
        "likewise train people.csv --target target --sensitive sex --method sensr -o model.safetensors",
    ),
)
@options("table")
@option("--method", None, "How to train.", click.Choice(sorted(METHODS)), "sensr")
@options("target", "favourable", "classes", "sensitive", "metric", "read")
@option("--eps", None, "Tolerance of robust methods.", click.FloatRange(min=0))
@option("--steps", None, "Training steps.  [default: the method's own]", COUNT)
@option(
    "--held-out",
    None,
    "Share of the people to report on; 0 trains on all.",
    click.FloatRange(min=0, max=0.9),
    0.2,
)
@option("--hidden", None, "Units of the hidden layers: 100 or 64,32.", default="100")
@options("sample", "seed")
@outputs("safetensors", then=["config"], required=True)
def command(
    table: Path,
    method: str,
    outputs: Outputs,
    eps: float | None,
    steps: int | None,
    held_out: float,
    hidden: str,
    **given: Any,
) -> None:
    """Train a classifier on a table.

    The file keeps the encoding of the table, so `likewise audit` needs nothing else.
    """
    out = outputs.paths["safetensors"]
    with grouped():
        with agreeing():
            if launched().first:
                outputs.check()
            layers = parse_layers(hidden)
            sensitive, seed = given["sensitive"], given["seed"]
            _check(method, sensitive, given["metric"], eps)
            from likewise.data.case import check_varied

            progress = Progress(outputs.quiet)
            people, metric, _ = read_training_table(table, given, progress, widest=None)
            y: Any = people.labels
            reported = _reported(y, held_out, seed)
            trained = people.take((~reported).nonzero()[0])
            check_varied(trained.frame, sensitive)
            with progress.stage("Learning who is comparable"):
                domain, found = _comparable(people, trained, metric, sensitive, METHODS[method].needs)
        with progress.stage(f"Training {METHODS[method].title}", spinner=False):
            estimator = train_method(
                method,
                trained.frame,
                y[~reported],
                domain=domain,
                metric=found,
                sensitive=sensitive,
                progress=progress.shown,
                seed=seed,
                hidden_layer_sizes=layers,
                **{name: value for name, value in (("eps", eps), ("n_steps", steps)) if value is not None},
            )
        with agreeing():
            _keep(estimator, out)
    if launched().first:
        seen = people.frame[list(domain.feature_names_in_)][reported].reset_index(drop=True)
        outputs.say(f"Wrote {out}: {METHODS[method].title} on {len(trained.frame):,} people.")
        outputs.say(_report(estimator, seen, y[reported], sensitive))


def _reported(y: Any, share: float, seed: int) -> Any:
    """Who is held out of training, class by class; nobody if a class would be left with fewer than two."""
    import numpy as np

    from likewise.data.target import chosen_by_class

    held = chosen_by_class(y, share, seed) if share else np.zeros(len(y), dtype=bool)
    left = [int((y[~held] == label).sum()) for label in dict.fromkeys(y.tolist())]
    return held if min(left) >= 2 else np.zeros(len(y), dtype=bool)


def _report(estimator: Any, people: pd.DataFrame, y: Any, sensitive: Sequence[str]) -> str:
    """What the model does on people that it was not trained on, in a line."""
    from likewise.auditing.case_evaluation import MAX_GROUPS
    from likewise.counterfactuals.correspondence import correspondence_study
    from likewise.evaluation.summary import accuracy, balanced_accuracy

    if not len(people):
        return "Nobody was held out: there is no accuracy to report."
    answers = estimator.predict(people)
    line = (
        f"On {len(people):,} people held out: accuracy {accuracy(y, answers):.3f}, balanced accuracy "
        f"{balanced_accuracy(y, answers):.3f}"
    )
    edited = [name for name in sensitive if name in people and 2 <= people[name].nunique() <= MAX_GROUPS]
    if not edited:
        return f"{line}."
    study = correspondence_study(estimator, people, dict.fromkeys(edited, "all"))
    return f"{line}; {1.0 - study.consistency:.1%} get another decision with other values of {', '.join(edited)}."


def _keep(estimator: Any, out: Path) -> None:
    """Write the model, if there is one; the first process does."""
    if estimator.status_ == "diverged":
        raise NotConvergedError(
            f"the training loss became infinite after {estimator.n_iter_} steps; nothing was saved."
        )
    if estimator.status_ == "interrupted":
        say(f"Stopped after {estimator.n_iter_} steps; keeping what was learned so far.", err=True)
    if launched().first:
        estimator.save(out)


def _check(method: str, sensitive: Sequence[str], metric: Path | None, eps: float | None) -> None:
    needs = METHODS[method].needs
    if needs == "attributes" and not sensitive:
        raise InputError(f"--method {method} needs the sensitive columns: --sensitive COLUMN.")
    if needs == "metric" and not sensitive and metric is None:
        raise InputError(f"--method {method} needs --sensitive COLUMN, or a metric: --metric FILE.")
    if eps is not None and method not in ("sensr", "sensei", "wasserstein"):
        raise InputError(f"--eps is for sensr, sensei and wasserstein; --method {method} has no tolerance.")


def _comparable(
    people: People, trained: People, given: FairMetric | str | None, sensitive: Sequence[str], needs: str
) -> tuple[Any, FairMetric | None]:
    """Return what encodes the table, and the metric: the given one, or one learned if the method needs it.

    The encoding knows the categories of everybody, the metric is learned from those who are trained on.
    """
    from likewise.auditing.case import build_metric

    if given is not None and not isinstance(given, str):
        return given.feature_map, given
    domain = people.domain()
    if needs != "metric":
        return domain, None
    return domain, build_metric(given, trained.frame, sensitive, domain)


def parse_layers(text: str) -> tuple[int, ...]:
    """Read ``64,32`` as the sizes of hidden layers; an empty text or 0 is none: a linear model."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdigit() for part in parts):
        raise InputError(f"--hidden must be whole numbers such as 100 or 64,32, got {text!r}.")
    return tuple(int(part) for part in parts if int(part) > 0)
