"""
Choose ε in your own units
==========================

ε is a mean squared fair distance, which nobody can picture. ``metric.budget`` turns a sentence such as "five years of age
should not matter much" into that number.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import likewise as lw
from likewise.report import plot_curve

data = lw.datasets.load_german()
metric = lw.ExpertSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_
words = {
    "2 years of age": metric.budget(age=2),
    "5 years of age": metric.budget(age=5),
    "3 months of duration": metric.budget(duration=3),
    "1,000 DM": metric.budget(credit_amount=1000),
}
for sentence, eps in words.items():
    print(f"{sentence:>22}: ε = {eps:.3f}")

# %%
# The audit answers for every ε at once, so the choice can be made afterwards, on the curve.
model = make_pipeline(data.domain, LogisticRegression(max_iter=1000)).fit(data.frame_train, data.y_train)
result = lw.audit(
    model, data.frame_test, data.y_test, metric=metric, domain=data.domain, eps=words["5 years of age"]
)
axes = plot_curve(result, max_eps=0.25)
top = axes.get_ylim()[1]
for sentence, eps in words.items():
    axes.axvline(eps, color="0.6", linewidth=0.8)
    axes.text(eps, 0.97 * top, sentence, rotation=90, va="top", ha="right", fontsize=8)
plt.tight_layout()
