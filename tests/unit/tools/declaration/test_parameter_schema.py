from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from emceepee.tools.declaration.parameter_schema import compact_schema


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


def test_compact_schemas_resolve_references_and_drop_titles_nulls_and_docstrings() -> None:
    inner = {
        "properties": {
            "title": {"default": "x", "type": "string"},
            "size": {"default": 1, "minimum": 1, "type": "integer"},
        },
        "type": "object",
    }
    assert compact_schema(Outer, keeps_bounds=True) == {
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


def test_compact_schemas_drop_trivial_bounds_and_keep_real_ones() -> None:
    class Bounded(BaseModel):
        model_config = ConfigDict(extra="forbid")
        few: int = Field(ge=1, le=9)
        none: int = Field(ge=0)
        many: int = Field(ge=100)
        words: str = Field(min_length=1, max_length=5)

    assert compact_schema(Bounded)["properties"] == {
        "few": {"maximum": 9, "type": "integer"},
        "none": {"type": "integer"},
        "many": {"minimum": 100, "type": "integer"},
        "words": {"maxLength": 5, "type": "string"},
    }
    assert "additionalProperties" not in compact_schema(Bounded)
    assert compact_schema(Bounded, keeps_bounds=True)["properties"]["few"]["minimum"] == 1


def test_compact_schemas_list_required_properties_first() -> None:
    class Late(BaseModel):
        perhaps: int = 1
        surely: int
        also: int

    assert list(compact_schema(Late)["properties"]) == ["surely", "also", "perhaps"]


def test_compact_schemas_of_empty_models_have_no_properties() -> None:
    class Nothing(BaseModel):
        """Nothing."""

    assert compact_schema(Nothing) == {"properties": {}, "type": "object"}
