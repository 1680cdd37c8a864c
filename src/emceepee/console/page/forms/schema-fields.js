// A property's JSON schema, read as a form field. Schemas come from servers: whatever they hold, the result is a field,
// and a pattern is only ever shown, because an untrusted one can take for ever to run.

const TEXT_FORMATS = { email: "email", uri: "url", date: "date", "date-time": "datetime" };
const MOST_OPTIONS = 1000;
const MOST_FIELDS = 200;
const DEEPEST = 5;

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const finite = (value) => (Number.isFinite(value) ? value : undefined);
const counted = (value) => (Number.isInteger(value) && value >= 0 ? value : undefined);
const words = (value) => (typeof value === "string" && value.trim() !== "" ? value : undefined);

/** The fields of an object schema, or null if it is too odd or too long for a form. */
export function fieldsOf(schema) {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  const names = Object.keys(properties);
  if (names.length > MOST_FIELDS) return null;
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  return names.map((name) => fieldOf(name, properties[name], { root: schema, isRequired: required.has(name) }));
}

function fieldOf(name, given, { root, isRequired }) {
  const { schema, isNullable } = resolved(isObject(given) ? given : {}, root);
  const outer = isObject(given) ? given : {};
  const field = {
    name,
    title: words(outer.title) ?? words(schema.title) ?? name,
    description: words(outer.description) ?? words(schema.description),
    isRequired,
    isNullable,
    default: outer.default !== undefined ? outer.default : schema.default,
    pattern: words(schema.pattern),
    ...shapeOf(schema),
  };
  if (!fits(field, field.default)) field.default = undefined;
  return field;
}

/** Follow references inside the same document, and look through "or null". */
function resolved(schema, root, depth = 0) {
  if (depth >= DEEPEST) return { schema: {}, isNullable: false };
  if (typeof schema.$ref === "string") {
    const target = referenced(schema.$ref, root);
    return resolved(isObject(target) ? target : {}, root, depth + 1);
  }
  if (Array.isArray(schema.allOf) && schema.allOf.length === 1 && isObject(schema.allOf[0]) && !schema.type) {
    return resolved({ ...schema, ...schema.allOf[0], allOf: undefined }, root, depth + 1);
  }
  if (Array.isArray(schema.type) && schema.type.length === 2 && schema.type.includes("null")) {
    return { schema: { ...schema, type: schema.type.find((each) => each !== "null") }, isNullable: true };
  }
  for (const key of ["anyOf", "oneOf"]) {
    const others = Array.isArray(schema[key]) ? schema[key].filter((each) => each?.type !== "null") : [];
    if (others.length === 1 && schema[key].length === 2 && isObject(others[0])) {
      return { ...resolved(others[0], root, depth + 1), isNullable: true };
    }
  }
  return { schema, isNullable: false };
}

function referenced(pointer, root) {
  if (!pointer.startsWith("#/")) return undefined;
  return pointer
    .slice(2)
    .split("/")
    .reduce((at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined), root);
}

function shapeOf(schema) {
  const single = optionsOf(schema);
  if (single) return { kind: "choice", options: single };
  switch (schema.type) {
    case "string":
      return {
        kind: TEXT_FORMATS[schema.format] ?? "text",
        minLength: counted(schema.minLength),
        maxLength: counted(schema.maxLength),
      };
    case "number":
    case "integer":
      return { kind: schema.type, min: finite(schema.minimum), max: finite(schema.maximum) };
    case "boolean":
      return { kind: "boolean" };
    case "array":
      return arrayShape(schema);
    case "object":
      return { kind: "json", holds: "object" };
    default:
      return { kind: "json", holds: "anything" };
  }
}

function arrayShape(schema) {
  const options = isObject(schema.items) ? optionsOf(schema.items) : null;
  if (!options) return { kind: "json", holds: "array" };
  return { kind: "choices", options, minItems: counted(schema.minItems), maxItems: counted(schema.maxItems) };
}

/** The values to choose from with their titles, or null if this is no choice. */
function optionsOf(schema) {
  const plain = (value) => value === null || ["string", "number", "boolean"].includes(typeof value);
  let options = null;
  if (Array.isArray(schema.enum)) {
    const titles = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    options = schema.enum.map((value, index) => ({ value, title: words(titles[index]) ?? String(value) }));
  } else {
    const entries = [schema.oneOf, schema.anyOf].find(
      (each) => Array.isArray(each) && each.every((one) => isObject(one) && "const" in one),
    );
    options =
      entries?.map((entry) => ({ value: entry.const, title: words(entry.title) ?? String(entry.const) })) ?? null;
  }
  if (options === null && "const" in schema)
    options = [{ value: schema.const, title: words(schema.title) ?? String(schema.const) }];
  const isUsable = options && options.length > 0 && options.length <= MOST_OPTIONS;
  return isUsable && options.every(({ value }) => plain(value)) ? options : null;
}

function fits(field, value) {
  if (value === undefined) return true;
  switch (field.kind) {
    case "number":
    case "integer":
      return Number.isFinite(value);
    case "boolean":
      return typeof value === "boolean";
    case "choice":
      return field.options.some((option) => option.value === value);
    case "choices":
      return Array.isArray(value) && value.every((each) => field.options.some((option) => option.value === each));
    case "json":
      return true;
    default:
      return typeof value === "string";
  }
}
