"""
Learn a fair metric, four ways
==============================

Who is comparable with whom is the one thing that individual fairness cannot do without. Here it is learned from four
kinds of knowledge, on points with two columns: *skill*, which should count, and *accent*, which should not. The accent leaks
into the test score a little, so the free direction is tilted.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import likewise as lw

random = np.random.default_rng(0)
accent = random.normal(size=400)
people = pd.DataFrame({"score": random.normal(size=400) + 0.5 * accent, "accent": accent})

# %%
# 1. *An expert names a direction.* 2. *An attribute is known for everybody*: the direction that predicts it is free.
expert = lw.ExpertSubspace(["accent"]).fit(people)
attribute = lw.AttributeSubspace().fit(people, accent > 0)

# %%
# 3. *Groups of comparable people*: the same test, taken in two accents. Directions in which people of one group differ are
# free.
pairs = pd.concat([people[:100], people[:100] + np.array([0.5, 1.0])], ignore_index=True)
comparable = lw.ComparableSubspace(n_components=1).fit(pairs, groups=np.tile(np.arange(100), 2))

# %%
# 4. *Judgements of pairs*: somebody said of 600 pairs whether the two are comparable. Here they looked at the skill behind the
# score.
first, second = random.integers(0, 400, size=(2, 600))
skill = people["score"] - 0.5 * people["accent"]
judged = (np.abs(skill.to_numpy()[first] - skill.to_numpy()[second]) < 0.7).astype(int)
pair = lw.PairMetric().fit(people, pairs=np.column_stack([first, second]), comparable=judged)

# %%
# Everybody inside a band is at most 1 away from the person in the middle. A band without ends is a direction that costs
# nothing.
learned = {"expert": expert, "attribute": attribute, "comparable groups": comparable, "judged pairs": pair}
grid = np.stack(np.meshgrid(np.linspace(-3, 3, 121), np.linspace(-3, 3, 121)), axis=-1)
frame = pd.DataFrame(grid.reshape(-1, 2), columns=people.columns)
middle = pd.DataFrame([[0.0, 0.0]] * len(frame), columns=people.columns)
figure, panels = plt.subplots(1, 4, figsize=(12, 3.4), sharex=True, sharey=True)
for (name, learner), panel in zip(learned.items(), panels, strict=True):
    distance = np.asarray(learner.metric_.squared_distance(frame, middle)).reshape(121, 121)
    panel.scatter(people["score"], people["accent"], s=4, color="0.7")
    panel.contourf(*np.moveaxis(grid, -1, 0), distance, levels=[0, 1], colors=["tab:blue"], alpha=0.35)
    panel.set(title=name, xlabel="score")
panels[0].set_ylabel("accent")
figure.tight_layout()
