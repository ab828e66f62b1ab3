"""Errors of the rules: a limit, a policy, a template or an answer that a person wrote and that is refused before anything runs."""

from __future__ import annotations

from ledger.errors import LedgerError

__all__ = [
    "AnswerError",
    "BudgetError",
    "EvaluationError",
    "GrantError",
    "PolicyError",
    "RunbookError",
    "TemplateError",
]


class BudgetError(LedgerError):
    """A limit or an amount outside its form."""

    code = "budget.malformed"


class PolicyError(LedgerError):
    """A policy that is not read: no JSON, an unknown member, a value outside its form."""

    code = "policy.malformed"


class TemplateError(LedgerError):
    """A template of effect keys, or a key made from it, outside its form."""

    code = "effect.template"


class AnswerError(LedgerError):
    """An answer to a request that is not taken; nothing is recorded."""

    code = "approval.refused"


class GrantError(LedgerError):
    """A grant, its terms or a revocation outside its form, or one that widens; nothing is recorded."""

    code = "grant.malformed"


class RunbookError(LedgerError):
    """A runbook or a policy envelope that is not read."""

    code = "runbook.malformed"


class EvaluationError(LedgerError):
    """A criteria set or answers that are not read, or a verdict of another subject or set, which answers nothing."""

    code = "evaluation.malformed"
