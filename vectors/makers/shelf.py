"""A file of vectors whose inputs are whole ledgers: journals stand beside it, a file a segment."""

from __future__ import annotations

from collections.abc import Sequence

from vectors.makers.case import File
from vectors.makers.kit import Book


class Shelf:
    """Adds cases of the check `ledger` to a file."""

    def __init__(self, out: File) -> None:
        self.out = out

    def case(
        self,
        id_: str,
        comment: str,
        given: Book | bytes | Sequence[tuple[int, bytes]],
        code: str | None = None,
        flags: str = "",
        exit_: int | None = None,
        *,
        trust: str | None,
        memory: str | None = None,
        require: tuple[str, ...] = (),
        older: Book | bytes | None = None,
        documents: tuple[str, ...] = (),
    ) -> None:
        """Add a ledger: a book, the bytes of its one segment, or its segments by first index.

        `older` is what it continues, `documents` are texts that its receipts name by digest.
        """
        input_: dict[str, object] = {"segments": self._segments(id_, given)}
        if older is not None:
            input_["older"] = self._segments(f"{id_}-older", older)
        if trust is not None:
            input_["trust"] = trust
        if memory is not None:
            input_["memory"] = memory
        if require:
            input_["require"] = list(require)
        if documents:
            input_["documents"] = list(documents)
        self.out.case("ledger", id_, comment, input_, code=code, flags=flags, exit_=exit_)

    def _segments(self, id_: str, given: Book | bytes | Sequence[tuple[int, bytes]]) -> list[dict[str, object]]:
        data = given.journal() if isinstance(given, Book) else given
        segments = [(0, data)] if isinstance(data, bytes) else list(data)
        listed: list[dict[str, object]] = []
        for number, (first, part) in enumerate(segments):
            name = f"journals/{self.out.name}-{id_}" + (f"-{number}" if len(segments) > 1 else "") + ".jsonl"
            self.out.beside[name] = part
            listed.append({"first_index": first, "file": name})
        return listed
