"""Exact audit: edge cases, guarantees, reading of models, errors."""

from itertools import pairwise

import numpy as np
import pytest

from likewise.auditing.bounds.linear.model import LinearModel
from likewise.auditing.bounds.linear.search import exact_bound, exact_dual, loss_ceiling
from likewise.auditing.bounds.linear.supremum import exact_supremum, logistic_supremum
from likewise.core.errors import InputError, ModelError
from likewise.core.subspace import Subspace
from likewise.data import BoxDomain, TabularDomain, Unbounded
from likewise.fair_metrics import FairMetric, euclidean, mahalanobis


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def free_first(d, weight=0.0):
    return FairMetric.from_subspace(Subspace.from_directions(np.eye(d)[:1]), weight=weight)


class TestLogisticSupremum:
    def test_global_maximum_among_several_stationary_points(self):
        """With a = κ/2λ = 20 and m near a/2 there are three stationary points; only one is the best."""
        margin = np.array([9.0, 11.0])
        value, drop, _ = logistic_supremum(margin, 40.0, lam=1.0)
        grid = np.linspace(0, 20, 200_001)
        table = np.logaddexp(0, grid - margin[:, None]) - grid**2 / 40
        stationary = [((np.diff(np.sign(np.diff(row))) != 0).sum()) for row in table]
        assert max(stationary) >= 2
        np.testing.assert_allclose(value, table.max(1), atol=1e-9)
        assert drop[0] > 19
        assert drop[1] < 1

    def test_both_sides_of_the_switch_agree_in_value(self):
        low, _, _ = logistic_supremum(np.array([10.0 - 1e-12]), 40.0, lam=1.0)
        high, _, _ = logistic_supremum(np.array([10.0 + 1e-12]), 40.0, lam=1.0)
        assert low[0] == pytest.approx(high[0], abs=1e-11)

    def test_extremes_stay_finite_and_consistent(self):
        margin = np.array([-800.0, -1.0, 0.0, 2.0, 800.0])
        for kappa in (0.0, 1e-12, 1.0, 4.0, 1e9):
            for lam in (1e-9, 0.5, 1.0, 1e9):
                value, drop, cost = logistic_supremum(margin, kappa, lam)
                assert np.isfinite(value).all()
                assert (value >= np.logaddexp(0, -margin) - 1e-12 * (1 + np.abs(value))).all()
                np.testing.assert_allclose(cost * kappa, drop**2, rtol=1e-9, atol=1e-200)

    def test_stationary_to_rounding(self, rng):
        margin, kappa = rng.normal(size=200) * 5, rng.exponential(size=200) * 10
        _, drop, _ = logistic_supremum(margin, kappa, lam=0.7)
        fixed_point = kappa / 1.4 / (1 + np.exp(margin - drop))
        np.testing.assert_allclose(drop, fixed_point, rtol=1e-11)


