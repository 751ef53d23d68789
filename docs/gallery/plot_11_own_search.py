"""
A search of your own
====================

A search finds rows that treat people worse. It is one class with one method, and whatever it proposes is asked of the model
and measured by the metric in one place, so a search can miss something but never invent it.
"""

# %%
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

import likewise as lw
from likewise.report import plot_curve

data = lw.datasets.load_german()
trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
model = make_pipeline(data.domain, trees).fit(data.frame_train, data.y_train)
metric = lw.ExpertSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_


# %%
# What somebody who knows this business suspects: the model may read sex off age and the length of a credit.
@dataclass(frozen=True)
class OtherAges(lw.auditing.Search):
    """The same people at other ages."""

    name = "other ages"  # what the result calls it
    in_parts = True  # what is found for a person depends on that person alone

    ages: tuple[int, ...] = (20, 30, 45, 60)

    def extend(self, problem, support, eps, budget):
        column = problem.coordinates.encoding.by_name["age"]
        for age in self.ages:
            rows = problem.X.copy()
            rows[:, column.start] = (age - column.mean) / column.scale
            support = support.with_rows(rows, np.arange(problem.n))  # row i was found for person i
        return lw.auditing.Found(support)


# %%
# Searches join: each starts from what those before it found.
twins = lw.auditing.CandidateSearch(use_rows=False)  # own twins only
found = {}
for name, search in {"twins": twins, "twins and other ages": [twins, OtherAges()]}.items():
    found[name] = lw.audit(
        model, data.frame_test, data.y_test, metric=metric, domain=data.domain, search=search
    )
    print(f"{found[name].search}: gap {found[name].gap:.3f} at ε = 0.1")

plot_curve(found, max_eps=0.5)
plt.tight_layout()
