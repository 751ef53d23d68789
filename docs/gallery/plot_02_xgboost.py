"""
Audit XGBoost
=============

Trees have no gradients to follow. The worst case of each person is looked for in two ways: among the people of the table
and their twins, and among all rows that could exist. The second finds more, because a table holds few of the people who
could be in it.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from xgboost import XGBClassifier

import likewise as lw
from likewise.report import plot_curve

data = lw.datasets.load_german()
trees = XGBClassifier(n_estimators=30, max_depth=3, random_state=0)
model = make_pipeline(data.domain, trees).fit(data.frame_train, data.y_train)  # a domain encodes
metric = lw.AttributeSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_
people, outcome = data.frame_test.iloc[:100], data.y_test[:100]

# %%
# The same audit twice, with another search.
found = {
    name: lw.audit(model, people, outcome, metric=metric, domain=data.domain, search=search)
    for name, search in {
        "people of the table": "candidates",
        "all people who could exist": lw.auditing.DomainSearch(calls=200),
    }.items()
}
for name, result in found.items():
    print(f"{name}: gap {result.gap:.3f} at ε = {result.eps:g}, {result.pure_gap:.3f} at no distance")

# %%
# Both are estimates from below: the rows that attain them exist, and are listed in ``unfair_map``.
plot_curve(found, max_eps=0.3)
plt.tight_layout()
