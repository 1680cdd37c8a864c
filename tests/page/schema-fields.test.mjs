import assert from "node:assert/strict";
import { test } from "node:test";

import { readFields } from "../../src/emceepee/console/page/forms/schema-fields.js";

/** The one field of a form. */
function field(rule, schema = {}) {
  const [only] = readFields({ ...schema, properties: { it: rule } });
  return only;
}

test("each schema type has its kind of form field, with its limits", () => {
  const text = { type: "string", minLength: 2, maxLength: 5, pattern: "^a" };
  const { minLength, maxLength, pattern } = field(text);
  assert.deepEqual({ minLength, maxLength, pattern }, { minLength: 2, maxLength: 5, pattern: "^a" });
  for (const [format, kind] of Object.entries({ email: "email", uri: "url", date: "date", "date-time": "datetime" }))
    assert.equal(field({ type: "string", format }).kind, kind);
  const { kind, min, max } = field({ type: "integer", minimum: 1, maximum: 12 });
  assert.deepEqual({ kind, min, max }, { kind: "integer", min: 1, max: 12 });
  assert.equal(field({ type: "boolean" }).kind, "boolean");
  assert.equal(field({ type: "object" }).holds, "object");
  assert.equal(field({ type: "array" }).holds, "array");
  assert.equal(field({}).holds, "anything");
});

test("a form field has the title and description of its schema, or else its name", () => {
  const { name, title, description } = field({ title: "How many", description: "Of you" });
  assert.deepEqual([name, title, description], ["it", "How many", "Of you"]);
  assert.equal(field({ title: "  " }).title, "it");
});

test("a required property is a required field", () => {
  const fields = readFields({ properties: { a: {}, b: {} }, required: ["b", "c", 5] });
  assert.deepEqual(
    fields.map(({ isRequired }) => isRequired),
    [false, true],
  );
});

test("choices are read from every schema notation for them", () => {
  const options = [
    { value: "s", title: "Small" },
    { value: "l", title: "Large" },
  ];
  const listed = [
    { const: "s", title: "Small" },
    { const: "l", title: "Large" },
  ];
  const rules = [{ enum: ["s", "l"], enumNames: ["Small", "Large"] }, { oneOf: listed }, { anyOf: listed }];
  for (const rule of rules) {
    assert.deepEqual(field(rule).options, options);
    const many = field({ type: "array", items: rule, minItems: 1 });
    assert.deepEqual([many.kind, many.options, many.minItems], ["choices", options, 1]);
  }
  assert.deepEqual(field({ enum: [1, null, true] }).options, [
    { value: 1, title: "1" },
    { value: null, title: "null" },
    { value: true, title: "true" },
  ]);
  assert.deepEqual(field({ const: "only" }).options, [{ value: "only", title: "only" }]);
});

test("a value without a list of choices is entered as JSON", () => {
  assert.equal(field({ enum: [] }).kind, "json");
  assert.equal(field({ enum: [{ a: 1 }] }).kind, "json");
  assert.equal(field({ enum: Array.from({ length: 1001 }, (_, index) => index) }).kind, "json");
});

test("a nullable schema is treated as its other type", () => {
  const nullable = [
    { type: ["integer", "null"] },
    { anyOf: [{ type: "integer" }, { type: "null" }] },
    { oneOf: [{ type: "null" }, { type: "integer" }] },
  ];
  for (const rule of nullable) assert.deepEqual([field(rule).kind, field(rule).isNullable], ["integer", true]);
  assert.equal(field({ type: "integer" }).isNullable, false);
});

test("only references inside the schema document are followed", () => {
  const $defs = { Size: { type: "integer", title: "Size" }, Loop: { $ref: "#/$defs/Loop" } };
  assert.equal(field({ $ref: "#/$defs/Size" }, { $defs }).kind, "integer");
  assert.equal(field({ allOf: [{ $ref: "#/$defs/Size" }] }, { $defs }).title, "Size");
  const elsewhere = ["#/$defs/Loop", "#/$defs/None", "https://example.com/schema", "#/__proto__", "#/constructor"];
  for (const $ref of elsewhere) assert.equal(field({ $ref }, { $defs }).holds, "anything", $ref);
});

test("an invalid default is ignored", () => {
  assert.equal(field({ type: "integer", default: 4 }).default, 4);
  assert.equal(field({ type: "string", default: 4 }).default, undefined);
  assert.equal(field({ type: "boolean", default: "yes" }).default, undefined);
  assert.equal(field({ enum: ["a"], default: "b" }).default, undefined);
  assert.deepEqual(field({ type: "array", items: { enum: ["a", "b"] }, default: ["b"] }).default, ["b"]);
  assert.equal(field({ type: "array", items: { enum: ["a"] }, default: ["b"] }).default, undefined);
});

test("a schema with too many fields gets no form", () => {
  const properties = Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`f${index}`, {}]));
  assert.equal(readFields({ properties }), null);
});

test("an invalid schema does not break the form", () => {
  for (const schema of [null, undefined, 5, "x", [], {}, { properties: [] }, { properties: null, required: 3 }])
    assert.deepEqual(readFields(schema), []);
  const odd = [null, 5, "x", [], { type: 5 }, { type: [] }, { enum: "abc" }, { oneOf: [null] }, { anyOf: 5 }];
  for (const rule of odd) assert.equal(field(rule).kind, "json");
  const limits = field({ type: "string", minLength: -1, maxLength: "9", title: 5, pattern: {} });
  assert.deepEqual(
    [limits.minLength, limits.maxLength, limits.title, limits.pattern],
    [undefined, undefined, "it", undefined],
  );
});

test("a property may have any name", () => {
  const [field] = readFields(JSON.parse('{"properties": {"__proto__": {"type": "boolean"}}}'));
  assert.deepEqual([field.name, field.kind], ["__proto__", "boolean"]);
});
