"""`likewise demo`: Adult, a plain network and SenSR, both audited, one page. What `make demo` runs."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import EPS, example, flag, options, verb
from likewise.cli.output import Outputs, deliver, outputs
from likewise.cli.reading import provenance_now
from likewise.core.compiled import is_compiled
from likewise.core.progress import Progress

if TYPE_CHECKING:
    from likewise.datasets.tabular import TabularData
    from likewise.fair_metrics import FairMetric

STEPS, QUICK_STEPS, QUICK_PEOPLE = 2000, 300, 1500
PRESET = "adult-best"
PAGE = Path("likewise-demo.html")


@verb("demo", epilog=example("likewise demo -o demo.html"))
@flag("--quick", "Less training and fewer people: a look in half a minute.")
@options("seed")
@outputs("html", "json", "-", then=["language"])
def command(outputs: Outputs, quick: bool, seed: int) -> None:
    """Show what the package does on the Adult census data: who earns more than $50k.

    Trains a plain network and SenSR on split 0, evaluates and audits both on the test people with the metric of
    the paper (sex, race and what predicts sex cost nothing), prints a table and writes a page (likewise-demo.html).
    """
    if outputs.get("html") is None:
        # The demo may be run again and again: it replaces its own page.
        outputs = replace(outputs, paths={"html": PAGE, **outputs.paths}, force=True)
    from likewise.core.messages import Texts
    from likewise.datasets import load_adult
    from likewise.report import Comparison, print_comparison

    progress = Progress(outputs.quiet)
    with progress.stage("Loading Adult"):
        data = load_adult()
    with progress.stage("Learning who is comparable"):
        metric = paper_metric(data)
    entries = {}
    models = _models(data, QUICK_STEPS if quick else STEPS, progress.shown, seed)
    for title, estimator in models.items():
        with progress.stage(f"Training {title}", spinner=False):
            estimator.fit(data.frame_train, data.y_train)
        entries[title] = _measure(title, estimator, data, metric, quick, progress, seed)
    with as_file(files("likewise.datasets").joinpath("data", "adult.csv.gz")) as table:
        provenance = provenance_now([table])
    labels, comparison = dict(enumerate(data.target_names)), Comparison.of(entries)
    deliver(
        outputs,
        comparison,
        show=lambda: print_comparison(comparison, labels=labels),
        title=Texts(outputs.language)("page.title.demo"),
        labels=labels,
        explore=_explore(models, data, {title: result for title, (_, result) in entries.items()}),
        provenance=provenance,
    )
    if not outputs.quiet and not outputs.screen:
        from likewise.training.estimators.parameters import SENSR_PRESETS

        click.echo(f"SenSR is the preset {PRESET!r} with a full phase. Known: {SENSR_PRESETS[PRESET].told}")


def paper_metric(data: TabularData) -> FairMetric:
    """The metric of the paper's section 4.2: span[w_g, e_g, e_r], learned on the training people."""
    from likewise.fair_metrics import AttributeSubspace, ExpertSubspace

    by_sex = AttributeSubspace(["sex"], domain=data.domain).fit(data.X_train).metric_
    return by_sex | ExpertSubspace(["race"], domain=data.domain).fit(data.X_train).metric_


def _models(data: TabularData, steps: int, progress: bool, seed: int) -> dict[str, Any]:
    from likewise.training import MLPBaselineClassifier, SenSRClassifier, TrainingConfig
    from likewise.training.estimators.parameters import SENSR_PRESETS

    shared: dict[str, Any] = {"domain": data.domain, "n_steps": steps, "random_state": seed}
    return {
        "Baseline": MLPBaselineClassifier(training=TrainingConfig(progress=progress), **shared),
        # The preset searches along the sensitive directions only. Three steps in all directions at a small ε keep
        # the worst case small for people a little apart too, at no loss of accuracy.
        "SenSR": SenSRClassifier.preset(
            PRESET,
            search=replace(SENSR_PRESETS[PRESET].make()["search"], full_steps=3, full_step_size=0.02),
            eps=0.002,
            **shared,
        ).set_params(training__lambda_rule="dual", training__progress=progress),
    }


def _explore(models: dict[str, Any], data: TabularData, results: dict[str, Any]) -> dict[str, Any]:
    """What lets a reader of the page edit a person: Adult is public, so its people may travel in it."""
    from likewise.report.explore import explore_document

    n = next(iter(results.values())).n
    return explore_document(
        data.domain,
        data.frame_test[:n],
        data.y_test[:n],
        models=models,
        sensitive_features=["sex", "race"],
        results=results,
        labels=dict(enumerate(data.target_names)),
    )


def _measure(
    title: str,
    estimator: Any,
    data: TabularData,
    metric: FairMetric,
    quick: bool,
    progress: Progress,
    seed: int,
) -> tuple[Any, Any]:
    from likewise.auditing import audit
    from likewise.evaluation.summary import evaluate

    with progress.stage(f"Evaluating {title}"):
        evaluation = evaluate(estimator, data.frame_test, data.y_test)
    people = slice(QUICK_PEOPLE) if quick else slice(None)
    with progress.stage(f"Auditing {title}"):
        result = audit(
            estimator,
            data.frame_test[people],
            data.y_test[people],
            metric=metric,
            domain=data.domain,
            eps=EPS,
            edits=["sex", "race"],
            # Everybody who can exist, in seconds; not compiled it takes minutes, and so do gradients.
            search="domain" if is_compiled() else "candidates",
            random_state=seed,
        )
    return evaluation, result
