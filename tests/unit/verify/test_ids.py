"""Receipt ids, each once, in eight bytes each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from verify.ids import IdSet


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=60))
def test_the_suspects_are_the_prefixes_that_stand_more_than_once(pairs):
    ids = [bytes([first]) * 8 + bytes([rest]) * 24 for first, rest in pairs]
    found = IdSet()
    found.extend(ids[:10])
    found.extend(ids[10:])
    prefixes = [id_[:8] for id_ in ids]
    assert found.suspects() == {prefix for prefix in prefixes if prefixes.count(prefix) > 1}
    assert len(found) == len(ids)
