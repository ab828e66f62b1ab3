"""Receipts of runx made from its published rules with other libraries: the oracle of our reader."""

from __future__ import annotations

import base64
import copy
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KEY = Ed25519PrivateKey.from_private_bytes(bytes([9]) * 32)
PUBLIC = KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
KID = "tests"
HARNESS = "runx:harness:"


def canonical(value) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sha(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def without(value, *names):
    return {name: item for name, item in value.items() if name not in names}


def seal(receipt, *, local=False):
    """The receipt with its id, digest and signature made anew."""
    receipt = copy.deepcopy(receipt)
    public = "sha256:runtime-skeleton-public" if local else sha(PUBLIC)
    receipt["issuer"] = {
        "type": "local" if local else "hosted",
        "kid": "runtime-skeleton" if local else KID,
        "public_key_sha256": public,
    }
    receipt["id"] = sha(canonical(without(receipt, "signature", "digest", "metadata", "id", "lineage")))
    receipt["digest"] = sha(canonical(without(receipt, "signature", "digest", "metadata")))
    raw = KEY.sign(receipt["digest"].encode())
    spelled = "sig:" + receipt["digest"] if local else "base64:" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    receipt["signature"] = {"alg": "Ed25519", "value": spelled}
    return receipt


def commit(child):
    return {"type": "receipt", "uri": "runx:receipt:" + child["id"], "locator": child["digest"]}


def receipt(name="step", children=(), *, local=False, disposition="closed", graph_locator=True, **changes):
    """A receipt that fits, with the children committed."""
    intent = {"purpose": "p", "legitimacy": "l", "success_criteria": [], "constraints": [], "derived_from": []}
    closure = {"disposition": disposition, "reason_code": "done", "summary": "s", "closed_at": "2026-05-18T00:00:00Z"}
    references = [commit(child) for child in children]
    subject = {
        "kind": "graph" if children else "skill",
        "ref": {"type": "harness", "uri": HARNESS + name},
        "commitments": [],
    }
    if children and graph_locator:
        uris = [each["uri"] for each in references]
        subject["ref"]["locator"] = sha(json.dumps(uris, separators=(",", ":")).encode())
    made = {
        "schema": "runx.receipt.v1",
        "created_at": "2026-05-18T00:00:00Z",
        "canonicalization": "runx.receipt.c14n.v1",
        "idempotency": {"intent_key": f"sha256:{name}", "trigger_fingerprint": "sha256:t", "content_hash": "sha256:c"},
        "subject": subject,
        "authority": {
            "actor_ref": {"type": "principal", "uri": "runx:principal:local_runtime"},
            "grant_refs": [],
            "scope_refs": [],
            "authority_proof_refs": [],
            "attenuation": {"parent_authority_ref": None, "subset_proof": None},
            "terms": [],
            "enforcement": {"profile_hash": "sha256:p", "redaction_refs": [], "setup_refs": [], "teardown_refs": []},
        },
        "signals": [],
        "decisions": [],
        "acts": []
        if children
        else [
            {
                "id": f"act_{name}",
                "form": "observation",
                "intent": intent,
                "summary": "s",
                "criterion_bindings": [],
                "source_refs": [],
                "target_refs": [],
                "artifact_refs": [],
                "closure": closure,
            }
        ],
        "seal": {**closure, "last_observed_at": "2026-05-18T00:00:00Z", "criteria": []},
        "lineage": {"children": references, "sync": []},
        **changes,
    }
    return seal(made, local=local)


def text(value) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
