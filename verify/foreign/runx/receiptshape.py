"""The shape of `runx.receipt.v1` as runx 0.8.2 reads and writes it.

A receipt of another shape under the same name (older and later ones exist) does not fit, and is told by its misfits.

Source: runx 0.8.2, `receipt.schema.json`.
"""

from __future__ import annotations

from typing import Final

from verify.foreign.shape import (
    ANY_TEXT,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    TEXT,
    TIME,
    Shape,
    each,
    one_of,
    text_like,
)

__all__ = ["DISPOSITIONS", "RECEIPT", "REFERENCE"]

DISPOSITIONS: Final = "closed|deferred|superseded|declined|blocked|failed|killed|timed_out"
_PROOF_KINDS: Final = one_of("effect_evidence|effect_finality|credential_resolution")
_PREFIXED: Final = text_like(r"sha256:.+", "a text that starts with 'sha256:'")
_TEXTS: Final = each(TEXT)

REFERENCE: Final = Shape(
    {
        "type*": one_of(
            "github_issue|github_pull_request|github_repo|slack_thread|sentry_event|provider_thread|provider_event|"
            "provider_comment|tracking_item|change_request|repository|support_ticket|signal|act|receipt|graph_receipt|"
            "artifact|verification|harness|host|deployment|surface|target|opportunity|thesis_assessment|selection|"
            "skill_binding|target_transition_entry|selection_cycle|decision|reflection_entry|feed_entry|principal|"
            "authority_proof|scope_admission|grant|mandate|credential|webhook_delivery|redaction_policy|external_url"
        ),
        "uri*": TEXT,
        "provider": TEXT,
        "locator": TEXT,
        "label": TEXT,
        "observed_at": TIME,
        "proof_kind": _PROOF_KINDS,
        "schema": one_of("runx.reference.v1"),
    }
)
_REFERENCES: Final = each(REFERENCE)
_CLOSURE: Final = Shape(
    {"disposition*": one_of(DISPOSITIONS), "reason_code*": TEXT, "summary*": TEXT, "closed_at*": TIME}
)
_CRITERION: Final = Shape({"criterion_id*": TEXT, "statement*": TEXT, "required*": BOOLEAN})
_INTENT: Final = Shape(
    {
        "purpose*": TEXT,
        "legitimacy*": TEXT,
        "success_criteria=[]": each(_CRITERION),
        "constraints=[]": _TEXTS,
        "derived_from=[]": _REFERENCES,
    }
)
_BINDING: Final = Shape(
    {
        "criterion_id*": TEXT,
        "status*": one_of("verified|failed|pending|not_applicable|unknown"),
        "evidence_refs=[]": _REFERENCES,
        "verification_refs=[]": _REFERENCES,
        "summary": TEXT,
    }
)
_BOUNDS: Final = Shape(
    {
        "branch_patterns": _TEXTS,
        "deployment_environments": _TEXTS,
        "effect_limits": each(
            Shape(
                {
                    "family*": TEXT,
                    "unit*": TEXT,
                    "channels*": _TEXTS,
                    "max_per_call_units": INTEGER,
                    "max_per_run_units": INTEGER,
                    "max_per_period_units": INTEGER,
                    "period": TEXT,
                    "realm": TEXT,
                    "peer": TEXT,
                    "operation": TEXT,
                    "authorization_form": one_of("single_use_capability|external_signer"),
                    "approval_threshold_units": INTEGER,
                    "commitment_required": BOOLEAN,
                    "idempotency_required": BOOLEAN,
                    "preflight_required": BOOLEAN,
                    "preflight_ttl_ms": INTEGER,
                    "receipt_before_success": BOOLEAN,
                    "recovery_required": BOOLEAN,
                    "single_use_capability": BOOLEAN,
                }
            )
        ),
        "effects": each(
            Shape(
                {
                    "family*": TEXT,
                    "guard_kinds": each(one_of("receipt_before_success|non_replay")),
                    "proof_kinds": each(_PROOF_KINDS),
                }
            )
        ),
        "filesystem_roots": _TEXTS,
        "max_child_depth": INTEGER,
        "max_cost_units": NUMBER,
        "max_fanout": INTEGER,
        "max_runtime_ms": INTEGER,
        "network_destinations": _TEXTS,
        "repo_path_globs": _TEXTS,
        "token_audiences": _TEXTS,
    }
)
_TERM: Final = Shape(
    {
        "term_id*": TEXT,
        "principal_ref*": REFERENCE,
        "resource_ref*": REFERENCE,
        "resource_family*": one_of(
            "github_repo|workspace|filesystem|network|deployment|credential|effect|artifact|harness|publication"
        ),
        "verbs*": each(
            one_of(
                "read|write|comment|review|approve|merge|create|update|delete|execute|verify|estimate|prepare|commit|"
                "reverse|publish|spawn_child|revoke"
            )
        ),
        "bounds*": _BOUNDS,
        "conditions=[]": each(
            Shape(
                {
                    "condition_id*": TEXT,
                    "predicate*": one_of(
                        "signal_verified|decision_selected|host_posture_valid|approval_present|within_time_window|"
                        "within_budget|effect_proof_present|effect_recovery_available"
                    ),
                    "refs": _REFERENCES,
                    "parameters": OBJECT,
                }
            )
        ),
        "approvals=[]": each(
            Shape(
                {
                    "approval_ref*": REFERENCE,
                    "approved_by_ref": REFERENCE,
                    "approved_at": TIME,
                    "criterion_ids": _TEXTS,
                }
            )
        ),
        "capabilities=[]": each(
            one_of(
                "filesystem_read|filesystem_write|network_egress|secret_read|process_spawn|provider_mutation|"
                "public_publication|child_harness_spawn|effect_single_use_capability"
            )
        ),
        "expires_at": TIME,
        "issued_by_ref*": REFERENCE,
        "credential_ref": REFERENCE,
        "schema": one_of("runx.authority_term.v1"),
    }
)
_SUBSET_PROOF: Final = Shape(
    {
        "parent_authority_ref*": REFERENCE,
        "comparison_algorithm*": TEXT,
        "compared_terms*": each(
            Shape({"child_term_id*": TEXT, "parent_term_id*": TEXT, "relation*": one_of("equal|subset")})
        ),
        "result*": one_of("subset"),
        "checked_at*": TIME,
        "proof_ref": REFERENCE,
        "schema": one_of("runx.authority_subset_proof.v1"),
    }
)
_AUTHORITY: Final = Shape(
    {
        "actor_ref*": REFERENCE,
        "grant_refs=[]": _REFERENCES,
        "scope_refs=[]": _REFERENCES,
        "authority_proof_refs=[]": _REFERENCES,
        "attenuation*": Shape({"parent_authority_ref=null": REFERENCE, "subset_proof=null": _SUBSET_PROOF}),
        "mandate_ref": REFERENCE,
        "terms=[]": each(_TERM),
        "enforcement*": Shape(
            {
                "profile_hash*": _PREFIXED,
                "execution_boundary": Shape(
                    {"kind*": one_of("trusted_host_process|deterministic_worker|native_capability|remote_provider")}
                ),
                "redaction_refs=[]": _REFERENCES,
                "setup_refs=[]": _REFERENCES,
                "teardown_refs=[]": _REFERENCES,
            }
        ),
    }
)
_DECISION: Final = Shape(
    {
        "decision_id*": TEXT,
        "choice*": one_of("open|continue|spawn_child|escalate|defer|close|decline|monitor"),
        "inputs*": Shape(
            {
                "signal_refs=[]": _REFERENCES,
                "target_ref=null": REFERENCE,
                "opportunity_refs=[]": _REFERENCES,
                "selection_ref=null": REFERENCE,
            }
        ),
        "proposed_intent*": _INTENT,
        "selected_act_id=null": TEXT,
        "selected_harness_ref=null": REFERENCE,
        "justification*": Shape({"summary*": TEXT, "evidence_refs=[]": _REFERENCES}),
        "closure=null": _CLOSURE,
        "artifact_refs=[]": _REFERENCES,
        "schema": one_of("runx.decision.v1"),
    }
)
_CHECK_STATUS: Final = one_of("passed|failed|pending|not_applicable|missing")
_VERIFICATION: Final = Shape(
    {
        "status*": _CHECK_STATUS,
        "checks*": each(
            Shape(
                {
                    "check_id*": TEXT,
                    "criterion_ids*": _TEXTS,
                    "status*": _CHECK_STATUS,
                    "evidence_refs*": _REFERENCES,
                    "checked_refs": _REFERENCES,
                    "summary": TEXT,
                    "verified_at": TIME,
                }
            )
        ),
        "evidence_refs*": _REFERENCES,
        "verification_id": TEXT,
        "verified_at": TIME,
        "schema": one_of("runx.verification.v1"),
    }
)
_SURFACES: Final = each(Shape({"surface_ref*": REFERENCE, "mutating*": BOOLEAN, "rationale": TEXT}))
_REVISION: Final = Shape(
    {
        "change_request*": Shape(
            {
                "request_id*": TEXT,
                "summary*": TEXT,
                "target_surfaces": _SURFACES,
                "success_criteria": each(_CRITERION),
            }
        ),
        "change_plan*": Shape({"plan_id*": TEXT, "summary*": TEXT, "steps": _TEXTS, "risks": _TEXTS}),
        "target_surfaces": _SURFACES,
        "invariants": _TEXTS,
        "verification": _VERIFICATION,
        "handoff_refs": _REFERENCES,
        "revision_refs": _REFERENCES,
    }
)
_ACT: Final = Shape(
    {
        "id*": TEXT,
        "form*": one_of("revision|reply|review|observation|verification"),
        "intent*": _INTENT,
        "summary*": TEXT,
        "criterion_bindings=[]": each(_BINDING),
        "by": Shape({"provider=null": ANY_TEXT, "model=null": ANY_TEXT, "prompt_version=null": ANY_TEXT}),
        "source_refs=[]": _REFERENCES,
        "target_refs=[]": _REFERENCES,
        "artifact_refs=[]": _REFERENCES,
        "context_ref": REFERENCE,
        "closure*": _CLOSURE,
        "revision": _REVISION,
        "verification": Shape({"criterion_ids*": _TEXTS, "verification*": _VERIFICATION, "deployment_ref": REFERENCE}),
    }
)
_SYNC: Final = Shape(
    {
        "group_id*": TEXT,
        "strategy*": one_of("all|any|quorum"),
        "decision*": one_of("proceed|halt|pause|escalate"),
        "rule_fired*": TEXT,
        "reason*": TEXT,
        "branch_count*": INTEGER,
        "success_count*": INTEGER,
        "failure_count*": INTEGER,
        "required_successes*": INTEGER,
        "branch_receipts=[]": _TEXTS,
        "gate": OBJECT,
    }
)

