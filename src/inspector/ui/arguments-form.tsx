import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { renderPath } from "../run-model/field-path.ts";
import type { FeedFailure } from "./feed-client.ts";
import { type JsonValue, oneLine, plainText } from "./untrusted.tsx";

type JsonObject = { readonly [key: string]: JsonValue };

/** Deeper values are edited as JSON. */
const DEEPEST = 6;
/** Longer texts are edited in a field with several lines. */
const LONG_TEXT = 80;

interface FormProps {
  /** JSON Schema of the arguments. */
  readonly schema: JsonValue;
  readonly value: JsonValue;
  readonly onChange: (value: JsonValue) => void;
  /** Errors found by the server, by field path. */
  readonly issues: FeedFailure["issues"];
  /** Called when the JSON text of a field changes; the argument is whether it is invalid. */
  readonly onBroken: (path: string, isBroken: boolean) => void;
}

/** Whether a form is possible: the schema lists fields and the value is an object. */
export function hasForm(schema: JsonValue, value: JsonValue): boolean {
  const { properties } = objectOf(schema) ?? {};
  return (
    objectOf(value) !== undefined && objectOf(properties) !== undefined && Object.keys(properties ?? {}).length > 0
  );
}

/** The arguments of a call as fields, by their schema. Values that the schema does not describe are edited as JSON. */
export function ArgumentsForm(props: FormProps) {
  return <Fields {...props} root={props.schema} path={[]} />;
}

interface NodeProps extends FormProps {
  /** The root schema, to resolve references. */
  readonly root: JsonValue;
  readonly path: readonly (string | number)[];
}

function Fields(props: NodeProps) {
  const { schema, value, onChange, path, root } = props;
  const properties = objectOf(objectOf(schema)?.["properties"]) ?? {};
  const required = objectOf(schema)?.["required"];
  const given = objectOf(value) ?? {};
  // Stored schemas are sorted by name; use the order of the arguments.
  const names = [...new Set([...Object.keys(given), ...Object.keys(properties)])];
  const without = (name: string): JsonObject =>
    Object.fromEntries(Object.entries(given).filter(([key]) => key !== name));
  const missing = names.filter((name) => !Object.hasOwn(given, name));
  return (
    <>
      {names.map((name) => {
        const [own] = Object.hasOwn(given, name) ? [given[name]] : [];
        if (own === undefined) return null;
        const isRequired = Array.isArray(required) && required.includes(name);
        return (
          <Field
            {...props}
            key={name}
            name={name}
            schema={Object.hasOwn(properties, name) ? (properties[name] ?? null) : null}
            value={own}
            path={[...path, name]}
            onChange={(next) => onChange({ ...given, [name]: next })}
            onRemove={isRequired ? undefined : () => onChange(without(name))}
          />
        );
      })}
      {missing.length > 0 && (
        <p class="choices">
          {missing.map((name) => (
            <button
              key={name}
              type="button"
              class="link"
              onClick={() => onChange({ ...given, [name]: emptyOf(properties[name] ?? null, root, path.length) })}
            >
              + {oneLine(name, 60)}
            </button>
          ))}
        </p>
      )}
    </>
  );
}

interface FieldProps extends NodeProps {
  readonly name: string;
  readonly onRemove: (() => void) | undefined;
}

