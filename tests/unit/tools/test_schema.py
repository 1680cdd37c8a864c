from enum import StrEnum

from pydantic import BaseModel, Field

from emceepee.tools.schema import compact_schema


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    """Words about the model."""

    title: str = "x"
    size: int = Field(1, ge=1)


class Outer(BaseModel):
    """More words."""

    title: str = Field(description="A property that is called title")
    color: Color | None = Field(None, description="Which")
    inner: Inner | None = None
    many: list[Inner] = []
    either: int | str = 3


def test_references_are_resolved_and_titles_nulls_and_docstrings_are_gone() -> None:
    inner = {
        "properties": {
            "title": {"default": "x", "type": "string"},
            "size": {"default": 1, "minimum": 1, "type": "integer"},
        },
        "type": "object",
    }
    assert compact_schema(Outer) == {
        "properties": {
            "title": {"description": "A property that is called title", "type": "string"},
            "color": {"description": "Which", "enum": ["red", "blue"], "type": "string"},
            "inner": inner,
            "many": {"default": [], "items": inner, "type": "array"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}], "default": 3},
        },
        "required": ["title"],
        "type": "object",
    }


def test_a_model_without_fields_has_an_empty_set_of_properties() -> None:
    class Nothing(BaseModel):
        """Nothing."""

    assert compact_schema(Nothing) == {"properties": {}, "type": "object"}
