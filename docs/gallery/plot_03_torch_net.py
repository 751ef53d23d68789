"""
Audit a torch network
=====================

Any ``torch.nn.Module`` that maps rows to logits will do. It is asked for gradients with respect to the rows alone: it
leaves the audit with the parameters, the mode and the gradients it came with.
"""

# %%
import matplotlib.pyplot as plt
import torch

import likewise as lw
from likewise.report import plot_curve

data = lw.datasets.load_german()
X, y = data.X_train, data.y_train  # encoded: standardised numbers, one-hot categories
rows, labels = torch.tensor(X.to_numpy(), dtype=torch.float32), torch.tensor(y)

generator = torch.Generator().manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(X.shape[1], 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
for parameter in net.parameters():
    torch.nn.init.normal_(parameter, std=0.2, generator=generator)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(150):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(rows), labels).backward()
    optimizer.step()

# %%
# The network takes encoded rows. The domain says what they mean, so that twins are people of the original table.
metric = lw.ExpertSubspace(["sex", "foreign_worker"], domain=data.domain).fit(data.frame_train).metric_
result = lw.audit(net, data.X_test, data.y_test, metric=metric, domain=data.domain, encoded=True)
print(result)

# %%
# What was changed to make each of the most harmed people fare worse.
result.unfair_map.top(4)

# %%
plot_curve(result, max_eps=0.3)
plt.tight_layout()
