"""Cases: what one file of vectors holds, and the files of bytes that stand beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

STATUS = {0: "ok", 1: "failed", 2: "refused", 3: "not_established", 4: "not_trusted", 5: "absent", 6: "rule_broken"}


@dataclass
class File:
    """One file of vectors under construction. `hunts` is its line in the README."""

    name: str
    spec: tuple[str, ...]
    hunts: str
    cases: list[dict[str, Any]] = field(default_factory=list)
    beside: dict[str, bytes] = field(default_factory=dict)

    def case(
        self,
        check: str,
        id_: str,
        comment: str,
        input_: dict[str, Any],
        *,
        flags: str = "",
        code: str | None = None,
        exit_: int | None = None,
        value: Any = None,
    ) -> None:
        """Add a case. Without a code it is to be accepted; with one, the exit code is 1 unless told otherwise."""
        if exit_ is None:
            exit_ = 0 if code is None else 1
        expected: dict[str, Any] = {"status": STATUS[exit_], "exit": exit_}
        if code is not None:
            expected["code"] = code
        if value is not None:
            expected["value"] = value
        self.cases.append(
            {
                "id": id_.replace("_", "-"),
                "comment": comment,
                "flags": flags.split(),
                "check": check,
                "input": input_,
                "expected": expected,
            }
        )

    def document(self) -> dict[str, Any]:
        ids = [case["id"] for case in self.cases]
        repeated = {id_ for id_ in ids if ids.count(id_) > 1}
        if repeated:
            raise SystemExit(f"{self.name}: ids that stand twice: {sorted(repeated)}")
        return {"schema": "receipt-ledger.vectors/v1", "spec": list(self.spec), "cases": self.cases}


def bytes_input(data: bytes) -> dict[str, str]:
    """The input member of some bytes: text where they are UTF-8, hexadecimal where they are not."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"hex": data.hex()}
