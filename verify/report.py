"""Verdicts: what was checked, what was found, and the exit code that follows.

    {"accepted":[],"checks":[{"asked":true,"count":3,"name":"chain","status":"ok"},...],
     "coverage":{"count":3,"from":0,"to":3},"covered":{"own_seal":2,"sealed_root":1,"signed_head":0},"exit":0,
     "head":{"origin":"...","root":"sha256:...","size":3},"notes":[],"schema":"receipt-ledger.verdict/v1","status":"ok",
     "subject":"...","trust":{"digest":"sha256:...","source":"..."},"verifier":{"name":"receipt-ledger","version":"..."}}

- A check that did not run never reads as passed: only `ok` passes, and a name with a finding has no `ok` item.
- The exit code is computed from the checks and from nothing else; text and JSON show the same one.
- Zero receipts are never `ok`.
- At most `MAX_FINDINGS` findings are kept for each name; the rest are counted, so that memory is flat.

Source: docs/reference/verdicts.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from ledger import canonical
from ledger.checkpoint import Head
from ledger.digest import print_digest
from ledger.errors import LedgerError, clip
from ledger.version import VERSION
from verify.codes import CODES, exit_of, worst

__all__ = [
    "ACCEPTABLE",
    "MAX_FINDINGS",
    "VERDICT_SCHEMA",
    "Check",
    "CheckStatus",
    "Coverage",
    "Covered",
    "NameState",
    "Native",
    "NativeFinding",
    "NativeStatus",
    "Report",
    "TimeBound",
    "TimeBounds",
    "TrustUsed",
    "Verdict",
    "accept_codes",
]

VERDICT_SCHEMA: Final = "receipt-ledger.verdict/v1"
MAX_FINDINGS: Final = 100

CheckStatus: TypeAlias = Literal["ok", "failed", "not_checked", "absent", "unreadable"]
NativeStatus: TypeAlias = Literal["holds", "fails", "unverifiable", "unreadable"]
"""What the rules of another system say of its document: the words of an `import` receipt."""

_STATUS: Final = {0: "ok", 1: "failed", 3: "not_established", 4: "not_trusted", 5: "absent", 6: "rule_broken"}


@dataclass(frozen=True, slots=True)
class Check:
    """One test and its result, or one finding of a test.

    `count` is how many things were looked at, or stand behind a finding. `asked` is whether the exit code depends on it.
    """

    name: str
    status: CheckStatus
    code: str | None = None
    where: str | None = None
    message: str = ""
    count: int = 1
    asked: bool = True

    @property
    def exit(self) -> int:
        """The exit code that this check alone causes."""
        return exit_of(self.code) if self.asked and self.code is not None else 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """Entries looked at: `first` up to, not including, `end`, and how many of them."""

    first: int
    end: int
    count: int


@dataclass(frozen=True, slots=True)
class Covered:
    """How many receipts are attributed by their own seal, by a sealed receipt above them, or not yet: by the head only."""

    own_seal: int = 0
    sealed_root: int = 0
    signed_head: int = 0


@dataclass(frozen=True, slots=True)
class TrustUsed:
    """Digest of the trust file in use, and where it came from."""

    digest: str
    source: str


@dataclass(frozen=True, slots=True)
class TimeBound:
    """A time that a pinned party gave; `kind` is `counter-seal`, `cosignature` or `timestamp`."""

    time: str
    by: str
    kind: str


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """When a subject was not shown yet, by the word of one party, and when it existed, by that of another or the same."""

    not_before: TimeBound | None = None
    not_after: TimeBound | None = None


@dataclass(frozen=True, slots=True)
class NativeFinding:
    """One finding of the rules of another system, under its own name."""

    name: str
    where: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Native:
    """What the rules of another system say of its document; `code` is their word for it, and never causes our exit code.

    `findings` holds the first `MAX_FINDINGS`, `found` counts all of them.
    """

    format: str
    kind: str
    version: str
    status: NativeStatus
    code: str
    findings: tuple[NativeFinding, ...] = ()
    found: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks on one subject.

    `path` leads from the subject up to the receipt whose seal covers it. `remember` is the signed note that the verifier's
    memory should hold from now on, None where it stays as it is; it is not part of the JSON. `native` stands in verdicts on
    documents of other systems.
    """

    subject: str
    checks: tuple[Check, ...]
    coverage: Coverage
    head: Head | None = None
    trust: TrustUsed | None = None
    covered: Covered = Covered()
    path: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remember: bytes | None = None
    native: Native | None = None
    time: TimeBounds | None = None

    @property
    def exit(self) -> int:
        """The exit code: of all checks that were asked for and not accepted, the one that wins."""
        return worst(check.exit for check in self.checks if check.code not in self.accepted)

    @property
    def status(self) -> str:
        """One word for the exit code."""
        return _STATUS[self.exit]

    @property
    def findings(self) -> tuple[Check, ...]:
        """The checks that are not `ok` and were asked for, in order."""
        return tuple(check for check in self.checks if check.status != "ok" and check.asked)

    def to_json(self) -> bytes:
        """Return the verdict as canonical JSON."""
        return canonical.encode(self.to_value())

    def to_value(self) -> canonical.JsonObject:
        """Return the verdict as a JSON value; members that do not apply are absent."""
        value: canonical.JsonObject = {
            "schema": VERDICT_SCHEMA,
            "subject": self.subject,
            "status": self.status,
            "exit": self.exit,
            "coverage": {"from": self.coverage.first, "to": self.coverage.end, "count": self.coverage.count},
            "covered": {
                "own_seal": self.covered.own_seal,
                "sealed_root": self.covered.sealed_root,
                "signed_head": self.covered.signed_head,
            },
            "verifier": {"name": "receipt-ledger", "version": VERSION},
            "checks": [_check_value(check) for check in self.checks],
            "accepted": list(self.accepted),
            "notes": list(self.notes),
        }
        if self.head is not None:
            value["head"] = {
                "origin": self.head.origin,
                "size": self.head.size,
                "root": print_digest(self.head.root),
            }
        if self.trust is not None:
            value["trust"] = {"digest": self.trust.digest, "source": self.trust.source}
        if self.path:
            value["path"] = list(self.path)
        if self.time is not None:
            bounds = (("not_before", self.time.not_before), ("not_after", self.time.not_after))
            value["time"] = {
                name: {"time": bound.time, "by": bound.by, "kind": bound.kind}
                for name, bound in bounds
                if bound is not None
            }
        if self.native is not None:
            value["native"] = _native_value(self.native)
        return value


