"""
Verify: all people who could exist
==================================

An audit is about people in a table. ``verify`` asks about every row that the domain allows, and cuts the domain into parts
until a part is proved or a pair of rows is found whose decisions differ. What is not settled by then is estimated by asking
the model about random rows.
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

import likewise as lw

data = lw.datasets.load_german()
few = ["sex", "age", "credit_amount", "duration", "housing"]
domain = lw.TabularDomain.from_frame(pd.concat([data.frame_train[few], data.frame_test[few]]))
tree = DecisionTreeClassifier(max_depth=5, random_state=0)
tree.fit(domain.encode(data.frame_train[few]), data.y_train)

# %%
found = lw.verify(tree, data.frame_test[few], ["sex"], domain=domain, encoded=True, max_regions=3000)
print(f"the same decision for both sexes: {found.proved:.2%} of all rows, proved")
print(f"another decision:                 {found.flips:.2%} of all rows, shown")
share, low, high, rows = found.sampled
print(
    f"another decision:                 {share:.2%} of {rows} random rows, 95% interval {low:.2%} to {high:.2%}"
)

# %%
# Pairs that anybody can check: two rows that differ in sex alone, and what the tree decides. People of the table come first.
found.examples.head(4)

# %%
# Rows of the domain count alike, people of the table as often as they occur: the two shares need not agree.
proved, flips, undecided = found.people
figure, axes = plt.subplots(figsize=(6, 2))
shares = {"people in the table": (proved, flips, undecided)}
shares["all who could exist"] = (found.proved, found.flips, found.undecided)
for place, parts in enumerate(shares.values()):
    left = 0.0
    for part, colour in zip(parts, ["tab:blue", "tab:red", "0.8"], strict=True):
        axes.barh(place, part, left=left, color=colour)
        left += part
axes.set_yticks([0, 1], list(shares))
axes.set(xlabel="share: proved the same (blue), flips (red), undecided (grey)", xlim=(0, 1))
figure.tight_layout()
