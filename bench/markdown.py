"""A run as a Markdown table: ``python -m bench SUITE --markdown FILE``, or from saved runs

    python -m bench.markdown bench/results/cuda.json

which prints their tables.
"""

import json
import sys

from .report import described, first_line, shown

_VERDICTS = {True: "yes", False: "no", None: ""}


def table(run):
    """The text of a run as `bench.report.whole` gives it: its circumstances, its rows, and the errors."""
    rows = run["rows"]
    sides = [side for side in run["sides"] if any(row[side] is not None or side in row["errors"] for row in rows)]
    lines = [
        f"# {run['suite']}",
        "",
        f"`{run['command']}`, {run['date']}",
        "",
        described(run),
        "",
        _line(["", *sides, "target", "met"]),
        _line(["---", *["---:"] * len(sides), "---", "---"]),
    ]
    errors = []
    for row in rows:
        cells = [_cell(row, side) for side in sides]
        lines.append(_line([row["row"], *cells, row["target"] or "", _VERDICTS[row["ok"]]]))
        errors += [f"- {row['row']}, {side}: {first_line(text)}" for side, text in row["errors"].items()]
    return "\n".join([*lines, *(["", "Errors:", "", *errors] if errors else []), ""])


def save(path, run):
    """Write the table of a run to ``path``."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(table(run))


def _cell(row, side):
    if side in row["errors"]:
        return "error"
    return "" if row[side] is None else shown(row[side], row["unit"])


def _line(cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as saved:
            print(table(json.load(saved)))
