"""
Scores of texts, above the noise
================================

Eleven language models scored one CV, as it is and with one thing changed. A blank line moves the score too, so an edit
counts only as far as it does more than edits that should change nothing.
"""

# %%
import matplotlib.pyplot as plt

import likewise as lw

scores = lw.datasets.load_hiring_scores()  # B. Szabo 2026, CC BY 4.0
result = lw.audit_scores(scores, unit="job", by="model")
table = result.frame
print(table["verdict"].value_counts().to_string())

# %%
# Families of edits by their adjusted p-value: after adjustment for having looked at all of them, in all models, and beyond
# the placebos, none is shown; on its own, a model may be.
shown = table.nsmallest(6, "p_value")
shown[["part", "family", "worst", "adjusted"]]

# %%
# Each point is a family of edits in one model. Left of the line an edit moved the score less than the placebos did.
figure, axes = plt.subplots(figsize=(5, 4.5))
axes.scatter(table["floor"], table["size"], s=14, color="0.6", label="others")
axes.scatter(shown["floor"], shown["size"], s=30, color="tab:red", label="smallest p-values")
limit = float(table["size"].max()) * 1.05
axes.plot([0, limit], [0, limit], color="0.8", linewidth=1)
axes.set(xlabel="mean change by placebos (the floor)", ylabel="mean change by the edit")
axes.legend()
figure.tight_layout()