/** One field with its name, description and errors. */
function Field(props: FieldProps) {
  const { name, path, issues, value, root, onRemove } = props;
  const schema = resolved(props.schema, root);
  const id = useId();
  const own = issues.filter((issue) => issue.path === renderPath(path));
  const { description } = objectOf(schema) ?? {};
  const kind = path.length > DEEPEST ? "json" : kindOf(schema, value);
  const isGroup = kind === "object" || kind === "array";
  const about = (
    <>
      {typeof description === "string" && <span class="quiet">{plainText(description)}</span>}
      {own.length > 0 && (
        <span id={`${id}-wrong`} class="field-wrong">
          {own.map(({ message }) => plainText(message)).join("; ")}
        </span>
      )}
    </>
  );
  const remove = onRemove && (
    <button type="button" class="link" aria-label={`Remove ${oneLine(name, 60)}`} onClick={onRemove}>
      remove
    </button>
  );
  if (isGroup) {
    return (
      <fieldset class="field-group">
        <legend>
          {oneLine(name, 60)} {remove}
        </legend>
        {about}
        {kind === "object" ? <Fields {...props} schema={schema} /> : <Items {...props} schema={schema} />}
      </fieldset>
    );
  }
  return (
    <div class="field-row">
      <label for={id}>{oneLine(name, 60)}</label> {remove}
      <Control
        {...props}
        schema={schema}
        kind={kind}
        attributes={{
          id,
          "aria-invalid": own.length > 0,
          ...(own.length > 0 ? { "aria-describedby": `${id}-wrong` } : {}),
        }}
      />
      {about}
    </div>
  );
}

interface ControlProps extends FieldProps {
  readonly kind: Exclude<Kind, "object" | "array">;
  readonly attributes: { readonly id: string; readonly "aria-invalid": boolean; readonly "aria-describedby"?: string };
}

function Control({ kind, schema, value, path, onChange, onBroken, attributes }: ControlProps) {
  const [text, setText] = useState(() =>
    typeof value === "string" && kind !== "json" ? value : JSON.stringify(value, null, 2),
  );
  switch (kind) {
    case "boolean":
      return (
        <input
          {...attributes}
          type="checkbox"
          checked={value === true}
          onChange={({ currentTarget }) => onChange(currentTarget.checked)}
        />
      );
    case "choice": {
      const options = choicesOf(schema) ?? [];
      const place = options.findIndex((one) => one === value);
      return (
        <select
          {...attributes}
          value={String(place)}
          onChange={({ currentTarget }) => onChange(options[Number(currentTarget.value)] ?? null)}
        >
          {place < 0 && <option value="-1">{oneLine(JSON.stringify(value), 60)}</option>}
          {options.map((one, index) => (
            <option key={index} value={String(index)}>
              {oneLine(typeof one === "string" ? one : JSON.stringify(one), 80)}
            </option>
          ))}
        </select>
      );
    }
    case "number":
      return (
        <input
          {...attributes}
          type="text"
          inputMode="decimal"
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            onChange(numberIn(currentTarget.value));
          }}
        />
      );
    case "text": {
      const shown = typeof value === "string" ? value : "";
      const onInput = ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void =>
        onChange(currentTarget.value);
      return shown.length > LONG_TEXT || shown.includes("\n") ? (
        <textarea {...attributes} rows={3} value={shown} onInput={onInput} />
      ) : (
        <input {...attributes} type="text" value={shown} onInput={onInput} />
      );
    }
    case "json": {
      const isBroken = jsonIn(text) === undefined;
      return (
        <>
          <textarea
            {...attributes}
            class="code"
            rows={Math.min(8, text.split("\n").length)}
            aria-invalid={isBroken || attributes["aria-invalid"]}
            value={text}
            onInput={({ currentTarget }) => {
              const next = jsonIn(currentTarget.value);
              setText(currentTarget.value);
              onBroken(renderPath(path), next === undefined);
              if (next !== undefined) onChange(next);
            }}
          />
          {isBroken && <span class="field-wrong">This is not valid JSON yet.</span>}
        </>
      );
    }
    default:
      return kind satisfies never;
  }
}

function Items(props: FieldProps) {
  const { schema, value, path, root, name, onChange } = props;
  const items = Array.isArray(value) ? (value as readonly JsonValue[]) : [];
  const own = resolved(objectOf(schema)?.["items"] ?? null, root);
  // Changes the key: fields keep typed text, so a list must be rendered anew after an item was removed.
  const [version, setVersion] = useState(0);
  const rows: ComponentChildren = items.map((item, index) => (
    <Field
      {...props}
      key={`${version} ${index}`}
      name={`${oneLine(name, 40)} ${index + 1}`}
      schema={own}
      value={item}
      path={[...path, index]}
      onChange={(next) => onChange(items.with(index, next))}
      onRemove={() => {
        setVersion(version + 1);
        onChange(items.toSpliced(index, 1));
      }}
    />
  ));
  return (
    <>
      {rows}
      <p>
        <button type="button" class="link" onClick={() => onChange([...items, emptyOf(own, root, path.length)])}>
          + {oneLine(name, 60)} {items.length + 1}
        </button>
      </p>
    </>
  );
}

