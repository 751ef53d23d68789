"""One case: a random table, a kind of model, a loss and an ε; what `likewise` claims against the reference."""

import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import pandas as pd

import likewise as lw

from .brute_force import Table, make_reference, squared_distances
from .model_kinds import KINDS, Fitted, as_fitted

RELATIVE = 1e-6
EXACT = {"search": "exact"}
WORDS = {"sex": ["F", "M"], "job": ["clerk", "cook", "nurse"], "race": ["A", "B", "C"]}


def make_table(flavour, seed, *, classes=2, labels="numbers", people=6, train=200, small=False):
    """A random table: floats of any mean, few levels at times, whole numbers, categories, a sensitive one or two."""
    rng = np.random.default_rng([seed, 7])
    columns, score, ranges = {}, np.zeros(train), {}
    discrete, wide = rng.random() < 0.25, rng.random() < 0.2
    for j in range(0 if discrete else 1 if small else int(rng.choice([1, 1, 2]))):
        mean, spread = float(rng.choice([0.0, 50.0, 1e3, 1e6])), float(rng.choice([0.5, 10.0, 300.0]))
        values = rng.normal(mean, spread, train)
        if rng.random() < 0.4:
            values = mean + spread * rng.integers(-3, 4, train) / 2
        if rng.random() < 0.3:
            values = values.round(1)
        values = values.astype(np.float32 if rng.random() < 0.2 else np.float64)
        columns[f"pay{j}"] = values
        score += rng.choice([-1, 1]) * (values.astype(float) - mean) / spread
        if wide:
            low, high = float(values.min()) - spread, float(values.max()) + spread
            ranges[f"pay{j}"] = tuple(values.dtype.type(end) for end in (low, high))
    low = int(rng.choice([0, 0, 18, -2]))
    columns["age"] = rng.integers(low, low + (4 if small else int(rng.choice([4, 7, 40]))), train)
    score += 1.5 * (columns["age"] - columns["age"].mean()) / columns["age"].std()
    if wide:
        ranges["age"] = (
            (low - 1, low + 5) if columns["age"].max() < low + 5 else (low, int(columns["age"].max()))
        )
    if discrete:
        columns["years"] = rng.integers(0, 5, train)
        score += 0.6 * (columns["years"] - 2)
    categories, sensitive = ["sex"], ["sex"]
    if rng.random() < (0.25 if small else 0.5):
        columns["job"] = rng.integers(0, 3, train)
        categories.append("job")
        score += 0.8 * (columns["job"] == 1)
    columns["sex"] = rng.integers(0, 2, train)
    score += rng.choice([0.5, 1.5]) * (columns["sex"] - 0.5)
    if rng.random() < 0.3:
        columns["race"] = rng.integers(0, 3, train)
        categories.append("race")
        sensitive.append("race")
        score += 0.7 * (columns["race"] == 2)
    X = pd.DataFrame(columns)[list(rng.permutation(list(columns)))]
    if flavour in ("words", "categories"):
        for name in categories:
            X[name] = np.array(WORDS[name], dtype=object)[X[name]]
            X[name] = X[name].astype(pd.CategoricalDtype(WORDS[name]) if flavour == "categories" else "str")
    noisy = score + rng.normal(0, 0.7, train)
    y = np.digitize(noisy, np.quantile(noisy, np.arange(1, classes) / classes)).astype(int)
    if labels == "words":
        y = np.array(["no", "yes", "maybe"], dtype=object)[y]
    chosen = rng.choice(train, people, replace=False)
    table = Table(
        X, y, X.iloc[chosen].reset_index(drop=True), y[chosen], tuple(categories), tuple(sensitive), ranges
    )
    if rng.random() < 0.15:
        table = replace(table, immutable=("age",))
    comparable = rng.choice(["plain", "weight", "contrast", "matrix"], p=[0.7, 0.1, 0.1, 0.1])
    if comparable == "weight":
        table = replace(table, weight=0.25)
    elif comparable == "contrast" and "job" in columns and flavour in ("words", "categories"):
        table = replace(table, contrast=("job", "cook", "nurse"))
    elif comparable == "matrix":
        table = replace(table, sigma=np.empty(0))
    return table


