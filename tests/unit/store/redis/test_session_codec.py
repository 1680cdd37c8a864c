from hypothesis import given
from hypothesis import strategies as st

from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.redis.session_codec import read_keys, read_record_field, record_field, write_keys
from emceepee.store.store import RecordKey

_texts = st.text(st.characters(codec="utf-8"))
_keys = st.builds(SessionKey, _texts, st.sampled_from(KeyKind), _texts)


@given(kind=_texts, record_id=_texts)
def test_a_record_is_identified_by_its_redis_field(kind: str, record_id: str) -> None:
    name = record_field(RecordKey(kind, record_id))
    assert read_record_field(name) == RecordKey(kind, record_id)
    assert name[:1].isdigit(), "which no field of the head begins with"


@given(keys=st.frozensets(_keys, max_size=4))
def test_session_keys_are_encoded_as_one_line_each_for_any_content(keys: frozenset[SessionKey]) -> None:
    data = write_keys(keys)
    assert read_keys(data) == keys
    assert data.count(b"\n") == max(0, len(keys) - 1)
