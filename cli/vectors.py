"""`ledger vectors`: hold this program, or the answers of another, against a folder of vectors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from cli.options import JsonOption, shared
from cli.text import console, escape, print_json, styled
from ledger.errors import LedgerError, NotFoundError
from verify.vectors import Result, judge_answer, parse_answers, parse_vectors, run_case

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    vectors = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Run the test vectors of the formats.")
    vectors.callback()(_group)
    vectors.command("check")(check)
    app.add_typer(vectors, name="vectors")


def _group() -> None:
    """Run the test vectors of the formats."""


def check(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder that holds the files of vectors.")],
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Judge the answers of another program, a line of JSON a case, in the place of our own.",
            show_default=False,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run every case of DIR and say which are answered otherwise than expected."""
    options = shared(context, json=json)
    given = None if answers is None else parse_answers(answers.read_bytes())
    files = {path.stem: list(_results(path, given)) for path in sorted(folder.glob("*.json"))}
    total = sum(map(len, files.values()))
    if not total:
        raise NotFoundError(f"vectors: no cases in {str(folder)!r}", code="subject.absent")
    wrong = [(name, result) for name, results in files.items() for result in results if not result.passed]
    if options.json:
        print_json(
            {
                "cases": total,
                "passed": total - len(wrong),
                "files": [_row(name, results) for name, results in files.items()],
                "failed": [_finding(name, result) for name, result in wrong],
            }
        )
    else:
        _print(files, wrong)
    if wrong:
        raise typer.Exit(1)


def _results(path: Path, answers: dict[tuple[str, str], Any] | None) -> Iterator[Result]:
    def read(name: str) -> bytes:
        try:
            return (path.parent / name).read_bytes()
        except OSError as error:
            raise NotFoundError(f"vectors: {name} cannot be read: {error.strerror}") from error

    try:
        cases = parse_vectors(path.read_bytes()).cases
    except LedgerError as error:
        raise LedgerError(f"{path.name}: {error}", code=error.code) from error
    for case in cases:
        yield run_case(case, read=read) if answers is None else judge_answer(case, answers.get((path.stem, case.id)))


def _row(name: str, results: list[Result]) -> dict[str, Any]:
    passed = sum(result.passed for result in results)
    return {"file": name, "cases": len(results), "passed": passed, "failed": len(results) - passed}


def _finding(name: str, result: Result) -> dict[str, Any]:
    case, answer = result.case, result.answer
    found: dict[str, Any] = {
        "file": name,
        "id": case.id,
        "comment": case.comment,
        "flags": list(case.flags),
        "expected": case.expected.model_dump(exclude_none=True),
    }
    if answer is None:
        found["fault"] = result.fault
    else:
        found["got"] = {"exit": answer.exit, "codes": list(answer.codes), "value": answer.value}
    return found


def _print(files: dict[str, list[Result]], wrong: list[tuple[str, Result]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("file")
    for column in ("cases", "passed", "failed"):
        table.add_column(column, justify="right")
    for name, results in files.items():
        row = _row(name, results)
        style = "bold red" if row["failed"] else "green"
        table.add_row(escape(name), str(row["cases"]), str(row["passed"]), styled(str(row["failed"]), style))
    console().print(table)
    for name, result in wrong:
        expected, answer = result.case.expected, result.answer
        got = result.fault if answer is None else f"exit {answer.exit} {' '.join(answer.codes)}"
        if answer is not None and answer.exit == expected.exit and expected.value != answer.value:
            got += f" value {answer.value!r}"
        console().print(styled(f"{name}:{result.case.id}: {result.case.comment}", "bold red"), soft_wrap=True)
        console().print(
            f"  expected exit {expected.exit} {expected.code or ''}, got {escape(got.strip())}", soft_wrap=True
        )
