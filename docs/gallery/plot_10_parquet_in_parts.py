"""
Audit Parquet files in parts
============================

A table that does not fit into memory is audited part by part, here or on a cluster; every engine gives the same numbers. The
unfair map of everybody is written to Parquet as well, and read back one column at a time.
"""

# %%
# Four files of people, as a data lake would have them.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import likewise as lw

data = lw.datasets.load_german()
folder = Path(tempfile.mkdtemp())
everybody = data.frame.assign(target=data.y)
for number in range(4):
    everybody.iloc[number::4].to_parquet(folder / f"people-{number}.parquet", index=False)

model = make_pipeline(data.domain, LogisticRegression(max_iter=1000)).fit(data.frame_train, data.y_train)
metric = lw.ExpertSubspace(["sex"], domain=data.domain).fit(data.frame_train).metric_

# %%
# The path names the table, "target" the column of labels. On a cluster this is the same line with
# ``engine=lw.auditing.DaskEngine("tcp://scheduler:8786")``.
result = lw.audit(
    model, str(folder / "people-*.parquet"), "target", metric=metric, domain=data.domain,
    search="candidates", engine=lw.auditing.LocalEngine(), map_folder=folder / "map",
)  # fmt: skip
print(f"{result.n} people, gap {result.gap:.3f} at ε = {result.eps:g}, {result.pure_gap:.3f} at no distance")

# %%
# Who is harmed, of everybody: read from the map's files.
harm = pd.concat(
    pd.read_parquet(path, columns=["harm"]) for path in sorted((folder / "map").glob("*.parquet"))
)
figure, axes = plt.subplots(figsize=(6, 3))
axes.hist(harm["harm"], bins=40, log=True)
axes.set(xlabel="loss of the worst comparable twin − own loss", ylabel="people")
figure.tight_layout()
