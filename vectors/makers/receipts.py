"""Vectors of receipts: every kind, smallest and fullest, and what is one member away from each."""

from __future__ import annotations

import copy
from typing import Any

from vectors.makers import kit
from vectors.makers.case import File, bytes_input

D = kit.digest
BAD = "receipt.malformed"
RUN = D(b"an opening")
ACT: dict[str, Any] = {
    "name": "payments.refund", "tool": {"name": "payments", "version": "2.4.0", "digest": "unknown"}, "access": "write",
    "arguments_digest": D(b"arguments"), "resource": "p_7781", "environment": "production",
}  # fmt: skip
ACT_FULL = {
    **ACT, "arguments": {"amount_cents": 4200, "note": None, "list": []}, "amount": {"meter": "eur_cent", "value": 4200},
    "precondition": D(b"state"),
}  # fmt: skip
ARTIFACT = {"digest": D(b"stored"), "media_type": "text/plain", "name": "stdout", "size_bytes": 12, "salted": True}
ARTIFACT_FULL = {**ARTIFACT, "truncated_bytes": 5, "full_digest": D(b"all of it")}
CHARGE = {"meter": "tool_calls", "basis": "measured"}
CHARGE_FULL = {
    "meter": "usd_micro", "quoted": 10, "reserved": "unknown", "settled": 0, "released": 2**53 - 1, "payer": "host",
    "basis": "reported",
}  # fmt: skip
LIMIT = {"meter": "tool_calls", "limit": 60}
LIMIT_FULL = {"meter": "usd_micro", "limit": 0, "grace": 1, "soft": 2}
EFFECT = {"key": "refund:p_7781", "attempt": 1}
AMOUNT = {"meter": "usd_micro", "value": 7}

