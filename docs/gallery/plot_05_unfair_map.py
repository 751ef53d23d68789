"""
Read the unfair map
===================

A number says that a model is unfair; the unfair map says to whom, and by which columns. Each person is moved to the
comparable person who fares worst. Here both are points in a plane, so the whole map can be seen.
"""

# %%
# Two groups that differ in the horizontal direction only, one in ten of the minority on the right. Logistic regression
# follows the majority, and its boundary tilts.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import likewise as lw
from likewise.report import plot_unfair_map

toy = lw.datasets.make_toy(n=200)
people = pd.DataFrame(toy.X, columns=["horizontal", "height"])
model = LogisticRegression().fit(people, toy.y)

# %%
# The horizontal direction should not matter. Where people end up is bounded by the domain: the range of the data.
metric = lw.ExpertSubspace(["horizontal"]).fit(people).metric_
domain = lw.TabularDomain.from_frame(people)
result = lw.audit(model, people, toy.y, metric=metric, domain=domain, eps=0.0)
result.pure_map.top(5)

# %%
# Each line leads from a person to the twin with the highest loss. Everybody moves sideways, to where the tilted boundary is
# wrong about them.
axes = plot_unfair_map(result, ("horizontal", "height"), pure=True)
across = np.array(axes.get_xlim())
slope, level = model.coef_[0], model.intercept_[0]
axes.plot(across, -(slope[0] * across + level) / slope[1], color="black", linewidth=1)
axes.set_ylim(toy.X[:, 1].min() - 0.5, toy.X[:, 1].max() + 0.5)
plt.tight_layout()
