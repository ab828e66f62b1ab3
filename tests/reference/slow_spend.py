"""What runs spent, by a plain fold over the lines of a journal with the standard library alone: an oracle for SQL.

A transcription of docs/spec/rules/budgets.md, clauses 9, 10 and 16 to 19; it shares no code with the recorder or the verifier.
"""

from __future__ import annotations

import json
from collections import defaultdict

PROOFS = ("act.not_executed", "command.not_found", "command.not_executable")


def receipts_of(lines):
    """Yield (receipt id, receipt) of each entry line."""
    for line in lines:
        value = json.loads(line)
        if "entry" in value:
            yield value["entry"]["receipt"], value["envelope"]["payload"]


def _add(into, meter, amount):
    if amount == "unknown" or into.get(meter) == "unknown":
        into[meter] = "unknown"
    else:
        into[meter] = into.get(meter, 0) + amount


def drawn(charges):
    draw = {}
    for charge in charges:
        if "payer" in charge:
            draw.setdefault(charge["meter"], 0)
        else:
            _add(draw, charge["meter"], charge.get("reserved", charge.get("quoted", "unknown")))
    if draw.get("tool_calls", 0) == 0:
        draw["tool_calls"] = 1
    return draw


def said(charges):
    settled = {}
    for charge in charges:
        if "payer" in charge or ("settled" not in charge and charge["basis"] != "unknown"):
            continue
        _add(settled, charge["meter"], charge.get("settled", "unknown"))
    return settled


def spends(lines):
    """Return (run, meter) -> [spent, reserved, acts of unknown cost, acts that overran], of each run's own acts."""
    acts, found = {}, {}
    for id_, receipt in receipts_of(lines):
        kind = receipt["kind"]
        if kind == "intent":
            draw = drawn(receipt.get("reserved", ()))
            held = {meter: 0 if amount == "unknown" else amount for meter, amount in draw.items()}
            acts[id_] = {"held": held, "unknown": {m for m, a in draw.items() if a == "unknown"}, "open": True}
            for meter, amount in held.items():
                found[id_, meter] = [receipt["run"], 0, amount, meter in acts[id_]["unknown"], False]
        elif kind in ("outcome", "resolution"):
            act = acts.get(receipt["intent"])
            if act is None or not act["open"]:
                continue
            status = receipt.get("status") or {"happened": "committed", "did_not_happen": "failed"}[receipt["happened"]]
            if kind == "outcome" and status == "failed" and receipt.get("reason") not in PROOFS:
                status = "committed"
            amounts = said(receipt.get("charges", ()))
            run = next(row[0] for (i, _), row in found.items() if i == receipt["intent"])
            act["open"] = status == "ambiguous"
            for meter in act["held"].keys() | amounts.keys():
                before, amount = act["held"].get(meter, 0), amounts.get(meter)
                spent = reserved = 0
                if status == "ambiguous":
                    reserved = before if amount in (None, "unknown") else max(before, amount)
                elif "->" in meter:
                    spent = max(before, 0 if amount in (None, "unknown") else amount)
                elif status == "committed":
                    spent = before if amount in (None, "unknown") else amount
                elif amount == "unknown":
                    spent = before
                else:
                    spent = amount or 0
                unknown = amount == "unknown" or (meter in act["unknown"] and amount is None and status != "failed")
                # Once an overrun, for good (clause 19).
                over = spent + reserved > before or found.get((receipt["intent"], meter), [False])[-1]
                found[receipt["intent"], meter] = [run, spent, reserved, unknown, over]
                if status == "ambiguous":
                    act["held"][meter] = reserved
    totals = defaultdict(lambda: [0, 0, 0, 0])
    for (_, meter), (run, spent, reserved, unknown, over) in found.items():
        row = totals[run, meter]
        row[0] += spent
        row[1] += reserved
        row[2] += unknown
        row[3] += over
    return dict(totals)


def budgets(lines):
    """Return (run, meter) -> [spent, reserved], of each run and the runs below it."""
    parents = {}
    for id_, receipt in receipts_of(lines):
        if receipt["kind"] == "opening":
            parents[id_] = receipt.get("parent_opening")
    totals = defaultdict(lambda: [0, 0])
    for (run, meter), (spent, reserved, *_) in spends(lines).items():
        at = run
        while at in parents:
            totals[at, meter][0] += spent
            totals[at, meter][1] += reserved
            at = parents[at]
    return dict(totals)