# kind -> (members that always stand, members that may be absent).
KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "header": (
        {"format": "receipt-ledger/v1", "log_key": kit.LOG.id, "next": {"issuer": kit.ISSUER2.commitment, "log": kit.LOG2.commitment}},
        {"continues": {"origin": "ledger.example/older", "size": 12, "root": D(b"root")}},
    ),
    "opening": (
        {
            "name": "refund p_7781", "actor": {"agent": "support", "user": "unknown", "model": "unknown"},
            "adapter": {"name": "python", "version": "1", "coverage": "in-loop"},
        },
        {
            "limits": [LIMIT, LIMIT_FULL], "policy": D(b"policy"), "grant": D(b"grant"), "correlation": {"ticket": "4711"},
            "program": D(b"program"), "document": D(b"document"), "artifacts": [ARTIFACT], "continues": D(b"run before"),
            "parent_opening": D(b"parent"), "parent_intent": D(b"parent intent"),
        },
    ),
    "intent": (
        {"run": RUN, "act": ACT, "act_digest": D(b"act")},
        {
            "effect": EFFECT, "lease_ms": 30000, "reserved": [CHARGE], "policy": D(b"policy"), "grant": D(b"grant"), "rule": "rule 3",
            "approvals": [D(b"approval")], "artifacts": [ARTIFACT],
        },
    ),
    "outcome": (
        {"run": RUN, "intent": D(b"intent"), "status": "committed", "duration_ms": 412, "children": [D(b"intent")]},
        {
            "reason": "command.exit", "error": "TimeoutError", "exit_code": 255, "signal": 127, "charges": [CHARGE_FULL], "usage": [CHARGE],
            "artifacts": [ARTIFACT_FULL],
        },
    ),
    "decision": (
        {"run": RUN, "act": ACT, "act_digest": D(b"act"), "status": "denied", "reason": "policy.denied"},
        {
            "rule": "rule 3", "policy": D(b"policy"), "grant": D(b"grant"), "effect": EFFECT, "meter": "usd_micro", "limit": 10, "spent": 9,
            "reserved": 0, "asked": "unknown", "roles": ["release"], "needed": 1, "expires_at": "2026-12-01T00:00:00.000Z",
            "artifacts": [ARTIFACT],
        },
    ),
    "step": (
        {"run": RUN, "name": "build", "status": "completed"},
        {"reason": "act.exception", "duration_ms": 0, "artifacts": [ARTIFACT], "children": [D(b"outcome")]},
    ),
    "run": (
        {"run": RUN, "status": "completed", "duration_ms": 900, "children": [RUN]},
        {"reason": "run.closed_later", "error": "ValueError", "totals": [AMOUNT], "artifacts": [ARTIFACT]},
    ),
    "approval": (
        {"answer": "granted", "role": "release", "expires_at": "2026-12-01T00:00:00.000Z", "uses": 1},
        {
            "run": RUN, "request": D(b"decision"), "act_digest": D(b"act"), "pattern": "payments.*", "precondition": D(b"state"),
            "policy": D(b"policy"),
        },
    ),
    "resolution": (
        {"intent": D(b"intent"), "happened": "did_not_happen", "resolved_by": "ada"},
        {"run": RUN, "effect": EFFECT, "charges": [CHARGE], "artifacts": [ARTIFACT]},
    ),
    "grant": (
        {"action": "given", "grantee": "support"},
        {
            "acts": ["payments.*"], "conditions": D(b"conditions"), "limits": [LIMIT], "expires_at": "2026-12-01T00:00:00.000Z",
            "parent": D(b"grant"), "mandate": "head of support",
        },
    ),
    "evaluation": (
        {
            "subject": D(b"subject"), "criteria": D(b"criteria"), "evaluator": {"package": "checks", "method": "judge", "run": "unknown"},
            "verdict": "met",
        },
        {"run": RUN, "answers": [{"criterion": "c1", "required": True, "answer": "met"}], "artifacts": [ARTIFACT]},
    ),
    "key": (
        {"action": "rotate", "role": "issuer", "key": kit.ISSUER2.id, "retired": kit.ISSUER.id, "next": {}},
        {},
    ),
    "import": (
        {
            "format": "axlr.result", "version": "1", "document": ARTIFACT, "native_status": "holds", "native_code": "ok", "mapping": "1",
        },
        {"artifacts": [ARTIFACT]},
    ),
    "erasure": (
        {"digest": D(b"stored"), "reason": "erasure.request", "receipts": [D(b"outcome")]},
        {},
    ),
    "hold": (
        {"action": "placed"},
        {"digest": D(b"stored"), "held_run": RUN, "matter": "case 17", "hold": D(b"hold")},
    ),
    "repair": (
        {"reason": "repair.torn_tail", "segment": 0, "offset_bytes": 9120, "cut_bytes": 17, "cut_digest": D(b"cut")},
        {},
    ),
}  # fmt: skip
COMMON = ("schema", "kind", "ledger", "issuer", "issued_at", "nonce", "producer")


def receipt(kind: str, *, full: bool = False, **members: Any) -> dict[str, Any]:
    always, may = KINDS[kind]
    return {
        "schema": kit.SCHEMA,
        "kind": kind,
        "ledger": kit.ORIGIN,
        "issuer": {"name": "build", "key": kit.ISSUER.id},
        "issued_at": "2026-11-30T09:15:00.123Z",
        "nonce": kit.nonce(f"receipt {kind}"),
        "producer": {"name": "vectors", "version": "1"},
        **copy.deepcopy(always),
        **(copy.deepcopy(may) if full else {}),
        **members,
    }


class Maker:
    """Adds cases to the file, one receipt each."""

    def __init__(self, out: File) -> None:
        self.out = out

    def read(
        self,
        id_: str,
        value: dict[str, Any] | bytes,
        comment: str,
        code: str | None = None,
        flags: str = "",
        exit_: int | None = None,
    ) -> None:
        data = value if isinstance(value, bytes) else kit.canonical(value)
        given = None
        if code is None:
            assert isinstance(value, dict)
            given = {"id": kit.digest(data), "kind": value["kind"]}
        self.out.case("receipt", id_, comment, bytes_input(data), code=code, value=given, flags=flags, exit_=exit_)

    def pair(
        self, id_: str, kind: str, path: str, good: Any, bad: Any, comment: str, flags: str, code: str = BAD
    ) -> None:
        """Two receipts that differ in one member: one to accept, one to refuse."""
        self.read(f"{id_}", put(receipt(kind, full=True), path, good), comment)
        self.read(
            f"{id_}-not", put(receipt(kind, full=True), path, bad), f"One step beyond: {comment.lower()}", code, flags
        )

    def bad(self, id_: str, kind: str, path: str, value: Any, comment: str, flags: str, code: str = BAD) -> None:
        self.read(id_, put(receipt(kind, full=True), path, value), comment, code, flags)


