import { useState } from "preact/hooks";
import { Untrusted } from "./untrusted.tsx";

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

interface NodeProps {
  readonly name?: string | number;
  readonly value: JsonValue;
  readonly depth: number;
}

/** Deeper values are closed at first. */
const OPEN_DEPTH = 2;
const MOST_ITEMS = 100;
const LONGEST_TEXT = 2_000;

/** A JSON value that opens part by part. What is closed is not in the page, so that any depth and size can be shown. */
export function JsonView({ value }: { readonly value: JsonValue }) {
  return (
    <div class="json">
      <JsonNode value={value} depth={0} />
    </div>
  );
}

function JsonNode({ name, value, depth }: NodeProps) {
  const [isOpen, setOpen] = useState(depth < OPEN_DEPTH);
  const [most, setMost] = useState(MOST_ITEMS);
  if (value === null || typeof value !== "object") {
    return (
      <div class="json-line">
        <Key name={name} />
        <Leaf value={value} />
      </div>
    );
  }
  const isList = Array.isArray(value);
  const items: [string | number, JsonValue][] = isList ? [...value.entries()] : Object.entries(value);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (items.length === 0) {
    return (
      <div class="json-line">
        <Key name={name} />
        {open}
        {close}
      </div>
    );
  }
  return (
    <div class="json-node">
      <button type="button" class="json-line json-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Key name={name} />
        {open}
        {!isOpen && (
          <span class="quiet">
            {" "}
            {items.length} {items.length === 1 ? "item" : "items"} {close}
          </span>
        )}
      </button>
      {isOpen && (
        <div class="json-inside">
          {items.slice(0, most).map(([key, item]) => (
            <JsonNode key={key} name={key} value={item} depth={depth + 1} />
          ))}
          {items.length > most && (
            <button type="button" class="link" onClick={() => setMost(most * 10)}>
              … {items.length - most} more
            </button>
          )}
        </div>
      )}
      {isOpen && <div class="json-line">{close}</div>}
    </div>
  );
}

function Key({ name }: { readonly name: string | number | undefined }) {
  if (name === undefined) return null;
  return (
    <span class="json-key">
      <Untrusted text={String(name)} />
      <span class="quiet">: </span>
    </span>
  );
}

function Leaf({ value }: { readonly value: string | number | boolean | null }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== "string") return <span class="json-literal">{String(value)}</span>;
  const isLong = value.length > LONGEST_TEXT && !isWhole;
  return (
    <span class="json-text">
      "<Untrusted text={isLong ? value.slice(0, LONGEST_TEXT) : value} />"
      {isLong && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          … {value.length - LONGEST_TEXT} more characters
        </button>
      )}
    </span>
  );
}