def _check_value(check: Check) -> canonical.JsonObject:
    value: canonical.JsonObject = {
        "name": check.name,
        "status": check.status,
        "count": check.count,
        "asked": check.asked,
    }
    if check.code is not None:
        value["code"] = check.code
    if check.where is not None:
        value["where"] = check.where
    if check.message:
        value["message"] = check.message
    return value


def _native_value(native: Native) -> canonical.JsonObject:
    return {
        "format": native.format,
        "kind": native.kind,
        "version": native.version,
        "status": native.status,
        "code": native.code,
        "found": native.found,
        "findings": [
            {"name": each.name}
            | ({"where": each.where} if each.where else {})
            | ({"detail": each.detail} if each.detail else {})
            for each in native.findings
        ],
    }


@dataclass(frozen=True, slots=True)
class NameState:
    """What was said under one name: how many things were looked at, whether it still passes, findings, and counts of more."""

    name: str
    ran: int | None
    passed: bool
    findings: tuple[Check, ...]
    more: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class _Name:
    """What is known of the checks under one name."""

    ran: int | None = None
    findings: list[Check] = field(default_factory=list)
    more: dict[str, int] = field(default_factory=dict)
    passed: bool = True


class Report:
    """Collects checks while evidence is read, in flat memory.

    A name passes if it ran and has no finding that fails it. `find` and `note_code` never pass anything by themselves.
    """

    def __init__(self) -> None:
        self._names: dict[str, _Name] = {}
        self.notes: list[str] = []

    def expect(self, *names: str) -> None:
        """Fix the order of names; a name that neither runs nor is skipped is reported as not checked."""
        for name in names:
            self._names.setdefault(name, _Name())

    def ran(self, name: str, count: int = 1) -> None:
        """Say that the check looked at `count` more things."""
        found = self._names.setdefault(name, _Name())
        found.ran = count if found.ran is None else found.ran + count

    def find(
        self, name: str, code: str, *, where: str | None = None, message: str = "", asked: bool = True, count: int = 1
    ) -> None:
        """Add a finding: the check under `name` does not pass."""
        self._add(name, code, where, message, asked=asked, count=count, passed=False)

    def inform(self, name: str, code: str, *, where: str | None = None, message: str = "", count: int = 1) -> None:
        """Add an observation under a code that informs; the check may still pass."""
        if exit_of(code) != 0:
            raise LedgerError(f"report: {code} is not a code that informs", code="report.misuse")
        self._add(name, code, where, message, asked=True, count=count, passed=True)

    def skip(self, name: str, code: str, message: str = "", *, asked: bool) -> None:
        """Say that a check did not run, or not to its end."""
        found = self._names.setdefault(name, _Name())
        found.passed = False
        found.findings.append(Check(name, "not_checked", code, None, message or CODES[code].meaning, 0, asked))

    def state(self) -> tuple[NameState, ...]:
        """Return all that was said so far, name by name."""
        return tuple(
            NameState(name, found.ran, found.passed, tuple(found.findings), tuple(found.more.items()))
            for name, found in self._names.items()
        )

    @classmethod
    def resume(cls, state: Sequence[NameState]) -> Report:
        """Return a report that has said what a state holds."""
        report = cls()
        for each in state:
            report._names[each.name] = _Name(each.ran, list(each.findings), dict(each.more), each.passed)
        return report

    def failed(self, *names: str) -> bool:
        """Return whether any of the names has a finding; of all names, where none is given."""
        return any(not found.passed for name, found in self._names.items() if not names or name in names)

    def exits(self) -> int:
        """Return the exit code that the findings so far cause."""
        return worst(check.exit for check in self.checks())

    def checks(self) -> tuple[Check, ...]:
        """Return one item for each name that passed, or its findings, each with its place."""
        checks: list[Check] = []
        for name, found in self._names.items():
            if found.passed and found.ran:
                checks.append(Check(name, "ok", count=found.ran))
            elif not found.findings and not found.more:
                checks.append(
                    Check(name, "not_checked", "check.not_asked", None, "nothing to look at", 0, asked=False)
                    if found.ran == 0
                    else Check(name, "not_checked", "check.unreachable", None, "did not run", 0)
                )
            checks.extend(found.findings)
            checks.extend(
                Check(name, _status_of(code), code, None, f"and {more} more", more) for code, more in found.more.items()
            )
        return tuple(checks)

    def _add(
        self, name: str, code: str, where: str | None, message: str, *, asked: bool, count: int, passed: bool
    ) -> None:
        found = self._names.setdefault(name, _Name())
        found.passed = found.passed and passed
        if len(found.findings) >= MAX_FINDINGS:
            # Findings beyond the bound keep their exit code; those that were not asked for have none to keep.
            if asked:
                found.more[code] = found.more.get(code, 0) + count
            return
        status: CheckStatus = "ok" if passed else _status_of(code)
        found.findings.append(Check(name, status, code, where, message or CODES[code].meaning, count, asked))


def _status_of(code: str) -> CheckStatus:
    if code == "artifact.unreadable":
        return "unreadable"
    match exit_of(code):
        case 0 | 3:
            return "not_checked"
        case 5:
            return "absent"
        case _:
            return "failed"


ACCEPTABLE: Final = frozenset(
    code for code, row in CODES.items() if row.exit == 3 and not code.startswith("check.")
) | {"artifact.absent"}
"""Codes that may be taken out of what is asked: what could not be established, never what does not hold, is not trusted or
was not looked at."""


def accept_codes(words: Sequence[str]) -> tuple[str, ...]:
    """Return the codes that `--accept` words take out, sorted and once each.

    Raises:
        LedgerError: `usage.accept` for a word that is not a code that may be accepted.
    """
    for word in words:
        if word not in ACCEPTABLE:
            raise LedgerError(
                f"accept: got {clip(word)}, expected a code that causes exit 3",
                code="usage.accept",
                hint="the codes are listed in docs/reference/verdicts.md",
            )
    return tuple(sorted(set(words)))
