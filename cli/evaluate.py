"""`ledger evaluate`: evaluations recorded, and decided against the subject and the criteria that a reader expects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from cli.options import JsonOption, LedgerOption, TrustOption, shared
from cli.refs import resolve, resolve_run
from cli.runbook import read_file
from cli.text import print_json
from ledger.digest import digest, is_digest
from ledger.errors import LedgerError, clip
from ledger.evaluating import evaluate as record
from ledger.evaluating import observe
from ledger.receipt import Evaluation, parse_receipt
from ledger.rules.document import read_object
from ledger.rules.errors import EvaluationError
from ledger.rules.evaluation import CriteriaSet, Verdict, decide, read_criteria
from ledger.storage.ledger import Ledger

__all__ = ["register"]

REFUSED: Final = 1
"""Exit code of an evaluation that answers nothing."""
_EXITS: Final = {Verdict.MET: 0, Verdict.NOT_MET: 6, Verdict.INCONCLUSIVE: 3}


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(evaluate)


def evaluate(
    context: typer.Context,
    subject: Annotated[
        str | None,
        typer.Argument(metavar="[SUBJECT]", help="A file or a digest: what is judged.", show_default=False),
    ] = None,
    criteria: Annotated[Path | None, typer.Option(metavar="FILE", help="The criteria set.", show_default=False)] = None,
    answer: Annotated[
        list[str],
        typer.Option(
            "--answer", metavar="CHECK=WORD", help="met, not_met or inconclusive; repeatable.", show_default=False
        ),
    ] = [],
    observation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A JSON object to evaluate the set's assertions over.", show_default=False),
    ] = None,
    package: Annotated[str, typer.Option(help="What evaluated.")] = "ledger-cli",
    method: Annotated[str, typer.Option(help="How.")] = "by-hand",
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="The run that it evaluated in. Without it: LEDGER_RUN.", show_default=False),
    ] = None,
    decided: Annotated[
        str | None,
        typer.Option("--decide", metavar="RECEIPT", help="Decide this evaluation; record nothing.", show_default=False),
    ] = None,
    ledger: LedgerOption = None,
    json: JsonOption = False,
    trust: TrustOption = None,
) -> None:
    """Record an evaluation of a subject, or decide one.

    Exit 0 if it is met, 6 if not, 3 if inconclusive, 1 if refused.
    """
    options = shared(context, ledger, json=json, trust=trust)
    if criteria is None:
        raise typer.BadParameter("name the criteria set", param_hint="--criteria")
    if (decided is not None) + bool(answer) + (observation is not None) > 1:
        raise typer.BadParameter("--answer, --observation and --decide do not go together")
    found = read_criteria(read_file(criteria, "--criteria"))
    with Ledger.open(options.folder(), places=options.places) as opened:
        if decided is not None:
            receipt = resolve(opened, decided)
            verdict = _decide(opened, receipt, _subject(subject), found)
        else:
            named = run or os.environ.get("LEDGER_RUN", "").partition("/")[0]
            within = resolve_run(opened, named) if named else None
            if observation is not None:
                value = read_object(read_file(observation, "--observation"), "observation", EvaluationError)
                receipt, verdict = observe(opened, found, value, run=within)
            else:
                answers = _answers(answer)
                receipt, verdict = record(
                    opened, _subject(subject), found, answers, package=package, method=method, run=within
                )
    if options.json:
        print_json({"receipt": receipt, "verdict": verdict.value, "criteria": found.digest})
    else:
        typer.echo(f"{verdict}  {receipt[7:19]}")
    raise typer.Exit(_EXITS[verdict])


def _decide(opened: Ledger, receipt: str, subject: str, criteria: CriteriaSet) -> Verdict:
    evaluation = parse_receipt(opened.get(receipt).envelope.payload)
    if not isinstance(evaluation, Evaluation):
        raise LedgerError(f"{receipt[7:19]}: is a receipt of kind {evaluation.kind}, no evaluation")
    try:
        return decide(evaluation, subject=subject, criteria=criteria)
    except EvaluationError as refused:
        # It answers nothing, which is neither of the verdicts.
        typer.echo(f"refused: {refused}", err=True)
        raise typer.Exit(REFUSED) from refused


def _subject(text: str | None) -> str:
    if text is None:
        raise typer.BadParameter("name what is judged", param_hint="SUBJECT")
    if is_digest(text):
        return text
    try:
        return digest(Path(text).read_bytes())
    except OSError as error:
        raise EvaluationError(f"subject {clip(text)}: {error.strerror}, and it is no digest") from error


def _answers(words: list[str]) -> dict[str, str]:
    answers: dict[str, str] = {}
    for each in words:
        name, equals, word = each.rpartition("=")
        if not equals or name in answers:
            raise typer.BadParameter(f"got {each!r}, expected CHECK=WORD, each check once", param_hint="--answer")
        answers[name] = word
    return answers