type Kind = "object" | "array" | "text" | "number" | "boolean" | "choice" | "json";

/** How to edit a value: by its schema if the value has the schema's type. */
function kindOf(schema: JsonValue, value: JsonValue): Kind {
  if (choicesOf(schema)) return "choice";
  const of = objectOf(schema);
  switch (of?.["type"]) {
    case "string":
      return typeof value === "string" ? "text" : "json";
    case "number":
    case "integer":
      // An incomplete number is kept as text while it is typed.
      return typeof value === "number" || typeof value === "string" ? "number" : "json";
    case "boolean":
      return typeof value === "boolean" ? "boolean" : "json";
    case "array":
      return Array.isArray(value) && objectOf(of["items"]) ? "array" : "json";
    case "object":
      return objectOf(value) && objectOf(of["properties"]) ? "object" : "json";
    default:
      return "json";
  }
}

function choicesOf(schema: JsonValue): readonly JsonValue[] | undefined {
  const of = objectOf(schema);
  const choices = of?.["enum"] ?? (of && Object.hasOwn(of, "const") ? [of["const"] ?? null] : undefined);
  return Array.isArray(choices) && choices.every((one) => one === null || typeof one !== "object")
    ? choices
    : undefined;
}

/** Resolves a schema's reference and removes the alternative `null`. */
function resolved(schema: JsonValue, root: JsonValue): JsonValue {
  let of = objectOf(schema);
  for (let hops = 0; hops < DEEPEST && of; hops += 1) {
    const { $ref: reference, anyOf } = of;
    if (typeof reference === "string" && reference.startsWith("#/")) {
      const names = reference.slice(2).split("/");
      let target: JsonValue | undefined = root;
      for (const name of names) target = ownOf(target, name.replaceAll("~1", "/").replaceAll("~0", "~"));
      of = objectOf(target);
    } else if (Array.isArray(anyOf)) {
      const others = (anyOf as readonly JsonValue[]).filter((one) => objectOf(one)?.["type"] !== "null");
      if (others.length !== 1) return of;
      of = objectOf(others[0]);
    } else return of;
  }
  return of ?? null;
}

/** The initial value of a new field. */
function emptyOf(given: JsonValue, root: JsonValue, depth: number): JsonValue {
  const schema = resolved(given, root);
  const of = objectOf(schema);
  const { default: preset } = of ?? {};
  if (preset !== undefined) return preset;
  const choices = choicesOf(schema);
  if (choices) return choices[0] ?? null;
  switch (of?.["type"]) {
    case "string":
      return "";
    case "number":
    case "integer":
      return 0;
    case "boolean":
      return false;
    case "array":
      return [];
    case "object": {
      const { required, properties } = of;
      const names = Array.isArray(required) && depth < DEEPEST ? required.filter((one) => typeof one === "string") : [];
      return Object.fromEntries(names.map((name) => [name, emptyOf(ownOf(properties, name) ?? null, root, depth + 1)]));
    }
    default:
      return null;
  }
}

/** Parses a number. Other text is returned unchanged; the server then rejects the field. */
function numberIn(text: string): JsonValue {
  const number = Number(text);
  return text.trim() !== "" && Number.isFinite(number) ? number : text;
}

function objectOf(value: JsonValue | undefined): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

function ownOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  const of = objectOf(value);
  return of && Object.hasOwn(of, name) ? of[name] : undefined;
}

/** Parses JSON; `undefined` if the text is not valid JSON. */
export function jsonIn(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
