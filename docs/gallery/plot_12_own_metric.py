"""
A metric of your own
====================

Where the law or an expert says what may count, write it down: a matrix, or a map φ into the quantities that matter. An audit
needs nothing else.
"""

# %%
# Applicants with income, debt and a postcode. What should count is the debt *per income*, and the postcode not at all.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import likewise as lw
from likewise.report import plot_curve

random = np.random.default_rng(0)
income = random.normal(3.0, 0.5, size=300)
postcode = random.normal(size=300) + 0.8 * (income - 3)
debt = random.normal(1.0, 0.3, size=300)
X = np.column_stack([income, debt, postcode])
repaid = (income - 2 * debt + 0.3 * random.normal(size=300) > 1).astype(int)
model = LogisticRegression().fit(X, repaid)

# %%
# Σ says what a difference costs. A zero on the diagonal makes a column free; a direction with eigenvalue 0 makes a combination
# of columns free.
plain = lw.mahalanobis(np.diag([4.0, 4.0, 0.0]))
what_counts = np.array([1.0, -2.0, 0.0])
ratio = lw.mahalanobis(np.outer(what_counts, what_counts))
same_ratio = (X[:1], X[:1] + np.array([[1.0, 0.5, 0.0]]))
print(
    "one more of income, half of debt:",
    plain.squared_distance(*same_ratio),
    ratio.squared_distance(*same_ratio),
)

# %%
# The second metric calls people comparable who have more of both. The model agrees with it as far as its weights do.
domain = lw.data.BoxDomain(lower=X.min(axis=0), upper=X.max(axis=0))
found = {
    name: lw.audit(model, X, repaid, metric=metric, domain=domain, eps=0.05)
    for name, metric in {"every column but the postcode": plain, "income − 2 debt": ratio}.items()
}
plot_curve(found, max_eps=0.2)
plt.tight_layout()