RECEIPT: Final = Shape(
    {
        "schema*": one_of("runx.receipt.v1"),
        "id*": TEXT,
        "created_at*": TIME,
        "canonicalization*": TEXT,
        "issuer*": Shape({"type*": one_of("local|hosted|ci|verifier"), "kid*": TEXT, "public_key_sha256*": _PREFIXED}),
        "signature*": Shape({"alg*": one_of("Ed25519"), "value*": TEXT}),
        "digest*": _PREFIXED,
        "idempotency*": Shape(
            {"intent_key*": _PREFIXED, "trigger_fingerprint*": _PREFIXED, "content_hash*": _PREFIXED}
        ),
        "subject*": Shape(
            {
                "kind*": TEXT,
                "ref*": REFERENCE,
                "input_context": Shape({"source*": TEXT, "preview*": ANY_TEXT, "value_hash*": _PREFIXED}),
                "commitments=[]": each(
                    Shape(
                        {
                            "scope*": one_of("input|output|stdout|stderr|error"),
                            "algorithm*": one_of("sha256"),
                            "value*": _PREFIXED,
                            "canonicalization*": TEXT,
                        }
                    )
                ),
            }
        ),
        "authority*": _AUTHORITY,
        "signals=[]": _REFERENCES,
        "decisions=[]": each(_DECISION),
        "acts=[]": each(_ACT),
        "seal*": Shape(
            {
                "disposition*": one_of(DISPOSITIONS),
                "reason_code*": TEXT,
                "summary*": TEXT,
                "closed_at*": TIME,
                "last_observed_at*": TIME,
                "criteria=[]": each(_BINDING),
            }
        ),
        "lineage": Shape(
            {
                "parent": REFERENCE,
                "previous": REFERENCE,
                "children=[]": _REFERENCES,
                "sync=[]": each(_SYNC),
                "resume_ref": REFERENCE,
            }
        ),
        "metadata": OBJECT,
    }
)