def make_domain_and_metric(table):
    """The domain and the metric of `likewise` that the table describes; with them the table, its matrix filled in."""
    numeric = [name for name in table.categories if table.X[name].dtype.kind in "iu"]
    domain = lw.TabularDomain.from_frame(
        table.X, categories=dict.fromkeys(numeric), ranges=dict(table.ranges), immutable=list(table.immutable)
    )
    directions = list(table.sensitive)
    if table.contrast:
        directions.append("{}: {} - {}".format(*table.contrast))
    if table.sigma is None:
        return (
            domain,
            lw.ExpertSubspace(directions, weight=table.weight, domain=domain).fit(table.X).metric_,
            table,
        )
    metric = lw.AttributeSubspace(directions, domain=domain).fit(table.X).metric_
    return domain, metric, replace(table, sigma=np.asarray(metric.sigma()))


@dataclass
class Outcome:
    """What came of a case."""

    kind: str
    seed: int
    loss: str
    eps: float
    read: bool = False
    bound: bool = False
    verified: bool = False
    violations: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    numbers: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Subject:
    """A fitted model, its table, and the reference."""

    table: Table
    domain: object
    metric: object
    fitted: Fitted
    encoded: bool
    reference: object


@lru_cache(maxsize=4)
def make_subject(name, seed, people=6, max_rows=6000, small=False):
    kind = KINDS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = make_table(
            kind.table,
            seed,
            classes=kind.classes,
            labels=kind.labels,
            people=min(people, 3) if small and kind.slow else people,
            small=small or kind.slow,
        )
        domain, metric, table = make_domain_and_metric(table)
        encoded = kind.table == "encoded"
        rows = pd.DataFrame(domain.encode_array(table.X)) if encoded else table.X
        fitted = as_fitted(kind.build(rows, table.y, seed))
        ask = fitted.ask
        if encoded:

            def ask(frame):
                return fitted.ask(domain.encode_array(frame))

        reference = make_reference(ask, table, seed=seed, max_rows=max_rows)
    return Subject(table, domain, metric, fitted, encoded, reference)


def _above(one, other, slack=RELATIVE):
    return one > other + slack * max(1.0, abs(other))


def _notes(table):
    """What is special about a table."""
    floats = [name for name in table.X if table.kind(name) == "float"]
    facts = {
        "float32": any(table.X[name].dtype == np.float32 for name in floats),
        "ties": any(table.X[name].nunique() < 20 for name in floats),
        "no floats": not floats,
        "ranges": bool(table.ranges),
        "immutable": bool(table.immutable),
        "weight": table.weight > 0,
        "contrast": table.contrast is not None,
        "matrix": table.sigma is not None,
    }
    return [name for name, holds in facts.items() if holds]


