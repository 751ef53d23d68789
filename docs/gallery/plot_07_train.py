"""
Train a model that passes
=========================

SenSR trains on the worst comparable version of every row instead of the row itself. It is a scikit-learn classifier; what it
gives up in accuracy and what it gains is a matter of one picture.
"""

# %%
import matplotlib.pyplot as plt

import likewise as lw
from likewise.report import Comparison, ComparisonEntry, plot_frontier

data = lw.datasets.load_german()
metric = lw.ExpertSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_
steps = {"n_steps": 100, "hidden_layer_sizes": (16,), "validation": None, "random_state": 0}
models = {
    "baseline": lw.MLPBaselineClassifier(**steps),
    "project": lw.ProjectClassifier(metric, **steps),
    "SenSR": lw.SenSRClassifier(metric, **steps),
}

# %%
# All have the same interface, so they are compared in one loop, on people that none of them has seen.
people, outcome = data.frame_test.iloc[:100], data.y_test[:100]
entries = []
for name, model in models.items():
    model.fit(data.frame_train, data.y_train)
    figures = lw.evaluate(model, data.frame_test, data.y_test, sensitive_features=["sex"])
    found = lw.audit(model, people, outcome, metric=metric, domain=data.domain, eps=0.05)
    entries.append(ComparisonEntry(name, figures, found))
comparison = Comparison(tuple(entries))
print(comparison.sentence())

# %%
# Up is more accurate, left is fairer.
plot_frontier(comparison, pure=True)
plt.tight_layout()
