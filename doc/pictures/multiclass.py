"""Twenty predictions: each class by itself is calibrated, the confidence is not."""

import matplotlib.pyplot as plt
import numpy as np

rows = {  # prediction: labels of the five rows that have it
    (0.1, 0.4, 0.5): [1, 2, 2, 2, 2],
    (0.1, 0.6, 0.3): [0, 1, 1, 1, 2],
    (0.3, 0.2, 0.5): [0, 0, 0, 1, 2],
    (0.3, 0.4, 0.3): [1, 1, 1, 2, 2],
}
p = np.repeat(list(rows), 5, axis=0)
y = np.concatenate(list(rows.values()))

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), sharey=True)
for c in range(3):
    values = np.unique(p[:, c])
    found = [np.mean(y[p[:, c] == value] == c) for value in values]
    left.plot(values, found, "os^"[c], label=f"class {c}", ms=9 - 2 * c)
confidence = p.max(axis=1)
values = np.unique(confidence)
right.plot(
    values, [np.mean((y == p.argmax(axis=1))[confidence == v]) for v in values], "o"
)
left.legend(frameon=False)
left.set(
    title="each class: on the diagonal", xlabel="its probability", ylabel="frequency"
)
right.set(title="the predicted class: not at 0.4", xlabel="largest probability")
for ax in (left, right):
    ax.plot([0, 1], [0, 1], "--", color="0.35", lw=1, zorder=0)
    ax.set(xlim=(0, 0.8), ylim=(0, 0.8))
