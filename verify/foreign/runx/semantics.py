"""What a receipt must say to make sense, beyond its shape: rules over its decisions, acts, seal and authority.

| code | rule |
|---|---|
| `decision_selected_act_missing` | a decision selects an act of this receipt, or none |
| `act_form_details_invalid` | a revision and a verification carry their own details, and no other act does |
| `seal_criterion_unbound` | a criterion of the seal is declared by an act, where there are acts |
| `authority_attenuation_invalid` | a proof of narrowing names the authority that is narrowed, and stands only where one is |
| `effect_grant_evidence_missing` | evidence of an effect needs a grant |

Source: runx 0.8.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from ledger.canonical import JsonObject, JsonValue
from verify.foreign.runx.receipt import Finding

__all__ = ["semantic_findings"]


def semantic_findings(receipt: JsonObject) -> tuple[Finding, ...]:
    """Return what does not make sense in a receipt that fits its shape."""
    acts: list[JsonObject] = receipt.get("acts", [])
    return (
        *_decisions(receipt, {act["id"] for act in acts}),
        *_acts(acts),
        *_seal(receipt, acts),
        *_authority(receipt["authority"], receipt),
    )


def _decisions(receipt: JsonObject, acts: set[str]) -> Iterator[Finding]:
    for place, decision in enumerate(receipt.get("decisions", [])):
        selected = decision.get("selected_act_id")
        if selected is not None and selected not in acts:
            path = f"decisions[{place}].selected_act_id"
            yield Finding("decision_selected_act_missing", path, "it selects an act that is not in this receipt")


def _acts(acts: list[JsonObject]) -> Iterator[Finding]:
    for place, act in enumerate(acts):
        for details in ("revision", "verification"):
            if (details in act) != (act["form"] == details):
                path = f"acts[{place}].{details}"
                message = f"an act of the form {act['form']} has {'these' if details in act else 'no'} details"
                yield Finding("act_form_details_invalid", path, message)


def _seal(receipt: JsonObject, acts: list[JsonObject]) -> Iterator[Finding]:
    declared = {criterion["criterion_id"] for act in acts for criterion in act["intent"].get("success_criteria", [])}
    declared |= {binding["criterion_id"] for act in acts for binding in act.get("criterion_bindings", [])}
    for place, criterion in enumerate(receipt["seal"].get("criteria", [])):
        if acts and criterion["criterion_id"] not in declared:
            path = f"seal.criteria[{place}].criterion_id"
            yield Finding("seal_criterion_unbound", path, "no act declares this criterion")


def _authority(authority: JsonObject, receipt: JsonObject) -> Iterator[Finding]:
    attenuation = authority["attenuation"]
    parent, proof = attenuation.get("parent_authority_ref"), attenuation.get("subset_proof")
    if proof is not None and (parent is None or proof["parent_authority_ref"].get("uri") != parent.get("uri")):
        message = "the proof of narrowing names no authority that this one narrows"
        yield Finding("authority_attenuation_invalid", "authority.attenuation.subset_proof", message)
    if not authority.get("grant_refs"):
        for path in _evidence_of_effects(receipt, ""):
            yield Finding("effect_grant_evidence_missing", path, "it is evidence of an effect, and no grant is named")


def _evidence_of_effects(value: JsonValue, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("proof_kind") == "effect_evidence":
            yield f"{path}.proof_kind"
        for name, item in value.items():
            if name != "metadata":
                yield from _evidence_of_effects(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _evidence_of_effects(item, f"{path}[{place}]")