class TestUnbounded:
    def test_weights_in_a_free_direction_make_it_infinite_and_say_so(self, rng):
        X, y = rng.normal(size=(4, 3)), np.array([0, 1, 0, 1])
        for loss in ("cross_entropy", "hinge"):
            model = LinearModel([1e-3, 1.0, 0.0], 0.0, loss=loss)
            for domain in (None, Unbounded()):
                found = exact_supremum(model, X, y, metric=free_first(3), lam=2.0, domain=domain)
                assert np.isposinf(found.value).all()
                assert np.isposinf(found.value).all()
                assert found.exact.all()
                assert np.isnan(found.x).all()
            dual = exact_dual(model, X, y, metric=free_first(3), eps=0.1)
            assert dual.exact
            assert np.isposinf(dual.value)

    def test_zero_one_flips_for_nothing_along_a_free_direction(self):
        model = LinearModel([1.0, 1.0], 0.0, loss="zero_one")
        found = exact_supremum(model, [[2.0, 2.0]], [1], metric=free_first(2), lam=1e6)
        assert found.value[0] == pytest.approx(1.0)
        assert found.squared_distance[0] == pytest.approx(0.0, abs=1e-12)
        assert model.losses(found.x, [1])[0] == 1.0

    def test_a_model_blind_to_the_subspace_gains_nothing_at_no_cost(self, rng):
        X, y = rng.normal(size=(10, 3)), rng.integers(0, 2, size=10)
        model = LinearModel([0.0, 1.0, -2.0], 0.3)
        dual = exact_dual(model, X, y, metric=free_first(3), eps=0.0)
        assert dual.exact
        assert dual.gap == pytest.approx(0.0, abs=1e-12)

    def test_a_box_open_on_the_free_side_is_infinite_and_on_the_other_is_not(self):
        lower, upper = np.array([-1.0, -1.0]), np.array([np.inf, 1.0])
        model = LinearModel([1.0, 1.0], 0.0)
        args = {"metric": free_first(2), "lam": 1.0, "domain": BoxDomain(lower, upper)}
        # Label 0 wants a larger first column, which is open; label 1 a smaller one, which is closed.
        found = exact_supremum(model, [[0.0, 0.0], [0.0, 0.0]], [0, 1], **args)
        assert np.isposinf(found.value).tolist() == [True, False]
        assert found.exact.all()
        closed = BoxDomain(lower, np.array([50.0, 1.0]))
        same = exact_supremum(model, [[0.0, 0.0]], [1], metric=free_first(2), lam=1.0, domain=closed)
        # Two methods, each within its tolerance of 1e-8 relative to 1 + value.
        assert found.value[1] == pytest.approx(same.value[0], abs=1e-8 * (1 + same.value[0]))

    @pytest.mark.parametrize("kind", ["subspace", "mahalanobis"])
    def test_open_sides_equal_sides_that_are_far_away(self, rng, kind):
        d = 4
        root = rng.normal(size=(d, d))
        metric = free_first(d, 0.2) if kind == "subspace" else mahalanobis(root @ root.T)
        lower, upper = -np.ones(d), np.ones(d)
        upper[1], lower[2], upper[2] = np.inf, -np.inf, np.inf
        X, y = rng.uniform(-1, 1, size=(20, d)), rng.integers(0, 2, size=20)
        model = LinearModel(rng.normal(size=d) * 2, 0.0)
        opened = exact_supremum(model, X, y, metric=metric, lam=0.5, domain=BoxDomain(lower, upper))
        far = BoxDomain(np.maximum(lower, -1e3), np.minimum(upper, 1e3))
        closed = exact_supremum(model, X, y, metric=metric, lam=0.5, domain=far)
        assert opened.exact.all()
        np.testing.assert_allclose(opened.value, closed.value, atol=1e-7)