def put(value: dict[str, Any], path: str, item: Any) -> dict[str, Any]:
    """The value with one member, named by a dotted path, changed."""
    at: Any = value
    *parts, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in parts:
        at = at[part]
    at[last] = item
    return value


def make() -> File:
    out = File(
        "receipts",
        ("docs/spec/receipts.md", "docs/spec/words.md"),
        "members missing, unknown, null or empty; closed words; types; ranges",
    )
    maker = Maker(out)
    for kind in KINDS:
        _kind(maker, kind)
    _common(maker)
    _unknown(maker)
    _types(maker)
    _lists(maker)
    _words(maker)
    _canonical(maker)
    _act_digests(out)
    return out


def _kind(maker: Maker, kind: str) -> None:
    always, may = KINDS[kind]
    maker.read(f"{kind}", receipt(kind), f"The smallest {kind}.")
    if may:
        maker.read(f"{kind}-full", receipt(kind, full=True), f"The {kind} with every member.")
    for member in always:
        value = receipt(kind)
        del value[member]
        maker.read(f"{kind}-without-{member}", value, f"{member} is missing.", BAD, "missing-member")
    for member, given in may.items():
        maker.read(
            f"{kind}-null-{member}",
            receipt(kind, **{member: None}),
            f"null for {member}, which may be absent.",
            BAD,
            "null",
        )
        if isinstance(given, list) and (kind, member) != ("grant", "acts"):
            maker.read(
                f"{kind}-empty-{member}",
                receipt(kind, **{member: []}),
                f"An empty list for {member}.",
                BAD,
                "empty-list",
            )
    maker.read(
        f"{kind}-unknown-member", receipt(kind, zzz=1), "A member that the kind does not have.", BAD, "unknown-member"
    )
    maker.read(
        f"{kind}-other-kind",
        {**receipt(kind), "kind": "step" if kind != "step" else "run"},
        "The members of one kind under the name of another.",
        BAD,
        "kind-confusion",
    )


def _common(maker: Maker) -> None:
    for member in COMMON:
        value = receipt("step")
        del value[member]
        maker.read(f"common-without-{member}", value, f"{member} is missing.", BAD, "missing-member")
    source = {"document": D(b"document"), "format": "axlr.result"}
    maker.read("common-source", receipt("step", source=source), "A receipt that restates a foreign claim.")
    maker.read(
        "common-source-import",
        receipt("step", source={**source, "import": D(b"import")}),
        "And says which import brought it.",
    )
    maker.read(
        "common-source-null",
        receipt("step", source={**source, "import": None}),
        "null for a member inside.",
        BAD,
        "null",
    )
    maker.bad(
        "common-issuer-more",
        "step",
        "issuer",
        {"name": "build", "key": kit.ISSUER.id, "role": "x"},
        "A member more inside an object.",
        "unknown-member",
    )
    maker.bad(
        "common-producer-less",
        "step",
        "producer",
        {"name": "vectors"},
        "A member less inside an object.",
        "missing-member",
    )
    maker.bad("common-reason-empty", "step", "reason", "", "An empty string is no absent member.", "null")


def _unknown(maker: Maker) -> None:
    maker.read(
        "schema-v2",
        receipt("step", schema="receipt-ledger.receipt/v2"),
        "A later schema is unknown, not malformed.",
        "receipt.unknown_schema",
        "unknown-format",
        3,
    )
    maker.read("schema-number", receipt("step", schema=1), "A schema that is no string is malformed.", BAD, "types")
    maker.read(
        "kind-later",
        {**receipt("step"), "kind": "settlement"},
        "A later kind is unknown, not malformed.",
        "receipt.unknown_kind",
        "unknown-format",
        3,
    )
    maker.read(
        "kind-prune",
        {**receipt("step"), "kind": "prune"},
        "A reserved kind is not accepted.",
        "receipt.unknown_kind",
        "unknown-format",
        3,
    )
    maker.read(
        "kind-case",
        {**receipt("step"), "kind": "Step"},
        "Another case is another string.",
        "receipt.unknown_kind",
        "case-folding",
        3,
    )
    maker.read(
        "kind-list", {**receipt("step"), "kind": ["step"]}, "A kind that is no string is malformed.", BAD, "types"
    )
    maker.read("kind-null", {**receipt("step"), "kind": None}, "null for the kind.", BAD, "null")
    maker.read(
        "header-format-v2",
        receipt("header", format="receipt-ledger/v2"),
        "As a receipt it parses; a ledger of that format is unknown.",
    )
    maker.read(
        "key-unknown-algorithm",
        receipt("step", issuer={"name": "build", "key": "mldsa65:" + "ab" * 32}),
        "A key id of an algorithm of later has the form.",
    )


