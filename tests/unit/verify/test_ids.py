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


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12, unique_by=lambda pair: pair[0]),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=12),
    st.sampled_from([0, 1, 70]),
)
def test_of_ids_that_were_judged_those_are_suspects_that_come_again(before, after, many):
    def whole(first, rest):
        # Prefixes that share a bucket, and hold the bytes of each other where no prefix begins.
        return bytes([7, first, 7, first, 7, first, 7, first]) + bytes([rest]) * 24

    old, new = [whole(*pair) for pair in before], [whole(*pair) for pair in after]
    new += [bytes([7]) + number.to_bytes(31, "big") for number in range(1 << 200, (1 << 200) + many)]
    found = IdSet()
    found.extend(old)
    found.mark_judged()
    assert found.suspects() == set()
    found.extend(new)
    prefixes = [id_[:8] for id_ in old + new]
    assert found.suspects() == {prefix for prefix in prefixes if prefixes.count(prefix) > 1}