class TestGuarantees:
    @pytest.mark.parametrize("loss", ["cross_entropy", "hinge", "zero_one"])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_never_below_what_a_search_finds(self, rng, loss, n_classes):
        """Random points and projected ascent on the objective, with a box and immutable columns."""
        d, n, lam = 7, 12, 0.15
        metric = FairMetric.from_subspace(Subspace.from_directions(rng.normal(size=(2, d))))
        model = LinearModel(rng.normal(size=(n_classes, d)) * 1.5, rng.normal(size=n_classes), loss=loss)
        domain = BoxDomain(-np.ones(d), np.ones(d), immutable=[3])
        X, y = rng.uniform(-1, 1, size=(n, d)), rng.integers(0, n_classes, size=n)
        found = exact_supremum(model, X, y, metric=metric, lam=lam, domain=domain)
        assert found.exact.all()
        assert domain.contains(found.x, origin=X).all()
        for _ in range(200):
            step = rng.normal(size=(n, d)) * rng.choice([0.1, 1.0, 10.0])
            tried = domain.project(X + step, origin=X)
            value = model.losses(tried, y) - lam * metric.squared_distance(tried, X)
            assert (value <= found.value + 1e-9).all()
        x = X.copy()
        for _ in range(300):
            scores = x @ model.coef.T + model.intercept
            p = np.exp(scores - scores.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            slope = p @ model.coef - model.coef[y] - 2 * lam * metric.apply(x - X)
            x = domain.project(x + 0.05 * slope, origin=X)
            value = model.losses(x, y) - lam * metric.squared_distance(x, X)
            assert (value <= found.value + 1e-9).all()

    def test_a_row_that_needs_more_effort_over_estimates_and_says_so(self, rng):
        d, n_classes = 5, 6
        model = LinearModel(rng.normal(size=(n_classes, d)) * 4, np.zeros(n_classes))
        X, y = rng.normal(size=(6, d)) * 0.1, rng.integers(0, n_classes, size=6)
        cheap = exact_supremum(model, X, y, metric=euclidean(d), lam=2.0, max_nodes=1, tol=1e-4)
        good = exact_supremum(model, X, y, metric=euclidean(d), lam=2.0, max_nodes=2000, tol=1e-4)
        over = ~cheap.exact
        assert over.any()
        assert not cheap.exact[over].any()
        assert (cheap.value >= good.attained - 1e-9).all()
        assert (good.value <= cheap.value + 1e-9).all()

    def test_rows_do_not_depend_on_who_travels_with_them(self, rng):
        X, y = rng.uniform(-1, 1, size=(30, 4)), rng.integers(0, 2, size=30)
        model, box = LinearModel(rng.normal(size=4), 0.0), BoxDomain(-np.ones(4), np.ones(4))
        together = exact_supremum(model, X, y, metric=free_first(4), lam=0.3, domain=box)
        for i in (0, 7, 29):
            alone = exact_supremum(
                model, X[i : i + 1], y[i : i + 1], metric=free_first(4), lam=0.3, domain=box
            )
            assert alone.value[0] == pytest.approx(together.value[i], rel=1e-10)
            np.testing.assert_allclose(alone.x[0], together.x[i], atol=1e-7)

    def test_value_falls_with_lambda_and_rises_with_eps(self, rng):
        X, y = rng.uniform(-1, 1, size=(10, 3)), rng.integers(0, 2, size=10)
        model, box = LinearModel(rng.normal(size=3) * 3, 0.2), BoxDomain(-np.ones(3), np.ones(3))
        args = {"metric": free_first(3, 0.1), "domain": box}
        values = [exact_supremum(model, X, y, lam=lam, **args).value for lam in (0.0, 0.1, 1.0, 10.0, np.inf)]
        assert all((a >= b - 1e-7).all() for a, b in pairwise(values))
        eps = np.array([0.0, 0.01, 0.1, 0.2, 0.4, 50.0])
        curve = np.array([exact_dual(model, X, y, eps=e, tol=1e-8, **args).value for e in eps])
        assert (np.diff(curve) >= -1e-7).all()
        slopes = np.diff(curve) / np.diff(eps)
        assert (np.diff(slopes) <= 1e-6).all()
        # With budget for everything, V is the worst case of the box.
        assert curve[-1] == pytest.approx(values[0].mean(), abs=1e-7)

    def test_a_row_outside_the_box_may_stay(self):
        model = LinearModel([1.0], 0.0)
        found = exact_supremum(
            model, [[3.0]], [0], metric=euclidean(), lam=100.0, domain=BoxDomain([-1.0], [1.0])
        )
        assert found.value[0] >= np.logaddexp(0, 3.0)

    def test_tabular_domain_is_relaxed_to_its_box_and_never_under_estimates(self, rng):
        import pandas as pd

        frame = pd.DataFrame(
            {
                "age": rng.integers(20, 60, size=40),
                "job": rng.choice(["a", "b", "c"], size=40),
                "sex": rng.choice(["f", "m"], size=40),
            }
        )
        domain = TabularDomain.from_frame(frame, immutable=["age"])
        X = domain.encode_array(frame)
        model = LinearModel(rng.normal(size=X.shape[1]), 0.0)
        y = rng.integers(0, 2, size=40)
        found = exact_supremum(model, X, y, metric=euclidean(), lam=0.1, domain=domain)
        np.testing.assert_array_equal(found.x[:, 0], X[:, 0])
        others = X[rng.permutation(40)]
        others[:, 0] = X[:, 0]
        value = model.losses(others, y) - 0.1 * ((others - X) ** 2).sum(1)
        assert (value <= found.value + 1e-9).all()
        outside = ~domain.contains(found.x, origin=X)
        assert outside.any()
        assert not found.exact[outside].any()
        dual = exact_dual(model, X, y, metric=euclidean(), domain=domain, eps=0.2)
        assert not dual.exact
        assert dual.lower <= dual.value

    def test_value_is_bracketed(self, rng):
        X, y = rng.normal(size=(20, 3)), rng.integers(0, 2, size=20)
        dual = exact_dual(LinearModel(rng.normal(size=3), 0.0), X, y, metric=euclidean(), eps=0.1)
        assert dual.value - 1e-6 <= dual.lower <= dual.value


class TestPopulationBound:
    def test_covers_and_needs_a_bounded_loss(self, rng):
        d = 3
        metric, box = free_first(d), BoxDomain(-np.ones(d), np.ones(d))
        model = LinearModel([0.4, 1.0, -1.0], 0.0)
        X = rng.uniform(-1, 1, size=(600, d))
        y = (X @ [0.4, 1.0, -1.0] > 0).astype(int)
        truth = exact_dual(model, X, y, metric=metric, domain=box, eps=0.05, tol=1e-6)
        shown = exact_bound(model, X[:200], y[:200], metric=metric, domain=box, eps=0.05)
        assert shown.value > truth.value
        assert shown.gap > truth.gap
        assert shown.about == "population"
        free = exact_bound(model, X[:200], y[:200], metric=metric, domain=box, eps=0.0)
        assert free.lambda_ == np.inf
        assert free.gap > exact_dual(model, X, y, metric=metric, domain=box, eps=0.0).gap
        with pytest.raises(InputError, match="bounded domain"):
            exact_bound(model, X, y, metric=metric, domain=None, eps=0.05)

    def test_the_price_is_chosen_on_other_people_than_it_is_evaluated_on(self, rng, monkeypatch):
        import likewise.auditing.bounds.linear.search as module

        seen = {}

        def noting(name):
            solve = getattr(module, name)

            def noted(model, X, y, **given):
                seen[name] = {tuple(row) for row in X.tolist()}
                return solve(model, X, y, **given)

            monkeypatch.setattr(module, name, noted)

        for name in ("exact_dual", "exact_supremum"):
            noting(name)
        X = rng.uniform(-1, 1, size=(101, 2))
        box, metric = BoxDomain(-np.ones(2), np.ones(2)), free_first(2)
        model = LinearModel([1.0, -1.0], 0.0)
        shown = exact_bound(model, X, rng.integers(0, 2, size=101), metric=metric, domain=box, eps=0.05)
        assert seen["exact_dual"].isdisjoint(seen["exact_supremum"])
        assert (len(seen["exact_dual"]), len(seen["exact_supremum"]), shown.n) == (50, 51, 51)

    @pytest.mark.parametrize("loss", ["cross_entropy", "hinge", "zero_one"])
    def test_ceiling_is_never_exceeded(self, rng, loss):
        model = LinearModel(rng.normal(size=(3, 4)), rng.normal(size=3), loss=loss)
        box = BoxDomain(-np.ones(4), 2 * np.ones(4))
        X = rng.choice([-1.0, 2.0], size=(3000, 4))
        assert model.losses(X, rng.integers(0, 3, size=3000)).max() <= loss_ceiling(model, box)
        assert loss_ceiling(model, Unbounded()) == (1.0 if loss == "zero_one" else np.inf)


class TestReadingModels:
    @pytest.mark.parametrize("loss", ["cross_entropy", "hinge", "zero_one"])
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_adapters_have_the_same_losses(self, rng, loss, n_classes):
        from sklearn.linear_model import LogisticRegression

        from likewise.models import as_model

        X, y = rng.normal(size=(90, 3)), rng.integers(0, n_classes, size=90)
        fitted = LogisticRegression().fit(X, y)
        adapter = as_model(fitted, loss=loss)
        linear = LinearModel(*as_model(fitted).linear_form(), adapter.classes_, loss)
        np.testing.assert_allclose(linear.losses(X, y), adapter.losses(X, y), atol=1e-9)

    def test_bad_input_is_named(self, rng):
        model = LinearModel([1.0, 2.0], 0.0)
        with pytest.raises(ModelError, match="not finite"):
            LinearModel([np.nan, 1.0], 0.0)
        with pytest.raises(InputError, match="none of the classes"):
            exact_supremum(model, [[0.0, 0.0]], [7], metric=euclidean(), lam=1.0)
        with pytest.raises(InputError, match="'loss' must be one of"):
            LinearModel([1.0], 0.0, loss="huber")
        with pytest.raises(InputError, match="metric is for 3 columns"):
            exact_supremum(model, [[0.0, 0.0]], [1], metric=euclidean(3), lam=1.0)
        metric = FairMetric(1.0, np.zeros((2, 0)), np.zeros(0), feature_map=lambda X: X)
        with pytest.raises(InputError, match="feature map"):
            exact_supremum(model, [[0.0, 0.0]], [1], metric=metric, lam=1.0)
        with pytest.raises(InputError, match="domain has 3 columns"):
            exact_supremum(
                model, [[0.0, 0.0]], [1], metric=euclidean(), lam=1.0, domain=BoxDomain([0.0] * 3, 1.0)
            )
        with pytest.raises(InputError, match="'eps'"):
            exact_dual(model, [[0.0, 0.0]], [1], metric=euclidean(), eps=-1)
