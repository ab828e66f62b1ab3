"""Write all of vectors/ anew from its printed seeds; with `--check`, say what differs and exit 1.

The bytes come from `makers/`, which follow docs/spec alone. What is expected is written there by hand, case by case.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

VECTORS = Path(__file__).resolve().parent
sys.path.insert(0, str(VECTORS.parent))

from vectors.makers import FILES, schemas  # noqa: E402  the path comes first
from vectors.makers.kit import KEYS  # noqa: E402

TABLE = ("<!-- generated: files -->\n", "\n<!-- end: files -->")


def generated() -> dict[str, bytes]:
    """Return every generated file by its name below vectors/."""
    files: dict[str, bytes] = {}
    rows = ["| file | cases | accept | refuse | hunts |", "|---|---|---|---|---|"]
    total = accepted = 0
    for make in FILES:
        made = make()
        document = made.document()
        files[f"{made.name}.json"] = text_of(document)
        files.update(made.beside)
        cases = document["cases"]
        good = sum(case["expected"]["exit"] == 0 for case in cases)
        total, accepted = total + len(cases), accepted + good
        rows.append(
            f"| [{made.name}.json]({made.name}.json) | {len(cases)} | {good} | {len(cases) - good} | {made.hunts} |"
        )
    rows.append(f"| all | {total} | {accepted} | {total - accepted} | |")
    files.update({name: text_of(schema) for name, schema in schemas.make().items()})
    files["README.md"] = filled((VECTORS / "README.md").read_text("utf-8"), "\n".join(rows)).encode()
    return files


def text_of(value: object) -> bytes:
    """Return JSON that people read: indented, ASCII only, so that no character hides."""
    return json.dumps(value, indent=1, ensure_ascii=True).encode("ascii") + b"\n"


def filled(page: str, table: str) -> str:
    """Return the page with the table of files between its markers."""
    head, start, rest = page.partition(TABLE[0])
    _, end, tail = rest.partition(TABLE[1])
    if not start or not end:
        raise SystemExit("README.md: the markers of the table are missing")
    return head + start + table + end + tail


def stale(files: dict[str, bytes]) -> list[str]:
    """Return the names of files that differ, are missing, or are there and not generated."""
    differ = [name for name, data in files.items() if not same(VECTORS / name, data)]
    there = {path.relative_to(VECTORS).as_posix() for path in VECTORS.rglob("*") if path.is_file()}
    extra = {name for name in there - set(files) if name.endswith((".json", ".jsonl", ".bin"))}
    return sorted(differ) + sorted(extra)


def same(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data


def main(arguments: list[str]) -> int:
    files = generated()
    differ = stale(files)
    if arguments == ["--check"]:
        for name in differ:
            print(f"differs: vectors/{name}")
        return 1 if differ else 0
    if arguments:
        print("usage: generate.py [--check]")
        return 2
    for key in KEYS:
        print(f"{key.name:13} seed {key.seed.hex()}  {key.id}")
    for name in differ:
        path = VECTORS / name
        if name in files:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(files[name])
        else:
            path.unlink()
        print(f"{'written' if name in files else 'removed'}: vectors/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
