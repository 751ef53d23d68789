"""
Audit a scikit-learn pipeline
=============================

A pipeline that takes the raw table can be audited as it is: no encoding, no wrapper. The question is whether people
who differ in nothing but sex, and in what sex alone explains, are treated alike.
"""

# %%
# A model as teams have it: German credit, one-hot categories, logistic regression.
import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import likewise as lw
from likewise.report import plot_curve

data = lw.datasets.load_german()  # bundled: 1,000 people, good or bad credit
columns = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    (StandardScaler(), make_column_selector(dtype_include="number")),
)
model = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(data.frame_train, data.y_train)

# %%
# Who is comparable: sex is free, everything else counts. This is an assumption, and the only one that is needed.
metric = lw.ExpertSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_
result = lw.audit(model, data.frame_test, data.y_test, metric=metric, domain=data.domain, eps=0.1)
print(result)

# %%
# The people themselves: each beside the twin that fares worst, in the table's own units.
result.pure_map.top(3)

# %%
# How the gap grows when people may also be moved a little. Left end: only what costs nothing under the metric.
plot_curve({"logistic regression": result}, max_eps=0.3)
plt.tight_layout()