def _types(maker: Maker) -> None:
    big, times, names = 2**53 - 1, "2026-11-30T09:15:00.123Z", "name"
    maker.pair(
        "count-max", "step", "duration_ms", big, big + 1, "The largest count.", "range", "canonical.integer_range"
    )
    maker.pair("count-min", "step", "duration_ms", 0, -1, "The smallest count.", "range")
    maker.bad("count-bool", "step", "duration_ms", True, "A boolean for a count, which Python takes for 1.", "types")  # noqa: FBT003
    maker.bad("count-string", "step", "duration_ms", "1", "A string for a count.", "types")
    maker.read(
        "count-fraction",
        kit.canonical(receipt("step", duration_ms=12345)).replace(b"12345", b"12.5"),
        "A fraction for a count.",
        "canonical.fraction",
        "numbers",
    )
    maker.pair("attempt", "intent", "effect.attempt", 1, 0, "Attempts count from 1.", "range")
    maker.pair("uses", "approval", "uses", 1, 0, "An approval is used once at least.", "range")
    maker.pair("exit-code", "outcome", "exit_code", 255, 256, "The largest exit status.", "range")
    maker.pair("exit-code-min", "outcome", "exit_code", 0, -1, "The smallest exit status.", "range")
    maker.pair("signal", "outcome", "signal", 127, 128, "The largest signal.", "range")
    maker.pair("signal-min", "outcome", "signal", 1, 0, "The smallest signal.", "range")
    maker.pair("boolean", "outcome", "artifacts.0.salted", False, 0, "A boolean is no integer.", "types")  # noqa: FBT003
    maker.pair(
        "amount-unknown",
        "outcome",
        "charges.0.settled",
        "unknown",
        "Unknown",
        "An amount that is not known.",
        "closed-words",
    )
    maker.pair(
        "duration-unknown", "run", "duration_ms", "unknown", "none", "A duration that is not known.", "closed-words"
    )
    maker.pair(
        "duration-unknown-outcome",
        "outcome",
        "duration_ms",
        "unknown",
        "none",
        "An end that nobody saw.",
        "closed-words",
    )
    maker.bad("duration-unknown-step", "step", "duration_ms", "unknown", "Where only a count may stand.", "types")
    maker.pair("name-256", "step", names, "n" * 256, "n" * 257, "A name of 256 code points.", "length")
    maker.pair(
        "name-256-astral",
        "step",
        names,
        "\U0001f600" * 256,
        "\U0001f600" * 257,
        "256 code points beyond U+FFFF: not units, not bytes.",
        "length",
    )
    maker.pair("name-1", "step", names, "n", "", "A name of one character.", "length")
    maker.pair(
        "name-1f", "step", names, "a b", "a\x1fb", "Space is the first character of names.", "control-characters"
    )
    maker.pair("name-7f", "step", names, "a~b", "a\x7fb", "U+007F is none.", "control-characters")
    maker.pair("name-9f", "step", names, "a\u00a0b", "a\u009fb", "U+0080 to U+009F are none.", "control-characters")
    maker.bad(
        "name-line-feed",
        "step",
        names,
        "build\n",
        "A line feed behind, which `$` of many regular expressions takes.",
        "anchors",
    )
    maker.read(
        "name-2028",
        receipt("step", name="a\u2028b"),
        "U+2028 is a character of names and ends no line.",
        flags="line-separator",
    )
    maker.pair("digest-member", "step", "run", D(b"x"), D(b"x").upper(), "A digest in lower case.", "case-folding")
    maker.bad("digest-member-line-feed", "step", "run", D(b"x") + "\n", "A line feed behind a digest.", "anchors")
    maker.bad("digest-member-path", "step", "run", "../../etc/passwd", "A path for a digest.", "path")
    maker.pair(
        "nonce",
        "step",
        "nonce",
        "0123456789abcdef" * 2,
        "0123456789ABCDEF" * 2,
        "A nonce in lower case.",
        "case-folding",
    )
    maker.bad("nonce-30", "step", "nonce", "ab" * 15, "A nonce of 15 bytes.", "length")
    maker.bad("nonce-34", "step", "nonce", "ab" * 17, "A nonce of 17 bytes.", "length")
    maker.pair("key-id", "step", "issuer.key", kit.ISSUER.id, kit.ISSUER.id[:-1], "A key id of 64 digits.", "length")
    for number, (text, comment) in enumerate((
        ("2026-11-30T09:15:00Z", "No milliseconds."), ("2026-11-30T09:15:00.123456Z", "Microseconds."),
        ("2026-11-30T09:15:00.123+00:00", "An offset."), ("2026-11-30T09:15:00.123", "No zone."), ("2026-11-30 09:15:00.123Z", "A space for T."),
        ("2027-02-29T00:00:00.000Z", "A day that does not exist."), ("2026-11-30T24:00:00.000Z", "Hour 24."),
        ("2026-12-31T23:59:60.000Z", "A leap second."), ("26-11-30T09:15:00.123Z", "Two digits of the year."),
        ("\u0662026-11-30T09:15:00.123Z", "An Arabic digit."), (times + "\n", "A line feed behind."),
    )):  # fmt: skip
        maker.bad(f"time-{number}", "step", "issued_at", text, comment, "time-form")
    maker.read("time-leap-day", receipt("step", issued_at="2028-02-29T23:59:59.999Z"), "A day of a leap year.")
    maker.bad("time-number", "step", "issued_at", 1796030100, "Seconds for a time.", "types")
    maker.pair(
        "origin",
        "step",
        "ledger",
        "ledger.example/a-b_c.d~e",
        "ledger.example/a+b",
        "An origin; + separates the parts of a note's key.",
        "origin",
    )
    maker.bad("origin-space", "step", "ledger", "ledger example", "A space in an origin.", "origin")
    maker.bad("origin-line-feed", "step", "ledger", "ledger.example/\n1", "A line feed in an origin.", "origin")
    maker.bad("origin-unicode", "step", "ledger", "ledger.ex\u00e4mple", "Beyond ASCII in an origin.", "origin")
    maker.pair("origin-255", "step", "ledger", "o" * 255, "o" * 256, "An origin of 255 characters.", "length")
    maker.pair(
        "media-type",
        "outcome",
        "artifacts.0.media_type",
        "application/vnd.x+json",
        "application/vnd.x+json; charset=utf-8",
        "A media type without parameters.",
        "media-type",
    )
    maker.bad(
        "media-type-upper",
        "outcome",
        "artifacts.0.media_type",
        "Text/plain",
        "Upper case in a media type.",
        "case-folding",
    )
    maker.pair(
        "coverage-digest",
        "opening",
        "adapter.coverage",
        D(b"statement"),
        "",
        "A coverage statement by its digest.",
        "length",
    )
    maker.read(
        "grant-acts-empty", receipt("grant", acts=[]), "The one list that may be there and empty: it covers nothing."
    )


