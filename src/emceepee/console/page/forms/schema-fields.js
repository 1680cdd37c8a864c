// A property's JSON schema, read as a form field. Schemas come from servers: any schema results in a field, and a
// pattern is only shown, never run, because an untrusted pattern can backtrack forever.

import { asArray } from "../lib/safe-json.js";

/**
 * A JSON schema as a server sent it: any key may have any value.
 * @typedef {{ [key: string]: any }} Schema
 */
/**
 * @typedef {{ value: any, title: string }} Option
 * @typedef {"text" | "email" | "url" | "date" | "datetime"} TextKind
 */
/**
 * The type of the value of a field.
 * @typedef {object} FieldType
 * @property {TextKind | "number" | "integer" | "boolean" | "choice" | "choices" | "json"} kind
 * @property {Option[]} [options] Of a choice.
 * @property {"object" | "array" | "anything"} [holds] Of JSON.
 * @property {number} [minLength]
 * @property {number} [maxLength]
 * @property {number} [min]
 * @property {number} [max]
 * @property {number} [minItems]
 * @property {number} [maxItems]
 */
/**
 * One field of a form.
 * @typedef {object} FieldLabels
 * @property {string} name
 * @property {string} title
 * @property {string} [description]
 * @property {boolean} isRequired
 * @property {boolean} isNullable
 * @property {any} [default]
 * @property {string} [pattern] Shown, never run.
 *
 * @typedef {FieldLabels & FieldType} Field
 */

/** @type {{ [format: string]: FieldType["kind"] }} */
const TEXT_FORMATS = { email: "email", uri: "url", date: "date", "date-time": "datetime" };
const MAX_OPTIONS = 1000;
const MAX_FIELDS = 200;
const MAX_DEPTH = 5;

/**
 * @param {unknown} value
 * @returns {value is Schema}
 */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
/**
 * @param {any} value
 * @returns {number | undefined}
 */
const finiteNumber = (value) => (Number.isFinite(value) ? value : undefined);
/**
 * @param {any} value
 * @returns {number | undefined}
 */
const nonNegativeInteger = (value) => (Number.isInteger(value) && value >= 0 ? value : undefined);
/** @param {unknown} value */
const nonEmptyText = (value) => (typeof value === "string" && value.trim() !== "" ? value : undefined);

/**
 * The fields of an object schema, or null if it is too unusual or too large for a form.
 * @param {unknown} schema
 * @returns {Field[] | null}
 */
export function readFields(schema) {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  const names = Object.keys(properties);
  if (names.length > MAX_FIELDS) return null;
  const required = new Set(isObject(schema) ? asArray(schema.required) : []);
  return names.map((name) => readField(name, properties[name], { root: schema, isRequired: required.has(name) }));
}

/**
 * @param {string} name
 * @param {unknown} given
 * @param {{ root: unknown, isRequired: boolean }} context
 * @returns {Field}
 */
function readField(name, given, { root, isRequired }) {
  const { schema, isNullable } = resolveSchema(isObject(given) ? given : {}, root);
  const outer = isObject(given) ? given : {};
  const field = {
    name,
    title: nonEmptyText(outer.title) ?? nonEmptyText(schema.title) ?? name,
    description: nonEmptyText(outer.description) ?? nonEmptyText(schema.description),
    isRequired,
    isNullable,
    default: outer.default !== undefined ? outer.default : schema.default,
    pattern: nonEmptyText(schema.pattern),
    ...readType(schema),
  };
  if (!matchesField(field, field.default)) field.default = undefined;
  return field;
}

/**
 * Follow references inside the same document, and look through "or null".
 * @param {Schema} schema
 * @param {unknown} root
 * @param {number} [depth]
 * @returns {{ schema: Schema, isNullable: boolean }}
 */