def run_case(
    name, seed, loss, eps, *, people=6, max_rows=6000, small=False, how=EXACT, otherwise="auto", verify=True
):
    """Audit and (with `verify`) verify; list every claim that is refuted.

    `how` are arguments of the audit; a model that is not read is audited with ``search=otherwise``, if any.
    """
    out = Outcome(name, seed, loss, eps)
    subject = make_subject(name, seed, people, max_rows, small)
    out.notes = _notes(subject.table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _audit(subject, loss, eps, how, otherwise, out)
        if result is not None:
            _check_audit(subject, result, loss, eps, out)
        if verify:
            _check_verify(subject, seed, 400 if small else 1500, out)
    return out


def _rows(subject, frame):
    return subject.domain.encode_array(frame) if subject.encoded else frame


def _audit(subject, loss, eps, how, otherwise, out):
    table = subject.table
    choices = {
        "metric": subject.metric,
        "domain": subject.domain,
        "eps": eps,
        "loss": loss,
        "encoded": subject.encoded,
    }
    given = subject.fitted.model, _rows(subject, table.people), table.labels
    try:
        result = lw.audit(*given, **how, **choices)
        out.read = True
    except lw.InputError as error:
        crossed = "is above the bound" in str(error)
        (out.violations if crossed else out.refused).append(f"CROSSED: {error}" if crossed else str(error))
    except Exception as error:
        out.errors.append(f"audit, {how}: {type(error).__name__}: {error}")
    else:
        return result
    if otherwise is None:
        return None
    try:
        return lw.audit(*given, search=otherwise, **choices)
    except lw.InputError as error:
        out.refused.append(str(error))
    except Exception as error:
        out.errors.append(f"audit: {type(error).__name__}: {error}")
    return None


def _check_audit(subject, result, loss, eps, out):
    reference = subject.reference

    def refuted(code, what, got, truth):
        out.violations.append(f"{code}: {what} {got:.9g} against {truth:.9g}")

    base = reference.base(loss).mean()
    if abs(result.base_loss - base) > 1e-5 * max(1, base):
        refuted("LOSS", "the mean loss is not the model's own,", result.base_loss, base)
    listed = [_check_map(subject, result.pure_map, "pure_map", loss, out)]
    listed.append(_check_map(subject, result.unfair_map, "unfair_map", loss, out))
    listed = [frame for frame in listed if frame is not None]
    reference = reference.with_rows(*listed) if listed else reference
    exact_at_zero = subject.table.sigma is None
    # A result that says that its time was up may have looked at fewer rows.
    cut_short = result.status != "converged" and any("budget_seconds" in reason for reason in result.reasons)
    for at in sorted({0.0, eps}):
        for quantity, truth in (("value", reference.value(loss, at)), ("changed", reference.changed(at))):
            bracket = result.bracket(quantity, eps=at)
            name = f"{quantity} at eps={at:g}"
            out.numbers[name] = truth
            if bracket.upper is not None and bracket.confidence == 1:
                if quantity == "value" and at == eps:
                    out.bound = True
                if _above(truth, bracket.upper):
                    refuted("BOUND", f"{name}, below rows that exist,", bracket.upper, truth)
                if _above(bracket.lower, bracket.upper):
                    refuted("CROSSED", f"{name}, lower above upper,", bracket.lower, bracket.upper)
                if at == 0 and exact_at_zero and abs(bracket.upper - truth) > 1e-5 * max(1, truth):
                    refuted("ZERO", f"bound of {name} is not the truth,", bracket.upper, truth)
            short = abs(bracket.lower - truth) > 1e-5 * max(1, truth)
            if at == 0 and exact_at_zero and short and not (cut_short and bracket.lower < truth):
                refuted("ZERO", f"estimate of {name} is not the truth,", bracket.lower, truth)
            if at > 0 and _above(bracket.lower, truth, 1e-5):
                # Look again, closer, before the rows that were found are called all that matter.
                closer = make_reference(
                    reference.ask,
                    subject.table,
                    seed=0,
                    max_rows=60_000,
                    thorough=True,
                    also=pd.concat(listed, ignore_index=True) if listed else None,
                )
                truth = closer.value(loss, at) if quantity == "value" else closer.changed(at)
                if closer.complete and _above(bracket.lower, truth, 1e-5):
                    refuted("ESTIMATE", f"{name}, above what rows attain,", bracket.lower, truth)
    certificate = result.certificate
    if (
        certificate.bound is not None
        and certificate.bound.confidence == 1
        and _above(reference.value(loss, eps), certificate.bound.value)
    ):
        refuted(
            "BOUND",
            "the certificate's, below rows that exist,",
            certificate.bound.value,
            reference.value(loss, eps),
        )


def _check_map(subject, unfair, name, loss, out):
    """Ask the model about the listed twins; return them if they exist."""
    table = subject.table
    twins = unfair.twins[list(table.X)].reset_index(drop=True)
    order = unfair.outcomes["person"].to_numpy()
    for column in table.X:
        if table.kind(column) == "category":
            good = twins[column].isin(table.levels(column))
        else:
            low, high = table.span(column)
            good = (twins[column] >= low) & (twins[column] <= high)
        if not good.all():
            out.violations.append(
                f"LISTED: {name}, a twin outside the domain, {column}={twins[column][~good].iloc[0]!r}"
            )
            return None
    twins = table.as_typed(twins)
    said = subject.reference.ask(twins)
    labels = table.labels[order]
    losses = np.diag(said.losses(labels, loss))
    claimed = unfair.outcomes["twin_loss"].to_numpy(float)
    worse = np.abs(claimed - losses) > 1e-5 * np.maximum(1, losses)
    if worse.any():
        i = int(np.flatnonzero(worse)[0])
        out.violations.append(
            f"LISTED: {name}, the loss of listed twin {i} is {losses[i]:.9g}, claimed {claimed[i]:.9g}"
        )
    decided = np.asarray(unfair.outcomes["twin_decision"].tolist(), dtype=object) != np.asarray(
        said.decisions.tolist(), dtype=object
    )
    if decided.any():
        out.violations.append(
            f"LISTED: {name}, the decision on {int(decided.sum())} listed twins is not the model's own"
        )
    spent = np.diag(squared_distances(table, table.people.iloc[order].reset_index(drop=True), twins))
    claimed = unfair.outcomes["squared_distance"].to_numpy(float)
    off = ~(np.abs(spent - claimed) <= 1e-6 * np.maximum(1, spent))
    if off.any():
        i = int(np.flatnonzero(off)[0])
        out.violations.append(
            f"LISTED: {name}, the squared distance of listed twin {i} is {spent[i]:.9g}, claimed {claimed[i]:.9g}"
        )
    return twins


def _check_verify(subject, seed, samples, out):
    reference, table = subject.reference, subject.table
    try:
        found = lw.verify(
            subject.fitted.model,
            _rows(subject, table.people),
            list(table.sensitive),
            domain=subject.domain,
            encoded=subject.encoded,
            budget_seconds=2.0,
            max_regions=300,
        )
    except lw.InputError as error:
        out.refused.append(f"verify: {error}")
        return
    except Exception as error:
        out.errors.append(f"verify: {type(error).__name__}: {error}")
        return
    out.verified = True
    rows, exact = reference.domain_rows(samples=samples, rng=np.random.default_rng(seed))
    depends = reference.flips(pd.concat([table.people, rows], ignore_index=True))
    flips, share = depends[: len(table.people)].mean(), depends[len(table.people) :].mean()
    proved, flipping, _ = found.people
    if proved > 1 - flips + 1e-9:
        out.violations.append(
            f"VERIFY: people, proved {proved:.6g}, of whom at most {1 - flips:.6g} keep their decision"
        )
    if flipping > flips + 1e-9:
        out.violations.append(f"VERIFY: people, flips {flipping:.6g}, truly {flips:.6g}")
    slack = 1e-6 if exact else 5 * np.sqrt(max(share * (1 - share), 0.002) / len(rows))
    if found.proved > 1 - share + slack:
        out.violations.append(
            f"VERIFY: domain, proved {found.proved:.6g}, at most {1 - share:.6g} ± {slack:.1g} keep theirs"
        )
    if found.flips > share + slack:
        out.violations.append(f"VERIFY: domain, flips {found.flips:.6g}, truly {share:.6g} ± {slack:.1g}")
    for number in range(min(found.pairs, 3)):
        pair = found.examples[found.examples["pair"] == number][list(table.X)]
        said = reference.ask(table.as_typed(pair)).decisions
        if said[0] == said[1]:
            out.violations.append("VERIFY: example, a listed pair is decided alike")
            break