def _lists(maker: Maker) -> None:
    def limits(count: int) -> list[dict[str, Any]]:
        return [{"meter": f"m{number}", "limit": 1} for number in range(count)]

    maker.pair("limits-100", "opening", "limits", limits(100), limits(101), "100 limits.", "length")
    names = {f"k{number}": "v" for number in range(101)}
    maker.pair(
        "correlation-100",
        "opening",
        "correlation",
        dict(list(names.items())[:100]),
        names,
        "100 members of correlation.",
        "length",
    )
    maker.pair(
        "correlation-value",
        "opening",
        "correlation",
        {"ticket": "4711"},
        {"ticket": 4711},
        "Correlation holds names only.",
        "types",
    )
    maker.bad(
        "limits-twice", "opening", "limits", [LIMIT, LIMIT], "A meter stands at most once in limits.", "repeated-meter"
    )
    maker.bad(
        "totals-twice", "run", "totals", [AMOUNT, AMOUNT], "A meter stands at most once in totals.", "repeated-meter"
    )
    answer = {"criterion": "c1", "required": True, "answer": "met"}
    maker.bad(
        "answers-twice",
        "evaluation",
        "answers",
        [answer, answer],
        "A criterion stands at most once.",
        "repeated-criterion",
    )
    maker.bad("outcome-no-children", "outcome", "children", [], "An outcome commits its intent at least.", "empty-list")
    maker.bad("run-no-children", "run", "children", [], "A run commits its opening at least.", "empty-list")
    maker.bad("children-object", "run", "children", {"0": RUN}, "An object for a list.", "types")
    maker.bad("children-string", "run", "children", RUN, "A string for a list.", "types")
    maker.bad("children-null", "run", "children", [None], "null in a list.", "null")


