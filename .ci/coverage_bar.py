"""Fail below 95 % of the lines; show the share of the branches."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    totals = json.load(file)["totals"]
lines = totals["covered_lines"] / totals["num_statements"]
branches = totals["covered_branches"] / totals["num_branches"]
print(f"lines {lines:.1%} (at least 95 %), branches {branches:.1%}")
sys.exit(lines < 0.95)