function resolveSchema(schema, root, depth = 0) {
  if (depth >= MAX_DEPTH) return { schema: {}, isNullable: false };
  if (typeof schema.$ref === "string") {
    const target = followReference(schema.$ref, root);
    return resolveSchema(isObject(target) ? target : {}, root, depth + 1);
  }
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1 && isObject(schema.allOf[0]) && !schema.type) {
    return resolveSchema({ ...schema, ...schema.allOf[0], allOf: undefined }, root, depth + 1);
  }
  if (Array.isArray(schema.type) && schema.type.length === 2 && schema.type.includes("null")) {
    return {
      schema: { ...schema, type: schema.type.find((/** @type {unknown} */ each) => each !== "null") },
      isNullable: true,
    };
  }
  for (const key of ["anyOf", "oneOf"]) {
    const others = Array.isArray(schema[key])
      ? schema[key].filter((/** @type {any} */ each) => each?.type !== "null")
      : [];
    if (others.length === 1 && schema[key].length === 2 && isObject(others[0])) {
      return { ...resolveSchema(others[0], root, depth + 1), isNullable: true };
    }
  }
  return { schema, isNullable: false };
}

/**
 * @param {string} pointer
 * @param {unknown} root
 * @returns {unknown}
 */
function followReference(pointer, root) {
  if (!pointer.startsWith("#/")) return undefined;
  return pointer
    .slice(2)
    .split("/")
    .reduce((/** @type {unknown} */ at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined), root);
}

/**
 * @param {Schema} schema
 * @returns {FieldType}
 */
function readType(schema) {
  const single = readOptions(schema);
  if (single) return { kind: "choice", options: single };
  switch (schema.type) {
    case "string":
      return {
        kind: TEXT_FORMATS[schema.format] ?? "text",
        minLength: nonNegativeInteger(schema.minLength),
        maxLength: nonNegativeInteger(schema.maxLength),
      };
    case "number":
    case "integer":
      return { kind: schema.type, min: finiteNumber(schema.minimum), max: finiteNumber(schema.maximum) };
    case "boolean":
      return { kind: "boolean" };
    case "array":
      return readArrayType(schema);
    case "object":
      return { kind: "json", holds: "object" };
    default:
      return { kind: "json", holds: "anything" };
  }
}

/**
 * @param {Schema} schema
 * @returns {FieldType}
 */
function readArrayType(schema) {
  const options = isObject(schema.items) ? readOptions(schema.items) : null;
  if (!options) return { kind: "json", holds: "array" };
  return {
    kind: "choices",
    options,
    minItems: nonNegativeInteger(schema.minItems),
    maxItems: nonNegativeInteger(schema.maxItems),
  };
}

/**
 * The choices with their titles, or null if this is not a choice.
 * @param {Schema} schema
 * @returns {Option[] | null}
 */
function readOptions(schema) {
  const options = listedOptions(schema);
  if (options === null || options.length === 0 || options.length > MAX_OPTIONS) return null;
  return options.every(({ value }) => isPlain(value)) ? options : null;
}

/**
 * Reads choices in each of the forms that a schema can have.
 * @param {Schema} schema
 * @returns {Option[] | null}
 */
function listedOptions(schema) {
  if (Array.isArray(schema.enum)) {
    const titles = asArray(schema.enumNames);
    return schema.enum.map((value, index) => ({ value, title: nonEmptyText(titles[index]) ?? String(value) }));
  }
  const entries = [schema.oneOf, schema.anyOf].find((each) => Array.isArray(each) && each.every(isConst));
  return entries?.map(constOption) ?? (isConst(schema) ? [constOption(schema)] : null);
}

/** @param {unknown} value */
const isPlain = (value) => value === null || ["string", "number", "boolean"].includes(typeof value);

/** @param {unknown} schema */
const isConst = (schema) => isObject(schema) && "const" in schema;

/**
 * @param {Schema} schema
 * @returns {Option}
 */
const constOption = (schema) => ({ value: schema.const, title: nonEmptyText(schema.title) ?? String(schema.const) });

/**
 * @param {Field} field
 * @param {any} value
 * @returns {boolean}
 */
function matchesField(field, value) {
  if (value === undefined) return true;
  const isOption = (/** @type {unknown} */ each) => field.options?.some((option) => option.value === each) ?? false;
  switch (field.kind) {
    case "number":
    case "integer":
      return Number.isFinite(value);
    case "boolean":
      return typeof value === "boolean";
    case "choice":
      return isOption(value);
    case "choices":
      return Array.isArray(value) && value.every(isOption);
    case "json":
      return true;
    default:
      return typeof value === "string";
  }
}