def _words(maker: Maker) -> None:
    flag = "closed-words"
    for status in ("committed", "failed", "ambiguous"):
        maker.read(f"outcome-status-{status}", receipt("outcome", status=status), f"An outcome that is {status}.")
    for status in ("denied", "blocked", "completed", "Committed"):
        maker.bad(
            f"outcome-status-{status.lower()}-not",
            "outcome",
            "status",
            status,
            f"{status} is no status of an outcome.",
            flag,
        )
    for status in ("completed", "failed", "blocked", "interrupted", "declined", "superseded", "killed", "incomplete"):
        maker.read(f"run-status-{status}", receipt("run", status=status), f"A run that is {status}.")
    maker.bad("run-status-committed", "run", "status", "committed", "committed is no status of a run.", flag)
    for status in ("denied", "blocked", "waiting"):
        maker.read(f"decision-status-{status}", receipt("decision", status=status), f"A decision that is {status}.")
    maker.bad("decision-status-allowed", "decision", "status", "allowed", "What was allowed is an intent.", flag)
    maker.pair("step-status", "step", "status", "folded", "running", "A step that only folds.", flag)
    maker.pair("access", "intent", "act.access", "unknown", "execute", "Access that is not known.", flag)
    maker.pair("basis", "outcome", "charges.0.basis", "unknown", "estimated", "A basis that is not known.", flag)
    maker.pair("happened", "resolution", "happened", "happened", "maybe", "A resolution finds one of two things.", flag)
    maker.pair("answer", "approval", "answer", "denied", "pending", "An approval answers.", flag)
    maker.pair("key-role", "key", "role", "log", "notary", "A key receipt changes one of two keys.", flag)
    maker.pair("key-action", "key", "action", "revoke", "retire", "A key receipt does one of two things.", flag)
    maker.pair("verdict", "evaluation", "verdict", "inconclusive", "passed", "A verdict is one of three words.", flag)
    maker.pair(
        "native-status", "import", "native_status", "unreadable", "ok", "A native verdict is one of four words.", flag
    )
    maker.pair(
        "outcome-reason",
        "outcome",
        "reason",
        "act.exception",
        "it broke",
        "A reason is one word of the closed list.",
        f"{flag} free-text",
    )
    maker.bad("outcome-reason-other", "outcome", "reason", "policy.denied", "A reason that no outcome may give.", flag)
    maker.bad("erasure-reason-other", "erasure", "reason", "act.exception", "A reason that no erasure may give.", flag)
    maker.bad("repair-reason-other", "repair", "reason", "erasure.request", "A reason that no repair may give.", flag)
    revoked = receipt("key", action="revoke")
    maker.read("key-revoke", revoked, "A revocation from its own index on.")
    maker.read("key-revoke-from", {**revoked, "from_index": 3}, "A revocation from an earlier index on.")


