"""
Repair a model that may not be trained again
============================================

``TwinConsensus`` answers with the mean over a person's twins. The twins of two people who differ in the sensitive columns
alone are the same, so both get the same answer, whatever the model inside does.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import likewise as lw

data = lw.datasets.load_german()
columns = make_column_transformer(
    (OrdinalEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"
)
forest = RandomForestClassifier(n_estimators=30, random_state=0)
model = make_pipeline(columns, forest).fit(data.frame_train, data.y_train)
repaired = lw.TwinConsensus(model, sensitive_features=["sex", "foreign_worker"]).fit(data.frame_train)

# %%
# Change nothing but the two columns, in every combination, and count whose decision changes.
twins = {"sex": ["female", "male"], "foreign_worker": ["yes", "no"]}
for name, one in {"as it was": model, "repaired": repaired}.items():
    study = lw.correspondence_study(one, data.frame_test, twins)
    accuracy = (one.predict(data.frame_test) == data.y_test).mean()
    print(f"{name}: {1 - study.consistency:.1%} of decisions change, accuracy {accuracy:.3f}")

# %%
# The price, person by person: how far the repaired answer is from the one before.
before = model.predict_proba(data.frame_test)[:, 1]
after = repaired.predict_proba(data.frame_test)[:, 1]
figure, axes = plt.subplots(figsize=(4.5, 4.5))
axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
axes.scatter(before, after, s=10)
axes.set(xlabel="probability of good credit, as it was", ylabel="repaired")
figure.tight_layout()
