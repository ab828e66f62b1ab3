"""Vectors: one case in, what this implementation says of it out. The files are read by the caller.

    {"schema":"receipt-ledger.vectors/v1","spec":["docs/spec/merkle.md"],"cases":[
      {"id":"...","comment":"...","flags":["..."],"check":"merkle.root","input":{"entries":["00"]},
       "expected":{"status":"ok","exit":0,"value":"..."}}]}

- `check` names what to do with the input; each check has one input shape, and a function from it to an answer.
- A case passes if exit code and value are those expected, and the code is among those found.
- A check that is not known here fails its case: it did not run.
- The functions are an argument, so that a test can put a wrong one in the place of each.

Source: vectors/README.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import Field, TypeAdapter, ValidationError

from ledger.errors import FormatError, LedgerError, NotFoundError, clip
from ledger.members import Member
from verify.vectorchecks import CHECKS
from verify.vectorinputs import INPUTS, Answer, Check, Read, Status, accepted, refused

__all__ = [
    "CHECKS",
    "INPUTS",
    "VECTORS_SCHEMA",
    "Answer",
    "AnswerLine",
    "Case",
    "Check",
    "Expected",
    "Read",
    "Result",
    "VectorFile",
    "accepted",
    "judge_answer",
    "parse_answers",
    "parse_vectors",
    "refused",
    "run_case",
]

VECTORS_SCHEMA: Final = "receipt-ledger.vectors/v1"


class Expected(Member):
    """What a right implementation says: exit code and its word, the code that it must name, the value that it must give."""

    status: Status
    exit: int
    code: str | None = None
    value: Any = None


class Case(Member):
    """One vector."""

    id: str
    comment: str
    flags: tuple[str, ...] = Field(strict=False)
    """The bugs that it hunts."""
    check: str
    input: dict[str, Any]
    expected: Expected


class VectorFile(Member):
    """One file of vectors."""

    schema_: Literal["receipt-ledger.vectors/v1"] = Field(alias="schema")
    spec: tuple[str, ...] = Field(strict=False)
    """Pages of the specification that say what is expected."""
    cases: tuple[Case, ...] = Field(strict=False)


class AnswerLine(Member):
    """What another program answers to one case: exit code, the codes it found, the value it gives."""

    file: str
    id: str
    exit: Annotated[int, Field(ge=0, le=6)]
    codes: tuple[str, ...] = Field(default=(), strict=False)
    value: Any = None


@dataclass(frozen=True, slots=True)
class Result:
    """A case, what was answered, and whether that is what is expected; `fault` says why nothing was answered."""

    case: Case
    answer: Answer | None
    fault: str = ""

    @property
    def passed(self) -> bool:
        """Whether exit code and value are those expected and the code is among those found."""
        expected, answer = self.case.expected, self.answer
        return (
            answer is not None
            and answer.exit == expected.exit
            and answer.status == expected.status
            and (expected.code is None or expected.code in answer.codes)
            and (expected.value is None or expected.value == answer.value)
        )


def parse_vectors(data: bytes) -> VectorFile:
    """Return the cases of one file.

    Raises:
        FormatError: not a file of vectors of this version.
    """
    try:
        return _FILE.validate_python(orjson.loads(data))
    except (orjson.JSONDecodeError, ValidationError) as error:
        raise FormatError(f"vectors: {clip(str(error), 200)}", code="vectors.malformed") from error


def run_case(case: Case, *, read: Read, checks: Mapping[str, Check] | None = None) -> Result:
    """Return what the functions in `checks`, ours by default, say of one case."""
    check = (CHECKS if checks is None else checks).get(case.check)
    shape = INPUTS.get(case.check)
    if check is None or shape is None:
        return Result(case, None, f"check {clip(case.check)} is not known")
    try:
        given = shape.model_validate(case.input)
    except ValidationError as error:
        return Result(case, None, f"input: {clip(str(error), 200)}")
    try:
        return Result(case, check(given, read))
    except NotFoundError as error:
        return Result(case, None, str(error))
    except LedgerError as error:
        return Result(case, refused(error))


def parse_answers(data: bytes) -> dict[tuple[str, str], Answer]:
    """Return what another program answered, by file and id: a line of JSON a case, as vectors/README.md says.

    Raises:
        FormatError: a line that is no answer, or two for one case.
    """
    answers: dict[tuple[str, str], Answer] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found = AnswerLine.model_validate_json(line)
        except ValidationError as error:
            raise FormatError(f"answers: line {number}: {clip(str(error), 200)}", code="vectors.malformed") from error
        if (found.file, found.id) in answers:
            raise FormatError(f"answers: line {number}: {clip(found.id)} was answered", code="vectors.malformed")
        answers[found.file, found.id] = Answer(found.exit, found.codes, found.value)
    return answers


def judge_answer(case: Case, answer: Answer | None) -> Result:
    """Return the result of a case that another program answered, None where it did not: that is no pass."""
    return Result(case, answer, "" if answer is not None else "not answered")


_FILE: Final[TypeAdapter[VectorFile]] = TypeAdapter(VectorFile)