def _canonical(maker: Maker) -> None:
    good = kit.canonical(receipt("step"))
    maker.read(
        "text-space",
        good.replace(b'"name":"build"', b'"name": "build"', 1),
        "A space.",
        "canonical.not_canonical",
        "lax-whitespace",
    )
    maker.read("text-line-feed", good + b"\n", "A line feed behind.", "canonical.not_canonical", "lax-whitespace")
    maker.read("text-order", b'{"z":1,' + good[1:], "A member out of order.", "canonical.not_canonical", "sort-order")
    maker.read(
        "text-twice",
        good.replace(b'"status":"completed"', b'"status":"completed","status":"completed"'),
        "A member twice.",
        "canonical.duplicate_name",
        "duplicate-names",
    )
    maker.read(
        "text-fraction",
        kit.canonical(receipt("intent", act={**ACT, "arguments": {"x": 12345}})).replace(b"12345", b"1.5"),
        "A fraction in inline arguments.",
        "canonical.fraction",
        "numbers",
    )

    for name, number in (("whole", b"1.0"), ("exponent", b"1e2"), ("count-whole", b"")):
        if number:
            text = kit.canonical(receipt("intent", act={**ACT, "arguments": {"x": 12345}})).replace(b"12345", number)
        else:
            text = kit.canonical(receipt("step", duration_ms=12345)).replace(b"12345", b"1.0")
        maker.read(
            f"text-fraction-{name}",
            text,
            "A whole number that is written as a fraction.",
            "canonical.fraction",
            "numbers round-trip-only",
        )

    def nested(levels: int) -> dict[str, Any]:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return receipt("intent", act={**ACT, "arguments": {"x": value}})

    maker.read("depth-48", nested(45), "48 levels.")
    maker.read("depth-49", nested(46), "49 levels.", "canonical.too_deep", "depth")
    maker.read(
        "arguments-null",
        receipt("intent", act={**ACT, "arguments": {"x": None}}),
        "null may stand inside inline arguments.",
    )
    maker.read(
        "arguments-empty",
        receipt("intent", act={**ACT, "arguments": {"x": [], "y": {}}}),
        "So may empty lists and objects.",
    )
    maker.read(
        "arguments-null-itself", receipt("intent", act={**ACT, "arguments": None}), "But not for them.", BAD, "null"
    )
    maker.read(
        "arguments-any-name",
        receipt("intent", act={**ACT, "arguments": {"zzz": {"yyy": True}}}),
        "Inside, names are free.",
    )


def _act_digests(out: File) -> None:
    actor = {"agent": "support", "user": "unknown", "model": "unknown"}

    def case(
        id_: str, comment: str, act: dict[str, Any], flags: str = "", *, run: str = RUN, effect_key: str | None = None
    ) -> None:
        hashed: dict[str, Any] = {
            "schema": "receipt-ledger.act/v1", "ledger": kit.ORIGIN, "run": run, "actor": actor,
            **{member: act[member] for member in ("name", "tool", "arguments_digest", "resource", "environment")},
            **{member: act[member] for member in ("amount", "precondition") if member in act},
            **({} if effect_key is None else {"effect_key": effect_key}),
        }  # fmt: skip
        given: dict[str, Any] = {"act": act, "ledger": kit.ORIGIN, "run": run, "actor": actor}
        if effect_key is not None:
            given["effect_key"] = effect_key
        out.case("act-digest", id_, comment, given, value=kit.digest(kit.canonical(hashed)), flags=flags)

    case("act", "The smallest act.", ACT)
    case("act-full", "An act with an amount, a precondition and an effect key.", ACT_FULL, effect_key="refund:p_7781")
    case(
        "act-access",
        "Access is not part of it: the same digest as the smallest act.",
        {**ACT, "access": "read"},
        "act-digest-members",
    )
    case(
        "act-inline",
        "Nor are inline arguments: the same digest again.",
        {**ACT, "arguments": {"x": 1}},
        "act-digest-members",
    )
    case(
        "act-run",
        "The run is: an approval cannot be carried to another run.",
        ACT,
        "act-digest-members replay",
        run=D(b"another opening"),
    )
    case("act-amount", "The amount is.", {**ACT, "amount": {"meter": "eur_cent", "value": 4201}}, "act-digest-members")
    case("act-precondition", "The precondition is.", {**ACT, "precondition": D(b"state")}, "act-digest-members")
    case(
        "act-effect-key",
        "The effect key is, the attempt is not.",
        ACT,
        "act-digest-members",
        effect_key="refund:p_7781",
    )
