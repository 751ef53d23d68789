"""
The paper's Figure 1
====================

The idea of *Training individually fair ML models with Sensitive Subspace Robustness* in three panels: a boundary that follows
the majority, its unfair map, and the boundary that SenSR learns instead. ``likewise reproduce toy`` does this for ten
seeds; the other figures and tables are ``reproduce sentiment`` and ``reproduce adult``.
"""

# %%
import io

import matplotlib.pyplot as plt

from likewise.experiments import ToyStudy

study = ToyStudy()
cells = {(method, 0): study.run(method, 0) for method in study.methods}
for (method, _), cell in cells.items():
    print(method, {name: round(value, 3) for name, value in cell.values.items()})

# %%
# Horizontal moves should not matter. The baseline's boundary is tilted, so the unfair map moves people sideways; SenSR's is
# level.
figure = study.figures(cells)["figure-1"]  # made without pyplot, so it is shown by hand
drawn = io.BytesIO()
figure.savefig(drawn, dpi=150)
drawn.seek(0)
plt.figure(figsize=figure.get_size_inches())
plt.imshow(plt.imread(drawn))
plt.axis("off")
plt.tight_layout(pad=0)
